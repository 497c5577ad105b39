//! What Apache Kafka's own tests pin and no other scenario tries; `docs/certify/kafka-tests.md` has them all.

use std::{thread, time::Duration};

use semel_types::PartitionIndex;
use semel_wire::{
    ApiKey,
    api::{
        offset_delete::{OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic},
        offset_fetch::{OffsetFetchRequest, OffsetFetchTopic},
    },
};

use crate::{
    Actor, Look,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    actor::transact::offset_commit_request,
    scenario::{Area, Basis, Kept, Needs},
    session::Place,
    stricter::SHORT_EXPIRY,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[
    &BUMP,
    &FIRST_V2,
    &OPEN_PRODUCER,
    &FORGOTTEN_PRODUCER,
    &LOG_START,
    &SEGMENTS,
    &NEWER_COMMIT,
    &DELETED_OFFSET,
    &NOTE,
];

const BUMP: Scenario = Scenario {
    id: "K81-bump",
    title: "after a marker that raised the epoch",
    promise: "A takeover shuts the old producer out of each partition that it wrote, and the new one starts at zero.",
    source: "ProducerStateManagerTest.testControlRecordBumpsProducerEpoch, testOutOfSequenceAfterControlRecordEpochBump, testProducerStateAfterFencingAbortMarker of Apache Kafka",
    ..Scenario::kafka(Area::Dedup, bump)
};

fn bump(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let (mut a, mut b) = (probe.actor("A")?, probe.actor("B")?);
    let old = a.open(&t, &id, "aborted")?;
    let new = b.init(&id)?;
    a.produce(&t, &old, 1, &["old"]).is(47)?;
    b.add(&new, &[&t])?;
    b.produce_when_free(&t, &new, 1, &["out of sequence"]).is(45)?;
    b.produce(&t, &new, 0, &["new"]).is(0)?;
    a.produce(&t, &old, 1, &["old"]).is(47)?;
    b.end(&new, Commit).is(0)?;
    b.reads(&t, &["new"])
}

const FIRST_V2: Scenario = Scenario {
    id: "K81-first",
    title: "the first batch of a transaction is not the first one sent, version 2",
    promise: "Of two batches in flight the later one cannot overtake the first: nothing is lost or reordered.",
    source: "ProducerStateManagerTest.testRejectNonZeroSequenceForTransactionsV2WithEmptyState of Apache Kafka (KAFKA-18202)",
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Dedup, first_v2)
};

fn first_v2(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?.version_2();
    let me = a.init(&probe.id("x"))?;
    a.produce_when_free(&t, &me, 2, &["2"]).is(45)?;
    a.produce_when_free(&t, &me, 0, &["0", "1"]).is_stored_at(0)?;
    a.produce_when_free(&t, &me, 2, &["2"]).is_stored_at(2)?;
    a.end(&me, Commit).is(0)?;
    a.reads(&t, &["0", "1", "2"])
}

const OPEN_PRODUCER: Scenario = Scenario {
    id: "K81-open",
    title: "a producer with an open transaction is not forgotten",
    promise: "A long transaction outlives the time after which idle producers are forgotten.",
    source: "ProducerStateManagerTest.testProducersWithOngoingTransactionsDontExpire of Apache Kafka; KIP-854",
    needs: Needs::Settings(SHORT_EXPIRY),
    ..Scenario::kafka(Area::Dedup, open_producer)
};

fn open_producer(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.open(&t, &probe.id("x"), "0")?;
    // Three times as long as an idle producer is remembered.
    thread::sleep(Duration::from_secs(3));
    a.produce(&t, &me, 0, &["0"]).is_stored_at(0)?;
    a.produce(&t, &me, 2, &["2"]).is(45)?;
    a.produce(&t, &me, 1, &["1"]).is_stored_at(1)?;
    a.end(&me, Commit).is(0)?;
    a.reads(&t, &["0", "1"])
}

