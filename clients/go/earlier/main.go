// Command earlier is an idempotent producer of the last franz-go that names topics by name only: 1.20 and later hold on to
// the topic id that they saw first. It writes "a" and "b" to a topic, makes the topic anew, writes "c" and "d" and prints
// the values that the topic holds then.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	bootstrap, topic := os.Args[1], os.Args[2]
	producer, admin := client(bootstrap), kadm.NewClient(client(bootstrap))
	makeTopic(ctx, admin, topic)
	send(ctx, producer, topic, "a", "b")
	_, err := admin.DeleteTopic(ctx, topic)
	must(err)
	makeTopic(ctx, admin, topic)
	send(ctx, producer, topic, "c", "d")
	reader := client(bootstrap, kgo.ConsumeTopics(topic))
	for seen := 0; seen < 2; {
		fetched := reader.PollFetches(ctx)
		must(fetched.Err())
		fetched.EachRecord(func(record *kgo.Record) {
			fmt.Println(string(record.Value))
			seen++
		})
	}
}

func client(bootstrap string, options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(bootstrap), kgo.MetadataMinAge(100*time.Millisecond))...)
	must(err)
	return made
}

// makeTopic asks again while a topic of that name is still being deleted.
func makeTopic(ctx context.Context, admin *kadm.Client, topic string) {
	for {
		_, err := admin.CreateTopic(ctx, 1, 1, nil, topic)
		if err == nil {
			return
		}
		must(ctx.Err())
		time.Sleep(20 * time.Millisecond)
	}
}

func send(ctx context.Context, producer *kgo.Client, topic string, values ...string) {
	for _, value := range values {
		must(producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr())
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
