package semel.clients;

import static semel.clients.Broker.COMMITTED;
import static semel.clients.Broker.UNCOMMITTED;
import static semel.clients.Checks.equal;
import static semel.clients.Checks.raises;
import static semel.clients.Tools.hasLine;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.ConfigResource.Type;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.tools.ConfigCommand;
import org.apache.kafka.tools.DeleteRecordsCommand;

/** Settings of topics and groups, records deleted, topics that grow: by Admin, `kafka-configs.sh`, `kafka-delete-records.sh`. */
final class Settings {
    private final Broker broker;

    Settings(Broker broker) {
        this.broker = broker;
    }

    void run(Checks checks) {
        checks.check("settings_of_a_topic", this::settingsOfATopic);
        checks.check("settings_of_a_group", this::settingsOfAGroup);
        checks.check("configs_command", this::configsCommand);
        checks.check("delete_records", this::deleteRecords);
        checks.check("delete_records_command", this::deleteRecordsCommand);
        checks.check("topic_grows", this::topicGrows);
    }

    private ConfigEntry told(ConfigResource resource, String name) throws Exception {
        return broker.admin().describeConfigs(List.of(resource)).all().get().get(resource).get(name);
    }

    private void alter(ConfigResource resource, OpType operation, String name, String value) throws Exception {
        Collection<AlterConfigOp> operations = List.of(new AlterConfigOp(new ConfigEntry(name, value), operation));
        broker.admin().incrementalAlterConfigs(Map.of(resource, operations)).all().get();
    }

    /** As Kafka Streams makes its changelogs. */
    void settingsOfATopic() throws Exception {
        String topic = broker.name("settings");
        NewTopic asked = new NewTopic(topic, 1, (short) 1).configs(Map.of("cleanup.policy", "compact",
                "segment.bytes", "52428800", "retention.ms", "-1", "message.timestamp.type", "CreateTime"));
        broker.admin().createTopics(List.of(asked)).all().get();
        ConfigResource resource = new ConfigResource(Type.TOPIC, topic);
        for (Map.Entry<String, String> given : asked.configs().entrySet()) {
            Checks.eventually(() -> isGiven(resource, given.getKey(), given.getValue()), given.getKey());
        }
        equal(ConfigSource.DEFAULT_CONFIG, told(resource, "segment.ms").source(), "source of what was not given");
        alter(resource, OpType.SET, "retention.ms", "1000");
        Checks.eventually(() -> isGiven(resource, "retention.ms", "1000"), "set");
        alter(resource, OpType.APPEND, "cleanup.policy", "delete");
        Checks.eventually(() -> isGiven(resource, "cleanup.policy", "compact,delete"), "appended");
        alter(resource, OpType.SUBTRACT, "cleanup.policy", "compact");
        Checks.eventually(() -> isGiven(resource, "cleanup.policy", "delete"), "subtracted");
        alter(resource, OpType.DELETE, "retention.ms", "");
        Checks.eventually(() -> !isGiven(resource, "retention.ms", "1000"), "deleted");
        raises(InvalidConfigurationException.class, () -> alter(resource, OpType.SET, "retention.ms", "soon"), "value");
        raises(InvalidConfigurationException.class, () -> alter(resource, OpType.SET, "no.such", "1"), "name");
        raises(UnknownTopicOrPartitionException.class, () -> alter(
                new ConfigResource(Type.TOPIC, broker.name("nobody")), OpType.SET, "retention.ms", "1"), "topic");
    }

    private boolean isGiven(ConfigResource resource, String name, String value) {
        try {
            ConfigEntry entry = told(resource, name);
            return entry.value().equals(value) && (entry.source() == ConfigSource.DYNAMIC_TOPIC_CONFIG
                    || entry.source() == ConfigSource.DYNAMIC_GROUP_CONFIG);
        } catch (Exception failure) {
            throw new AssertionError("describing " + resource, failure);
        }
    }

    void settingsOfAGroup() throws Exception {
        ConfigResource resource = new ConfigResource(Type.GROUP, broker.name("settings"));
        equal("45000", told(resource, "consumer.session.timeout.ms").value(), "default");
        alter(resource, OpType.SET, "consumer.session.timeout.ms", "50000");
        alter(resource, OpType.SET, "streams.num.standby.replicas", "1");
        Checks.eventually(() -> isGiven(resource, "consumer.session.timeout.ms", "50000"), "set");
        Checks.eventually(() -> isGiven(resource, "streams.num.standby.replicas", "1"), "set");
        raises(InvalidConfigurationException.class,
                () -> alter(resource, OpType.SET, "consumer.session.timeout.ms", "1"), "out of range");
        raises(InvalidConfigurationException.class, () -> alter(resource, OpType.SET, "foo", "1"), "unknown name");
    }

