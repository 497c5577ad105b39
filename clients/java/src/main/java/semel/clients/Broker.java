package semel.clients;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The broker under test: topics, producers, and reading back by assignment. Names are new in every run. */
final class Broker implements AutoCloseable {
    static final String COMMITTED = "read_committed";
    static final String UNCOMMITTED = "read_uncommitted";

    private final String run = UUID.randomUUID().toString().substring(0, 8);
    private final String bootstrap;
    private final Admin admin;

    Broker(String bootstrap) {
        this.bootstrap = bootstrap;
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    String bootstrap() {
        return bootstrap;
    }

    Admin admin() {
        return admin;
    }

    String name(String what) {
        return "java-" + run + "-" + what;
    }

    String createTopic(String what, int partitions) throws Exception {
        String topic = name(what);
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        return topic;
    }

    KafkaProducer<String, String> idempotentProducer() {
        return producer(Map.of());
    }

    KafkaProducer<String, String> transactionalProducer(String transactionalId) {
        return producer(Map.of("transactional.id", transactionalId));
    }

    KafkaProducer<String, String> producer(Map<String, String> settings) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("acks", "all");
        config.put("enable.idempotence", "true");
        config.put("max.block.ms", "20000");
        config.putAll(settings);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    /** All values of one partition up to its end as that isolation sees it, by an assigned consumer. */
    List<String> read(String topic, int partition, String isolation) throws InterruptedException {
        if (isolation.equals(COMMITTED)) {
            Checks.eventually(() -> end(topic, partition, COMMITTED) == end(topic, partition, UNCOMMITTED),
                    "all markers written");
        }
        TopicPartition from = new TopicPartition(topic, partition);
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(isolation)) {
            consumer.assign(List.of(from));
            consumer.seekToBeginning(List.of(from));
            long end = consumer.endOffsets(List.of(from)).get(from);
            long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
            while (consumer.position(from) < end) {
                if (System.nanoTime() > deadline) {
                    throw new AssertionError(from + " " + isolation + ": stuck at " + consumer.position(from) + " of " + end);
                }
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    values.add(record.value());
                }
            }
        }
        return values;
    }

    /** The last stable offset (read_committed) or the high watermark (read_uncommitted). */
    long end(String topic, int partition, String isolation) {
        TopicPartition of = new TopicPartition(topic, partition);
        try (KafkaConsumer<String, String> consumer = consumer(isolation)) {
            return consumer.endOffsets(List.of(of)).get(of);
        }
    }

    /** Commits as a consumer with an assignment does: for a group that nobody joins. */
    void commitOffset(String group, TopicPartition partition, long offset) {
        try (KafkaConsumer<String, String> consumer = consumer(COMMITTED, Map.of("group.id", group))) {
            consumer.assign(List.of(partition));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(offset)));
        }
    }

    Long committedOffset(String group, TopicPartition partition) throws Exception {
        OffsetAndMetadata offset =
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition);
        return offset == null ? null : offset.offset();
    }

    private KafkaConsumer<String, String> consumer(String isolation) {
        return consumer(isolation, Map.of());
    }

    KafkaConsumer<String, String> consumer(String isolation, Map<String, String> settings) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("isolation.level", isolation);
        config.put("enable.auto.commit", "false");
        config.put("fetch.max.wait.ms", "50");
        config.putAll(settings);
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    @Override
    public void close() {
        admin.close();
    }
}
