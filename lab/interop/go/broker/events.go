package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/uuid"

	"github.com/openshift-hyperfleet/pull-secret/lab/interop/go/internal/check"
)

// reference is the data of an event: the resource that is to be reconciled.
type reference struct {
	ID         string `json:"id"`
	Kind       string `json:"kind"`
	Href       string `json:"href"`
	Generation int64  `json:"generation"`
}

// delivery is an event as the SDK decodes it.
type delivery struct {
	Invalid         string            `json:"invalid,omitempty"`
	ID              string            `json:"id"`
	Type            string            `json:"type"`
	Source          string            `json:"source"`
	SpecVersion     string            `json:"specversion"`
	DataContentType string            `json:"datacontenttype"`
	Time            string            `json:"time"`
	Data            reference         `json:"data"`
	UUID            string            `json:"uuid"`
	Metadata        map[string]string `json:"metadata"`
}

// publish sends one event in the form of HyperFleet's Sentinel: structured JSON without a time, whose id is the message's.
func publish(logger watermill.LoggerAdapter, topic, id string, generation int64) {
	event := cloudevents.NewEvent()
	event.SetID(check.Must(uuid.NewV7()).String())
	event.SetSource("hyperfleet-sentinel")
	event.SetType("com.redhat.hyperfleet.cluster.reconcile")
	href := "/api/hyperfleet/v1/clusters/" + id
	check.OK(event.SetData(cloudevents.ApplicationJSON, reference{id, "Cluster", href, generation}))
	payload := check.Must(json.Marshal(event))

	publisher := check.Must(newPublisher(logger))
	check.OK(publisher.Publish(topic, message.NewMessage(event.ID(), payload)))
	check.OK(publisher.Close())
}

// declare creates what the subscription needs, and leaves its events to others.
func declare(ctx context.Context, logger watermill.LoggerAdapter, topic, subscription string) {
	subscriber := check.Must(newSubscriber(ctx, logger, subscription))
	check.OK(subscriber.(message.SubscribeInitializer).SubscribeInitialize(topic))
	check.OK(subscriber.Close())
}

// subscribe prints "subscribed" when events no longer get lost, then each event as a line of JSON. It ends on a signal.
func subscribe(ctx context.Context, logger watermill.LoggerAdapter, topic, subscription string) {
	router := check.Must(message.NewRouter(message.RouterConfig{}, logger))
	router.AddMiddleware(middleware.Recoverer)
	subscriber := check.Must(newSubscriber(ctx, logger, subscription))
	said := make(chan struct{})
	router.AddConsumerHandler(subscription, topic, subscriber, func(received *message.Message) error {
		// An event may wait already.
		<-said
		event := cloudevents.NewEvent()
		if err := json.Unmarshal(received.Payload, &event); err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(decoded(&event, received))
	})
	go func() {
		<-router.Running()
		fmt.Println("subscribed")
		close(said)
	}()
	check.OK(router.Run(ctx))
}

func decoded(event *cloudevents.Event, received *message.Message) delivery {
	d := delivery{
		ID:              event.ID(),
		Type:            event.Type(),
		Source:          event.Source(),
		SpecVersion:     event.SpecVersion(),
		DataContentType: event.DataContentType(),
		UUID:            received.UUID,
		Metadata:        received.Metadata,
	}
	if !event.Time().IsZero() {
		d.Time = event.Time().Format(time.RFC3339Nano)
	}
	if err := event.Validate(); err != nil {
		d.Invalid = err.Error()
	} else if err := event.DataAs(&d.Data); err != nil {
		d.Invalid = err.Error()
	}
	return d
}