    private List<String> configs(String... arguments) throws Exception {
        return Tools.run(ConfigCommand::main, broker, arguments);
    }

    void configsCommand() throws Exception {
        String topic = broker.createTopic("configs", 1);
        String group = broker.name("configs");
        configs("--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "retention.ms=77");
        Checks.eventually(() -> isGiven(new ConfigResource(Type.TOPIC, topic), "retention.ms", "77"), "set");
        hasLine(configs("--describe", "--entity-type", "topics", "--entity-name", topic), "retention.ms=77");
        configs("--alter", "--entity-type", "topics", "--entity-name", topic, "--delete-config", "retention.ms");
        configs("--alter", "--entity-type", "groups", "--entity-name", group, "--add-config",
                "consumer.heartbeat.interval.ms=6000");
        Checks.eventually(
                () -> isGiven(new ConfigResource(Type.GROUP, group), "consumer.heartbeat.interval.ms", "6000"), "set");
        hasLine(configs("--describe", "--entity-type", "groups", "--entity-name", group),
                "consumer.heartbeat.interval.ms=6000");
        hasLine(configs("--describe", "--entity-type", "groups"), "Dynamic configs for group " + group);
    }

    private String topicOfSix(String what) throws Exception {
        String topic = broker.createTopic(what, 1);
        try (KafkaProducer<String, String> producer = broker.idempotentProducer()) {
            for (int i = 0; i < 6; i++) {
                producer.send(new ProducerRecord<>(topic, 0, null, String.valueOf(i)));
            }
        }
        return topic;
    }

    void deleteRecords() throws Exception {
        String topic = broker.createTopic("delete-records", 1);
        TopicPartition zero = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = broker.idempotentProducer()) {
            for (int i = 0; i < 6; i++) {
                producer.send(new ProducerRecord<>(topic, 0, null, String.valueOf(i))).get();
            }
            equal(4L, delete(zero, 4), "low watermark");
            equal(List.of("4", "5"), broker.read(topic, 0, COMMITTED), COMMITTED);
            equal(4L, delete(zero, 1), "the start does not go back");
            equal(6L, delete(zero, -1), "all");
            producer.send(new ProducerRecord<>(topic, 0, null, "6")).get();
            equal(List.of("6"), broker.read(topic, 0, UNCOMMITTED), "the producer goes on");
        }
        raises(OffsetOutOfRangeException.class, () -> delete(zero, 8), "past the end");
        String compacted = broker.name("compacted");
        broker.admin().createTopics(List.of(new NewTopic(compacted, 1, (short) 1)
                .configs(Map.of("cleanup.policy", "compact")))).all().get();
        raises(PolicyViolationException.class, () -> delete(new TopicPartition(compacted, 0), -1), "compacted");
    }

    private long delete(TopicPartition partition, long before) throws Exception {
        return broker.admin().deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(before)))
                .lowWatermarks().get(partition).get().lowWatermark();
    }

    void deleteRecordsCommand() throws Exception {
        String topic = topicOfSix("delete-records-command");
        Path plan = Files.createTempFile("delete-records", ".json");
        try {
            Files.writeString(plan, "{\"partitions\": [{\"topic\": \"" + topic
                    + "\", \"partition\": 0, \"offset\": 5}], \"version\": 1}");
            hasLine(Tools.run(DeleteRecordsCommand::main, broker, "--offset-json-file", plan.toString()),
                    "partition: " + topic + "-0", "low_watermark: 5");
        } finally {
            Files.delete(plan);
        }
        equal(List.of("5"), broker.read(topic, 0, COMMITTED), COMMITTED);
    }

    void topicGrows() throws Exception {
        String topic = topicOfSix("grows");
        broker.admin().createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
        Checks.eventually(() -> partitions(topic) == 3, "partitions");
        try (KafkaProducer<String, String> producer = broker.idempotentProducer()) {
            producer.send(new ProducerRecord<>(topic, 2, null, "new"));
        }
        equal(List.of("new"), broker.read(topic, 2, COMMITTED), COMMITTED);
        equal(6, broker.read(topic, 0, COMMITTED).size(), "records of the old partition");
    }

    private int partitions(String topic) {
        try {
            return broker.admin().describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        } catch (Exception failure) {
            throw new AssertionError("describing " + topic, failure);
        }
    }
}
