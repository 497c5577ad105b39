package semel.clients;

import static semel.clients.Broker.COMMITTED;
import static semel.clients.Checks.await;
import static semel.clients.Checks.equal;
import static semel.clients.Checks.raises;
import static semel.clients.Tools.hasLine;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.tools.GroupsCommand;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/** Groups as an administrator sees and changes them, by Admin, `kafka-consumer-groups.sh` and `kafka-groups.sh`. */
final class GroupAdministration {
    private static final Duration LIMIT = Duration.ofSeconds(20);
    private static final int RECORDS = 6;

    private final Broker broker;

    GroupAdministration(Broker broker) {
        this.broker = broker;
    }

    void run(Checks checks) {
        checks.check("group_offsets_by_admin", this::offsetsByAdmin);
        checks.check("group_with_a_member_by_admin", this::memberByAdmin);
        checks.check("consumer_groups_command", this::consumerGroupsCommand);
        checks.check("consumer_groups_command_moves_offsets", this::consumerGroupsCommandMovesOffsets);
        checks.check("groups_command", this::groupsCommand);
    }

    /** A topic of two partitions with six records in each. */
    private String topic(String what) throws Exception {
        String topic = broker.createTopic(what, 2);
        try (KafkaProducer<String, String> producer = broker.idempotentProducer()) {
            for (int i = 0; i < 2 * RECORDS; i++) {
                producer.send(new ProducerRecord<>(topic, i % 2, null, String.valueOf(i)));
            }
        }
        return topic;
    }

    /** A member that has every partition of a topic and has committed its end. */
    private KafkaConsumer<String, String> member(String group, String topic) throws Exception {
        KafkaConsumer<String, String> consumer = broker.consumer(COMMITTED,
                Map.of("group.id", group, "client.id", "app", "auto.offset.reset", "earliest"));
        consumer.subscribe(List.of(topic));
        await(LIMIT, () -> {
            consumer.poll(Duration.ofMillis(100));
            return consumer.assignment().size() == 2;
        }, "assignment");
        OffsetAndMetadata end = new OffsetAndMetadata(RECORDS);
        consumer.commitSync(Map.of(new TopicPartition(topic, 0), end, new TopicPartition(topic, 1), end));
        return consumer;
    }

    void offsetsByAdmin() throws Exception {
        String topic = topic("offsets-by-admin");
        String group = broker.name("offsets-by-admin");
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        broker.admin().alterConsumerGroupOffsets(group,
                Map.of(zero, new OffsetAndMetadata(3, "note"), one, new OffsetAndMetadata(4))).all().get();
        Map<TopicPartition, OffsetAndMetadata> seen =
                broker.admin().listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        equal(Set.of(zero, one), seen.keySet(), "partitions");
        equal(3L, seen.get(zero).offset(), "offset");
        equal("note", seen.get(zero).metadata(), "note");
        broker.admin().deleteConsumerGroupOffsets(group, Set.of(zero)).all().get();
        equal(null, broker.committedOffset(group, zero), "deleted offset");
        equal(4L, broker.committedOffset(group, one), "other offset");
        broker.admin().deleteConsumerGroups(List.of(group)).all().get();
        raises(GroupIdNotFoundException.class,
                () -> broker.admin().deleteConsumerGroups(List.of(group)).all().get(), "deleted twice");
    }

    void memberByAdmin() throws Exception {
        String topic = topic("member-by-admin");
        String group = broker.name("member-by-admin");
        TopicPartition zero = new TopicPartition(topic, 0);
        try (KafkaConsumer<String, String> member = member(group, topic)) {
            raises(GroupNotEmptyException.class,
                    () -> broker.admin().deleteConsumerGroups(List.of(group)).all().get(), "delete");
            raises(GroupSubscribedToTopicException.class,
                    () -> broker.admin().deleteConsumerGroupOffsets(group, Set.of(zero)).all().get(), "delete offsets");
            raises(UnknownMemberIdException.class, () -> broker.admin()
                    .alterConsumerGroupOffsets(group, Map.of(zero, new OffsetAndMetadata(0))).all().get(), "alter");
            equal(2, broker.admin().describeConsumerGroups(List.of(group)).all().get().get(group).members()
                    .iterator().next().assignment().topicPartitions().size(), "assigned partitions");
        }
    }

