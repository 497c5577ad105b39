package semel.clients;

import static semel.clients.Checks.equal;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** What a live producer survives by itself: its own silence, and its topic made anew. */
final class Survival {
    /** Longer than producer.id.expiration.ms of the server that the suite starts. */
    private static final long SILENCE_MS = 2_500;

    private final Broker broker;

    Survival(Broker broker) {
        this.broker = broker;
    }

    void run(Checks checks) {
        checks.check("goes_on_after_silence", this::goesOnAfterSilence);
        checks.check("goes_on_in_a_topic_made_anew", this::goesOnInATopicMadeAnew);
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
