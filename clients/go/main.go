// Command go judges a broker with franz-go: produce, transactions, fencing, timeout, offsets, takeover.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	records    = 20_000
	abortLimit = 25 * time.Second
)

func main() {
	if len(os.Args) == 7 && os.Args[1] == "copy" {
		copyTopic(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6])
	}
	check("idempotent_produce_to_one_partition", func(ctx context.Context) { idempotentProduce(ctx, 1) })
	check("idempotent_produce_to_three_partitions", func(ctx context.Context) { idempotentProduce(ctx, 3) })
	check("every_compression", everyCompression)
	check("goes_on_after_silence", goesOnAfterSilence)
	check("goes_on_after_its_topic_is_made_anew_and_forgotten", goesOnOnceItForgetsItsTopic)
	byName("goes_on_by_itself_after_its_topic_is_made_anew", goesOnAfterItsTopicIsMadeAnew)
	check("earlier_goes_on_by_itself_after_its_topic_is_made_anew", earlierGoesOnAfterItsTopicIsMadeAnew)
	check("transactions_over_three_topics", transactionsOverThreeTopics)
	check("fenced_on_send", func(ctx context.Context) { fencedOnSend(ctx, "send", 0) })
	check("fenced_on_send_to_an_untouched_partition", func(ctx context.Context) { fencedOnSend(ctx, "untouched", 1) })
	check("fenced_on_commit", fencedOnCommit)
	check("fenced_on_send_offsets", fencedOnSendOffsets)
	check("transaction_times_out", transactionTimesOut)
	check("offsets_in_a_transaction", offsetsInATransaction)
	check("epochs_run_out", epochsRunOut)
	stricter("takeover_in_one_request", "it answers CONCURRENT_TRANSACTIONS until the markers are written",
		takeoverInOneRequest)
	behindTheRelay(os.Getenv("RELAYED"))
	if failed {
		os.Exit(1)
	}
}

// behindTheRelay runs checks against the same broker or another one, of whose answers the relay loses some.
func behindTheRelay(relayed string) {
	if relayed == "" {
		fmt.Println("skipped lost_answers: there is no relay")
		return
	}
	bootstrap = relayed
	check("idempotent_produce_with_lost_answers", idempotentProduceWithLostAnswers)
	check("transactions_with_lost_answers", transactionsOverThreeTopics)
}

// Small batches, so that many answers can get lost, each a duplicate for the broker to recognise.
func idempotentProduceWithLostAnswers(ctx context.Context) {
	topic := createTopic(ctx, "lost-answers", 1)
	producer := client(kgo.ProducerBatchMaxBytes(2000))
	defer producer.Close()
	expected := make([]string, records)
	for i := range expected {
		expected[i] = strconv.Itoa(i)
		producer.Produce(ctx, record(topic, 0, expected[i]), nil)
	}
	must(producer.Flush(ctx), "flush")
	equal(expected, read(ctx, topic, 0, everything), topic)
}

// S16: the suite's server forgets producers after less than this.
func goesOnAfterSilence(ctx context.Context) {
	topic, producer := createTopic(ctx, "silence", 1), client()
	defer producer.Close()
	must(producer.ProduceSync(ctx, record(topic, 0, "before")).FirstErr(), "before")
	time.Sleep(2500 * time.Millisecond)
	must(producer.ProduceSync(ctx, record(topic, 0, "after")).FirstErr(), "after")
	equal([]string{"before", "after"}, read(ctx, topic, 0, everything), topic)
}

func everyCompression(ctx context.Context) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for kind, codec := range codecs {
		topic := createTopic(ctx, "compression-"+kind, 1)
		producer := client(kgo.ProducerBatchCompression(codec))
		expected := make([]string, 1000)
		for i := range expected {
			expected[i] = fmt.Sprintf("%s %d", kind, i)
			producer.Produce(ctx, record(topic, 0, expected[i]), nil)
		}
		must(producer.Flush(ctx), "flush")
		producer.Close()
		equal(expected, read(ctx, topic, 0, everything), kind)
	}
}

func idempotentProduce(ctx context.Context, partitions int32) {
	topic := createTopic(ctx, fmt.Sprintf("idempotent-%d", partitions), partitions)
	producer := client() // idempotent by default
	defer producer.Close()
	expected := make([][]string, partitions)
	for i := range records {
		p := int32(i) % partitions
		expected[p] = append(expected[p], strconv.Itoa(i))
		producer.Produce(ctx, record(topic, p, strconv.Itoa(i)), nil)
	}
	must(producer.Flush(ctx), "flush")
	for p := range partitions {
		equal(expected[p], read(ctx, topic, p, everything), fmt.Sprintf("%s-%d", topic, p))
	}
}

