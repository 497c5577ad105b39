import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Consume, transform, produce: reads ten records, writes ten, commits with the offsets of what was read, again and again.
 * Arguments: bootstrap, source, target, group, seconds. Prints the loops made in all and their records; of the loops after
 * the warm-up how many a second, and their median and 99th percentile in ms; and the sum of what the group has committed.
 * Between two fetches a poll may give fewer than ten.
 */
class Loops {
    private static final int BATCH = 10;
    private static final long WARM_NANOS = 2_000_000_000L;

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final KafkaProducer<byte[], byte[]> producer;
    private final String source;
    private final String target;

    private Loops(String bootstrap, String source, String target, String group) {
        this.source = source;
        this.target = target;
        consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", bootstrap, "group.id", group, "isolation.level", "read_committed",
                        "enable.auto.commit", "false", "auto.offset.reset", "earliest", "max.poll.records", BATCH),
                new ByteArrayDeserializer(), new ByteArrayDeserializer());
        producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap, "transactional.id", group),
                new ByteArraySerializer(), new ByteArraySerializer());
    }

    public static void main(String[] args) {
        new Loops(args[0], args[1], args[2], args[3]).run((long) (Double.parseDouble(args[4]) * 1e9));
    }

    private void run(long spanNanos) {
        producer.initTransactions();
        consumer.subscribe(List.of(source));
        long records = one();
        long all = 1;
        for (long until = System.nanoTime() + WARM_NANOS; System.nanoTime() < until; all++) {
            records += one();
        }
        long[] nanos = new long[1_000_000];
        int count = 0;
        long started = System.nanoTime();
        while (System.nanoTime() - started < spanNanos) {
            long before = System.nanoTime();
            records += one();
            nanos[count++] = System.nanoTime() - before;
        }
        double seconds = (System.nanoTime() - started) / 1e9;
        Arrays.sort(nanos, 0, count);
        System.out.printf("%d %d %.3f %.4f %.4f %d%n", all + count, records, count / seconds, nanos[count / 2] / 1e6,
                nanos[(int) ((count - 1) * 0.99)] / 1e6, committed());
        producer.close();
        consumer.close();
    }

    private int one() {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofSeconds(10));
        while (records.isEmpty()) {
            records = consumer.poll(Duration.ofSeconds(10));
        }
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            producer.send(new ProducerRecord<>(target, 0, null, record.value()));
            offsets.put(new TopicPartition(source, record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        producer.commitTransaction();
        return records.count();
    }

    private long committed() {
        return consumer.committed(consumer.assignment()).values().stream()
                .mapToLong(offset -> offset == null ? 0 : offset.offset()).sum();
    }
}
