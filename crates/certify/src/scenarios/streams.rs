//! Area `groups`: streams groups (KIP-1071), whose members are given tasks of a topology by the broker.

use semel_wire::{
    ApiKey, WireCode,
    api::incremental_alter_configs::{
        IncrementalAlterConfigsRequest, IncrementalAlterConfigsResource, IncrementallyAlterableConfig,
    },
};

use crate::{
    Actor, Consumer, Member,
    Outcome::Commit,
    Probe, Scenario,
    actor::streams::{StreamsMember, TaskSet, works_on},
    scenario::{Area, Basis, Kept, Needs},
    session::Place,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] =
    &[&JOIN, &TOPICS, &OWNERS, &EPOCHS, &STATIC, &OFFSETS, &KINDS, &RESTART, &SILENT];

/// Source topics do not exist (upstream `StreamsGroupHeartbeatResponse.Status`).
const MISSING_SOURCE_TOPICS: i8 = 1;
/// Topics do not have the partitions that they need.
const INCORRECTLY_PARTITIONED_TOPICS: i8 = 2;

const JOIN: Scenario = Scenario {
    id: "G8-join",
    title: "a streams group with one member",
    promise: "An application of Kafka Streams gets a task for each partition of its input, and can be looked at.",
    source: "KIP-1071",
    basis: &[Basis::Kip],
    versions: "StreamsGroupHeartbeat 0, StreamsGroupDescribe 0",
    ..Scenario::kafka(Area::Groups, join)
};

fn join(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::StreamsGroupHeartbeat, 0)?;
    let (t, g) = (probe.partitions(3)?, quick_group(probe)?);
    let mut a = probe.actor("A")?;
    a.describe_streams(&g).is(69)?;
    let (me, _) = a.joins_and_has(probe, &StreamsMember::new(&g, "member-1", &t[0]), 3)?;
    let seen = a.describe_streams(&g).is(0)?;
    probe.same("the group's state", seen.group_state.as_str(), "Stable")?;
    let epochs = (seen.group_epoch, seen.assignment_epoch);
    probe.same("the epochs of group and target", epochs, (me.epoch, me.epoch))?;
    let members: Vec<_> = seen.members.iter().map(|one| (one.member_id.as_str(), works_on(one))).collect();
    probe.same("its members", members, vec![("member-1", TaskSet::from([0, 1, 2]))])?;
    a.beat_streams(&me.at(-1)).is(0)?;
    let seen = a.describe_streams(&g).is(0)?;
    probe.same("the group's state at last", seen.group_state.as_str(), "Empty")
}

const TOPICS: Scenario = Scenario {
    id: "G8-topics",
    title: "topics of a topology that do not exist",
    promise: "An application is told what its topics lack, works once they are there, and has its own made for it.",
    source: "KIP-1071",
    basis: &[Basis::Kip],
    versions: "StreamsGroupHeartbeat 0, StreamsGroupDescribe 0",
    ..Scenario::kafka(Area::Groups, topics)
};

fn topics(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::StreamsGroupHeartbeat, 0)?;
    let (t, g) = (Place::of(&probe.topic_name("input"), 0), quick_group(probe)?);
    let changelog = probe.topic_name("store-changelog");
    let mut a = probe.actor("A")?;
    let joining = StreamsMember::new(&g, "member-1", &t).with_store(&changelog);
    let joined = a.beat_streams(&joining).is(0)?;
    probe.same("what it is told", joined.status, vec![MISSING_SOURCE_TOPICS])?;
    probe.same("its tasks", joined.active, Some(TaskSet::new()))?;
    let seen = a.describe_streams(&g).is(0)?;
    probe.same("the group's state without its input", seen.group_state.as_str(), "NotReady")?;
    probe.make_topic(&t.topic, 2, &[])?;
    let mut me = joining.at(joined.epoch);
    a.settle(probe, &mut me, 2)?;
    let seen = a.describe_streams(&g).is(0)?;
    let parts = seen.topology.and_then(|topology| topology.subtopologies).unwrap_or_default();
    let stores = parts.iter().flat_map(|part| &part.state_changelog_topics);
    let stores: Vec<_> = stores.map(|topic| (topic.name.as_str(), topic.partitions)).collect();
    probe.same("its changelogs and their partitions", stores, vec![(changelog.as_str(), 2)])?;
    a.produce_plain(&Place::of(&changelog, 1), &["state"]).is_stored_at(0)?;
    // Another application's input has another number of partitions than the store.
    let three = probe.partitions(3)?;
    let other = StreamsMember::new(&quick_group(probe)?, "member-1", &three[0]).with_store(&changelog);
    let joined = a.beat_streams(&other).is(0)?;
    probe.same("what the other one is told", joined.status, vec![INCORRECTLY_PARTITIONED_TOPICS])?;
    probe.same("the other one's tasks", joined.active, Some(TaskSet::new()))
}

