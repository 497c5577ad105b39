package semel.clients;

import static semel.clients.Broker.COMMITTED;
import static semel.clients.Checks.await;
import static semel.clients.Checks.equal;
import static semel.clients.Checks.eventually;
import static semel.clients.Checks.raises;
import static semel.clients.Tools.hasLine;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidRegularExpression;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TransactionAbortableException;
import org.apache.kafka.common.errors.TransactionalIdNotFoundException;
import org.apache.kafka.tools.TransactionsCommand;

/** Transactions as an administrator sees and ends them (KIP-664), by Admin and by `kafka-transactions.sh`. */
final class Administration {
    private static final Duration LIMIT = Duration.ofSeconds(15);
    /** `bench/peers/kafka` keeps groups in fewer partitions than Kafka's default, by which Semel names them. */
    private static final int OFFSETS_PARTITIONS = Checks.KAFKA ? 4 : 50;

    private final Broker broker;

    Administration(Broker broker) {
        this.broker = broker;
    }

    void run(Checks checks) {
        checks.check("describe_transactions", this::describeTransactions);
        checks.check("list_transactions", this::listTransactions);
        checks.check("describe_producers", this::describeProducers);
        checks.check("fence_producers", this::fenceProducers);
        checks.check("abort_transaction", this::abortTransaction);
        checks.check("transactions_command", this::transactionsCommand);
    }

    /** A producer with one record of an open transaction in partition 0. */
    private final class Open implements AutoCloseable {
        final String id;
        final TopicPartition partition;
        final KafkaProducer<String, String> producer;

        Open(String what) throws Exception {
            id = broker.name(what);
            partition = new TopicPartition(broker.createTopic(what, 2), 0);
            producer = broker.producer(Map.of("transactional.id", id, "transaction.timeout.ms", "45000"));
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(partition.topic(), 0, null, "open")).get();
        }

        TransactionDescription describe() throws Exception {
            return Administration.this.describe(id);
        }

        ProducerState state() throws Exception {
            List<ProducerState> states = producersOf(partition);
            equal(1, states.size(), "active producers");
            return states.get(0);
        }

        boolean isEnded() {
            return broker.end(partition.topic(), 0, COMMITTED) == 2;
        }

