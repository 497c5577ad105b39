package semel.clients;

import static semel.clients.Checks.equal;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigResource;

/** What a live producer survives by itself: its own silence, its topic made anew, a batch that is too large by now. */
final class Survival {
    /** Longer than producer.id.expiration.ms of the server that the suite starts. */
    private static final long SILENCE_MS = 2_500;

    /** Half of a batch; the limit comes to lie between one record and two. */
    private static final String LONG = "x".repeat(2_000);
    private static final String LIMIT = "3000";

    private final Broker broker;

    Survival(Broker broker) {
        this.broker = broker;
    }

    void run(Checks checks) {
        checks.check("goes_on_after_silence", this::goesOnAfterSilence);
        checks.check("goes_on_in_a_topic_made_anew", this::goesOnInATopicMadeAnew);
    }

    /** For a broker behind the relay. */
    void runWithLostAnswers(Checks checks) {
        checks.stricter("retry_of_a_batch_that_is_too_large_by_now",
                "it refuses the retry, and the client splits the batch and stores it again",
                this::retryOfABatchThatIsTooLargeByNow);
    }

    /** S20. Batches of two until the relay loses the answer of one; the client waits long enough before it retries. */
    private void retryOfABatchThatIsTooLargeByNow() throws Exception {
        String topic = broker.createTopic("too-large", 1);
        Map<String, String> settings =
                Map.of("linger.ms", "20", "retry.backoff.ms", "3000", "retry.backoff.max.ms", "3000");
        List<String> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = broker.producer(settings)) {
            Future<RecordMetadata> last;
            do {
                producer.send(new ProducerRecord<>(topic, sent.size() + LONG));
                sent.add(sent.size() + LONG);
                last = producer.send(new ProducerRecord<>(topic, sent.size() + LONG));
                sent.add(sent.size() + LONG);
            } while (isAnswered(last) && sent.size() < 60);
            equal(false, last.isDone(), "an answer was lost");
            ConfigResource of = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            AlterConfigOp lower = new AlterConfigOp(new ConfigEntry("max.message.bytes", LIMIT), AlterConfigOp.OpType.SET);
            broker.admin().incrementalAlterConfigs(Map.of(of, List.of(lower))).all().get();
            equal(sent.size() - 1L, last.get(30, TimeUnit.SECONDS).offset(), "offset of the retried batch's last record");
            send(producer, topic, "next");
            sent.add("next");
        }
        equal(sent, broker.read(topic, 0, Broker.UNCOMMITTED), topic);
    }

    private static boolean isAnswered(Future<RecordMetadata> sent) throws Exception {
        try {
            sent.get(1, TimeUnit.SECONDS);
            return true;
        } catch (TimeoutException lost) {
            return false;
        }
    }

    private void goesOnAfterSilence() throws Exception {
        String topic = broker.createTopic("silence", 1);
        try (KafkaProducer<String, String> producer = broker.idempotentProducer()) {
            send(producer, topic, "before");
            Thread.sleep(SILENCE_MS);
            send(producer, topic, "after");
        }
        equal(List.of("before", "after"), broker.read(topic, 0, Broker.UNCOMMITTED), topic);
    }

    /** The sequence goes on where the old topic ended: the broker has to say that it knows nothing of it (59). */
    private void goesOnInATopicMadeAnew() throws Exception {
        String topic = broker.createTopic("anew", 1);
        try (KafkaProducer<String, String> producer = broker.idempotentProducer()) {
            send(producer, topic, "old 1");
            send(producer, topic, "old 2");
            broker.admin().deleteTopics(List.of(topic)).all().get();
            broker.admin().createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            send(producer, topic, "new 1");
            send(producer, topic, "new 2");
        }
        equal(List.of("new 1", "new 2"), broker.read(topic, 0, Broker.UNCOMMITTED), topic);
    }

    private static void send(KafkaProducer<String, String> producer, String topic, String value) throws Exception {
        producer.send(new ProducerRecord<>(topic, value)).get(30, TimeUnit.SECONDS);
    }
}