func transactionsOverThreeTopics(ctx context.Context) {
	topics := []string{}
	for _, which := range []string{"-a", "-b", "-c"} {
		topics = append(topics, createTopic(ctx, strings.ReplaceAll(bootstrap, ":", "-")+which, 3))
	}
	producer := transactional(name("transactions"))
	defer producer.Close()
	all, kept := []string{}, []string{}
	for transaction := range 12 {
		must(producer.BeginTransaction(), "begin")
		var values []string
		for i := range 5 {
			values = append(values, fmt.Sprintf("%d.%d", transaction, i))
		}
		sendToAll(ctx, producer, topics, values)
		commit := kgo.TransactionEndTry(transaction%3 != 1)
		must(producer.EndTransaction(ctx, commit), "end")
		all = append(all, values...)
		if commit {
			kept = append(kept, values...)
		}
	}
	for _, topic := range topics {
		for p := range int32(3) {
			equal(kept, read(ctx, topic, p, committed), fmt.Sprintf("%s-%d read_committed", topic, p))
			equal(all, read(ctx, topic, p, everything), fmt.Sprintf("%s-%d read_uncommitted", topic, p))
		}
	}
}

func sendToAll(ctx context.Context, producer *kgo.Client, topics []string, values []string) {
	var batch []*kgo.Record
	for _, value := range values {
		for _, topic := range topics {
			for p := range int32(3) {
				batch = append(batch, record(topic, p, value))
			}
		}
	}
	must(producer.ProduceSync(ctx, batch...).FirstErr(), "produce")
}

// fencingWalk: A begins and writes, B takes the transactional id over, A tries to go on, B commits: only B is seen.
func fencingWalk(ctx context.Context, what string, zombieStep func(zombie *kgo.Client, topic string)) {
	topic := createTopic(ctx, what, 2)
	a, b := transactional(topic), transactional(topic)
	defer a.Close()
	defer b.Close()
	must(a.BeginTransaction(), "A begins")
	must(a.ProduceSync(ctx, record(topic, 0, "of A")).FirstErr(), "A's record")
	initialise(ctx, b)
	equal(int64(2), end(ctx, topic, 0, committed), "last stable offset behind A's record and its abort marker")
	zombieStep(a, topic)
	must(b.BeginTransaction(), "B begins")
	must(b.ProduceSync(ctx, record(topic, 0, "of B")).FirstErr(), "B's record")
	must(b.EndTransaction(ctx, kgo.TryCommit), "B commits")
	equal([]string{"of B"}, read(ctx, topic, 0, committed), "read_committed")
	equal([]string{"of A", "of B"}, read(ctx, topic, 0, everything), "read_uncommitted")
	equal([]string{}, read(ctx, topic, 1, everything), "what the zombie wrote elsewhere")
}

// Partition 0 is in the zombie's transaction; partition 1 was never written by anyone.
func fencedOnSend(ctx context.Context, what string, partition int32) {
	fencingWalk(ctx, "fenced-"+what, func(zombie *kgo.Client, topic string) {
		refused := zombie.ProduceSync(ctx, record(topic, partition, "of the zombie")).FirstErr()
		raises(kerr.InvalidProducerEpoch, refused, "send")
		raises(kerr.OperationNotAttempted, zombie.EndTransaction(ctx, kgo.TryCommit), "commit after the refused send")
		raises(kerr.ProducerFenced, zombie.EndTransaction(ctx, kgo.TryAbort), "abort after the refused send")
	})
}

func fencedOnCommit(ctx context.Context) {
	fencingWalk(ctx, "fenced-commit", func(zombie *kgo.Client, _ string) {
		raises(kerr.ProducerFenced, zombie.EndTransaction(ctx, kgo.TryCommit), "commit")
	})
}

// The library sends offsets only for a group it is a member of, so both requests are put together here.
func sendOffset(ctx context.Context, producer *kgo.Client, group, topic string, offset int64) error {
	id, epoch, err := producer.ProducerID(ctx)
	must(err, "producer id")
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = group, id, epoch, group
	added, err := add.RequestWith(ctx, producer)
	must(err, "AddOffsetsToTxn")
	if err := kerr.ErrorForCode(added.ErrorCode); err != nil {
		return err
	}
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = offset
	inTopic := kmsg.NewTxnOffsetCommitRequestTopic()
	inTopic.Topic, inTopic.TopicID = topic, topicID(ctx, producer, topic) // by name up to version 5
	inTopic.Partitions = append(inTopic.Partitions, partition)
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch = group, id, epoch
	commit.Group, commit.Topics = group, append(commit.Topics, inTopic)
	answer, err := commit.RequestWith(ctx, producer)
	must(err, "TxnOffsetCommit")
	return kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
}

