package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// copyTopic is one instance of an application that copies a topic, offsets in the transaction; a process by itself, to
// be killed: `suite copy BOOTSTRAP SOURCE TARGET GROUP TRANSACTIONAL_ID`. It ends when it meets what an application
// cannot mend. See ../copy/README.md for its environment.
func copyTopic(bootstrap, source, target, group, id string) {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap),
		kgo.TransactionalID(id),
		kgo.TransactionTimeout(10*time.Second),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(source),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.SessionTimeout(milliseconds("SESSION_MS", 6000)),
		kgo.HeartbeatInterval(500*time.Millisecond),
	)
	if err != nil {
		log.Fatal(err)
	}
	// A pause, so that it takes a while: somebody has to be killed in the middle.
	batch, pause := number("BATCH", 40), milliseconds("PAUSE_MS", 50)
	for {
		records := session.PollRecords(context.Background(), batch).Records()
		if len(records) > 0 {
			copyRecords(session, records, target, pause)
		}
	}
}

func copyRecords(session *kgo.GroupTransactSession, records []*kgo.Record, target string, pause time.Duration) {
	ctx := context.Background()
	if err := session.Begin(); err != nil {
		log.Fatalf("begin: %v", err)
	}
	first := kgo.AbortingFirstErrPromise(session.Client())
	for _, seen := range records {
		session.Produce(ctx, record(target, seen.Partition, string(seen.Value)), first.Promise())
	}
	time.Sleep(pause)
	failed := first.Err()
	committed, err := session.End(ctx, failed == nil)
	if err != nil {
		log.Fatalf("end: %v", err)
	}
	if !committed {
		// The session has gone back to what is committed by itself.
		fmt.Println("aborted:", failed)
	}
}

func number(setting string, otherwise int) int {
	if given, err := strconv.Atoi(os.Getenv(setting)); err == nil {
		return given
	}
	return otherwise
}

func milliseconds(setting string, otherwise int) time.Duration {
	return time.Duration(number(setting, otherwise)) * time.Millisecond
}
