package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// S17. From 1.20 on the library writes by topic id, and from 1.22 on it holds on to the id that it saw first: as soon as
// metadata shows another one, it fails what is sent to the topic with UNKNOWN_TOPIC_ID of its own making, whatever it is
// answered, until the application tells it to forget the topic. It then goes on with the same producer id.
func goesOnOnceItForgetsItsTopic(ctx context.Context) {
	acrossARemake(ctx, "forgotten", func(producer *kgo.Client, topic string) { producer.PurgeTopicsFromClient(topic) })
}

// byName runs a check against a server with `semel.topic.ids` false: the library then has no id to hold on to.
func byName(what string, body func(ctx context.Context)) {
	server, direct := os.Getenv("BY_NAME"), bootstrap
	if server == "" {
		fmt.Printf("skipped %s: there is no server that keeps topic ids to itself\n", what)
		return
	}
	bootstrap = server
	check(what, body)
	bootstrap = direct
}

func goesOnAfterItsTopicIsMadeAnew(ctx context.Context) {
	acrossARemake(ctx, "by-name", func(*kgo.Client, string) {})
}

// The last version that writes by name only, on a server as it is by default.
func earlierGoesOnAfterItsTopicIsMadeAnew(ctx context.Context) {
	earlier := exec.CommandContext(ctx, os.Getenv("EARLIER"), bootstrap, name("anew-earlier"))
	earlier.Stderr = os.Stderr
	printed, err := earlier.Output()
	must(err, "franz-go 1.19")
	equal("c\nd\n", string(printed), "what it wrote after its topic was made anew")
}

// acrossARemake writes with one producer before and after its topic is deleted and made anew.
func acrossARemake(ctx context.Context, what string, remade func(producer *kgo.Client, topic string)) {
	topic, producer := createTopic(ctx, what, 1), client()
	defer producer.Close()
	send := func(value string) {
		must(producer.ProduceSync(ctx, record(topic, 0, value)).FirstErr(), value)
	}
	send("a")
	send("b")
	admin := kadm.NewClient(client())
	defer admin.Close()
	_, err := admin.DeleteTopic(ctx, topic)
	must(err, "delete "+topic)
	await(10*time.Second, func() bool {
		_, err := admin.CreateTopic(ctx, 1, 1, nil, topic)
		return err == nil
	}, "the topic made anew")
	remade(producer, topic)
	send("c")
	send("d")
	equal([]string{"c", "d"}, read(ctx, topic, 0, everything), topic)
}