const OWNERS: Scenario = Scenario {
    id: "G8-owners",
    title: "a task has one owner at a time",
    promise: "No two instances work on one partition: a task moves only when the one before has let go of it.",
    source: "KIP-1071",
    basis: &[Basis::Kip],
    versions: "StreamsGroupHeartbeat 0",
    ..Scenario::kafka(Area::Groups, owners)
};

fn owners(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::StreamsGroupHeartbeat, 0)?;
    let (t, g) = (probe.partitions(4)?, quick_group(probe)?);
    let (mut a, mut b) = (probe.actor("A")?, probe.actor("B")?);
    let (mut first, all) = a.joins_and_has(probe, &StreamsMember::new(&g, "member-1", &t[0]), 4)?;
    let mut second = b.joins(probe, &StreamsMember::new(&g, "member-2", &t[0]))?;
    let kept = a.asked_to_keep(probe, &mut first, (&all, 2))?;
    // It still works on all four: the newcomer has none.
    for _ in 0..5 {
        let beaten = b.work_on(&second, &TaskSet::new()).is(0)?;
        second.epoch = beaten.epoch;
        probe.same("what the newcomer has", beaten.active.unwrap_or_default(), TaskSet::new())?;
    }
    let before = first.clone();
    first.epoch = a.work_on(&first, &kept).is(0)?.epoch;
    probe.holds(first.epoch > before.epoch, "the epoch after it has let go", "a higher one")?;
    // Whoever claims what it let go of, is out.
    a.work_on(&before, &all).is(110)?;
    let given = b.settle(probe, &mut second, 2)?;
    probe.same("what both have", &kept | &given, all)?;
    probe.same("what both have at once", &kept & &given, TaskSet::new())
}

const EPOCHS: Scenario = Scenario {
    id: "G8-epochs",
    title: "member epochs of a streams group",
    promise: "A member that is not where its group is, learns it with its next heartbeat.",
    source: "KIP-1071; apache/kafka GroupMetadataManager",
    basis: &[Basis::Kip],
    versions: "StreamsGroupHeartbeat 0",
    ..Scenario::kafka(Area::Groups, epochs)
};

fn epochs(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::StreamsGroupHeartbeat, 0)?;
    let (t, g) = (probe.partitions(2)?, quick_group(probe)?);
    let mut a = probe.actor("A")?;
    let joining = StreamsMember::new(&g, "member-1", &t[0]);
    a.beat_streams(&joining.at(1)).is(69)?;
    let (me, all) = a.joins_and_has(probe, &joining, 2)?;
    a.beat_streams(&me.at(me.epoch + 1)).is(110)?;
    a.beat_streams(&me.at(me.epoch + 100)).is(110)?;
    a.beat_streams(&me.under("member-2")).is(25)?;
    // Its answer was lost: it joins again and has what it had.
    let again = a.beat_streams(&joining).is(0)?;
    probe.same("the tasks of who joins again", again.active, Some(all))?;
    let me = joining.at(again.epoch);
    let left = a.beat_streams(&me.at(-1)).is(0)?;
    probe.same("the epoch of who left", left.epoch, -1)?;
    a.beat_streams(&me).is(25)?;
    a.beat_streams(&me.at(-1)).is(25).map(|_| ())
}

