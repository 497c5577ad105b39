package semel.streams;

import java.util.Properties;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KafkaStreams.State;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * One instance of a Kafka Streams application; a process by itself, to be killed. It reads words, sends each to the
 * partition of the word (through an internal topic), counts it in a store with a changelog, and writes word and count at
 * every step. It ends when Streams gives up.
 */
final class Counting {
    private Counting() {}

    /**
     * Arguments: bootstrap, application id, source, target, directory of the state, processing.guarantee,
     * group.protocol, commit.interval.ms, session.timeout.ms, pause per record in microseconds.
     */
    public static void main(String[] args) {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("application.id", args[1]);
        config.put("state.dir", args[4]);
        config.put("processing.guarantee", args[5]);
        config.put("group.protocol", args[6]);
        config.put("commit.interval.ms", args[7]);
        if (args[6].equals("classic")) {
            config.put("consumer.session.timeout.ms", args[8]);
            config.put("consumer.heartbeat.interval.ms", "500");
        }
        // Every count shall be seen, not only the last of an interval.
        config.put("statestore.cache.max.bytes", "0");
        config.put("consumer.auto.offset.reset", "earliest");
        // No more than this is worked off between two commits.
        config.put("consumer.max.poll.records", "100");
        KafkaStreams streams = new KafkaStreams(topology(args[2], args[3], Long.parseLong(args[9])).build(), config);
        streams.setStateListener((now, before) -> {
            if (now == State.ERROR || now == State.NOT_RUNNING) {
                System.out.println("ends: " + now);
                Runtime.getRuntime().halt(1);
            }
        });
        streams.start();
    }

    private static StreamsBuilder topology(String source, String target, long pauseUs) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(source, Consumed.with(Serdes.String(), Serdes.String()))
                .map((nothing, word) -> KeyValue.pair(word, ""))
                .groupByKey(Grouped.with("by-word", Serdes.String(), Serdes.String()))
                .count(Materialized.as("counts"))
                .toStream()
                .mapValues(count -> {
                    // So that it takes a while: somebody has to be killed in the middle.
                    LockSupport.parkNanos(pauseUs * 1000);
                    return String.valueOf(count);
                })
                .to(target, Produced.with(Serdes.String(), Serdes.String()));
        return builder;
    }
}
