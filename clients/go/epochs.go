package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lastEpoch is the last epoch that a producer gets.
const lastEpoch = 32_766

// epochsRunOut spends the epochs of a producer id: the next transaction or instance goes on under another one.
func epochsRunOut(ctx context.Context) {
	topic := createTopic(ctx, "epochs", 1)
	first := raiseEpoch(topic, lastEpoch-1)
	for _, instance := range []string{"a", "b"} {
		threeTransactions(ctx, topic, instance)
	}
	equal([]string{"a0", "a2", "b0", "b2"}, read(ctx, topic, 0, committed), "read_committed")
	if last := raiseEpoch(topic, 0); last == first {
		fail("still under producer id %d", first)
	}
}

// threeTransactions commits, aborts, commits; the topic's name is the transactional id.
func threeTransactions(ctx context.Context, topic, instance string) {
	producer := transactional(topic)
	defer producer.Close()
	for transaction := range 3 {
		must(producer.BeginTransaction(), "begin")
		value := fmt.Sprintf("%s%d", instance, transaction)
		must(producer.ProduceSync(ctx, record(topic, 0, value)).FirstErr(), "the record "+value)
		must(producer.EndTransaction(ctx, kgo.TransactionEndTry(transaction != 1)), "the end of "+value)
	}
}

// raiseEpoch initialises a transactional id, many requests in flight, until its epoch is at least this, as tens of
// thousands of restarts of its producer would; it returns the producer id.
func raiseEpoch(id string, epoch int) int64 {
	connection, err := net.Dial("tcp", bootstrap)
	must(err, "connect")
	defer connection.Close()
	request := kmsg.NewInitProducerIDRequest()
	request.SetVersion(1)
	request.TransactionalID, request.TransactionTimeoutMillis = &id, 60_000
	// Key, version, correlation id, no client id.
	body := request.AppendTo([]byte{0, 22, 0, 1, 0, 0, 0, 0, 0xff, 0xff})
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	answers := bufio.NewReader(connection)
	producer := int64(-1)
	for reached := -1; reached < epoch || producer < 0; {
		count := min(90, max(1, epoch-reached))
		for range count {
			_, err = connection.Write(frame)
			must(err, "write")
		}
		for range count {
			// Length, correlation id, throttle time, code, producer id, epoch.
			var answer [24]byte
			_, err = io.ReadFull(answers, answer[:])
			must(err, "read")
			switch code := binary.BigEndian.Uint16(answer[12:]); code {
			case 0:
				producer = int64(binary.BigEndian.Uint64(answer[14:]))
				reached = int(binary.BigEndian.Uint16(answer[22:]))
			case 51: // Kafka has not finished the one before.
			default:
				fail("InitProducerId: error %d", code)
			}
		}
	}
	return producer
}
