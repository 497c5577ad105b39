import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Waits until a broker at args[0] gives out a transactional identity: then its coordinators are loaded. */
class KafkaReady {
    public static void main(String[] args) throws Exception {
        Map<String, Object> config = Map.of(
                "bootstrap.servers", args[0],
                "transactional.id", "ready",
                "max.block.ms", 60_000,
                "key.serializer", ByteArraySerializer.class,
                "value.serializer", ByteArraySerializer.class);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config)) {
            producer.initTransactions();
        }
        // The group coordinator too: its internal topic is made by the first request for a group.
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            admin.listConsumerGroupOffsets("ready").partitionsToOffsetAndMetadata().get();
        }
    }
}
