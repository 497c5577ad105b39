import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Transactions {
    static final String SERVER = "127.0.0.1:9092";
    static final TopicPartition ORDERS = new TopicPartition("java-orders", 0);

    static KafkaProducer<String, String> instance() {
        var producer = new KafkaProducer<>(
            Map.of("bootstrap.servers", SERVER, "transactional.id", "java-till"),
            new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }

    static void send(KafkaProducer<String, String> producer, String text) {
        producer.send(new ProducerRecord<>(ORDERS.topic(), ORDERS.partition(), null, text));
    }

    public static void main(String[] args) {
        var first = instance();
        first.beginTransaction();
        send(first, "one coffee");
        send(first, "one cake");
        first.commitTransaction();

        first.beginTransaction();
        send(first, "a mistake");
        first.abortTransaction();

        first.beginTransaction();
        send(first, "too late");
        first.flush();
        var second = instance(); // takes over: the open transaction of the first instance is aborted
        try {
            first.commitTransaction();
        } catch (ProducerFencedException refused) {
            System.out.println("the first instance is fenced");
        }
        first.close();
        second.close();

        try (var reader = new KafkaConsumer<>(
                Map.<String, Object>of("bootstrap.servers", SERVER, "isolation.level", "read_committed"),
                new StringDeserializer(), new StringDeserializer())) {
            reader.assign(List.of(ORDERS));
            reader.seekToBeginning(List.of(ORDERS));
            long end = reader.endOffsets(List.of(ORDERS)).get(ORDERS);
            while (reader.position(ORDERS) < end) {
                for (var found : reader.poll(Duration.ofMillis(100))) {
                    System.out.println(found.offset() + " " + found.value());
                }
            }
        }
    }
}