const FORGOTTEN_PRODUCER: Scenario = Scenario {
    id: "K85-forgotten",
    title: "a transaction after the partition has forgotten the producer",
    promise: "A producer that rests for long between its transactions goes on without an error.",
    source: "TransactionsExpirationTest.testTransactionAfterProducerIdExpires, ProducerIdExpirationTest of Apache Kafka; KIP-854",
    needs: Needs::Settings(SHORT_EXPIRY),
    ..Scenario::kafka(Area::Recovery, forgotten_producer)
};

fn forgotten_producer(probe: &mut Probe) -> Kept {
    for is_version_2 in [false, true] {
        if is_version_2 && probe.needs_version_2().is_err() {
            continue;
        }
        let t = probe.topic()?;
        let mut a = probe.actor("A")?;
        if is_version_2 {
            a = a.version_2();
        }
        let me = a.init(&probe.id("x"))?;
        let me = a.transact(&t, &me, (0, "before"), Commit)?;
        // Longer than it is remembered, and than the pause between two looks.
        thread::sleep(Duration::from_secs(2));
        let sequence = i32::from(!is_version_2);
        a.transact(&t, &me, (sequence, "after"), Commit)?;
        a.reads(&t, &["before", "after"])?;
    }
    Ok(())
}

const LOG_START: Scenario = Scenario {
    id: "K82-start",
    title: "records of an open transaction are deleted",
    promise: "Deleting old records does not free a transaction: readers go on when it ends, from where the log starts.",
    source: "UnifiedLogTest.testLastStableOffsetDoesNotExceedLogStartOffsetMidSegment of Apache Kafka",
    versions: "DeleteRecords 1, Fetch 12",
    ..Scenario::kafka(Area::Markers, log_start)
};

fn log_start(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::DeleteRecords, 1)?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    a.add(&me, &[&t])?;
    for (sequence, value) in (0..).zip(["0", "1", "2"]) {
        a.produce(&t, &me, sequence, &[value]).is_stored_at(i64::from(sequence))?;
    }
    a.produce_plain(&t, &["plain"]).is_stored_at(3)?;
    probe.same("the start of the log", a.delete_records(&t, 2).is(0)?, 2)?;
    let seen = a.look(&t, Look::committed(2)).is(0)?;
    probe.same("last stable offset and high watermark", (seen.last_stable, seen.high_watermark), (2, 4))?;
    probe.same("batches for readers of committed records", seen.batches.len(), 0)?;
    a.look(&t, Look::committed(1)).is(1).map(|_| ())?;
    a.end(&me, Commit).is(0)?;
    a.settles(&t)?;
    let seen = a.look_all(&t, Look::committed(2))?;
    probe.same("what is delivered", seen.values, ["2", "plain"].map(str::to_owned).to_vec())
}

const SEGMENTS: Scenario = Scenario {
    id: "K82-segments",
    title: "an aborted transaction over several segments of the log",
    promise: "A long aborted transaction is hidden wherever in it a reader starts.",
    source: "UnifiedLogTest.testAbortedTransactionSpanningMultipleSegments of Apache Kafka",
    versions: "Fetch 12",
    ..Scenario::kafka(Area::Reading, segments)
};

fn segments(probe: &mut Probe) -> Kept {
    let t = probe.topic_with(1, &[("segment.ms", "50")])?.swap_remove(0);
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    a.add(&me, &[&t])?;
    for sequence in 0..4 {
        a.produce(&t, &me, sequence, &["aborted"]).is_stored_at(i64::from(sequence) * 2)?;
        a.produce_plain(&t, &[&sequence.to_string()]).is(0)?;
        // Each round is a segment of its own where time closes segments.
        thread::sleep(Duration::from_millis(70));
    }
    a.end(&me, Abort).is(0)?;
    a.settles(&t)?;
    for start in 0..4 {
        let seen = a.look_all(&t, Look::committed(start * 2))?;
        let due: Vec<_> = (start..4).map(|number| number.to_string()).collect();
        probe.same(&format!("what is delivered from {}", start * 2), seen.values, due)?;
        probe.same("the list", seen.aborted, Some(vec![(me.producer_id(), 0)]))?;
    }
    Ok(())
}

