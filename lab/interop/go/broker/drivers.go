package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill-googlecloud/v2/pkg/googlecloud"
	"github.com/ThreeDotsLabs/watermill/message"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func newPublisher(logger watermill.LoggerAdapter) (message.Publisher, error) {
	switch kind := os.Getenv("BROKER_TYPE"); kind {
	case "rabbitmq":
		return amqp.NewPublisher(rabbitMQ(""), logger)
	case "googlepubsub":
		return googlecloud.NewPublisher(googlecloud.PublisherConfig{ProjectID: project()}, logger)
	default:
		return nil, unsupported(kind)
	}
}

func newSubscriber(ctx context.Context, logger watermill.LoggerAdapter, subscription string) (message.Subscriber, error) {
	switch kind := os.Getenv("BROKER_TYPE"); kind {
	case "rabbitmq":
		return amqp.NewSubscriber(rabbitMQ(subscription), logger)
	case "googlepubsub":
		return newPubSubSubscriber(ctx, logger, subscription)
	default:
		return nil, unsupported(kind)
	}
}

func unsupported(kind string) error {
	return fmt.Errorf("BROKER_TYPE is %q; set it to rabbitmq or googlepubsub", kind)
}

func project() string { return os.Getenv("BROKER_GOOGLEPUBSUB_PROJECT_ID") }

// rabbitMQ returns the topology of HyperFleet's broker library: a fanout exchange with the topic's name and a queue
// TOPIC-SUBSCRIPTION, unless other ones are set. The charts set an exchange of type topic.
func rabbitMQ(subscription string) amqp.Config {
	queue := func(topic string) string {
		return cmp.Or(os.Getenv("BROKER_RABBITMQ_QUEUE"), topic) + "-" + subscription
	}
	config := amqp.NewDurablePubSubConfig(os.Getenv("BROKER_RABBITMQ_URL"), queue)
	config.Exchange.Type = cmp.Or(os.Getenv("BROKER_RABBITMQ_EXCHANGE_TYPE"), config.Exchange.Type)
	config.Exchange.GenerateName = func(topic string) string {
		return cmp.Or(os.Getenv("BROKER_RABBITMQ_EXCHANGE"), topic)
	}
	return config
}

// newPubSubSubscriber uses the subscription by its own name. One that it creates dead-letters to SUBSCRIPTION-dlq after
// five attempts.
func newPubSubSubscriber(
	ctx context.Context, logger watermill.LoggerAdapter, subscription string,
) (message.Subscriber, error) {
	deadLetters := fmt.Sprintf("projects/%s/topics/%s-dlq", project(), subscription)
	if err := ensureTopic(ctx, deadLetters); err != nil {
		return nil, err
	}
	return googlecloud.NewSubscriber(googlecloud.SubscriberConfig{
		ProjectID:                project(),
		GenerateSubscriptionName: func(string) string { return subscription },
		GenerateSubscription: func(googlecloud.GenerateSubscriptionParams) *pubsubpb.Subscription {
			policy := &pubsubpb.DeadLetterPolicy{DeadLetterTopic: deadLetters, MaxDeliveryAttempts: 5}
			return &pubsubpb.Subscription{DeadLetterPolicy: policy}
		},
	}, logger)
}

func ensureTopic(ctx context.Context, name string) error {
	client, err := pubsub.NewClient(ctx, project())
	if err != nil {
		return err
	}
	_, err = client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: name})
	if status.Code(err) == codes.AlreadyExists {
		err = nil
	}
	if closed := client.Close(); err == nil {
		err = closed
	}
	return err
}
