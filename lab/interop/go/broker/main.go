// Command broker plays HyperFleet's services on a message broker: it publishes as their Sentinel does, and subscribes as
// their adapters do.
//
//	usage: broker publish TOPIC ID GENERATION
//	       broker declare TOPIC SUBSCRIPTION
//	       broker subscribe TOPIC SUBSCRIPTION
//
// The broker is named by the variables of HyperFleet's services: BROKER_TYPE; BROKER_RABBITMQ_URL, _EXCHANGE, _EXCHANGE_TYPE
// and _QUEUE; BROKER_GOOGLEPUBSUB_PROJECT_ID and PUBSUB_EMULATOR_HOST. What is missing there is created.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/openshift-hyperfleet/pull-secret/lab/interop/go/internal/check"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logger := watermill.NewStdLogger(false, false)
	switch arguments := os.Args[1:]; {
	case len(arguments) == 4 && arguments[0] == "publish":
		generation := check.Must(strconv.ParseInt(arguments[3], 10, 64))
		publish(logger, arguments[1], arguments[2], generation)
	case len(arguments) == 3 && arguments[0] == "declare":
		declare(ctx, logger, arguments[1], arguments[2])
	case len(arguments) == 3 && arguments[0] == "subscribe":
		subscribe(ctx, logger, arguments[1], arguments[2])
	default:
		fmt.Fprintln(os.Stderr, "usage: broker publish TOPIC ID GENERATION | broker declare|subscribe TOPIC SUBSCRIPTION")
		os.Exit(2)
	}
}