const STATIC: Scenario = Scenario {
    id: "G8-static",
    title: "a static member of a streams group that is away",
    promise: "An instance that restarts finds its tasks waiting; nobody takes a name that is in use.",
    source: "KIP-1071; KIP-345",
    basis: &[Basis::Kip],
    versions: "StreamsGroupHeartbeat 0",
    ..Scenario::kafka(Area::Groups, comes_back)
};

fn comes_back(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::StreamsGroupHeartbeat, 0)?;
    let (t, g) = (probe.partitions(2)?, quick_group(probe)?);
    let mut a = probe.actor("A")?;
    let joining = StreamsMember::new(&g, "member-1", &t[0]).named("i-1");
    let (me, all) = a.joins_and_has(probe, &joining, 2)?;
    let other = joining.under("member-2");
    a.beat_streams(&other).is(111)?;
    let away = a.beat_streams(&me.at(-2)).is(0)?;
    probe.same("the epoch of who will be back", away.epoch, -2)?;
    let back = a.beat_streams(&other).is(0)?;
    probe.same("its tasks", back.active, Some(all))?;
    a.beat_streams(&me).is_any(&[25, 82])?;
    a.beat_streams(&other.at(back.epoch)).is(0).map(|_| ())
}

const OFFSETS: Scenario = Scenario {
    id: "G8-offsets",
    title: "positions of a task that is somebody else's by now",
    promise: "An instance that was slow does not put the position of its successor back: its input is processed once.",
    source: "KIP-1071; KIP-447; apache/kafka StreamsGroup.validateOffsetCommit",
    basis: &[Basis::Kip],
    versions: "OffsetCommit 9, OffsetFetch 9, TxnOffsetCommit 3",
    ..Scenario::kafka(Area::Groups, offsets)
};

fn offsets(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::StreamsGroupHeartbeat, 0)?;
    let (t, g) = (probe.partitions(2)?, quick_group(probe)?);
    let (mut a, mut b) = (probe.actor("A")?, probe.actor("B")?);
    let (mut first, all) = a.joins_and_has(probe, &StreamsMember::new(&g, "member-1", &t[0]), 2)?;
    let old = first.clone();
    let mut second = b.joins(probe, &StreamsMember::new(&g, "member-2", &t[0]))?;
    let kept = a.asked_to_keep(probe, &mut first, (&all, 1))?;
    first.epoch = a.work_on(&first, &kept).is(0)?.epoch;
    let given = b.settle(probe, &mut second, 1)?;
    let place =
        |tasks: &TaskSet| tasks.iter().filter_map(|index| t.get(usize::try_from(*index).ok()?)).next();
    let (Some(own), Some(gone)) = (place(&kept), place(&given)) else {
        return probe.holds(false, "the tasks of both", "one for each");
    };
    b.commit_in_epoch(&second.as_consumer(), (gone, 7)).is(0)?;
    a.commit_in_epoch(&old.as_consumer(), (gone, 1)).is(113)?;
    a.commit_in_epoch(&first.at(first.epoch + 1).as_consumer(), (own, 2)).is(113)?;
    a.commit_in_epoch(&first.under("who").as_consumer(), (own, 3)).is(25)?;
    a.commit_in_epoch(&first.as_consumer(), (own, 4)).is(0)?;
    a.fetch_in_epoch(&old.as_consumer(), own).is(113)?;
    probe.same("its position", a.fetch_in_epoch(&first.as_consumer(), own).is(0)?, 4)?;
    let writer = a.init(&probe.id("x"))?;
    a.add_offsets(&writer, &g)?;
    a.commit_offset_as(&writer, &old.as_member(), (gone, 5)).is(22)?;
    a.commit_offset_as(&writer, &first.under("who").as_member(), (own, 6)).is(25)?;
    a.commit_offset_as(&writer, &first.as_member(), (own, 8)).is(0)?;
    a.end(&writer, Commit).is(0)?;
    a.group_stands_at(&g, own, 8)?;
    a.group_stands_at(&g, gone, 7)
}

