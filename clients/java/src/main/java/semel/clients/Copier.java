package semel.clients;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApplicationRecoverableException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * One instance of an application that copies a topic, offsets in the transaction; a process by itself, to be killed. It
 * ends when it meets what an application cannot mend. See ../copy/README.md for its environment.
 */
final class Copier {
    private static final String SESSION_MS = setting("SESSION_MS", "6000");
    private static final String BATCH = setting("BATCH", "40");
    /** So that it takes a while: somebody has to be killed in the middle. */
    private static final long PAUSE_MS = Long.parseLong(setting("PAUSE_MS", "50"));

    private final String source;
    private final String target;
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;

    private Copier(String assignor, String bootstrap, String source, String target, String group, String id) {
        this.source = source;
        this.target = target;
        Properties reading = new Properties();
        reading.putAll(Map.of("bootstrap.servers", bootstrap, "group.id", group, "isolation.level", "read_committed",
                "enable.auto.commit", "false", "auto.offset.reset", "earliest", "max.poll.records", BATCH));
        if (assignor.equals("consumer")) {
            reading.put("group.protocol", "consumer");
        } else {
            reading.putAll(Map.of("session.timeout.ms", SESSION_MS, "heartbeat.interval.ms", "500",
                    "partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor + "Assignor"));
        }
        consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
        Properties writing = new Properties();
        writing.putAll(Map.of("bootstrap.servers", bootstrap, "transactional.id", id, "transaction.timeout.ms", "10000"));
        producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer());
    }

    private static String setting(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    /** Arguments: Range, CooperativeSticky or consumer; bootstrap, source, target, group, transactional id. */
    public static void main(String[] args) throws Exception {
        Logger.getLogger("").setLevel(Level.OFF);
        try {
            new Copier(args[0], args[1], args[2], args[3], args[4], args[5]).run();
        } catch (KafkaException fatal) {
            System.out.println("ends: " + fatal);
            // Threads of the clients would keep the process alive.
            Runtime.getRuntime().halt(1);
        }
    }

    private void run() throws Exception {
        insist(producer::initTransactions);
        consumer.subscribe(List.of(source));
        while (true) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            if (!records.isEmpty()) {
                copy(records);
            }
        }
    }

    private void copy(ConsumerRecords<String, String> records) throws Exception {
        producer.beginTransaction();
        try {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (ConsumerRecord<String, String> record : records) {
                producer.send(new ProducerRecord<>(target, record.partition(), null, record.value()));
                offsets.put(new TopicPartition(source, record.partition()), new OffsetAndMetadata(record.offset() + 1));
            }
            Thread.sleep(PAUSE_MS);
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            insist(producer::commitTransaction);
        } catch (ApplicationRecoverableException fatal) {
            throw fatal;
        } catch (KafkaException error) {
            System.out.println("aborts: " + error);
            insist(producer::abortTransaction);
            goBack();
        }
    }

    private void goBack() {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata offset = committed.get(partition);
            consumer.seek(partition, offset == null ? 0 : offset.offset());
        }
    }

    /** After a timeout only the same call may be made again. */
    private static void insist(Runnable call) {
        while (true) {
            try {
                call.run();
                return;
            } catch (TimeoutException again) {
                System.out.println("again: " + again);
            }
        }
    }
}