    private List<String> groups(String... arguments) throws Exception {
        return Tools.run(ConsumerGroupCommand::main, broker, arguments);
    }

    void consumerGroupsCommand() throws Exception {
        String topic = topic("groups-command");
        String group = broker.name("groups-command");
        try (KafkaConsumer<String, String> member = member(group, topic)) {
            hasLine(groups("--list"), group);
            hasLine(groups("--list", "--state"), group, "Stable");
            String end = String.valueOf(RECORDS);
            hasLine(groups("--describe", "--group", group), group, topic, "0", end, end, "0");
            hasLine(groups("--describe", "--group", group, "--members", "--verbose"), group);
            hasLine(groups("--describe", "--group", group, "--members"), "app", "2");
            hasLine(groups("--describe", "--group", group, "--state"), "range", "Stable", "1");
        }
        await(LIMIT, () -> isEmpty(group), "no members");
        hasLine(groups("--delete", "--group", group), "Deletion of requested consumer groups", "('" + group + "')",
                "was successful.");
    }

    private boolean isEmpty(String group) {
        try {
            return broker.admin().describeConsumerGroups(List.of(group)).all().get().get(group).members().isEmpty();
        } catch (Exception failure) {
            throw new AssertionError("describing " + group, failure);
        }
    }

    void consumerGroupsCommandMovesOffsets() throws Exception {
        String topic = topic("moves");
        String group = broker.name("moves");
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        broker.commitOffset(group, zero, 5);
        broker.commitOffset(group, one, 5);
        hasLine(groups("--describe", "--group", group), topic, "0", "5", "6", "1");
        reset(group, topic, "--to-earliest", "--dry-run");
        equal(5L, broker.committedOffset(group, zero), "after a dry run");
        reset(group, topic, "--to-earliest", "--execute");
        equal(0L, broker.committedOffset(group, zero), "earliest");
        reset(group, topic + ":0", "--shift-by", "2", "--execute");
        equal(2L, broker.committedOffset(group, zero), "shifted");
        equal(0L, broker.committedOffset(group, one), "the other partition");
        reset(group, topic, "--to-offset", "4", "--execute");
        equal(4L, broker.committedOffset(group, one), "to an offset");
        reset(group, topic, "--to-datetime", "2020-01-01T00:00:00.000", "--execute");
        equal(0L, broker.committedOffset(group, one), "to a time");
        reset(group, topic, "--to-latest", "--execute");
        equal(6L, broker.committedOffset(group, one), "latest");
        hasLine(groups("--delete-offsets", "--group", group, "--topic", topic + ":0"), topic, "0", "Successful");
        equal(null, broker.committedOffset(group, zero), "deleted");
        groups("--delete", "--group", group);
        equal(null, broker.committedOffset(group, one), "deleted with its group");
    }

    private void reset(String group, String topic, String... how) throws Exception {
        String[] arguments = new String[how.length + 5];
        System.arraycopy(new String[] {"--reset-offsets", "--group", group, "--topic", topic}, 0, arguments, 0, 5);
        System.arraycopy(how, 0, arguments, 5, how.length);
        hasLine(groups(arguments), group, topic.split(":")[0]);
    }

    void groupsCommand() throws Exception {
        String topic = topic("groups");
        String simple = broker.name("simple");
        String group = broker.name("groups");
        broker.commitOffset(simple, new TopicPartition(topic, 0), 1);
        try (KafkaConsumer<String, String> member = member(group, topic)) {
            List<String> all = Tools.run(GroupsCommand::main, broker, "--list");
            hasLine(all, group, "Classic", "consumer");
            hasLine(all, simple, "Classic");
            List<String> consumers = Tools.run(GroupsCommand::main, broker, "--list", "--group-type", "classic");
            hasLine(consumers, group);
        }
    }
}