const KINDS: Scenario = Scenario {
    id: "G8-kinds",
    title: "a streams group and members of other protocols",
    promise: "A consumer that names the group of an application by mistake is told so, and takes nothing from it.",
    source: "KIP-1071; apache/kafka GroupMetadataManager",
    basis: &[Basis::Kip],
    versions: "StreamsGroupHeartbeat 0, ConsumerGroupHeartbeat 1, JoinGroup 3",
    ..Scenario::kafka(Area::Groups, kinds)
};

fn kinds(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::StreamsGroupHeartbeat, 0)?;
    probe.needs(ApiKey::ConsumerGroupHeartbeat, 1)?;
    let (t, g, other) = (probe.topic()?, quick_group(probe)?, probe.group("consumers"));
    let (mut a, mut b) = (probe.actor("A")?, probe.actor("B")?);
    let (me, _) = a.joins_and_has(probe, &StreamsMember::new(&g, "member-1", &t), 1)?;
    b.beat_consumer(&Consumer::new(&g, "member-2", &t)).is(69)?;
    b.join(&Member::new(&g)).is(23).map(|_| ())?;
    a.beat_streams(&me).is(0)?;
    b.beat_consumer(&Consumer::new(&other, "member-1", &t)).is(0)?;
    a.beat_streams(&StreamsMember::new(&other, "member-2", &t)).is(69)?;
    a.describe_streams(&other).is(69).map(|_| ())
}

const RESTART: Scenario = Scenario {
    id: "G8-restart",
    title: "the members of a streams group after a kill of the broker",
    promise: "An application goes on after a restart of the broker with the tasks it had, none of them worked on twice.",
    source: "KIP-1071",
    basis: &[Basis::Kip],
    versions: "StreamsGroupHeartbeat 0, StreamsGroupDescribe 0",
    needs: Needs::Restart(&[]),
    ..Scenario::kafka(Area::Groups, restart)
};

fn restart(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::StreamsGroupHeartbeat, 0)?;
    let (t, g) = (probe.partitions(2)?, quick_group(probe)?);
    let mut a = probe.actor("A")?;
    let (mut me, all) = a.joins_and_has(probe, &StreamsMember::new(&g, "member-1", &t[0]), 2)?;
    probe.kill()?;
    probe.restart()?;
    let mut a = probe.actor("A again")?;
    me.epoch = a.work_on(&me, &all).is(0)?.epoch;
    let seen = a.describe_streams(&g).is(0)?;
    let members: Vec<_> = seen.members.iter().map(|one| (one.member_id.as_str(), works_on(one))).collect();
    probe.same("its members", members, vec![("member-1", all.clone())])?;
    a.commit_in_epoch(&me.as_consumer(), (&t[1], 3)).is(0)?;
    let mut b = probe.actor("B")?;
    let mut second = b.joins(probe, &StreamsMember::new(&g, "member-2", &t[0]))?;
    let kept = a.asked_to_keep(probe, &mut me, (&all, 1))?;
    a.work_on(&me, &kept).is(0)?;
    let given = b.settle(probe, &mut second, 1)?;
    probe.same("what both have", &kept | &given, all)
}

const SILENT: Scenario = Scenario {
    id: "G8-silent",
    title: "a member of a streams group that is silent for longer than its session",
    promise: "The tasks of an instance that hangs are given to others.",
    source: "KIP-1071",
    basis: &[Basis::Kip],
    versions: "StreamsGroupHeartbeat 0, StreamsGroupDescribe 0",
    needs: Needs::Settings(super::mutated::SHORT_SESSIONS),
    ..Scenario::kafka(Area::Groups, silent)
};

