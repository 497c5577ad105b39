package semel.clients;

import static semel.clients.Broker.COMMITTED;
import static semel.clients.Broker.UNCOMMITTED;
import static semel.clients.Checks.await;
import static semel.clients.Checks.equal;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Consumers that subscribe: an application in two instances, one of them killed in the middle. */
final class Groups {
    private static final int PARTITIONS = 3;
    private static final int COPIED = 3000;
    private static final String RANGE = "Range";
    private static final String COOPERATIVE = "CooperativeSticky";
    private static final String CONSUMER = "consumer";
    /** Members of KIP-848 are taken for dead after 45 s. */
    private static final Duration TAKE_OVER = Duration.ofSeconds(90);

    private final Broker broker;

    Groups(Broker broker) {
        this.broker = broker;
    }

    void run(Checks checks) {
        checks.check("group_copies_each_record_once_with_an_instance_killed", () -> copies("range", RANGE));
        checks.check("group_copies_each_record_once_with_an_instance_killed_cooperative",
                () -> copies("cooperative", COOPERATIVE));
        checks.check("group_copies_each_record_once_with_an_instance_killed_consumer",
                () -> copies(CONSUMER, CONSUMER));
        checks.check("group_reads_the_topics_that_match_a_pattern", this::readsByPattern);
    }

    /** KIP-848 with a pattern, which the broker resolves; a topic that is made later is read, too. */
    private void readsByPattern() throws Exception {
        String first = broker.createTopic("pattern-first", 1);
        broker.createTopic("other-pattern", 1);
        String prefix = first.substring(0, first.indexOf("first"));
        Properties config = new Properties();
        config.putAll(Map.of("bootstrap.servers", broker.bootstrap(), "group.id", broker.name("by-pattern"),
                "group.protocol", CONSUMER, "auto.offset.reset", "earliest"));
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, text, text);
                KafkaProducer<String, String> producer = broker.idempotentProducer()) {
            consumer.subscribe(new SubscriptionPattern(prefix + ".*"));
            producer.send(new ProducerRecord<>(first, "one")).get();
            await(Duration.ofSeconds(30), () -> hasRead(consumer, "one"), "the topic that is there is read");
            String second = broker.createTopic("pattern-second", 1);
            producer.send(new ProducerRecord<>(second, "two")).get();
            await(Duration.ofSeconds(30), () -> hasRead(consumer, "two"), "the topic that comes is read");
            equal(Set.of(first, second),
                    consumer.assignment().stream().map(TopicPartition::topic).collect(Collectors.toSet()), "topics");
        }
    }

    private static boolean hasRead(KafkaConsumer<String, String> consumer, String value) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
            if (record.value().equals(value)) {
                return true;
            }
        }
        return false;
    }

    private void copies(String what, String assignor) throws Exception {
        String source = broker.createTopic("copy-in-" + what, PARTITIONS);
        String target = broker.createTopic("copy-out-" + what, PARTITIONS);
        String group = broker.name("copy-" + what);
        try (KafkaProducer<String, String> producer = broker.idempotentProducer()) {
            for (int i = 0; i < COPIED; i++) {
                producer.send(new ProducerRecord<>(source, i % PARTITIONS, null, String.valueOf(i)));
            }
        }
        Path output = Files.createTempFile("copier", ".log");
        Process first = start(output, source, target, group, group + "-a", assignor);
        Process second = start(output, source, target, group, group + "-b", assignor);
        try {
            await(Duration.ofSeconds(40), () -> copied(target) > COPIED / 10, "the copy gets going");
            first.destroyForcibly().waitFor();
            await(TAKE_OVER, () -> committed(source, group) == COPIED, "one takes over from the other");
            equal(true, second.isAlive(), "the other instance lives");
            describe(group);
        } catch (AssertionError failure) {
            throw new AssertionError(failure.getMessage() + "; copiers said: " + Files.readString(output), failure);
        } finally {
            first.destroyForcibly().waitFor();
            second.destroyForcibly().waitFor();
            Files.delete(output);
        }
        for (int p = 0; p < PARTITIONS; p++) {
            int partition = p;
            await(Duration.ofSeconds(30),
                    () -> broker.end(target, partition, COMMITTED) == broker.end(target, partition, UNCOMMITTED),
                    "what the killed one left open is ended");
            List<String> expected = IntStream.range(0, COPIED)
                    .filter(i -> i % PARTITIONS == partition).mapToObj(String::valueOf).toList();
            equal(expected, broker.read(target, partition, COMMITTED), target + "-" + partition);
        }
    }

    private Process start(Path output, String source, String target, String group, String id, String assignor)
            throws Exception {
        String java = ProcessHandle.current().info().command().orElse("java");
        return new ProcessBuilder(java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp",
                System.getProperty("java.class.path"), Copier.class.getName(), assignor, broker.bootstrap(), source, target,
                group, id)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(output.toFile()))
                .start();
    }

    /** The survivor owns everything, as the administrator sees it. */
    private void describe(String group) throws Exception {
        ConsumerGroupDescription description =
                broker.admin().describeConsumerGroups(List.of(group)).describedGroups().get(group).get();
        equal(GroupState.STABLE, description.groupState(), "state of " + group);
        equal(1, description.members().size(), "members of " + group);
        equal(PARTITIONS, description.members().iterator().next().assignment().topicPartitions().size(), "its part");
    }

    private long copied(String target) {
        return IntStream.range(0, PARTITIONS).mapToLong(p -> broker.end(target, p, COMMITTED)).sum();
    }

    private long committed(String source, String group) {
        return IntStream.range(0, PARTITIONS).mapToLong(p -> committed(group, new TopicPartition(source, p))).sum();
    }

    private long committed(String group, TopicPartition partition) {
        try {
            Long offset = broker.committedOffset(group, partition);
            return offset == null ? 0 : offset;
        } catch (Exception failure) {
            throw new AssertionError(failure);
        }
    }
}
