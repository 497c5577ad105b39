package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	bootstrap  = os.Getenv("BOOTSTRAP")
	run        = fmt.Sprintf("%x", time.Now().UnixNano())
	committed  = kgo.ReadCommitted()
	everything = kgo.ReadUncommitted()
)

// name makes a name that no other run uses.
func name(what string) string { return "go-" + run + "-" + what }

func client(options ...kgo.Opt) *kgo.Client {
	options = append([]kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.FetchMaxWait(50 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}, options...)
	made, err := kgo.NewClient(options...)
	must(err, "new client")
	return made
}

// transactional makes a producer; its first request for a transactional id is InitProducerId.
func transactional(id string, options ...kgo.Opt) *kgo.Client {
	return client(append(options, kgo.TransactionalID(id))...)
}

// initialise asks for the identity now, as other clients' initTransactions does.
func initialise(ctx context.Context, producer *kgo.Client) {
	_, _, err := producer.ProducerID(ctx)
	must(err, "InitProducerId")
}

func createTopic(ctx context.Context, what string, partitions int32) string {
	admin := kadm.NewClient(client())
	defer admin.Close()
	topic := name(what)
	_, err := admin.CreateTopic(ctx, partitions, 1, nil, topic)
	must(err, "create "+topic)
	return topic
}

func topicID(ctx context.Context, asking *kgo.Client, topic string) [16]byte {
	topics, err := kadm.NewClient(asking).ListTopics(ctx, topic)
	must(err, "metadata of "+topic)
	return topics[topic].ID
}

func record(topic string, partition int32, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
}

// end is the last stable offset or the high watermark of a partition, by the isolation.
func end(ctx context.Context, topic string, partition int32, isolation kgo.IsolationLevel) int64 {
	admin := kadm.NewClient(client())
	defer admin.Close()
	list := admin.ListEndOffsets
	if isolation == committed {
		list = admin.ListCommittedOffsets
	}
	offsets, err := list(ctx, topic)
	must(err, "list offsets")
	offset, ok := offsets.Lookup(topic, partition)
	if !ok || offset.Err != nil {
		fail("list offsets of %s-%d: %v", topic, partition, offset.Err)
	}
	return offset.Offset
}

// read returns all values of one partition up to its end as that isolation sees it, by an assigned consumer.
func read(ctx context.Context, topic string, partition int32, isolation kgo.IsolationLevel) []string {
	if isolation == committed {
		eventually(func() bool {
			return end(ctx, topic, partition, committed) == end(ctx, topic, partition, everything)
		}, "all markers written")
	}
	until := end(ctx, topic, partition, isolation)
	// Markers are kept, so that the last offset is seen whatever stands there.
	reader := client(kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	defer reader.Close()
	values := []string{}
	for next := int64(0); next < until; {
		fetched := reader.PollFetches(ctx)
		must(fetched.Err0(), fmt.Sprintf("read %s-%d, at %d of %d", topic, partition, next, until))
		fetched.EachRecord(func(seen *kgo.Record) {
			next = seen.Offset + 1
			if !seen.Attrs.IsControl() {
				values = append(values, string(seen.Value))
			}
		})
	}
	return values
}