fn silent(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::StreamsGroupHeartbeat, 0)?;
    let (t, g) = (probe.topic()?, probe.group("g"));
    let (mut silent, mut other) = (probe.actor("silent")?, probe.actor("other")?);
    let joining = StreamsMember::new(&g, "member-1", &t);
    let me = joining.at(silent.beat_streams(&joining).is(0)?.epoch);
    probe.eventually("no members", || Ok(other.describe_streams(&g).is(0)?.members.is_empty()))?;
    silent.beat_streams(&me).is(25).map(|_| ())
}

/// A streams group that does not wait for more members, nor between two targets.
fn quick_group(probe: &Probe) -> Kept<String> {
    let group = probe.group("g");
    let config = |name: &str| IncrementallyAlterableConfig {
        name: name.into(),
        value: Some("0".into()),
        ..Default::default()
    };
    let configs =
        vec![config("streams.initial.rebalance.delay.ms"), config("streams.assignment.interval.ms")];
    let resource_name = group.as_str().into();
    let resource = IncrementalAlterConfigsResource { resource_type: GROUP, resource_name, configs };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let answer = probe.actor("setup")?.ask("IncrementalAlterConfigs of the group", &request, 1, |response| {
        response.responses.first().map_or(WireCode(-1), |resource| resource.error_code)
    });
    // Who does not know these settings waits as long as it likes: that is no promise.
    answer.is_any(&[0, 40, 42]).map(|_| group)
}

/// The type of a group among resources that have settings (upstream `ConfigResource.Type`).
const GROUP: i8 = 32;

impl Actor {
    /// Joins where others have all the tasks; gives the member with its epoch.
    fn joins(&mut self, probe: &Probe, joining: &StreamsMember) -> Kept<StreamsMember> {
        let joined = self.beat_streams(joining).is(0)?;
        probe.same("what the newcomer has", joined.active.unwrap_or_default(), TaskSet::new())?;
        Ok(joining.at(joined.epoch))
    }

    /// Joins, and heartbeats until the member works on so many tasks; gives it with its epoch and its tasks.
    fn joins_and_has(
        &mut self,
        probe: &Probe,
        joining: &StreamsMember,
        count: usize,
    ) -> Kept<(StreamsMember, TaskSet)> {
        let joined = self.beat_streams(joining).is(0)?;
        let (mut me, mut has) = (joining.at(joined.epoch), joined.active.unwrap_or_default());
        self.come_to_have(probe, (&mut me, &mut has), count)?;
        Ok((me, has))
    }

    /// Heartbeats of a member that has nothing yet until it works on so many tasks; gives those.
    fn settle(&mut self, probe: &Probe, me: &mut StreamsMember, count: usize) -> Kept<TaskSet> {
        let mut has = TaskSet::new();
        self.come_to_have(probe, (me, &mut has), count)?;
        Ok(has)
    }

    fn come_to_have(
        &mut self,
        probe: &Probe,
        (me, has): (&mut StreamsMember, &mut TaskSet),
        count: usize,
    ) -> Kept {
        probe.eventually("the member has its share", || {
            if has.len() != count {
                let beaten = self.work_on(me, has).is(0)?;
                me.epoch = beaten.epoch;
                *has = beaten.active.unwrap_or(std::mem::take(has));
            }
            Ok(has.len() == count)
        })
    }

    /// Heartbeats of a member that works on all it has until it is asked to keep so many only; gives those.
    fn asked_to_keep(
        &mut self,
        probe: &Probe,
        me: &mut StreamsMember,
        (all, count): (&TaskSet, usize),
    ) -> Kept<TaskSet> {
        let mut kept = TaskSet::new();
        probe.eventually("the member is asked to let go of tasks", || {
            let beaten = self.work_on(me, all).is(0)?;
            me.epoch = beaten.epoch;
            kept = beaten.active.unwrap_or_default();
            Ok(kept.len() == count)
        })?;
        Ok(kept)
    }
}