        @Override
        public void close() {
            producer.close(Duration.ZERO);
        }
    }

    private TransactionDescription describe(String id) throws Exception {
        return broker.admin().describeTransactions(List.of(id)).description(id).get();
    }

    private boolean isIn(String id, TransactionState state) {
        try {
            return describe(id).state() == state;
        } catch (Exception failure) {
            throw new AssertionError("describing " + id, failure);
        }
    }

    private List<ProducerState> producersOf(TopicPartition partition) throws Exception {
        return broker.admin().describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers();
    }

    void describeTransactions() throws Exception {
        long before = System.currentTimeMillis();
        try (Open open = new Open("describe")) {
            String group = broker.name("describe");
            open.producer.sendOffsetsToTransaction(
                    Map.of(open.partition, new OffsetAndMetadata(1)), new ConsumerGroupMetadata(group));
            TransactionDescription seen = open.describe();
            equal(TransactionState.ONGOING, seen.state(), "state");
            equal(45_000L, seen.transactionTimeoutMs(), "timeout");
            long start = seen.transactionStartTimeMs().orElse(-1);
            equal(true, before - 100 <= start && start <= System.currentTimeMillis() + 100, "start is now");
            TopicPartition offsets =
                    new TopicPartition("__consumer_offsets", Math.abs(group.hashCode()) % OFFSETS_PARTITIONS);
            equal(Set.of(open.partition, offsets), seen.topicPartitions(), "partitions");
            open.producer.commitTransaction();
            eventually(() -> isIn(open.id, TransactionState.COMPLETE_COMMIT), "completed");
            equal(Set.of(), open.describe().topicPartitions(), "partitions after the commit");
        }
        raises(TransactionalIdNotFoundException.class, () -> describe(broker.name("nobody")), "unknown id");
    }

    private Set<String> list(ListTransactionsOptions options) throws Exception {
        Collection<TransactionListing> all = broker.admin().listTransactions(options).all().get();
        Set<String> mine = new TreeSet<>();
        String prefix = broker.name("list");
        all.stream().map(TransactionListing::transactionalId).filter(id -> id.startsWith(prefix)).forEach(mine::add);
        return mine;
    }

    void listTransactions() throws Exception {
        try (Open open = new Open("list-open");
                Open ended = new Open("list-ended")) {
            ended.producer.abortTransaction();
            eventually(() -> isIn(ended.id, TransactionState.COMPLETE_ABORT), "completed");
            equal(Set.of(open.id, ended.id), list(new ListTransactionsOptions()), "without a filter");
            equal(Set.of(open.id), list(states(TransactionState.ONGOING)), "open ones");
            equal(Set.of(ended.id), list(states(TransactionState.COMPLETE_ABORT, TransactionState.PREPARE_ABORT)),
                    "aborted ones");
            List<Long> producers = List.of(ended.describe().producerId());
            equal(Set.of(ended.id), list(new ListTransactionsOptions().filterProducerIds(producers)), "by producer");
            await(LIMIT, () -> isListed(open.id, new ListTransactionsOptions().filterOnDuration(100)),
                    "open for longer than 100 ms");
            equal(Set.of(), list(states(TransactionState.ONGOING).filterOnDuration(3_600_000)), "open for an hour");
            equal(Set.of(ended.id), list(pattern(".*list-en[a-z]ed")), "by pattern");
            equal(Set.of(), list(pattern("list")), "by a pattern that matches a part only");
            raises(InvalidRegularExpression.class, () -> list(pattern("(")), "a pattern that is none");
        }
    }

    private boolean isListed(String id, ListTransactionsOptions options) {
        try {
            return list(options).contains(id);
        } catch (Exception failure) {
            throw new AssertionError("listing transactions", failure);
        }
    }

    private static ListTransactionsOptions states(TransactionState... states) {
        return new ListTransactionsOptions().filterStates(Arrays.asList(states));
    }

    private static ListTransactionsOptions pattern(String pattern) {
        return new ListTransactionsOptions().filterOnTransactionalIdPattern(pattern);
    }

    void describeProducers() throws Exception {
        try (Open open = new Open("producers")) {
            long before = System.currentTimeMillis();
            try (KafkaProducer<String, String> plain = broker.idempotentProducer()) {
                for (int i = 0; i < 3; i++) {
                    plain.send(new ProducerRecord<>(open.partition.topic(), 0, null, "plain"));
                }
            }
            TransactionDescription owner = open.describe();
            List<ProducerState> states = producersOf(open.partition);
            equal(2, states.size(), "active producers");
            for (ProducerState state : states) {
                boolean isOwner = state.producerId() == owner.producerId();
                equal(isOwner ? 0 : 2, state.lastSequence(), "last sequence");
                equal(isOwner ? owner.producerEpoch() : 0, state.producerEpoch(), "epoch");
                equal(isOwner ? 0L : -1L, state.currentTransactionStartOffset().orElse(-1), "open since");
                equal(true, state.lastTimestamp() >= before - 20_000, "last written now");
            }
            open.producer.abortTransaction();
        }
    }

    void fenceProducers() throws Exception {
        try (Open open = new Open("fenced-by-admin")) {
            TransactionDescription before = open.describe();
            var fenced = broker.admin().fenceProducers(List.of(open.id));
            equal(before.producerId(), fenced.producerId(open.id).get(), "producer id");
            equal(true, fenced.epochId(open.id).get() > before.producerEpoch(), "a newer epoch");
            eventually(open::isEnded, "aborted");
            raises(ProducerFencedException.class, open.producer::commitTransaction, "commit of the fenced one");
        }
    }

    /** On Kafka the producer can commit what is left of its transaction; here the whole of it is aborted, and it lives. */
    void abortTransaction() throws Exception {
        try (Open open = new Open("aborted-by-admin")) {
            ProducerState seen = open.state();
            broker.admin().abortTransaction(new AbortTransactionSpec(open.partition, seen.producerId(),
                    (short) seen.producerEpoch(), seen.coordinatorEpoch().orElse(0))).all().get();
            eventually(open::isEnded, "aborted");
            if (Checks.KAFKA) {
                open.producer.commitTransaction();
            } else {
                equal(TransactionState.COMPLETE_ABORT, open.describe().state(), "state");
                raises(TransactionAbortableException.class, open.producer::commitTransaction, "commit");
                open.producer.abortTransaction();
                open.producer.beginTransaction();
                open.producer.send(new ProducerRecord<>(open.partition.topic(), 0, null, "next"));
                open.producer.commitTransaction();
            }
            List<String> expected = Checks.KAFKA ? List.of() : List.of("next");
            equal(expected, broker.read(open.partition.topic(), 0, COMMITTED), COMMITTED);
        }
    }

    /** What `kafka-transactions.sh` prints, without the lines that are empty. */
    private List<String> transactions(String... arguments) throws Exception {
        return Tools.run(TransactionsCommand::main, broker, arguments);
    }

    void transactionsCommand() throws Exception {
        try (Open open = new Open("command")) {
            TransactionDescription owner = open.describe();
            String topic = open.partition.topic();
            String producer = String.valueOf(owner.producerId());
            hasLine(transactions("list"), open.id, String.valueOf(owner.coordinatorId()), producer, "Ongoing");
            equal(2, transactions("list", "--transactional-id-pattern", open.id).size(), "lines of a list of one");
            hasLine(transactions("describe", "--transactional-id", open.id), String.valueOf(owner.coordinatorId()),
                    open.id, producer, String.valueOf(owner.producerEpoch()), "Ongoing", "45000");
            hasLine(transactions("describe-producers", "--topic", topic, "--partition", "0"), producer,
                    String.valueOf(owner.producerEpoch()));
            equal(1, transactions("find-hanging", "--topic", topic).size(), "lines of find-hanging: the head alone");
            transactions("abort", "--topic", topic, "--partition", "0", "--start-offset", "0");
            eventually(open::isEnded, "aborted");
            if (!Checks.KAFKA) {
                equal(TransactionState.COMPLETE_ABORT, open.describe().state(), "the whole transaction");
            }
        }
    }
}