const NEWER_COMMIT: Scenario = Scenario {
    id: "K84-newer",
    title: "a plain commit while a transaction holds the same position",
    promise: "Whoever committed a group's position last has the last word, also against an older transaction.",
    source: "OffsetMetadataManagerTest.testReplayTransactionEndMarkerKeepsTheMostRecentCommittedOffset of Apache Kafka",
    ..Scenario::kafka(Area::Groups, newer_commit)
};

fn newer_commit(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    a.add_offsets(&me, &g)?;
    a.commit_offset(&me, &g, (&t, 10)).is(0)?;
    a.commit_group_offset(&g, (&t, 20)).is(0)?;
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t, 20)
}

const DELETED_OFFSET: Scenario = Scenario {
    id: "K84-deleted",
    title: "a position is deleted while a transaction holds a newer one",
    promise: "Deleting a position does not delete the one that an open transaction is about to commit.",
    source: "OffsetMetadataManagerTest.testReplayWithTombstoneAndPendingTransactionalOffsets of Apache Kafka",
    versions: "OffsetDelete 0",
    ..Scenario::stricter(
        Area::Groups,
        "0 for the deletion and 0 for the commit, and then the group has no position at all",
        deleted_offset,
    )
};

fn deleted_offset(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::OffsetDelete, 0)?;
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    a.commit_group_offset(&g, (&t, 5)).is(0)?;
    let me = a.init(&probe.id("x"))?;
    a.add_offsets(&me, &g)?;
    a.commit_offset(&me, &g, (&t, 10)).is(0)?;
    let before = if a.delete_offset(&g, &t).is_any(&[0, 88])?.0 == 0 { -1 } else { 5 };
    probe.same("the position before the commit", a.group_offset(&g, &t, false)?.offset, before)?;
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t, 10)
}

impl Actor {
    /// OffsetDelete of one partition, once; 88 where a transaction holds it.
    fn delete_offset(&mut self, group: &str, place: &Place) -> crate::Answer<()> {
        let partition_index = PartitionIndex::new(place.index);
        let partitions = vec![OffsetDeleteRequestPartition { partition_index }];
        let topics = vec![OffsetDeleteRequestTopic { name: place.topic.as_str().into(), partitions }];
        let request = OffsetDeleteRequest { group_id: group.into(), topics };
        let answer = self.ask(&format!("OffsetDelete in {group}"), &request, 0, |response| {
            let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
            partitions.next().map_or(response.error_code, |partition| partition.error_code)
        });
        answer.map(|_| ())
    }
}

const NOTE: Scenario = Scenario {
    id: "K85-note",
    title: "the note beside a position in a transaction",
    promise: "What an application writes beside its position comes back with it.",
    source: "TransactionsTest.testOffsetMetadataInSendOffsetsToTransaction of Apache Kafka",
    basis: &[Basis::Protocol],
    ..Scenario::kafka(Area::Groups, note)
};

fn note(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let me: Producer = a.init(&probe.id("x"))?;
    a.add_offsets(&me, &g)?;
    let mut request = offset_commit_request(&me, &g, (&t, 7));
    request.topics[0].partitions[0].committed_metadata = Some("half way".into());
    a.until_free(|actor| actor.send_offsets("TxnOffsetCommit with a note", &request)).is(0)?;
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t, 7)?;
    let partition_indexes = vec![PartitionIndex::new(t.index)];
    let topic = OffsetFetchTopic { name: t.topic.as_str().into(), partition_indexes };
    let request =
        OffsetFetchRequest { group_id: g.as_str().into(), topics: Some(vec![topic]), ..Default::default() };
    let answer = a.ask("OffsetFetch with its note", &request, 7, |response| response.error_code).is(0)?;
    let partitions = answer.topics.into_iter().flat_map(|topic| topic.partitions);
    let notes: Vec<_> = partitions.filter_map(|partition| partition.metadata).collect();
    probe.same("the notes", notes.iter().map(semel_wire::Text::as_str).collect::<Vec<_>>(), vec!["half way"])
}