func fencedOnSendOffsets(ctx context.Context) {
	fencingWalk(ctx, "fenced-offsets", func(zombie *kgo.Client, topic string) {
		raises(kerr.ProducerFenced, sendOffset(ctx, zombie, topic, topic, 1), "AddOffsetsToTxn")
	})
}

func transactionTimesOut(ctx context.Context) {
	topic := createTopic(ctx, "timeout", 1)
	producer := transactional(topic, kgo.TransactionTimeout(time.Second))
	defer producer.Close()
	must(producer.BeginTransaction(), "begin")
	must(producer.ProduceSync(ctx, record(topic, 0, "too late")).FirstErr(), "the record")
	equal(int64(0), end(ctx, topic, 0, committed), "last stable offset while the transaction is open")
	await(abortLimit, func() bool { return end(ctx, topic, 0, committed) == 2 }, "abort by the broker")
	expected := []string{}
	if isKafka {
		raises(kerr.InvalidTxnState, producer.EndTransaction(ctx, kgo.TryCommit), "commit after the timeout")
	} else {
		commitFailsAndTheProducerLives(ctx, producer, topic)
		expected = append(expected, "next")
	}
	equal(expected, read(ctx, topic, 0, committed), "read_committed")
}

// Stricter than Kafka, where the producer is lost: the timed-out identity is remembered.
func commitFailsAndTheProducerLives(ctx context.Context, producer *kgo.Client, topic string) {
	raises(kerr.TransactionAbortable, producer.EndTransaction(ctx, kgo.TryCommit), "commit after the timeout")
	must(producer.EndTransaction(ctx, kgo.TryAbort), "abort after the timeout")
	must(producer.BeginTransaction(), "begin after the timeout")
	must(producer.ProduceSync(ctx, record(topic, 0, "next")).FirstErr(), "the next record")
	must(producer.EndTransaction(ctx, kgo.TryCommit), "the next commit")
}

func offsetsInATransaction(ctx context.Context) {
	group := createTopic(ctx, "offsets", 1)
	producer := transactional(group)
	defer producer.Close()
	admin := kadm.NewClient(client())
	defer admin.Close()
	isAt := func(offset int64) bool {
		offsets, err := admin.FetchOffsets(ctx, group)
		must(err, "OffsetFetch")
		seen, ok := offsets.Lookup(group, 0)
		return ok && seen.At == offset
	}
	transactionWithOffset(ctx, producer, group, 5, kgo.TryCommit)
	eventually(func() bool { return isAt(5) }, "offset after the commit")
	transactionWithOffset(ctx, producer, group, 9, kgo.TryAbort)
	eventually(func() bool { return isAt(5) }, "offset after an abort")
}

// A record goes with the offset: without one the library does not end the transaction on the wire.
func transactionWithOffset(
	ctx context.Context, producer *kgo.Client, group string, offset int64, commit kgo.TransactionEndTry,
) {
	must(producer.BeginTransaction(), "begin")
	must(producer.ProduceSync(ctx, record(group, 0, "with an offset")).FirstErr(), "the record")
	must(sendOffset(ctx, producer, group, group, offset), "send offset")
	must(producer.EndTransaction(ctx, commit), "end")
}

func takeoverInOneRequest(ctx context.Context) {
	fastest := time.Hour
	for round := range 3 {
		fastest = min(fastest, takeover(ctx, round))
	}
	if fastest >= 100*time.Millisecond {
		fail("the fastest of three takeovers took %v", fastest)
	}
}

// initCounter counts the InitProducerId requests that were put on the wire.
type initCounter struct{ requests atomic.Int32 }

func (counter *initCounter) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == int16(kmsg.InitProducerID) {
		counter.requests.Add(1)
	}
}

func takeover(ctx context.Context, round int) time.Duration {
	topic := createTopic(ctx, fmt.Sprintf("takeover-%d", round), 3)
	counter := &initCounter{}
	a, b := transactional(topic), transactional(topic, kgo.WithHooks(counter))
	defer a.Close()
	defer b.Close()
	must(a.BeginTransaction(), "A begins")
	sendToAll(ctx, a, []string{topic}, []string{"of A"})
	start := time.Now()
	initialise(ctx, b)
	elapsed := time.Since(start)
	equal(int32(1), counter.requests.Load(), "InitProducerId requests of the takeover")
	for p := range int32(3) {
		equal(int64(2), end(ctx, topic, p, committed), "last stable offset right after the takeover")
	}
	return elapsed
}

var _ kgo.HookBrokerWrite = (*initCounter)(nil)
