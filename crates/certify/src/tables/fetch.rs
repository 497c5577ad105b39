//! Tables 4.1 to 4.3: Fetch and ListOffsets by isolation level and version.

use std::{
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use semel_types::{PartitionIndex, Sequence, TopicId, WallTime};
use semel_wire::{
    ApiKey, RawOffset, WireCode,
    api::{
        fetch::{FetchPartition, FetchPartitionResponse, FetchRequest, FetchTopic},
        list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic},
    },
    batch::{self, Batch, BatchBuilder, NewRecord},
};

use super::offered;
use crate::{
    Actor, Answer,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    scenario::{Area, Basis, Kept},
    session::{Isolation, Place},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&LEVELS, &ABORTED, &LIST, &PLACES];

const LEVELS: Scenario = Scenario {
    id: "T4.1-levels",
    title: "Fetch by isolation level and version",
    promise: "A reader of committed records gets nothing undecided, any other reader gets everything.",
    source: "KIP-98; redpanda-data/redpanda#6630, PR #18852",
    versions: "Fetch 4 to 18",
    ..Scenario::kafka(Area::Reading, levels)
};

fn levels(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let aborted = a.open(&t, &probe.id("aborted"), "aborted")?;
    a.end(&aborted, Abort).is(0)?;
    a.settles(&t)?;
    a.open(&t, &probe.id("open"), "open")?;
    for version in offered(probe, ApiKey::Fetch, 4..=18)? {
        let all = fetch(&mut a, &t, (0, Isolation::Uncommitted), version)?;
        probe.same(&format!("offsets at level 0, v{version}"), offsets(&all), vec![0, 1, 2])?;
        let is_listed = all.aborted_transactions.is_some();
        probe.same(&format!("a list of aborted transactions at level 0, v{version}"), is_listed, false)?;
        probe.same("the high watermark", all.high_watermark.get(), 3)?;
        probe.same("the last stable offset", all.last_stable_offset.get(), 2)?;
        let stable = fetch(&mut a, &t, (0, Isolation::Committed), version)?;
        probe.same(&format!("offsets at level 1, v{version}"), offsets(&stable), vec![0, 1])?;
        let listed = stable.aborted_transactions.unwrap_or_default();
        let listed: Vec<_> =
            listed.iter().map(|one| (one.producer_id.get(), one.first_offset.get())).collect();
        probe.same(&format!("aborted transactions, v{version}"), listed, vec![(aborted.producer_id(), 0)])?;
        let end = fetch(&mut a, &t, (2, Isolation::Committed), version)?;
        probe.same("the code at the last stable offset", end.error_code.get(), 0)?;
        probe.same("offsets from there", offsets(&end), Vec::new())?;
        let listed = end.aborted_transactions.map(|listed| listed.len());
        probe.same(&format!("aborted transactions listed from there, v{version}"), listed, Some(0))?;
    }
    Ok(())
}

const ABORTED: Scenario = Scenario {
    id: "T4.2-aborted",
    title: "which aborted transactions a Fetch lists",
    promise: "From wherever a reader starts, aborted records are hidden and no committed one is.",
    source: "apache/kafka TransactionIndex.collectAbortedTxns; KIP-98",
    versions: "Fetch 4 to 18",
    ..Scenario::kafka(Area::Reading, aborted)
};

fn aborted(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let me = a.init(&id)?;
    // Records 0, 1 and marker 2 aborted; 3 and marker 4 committed; 5 and marker 6 aborted; plain 7.
    write(&mut a, &t, &me, (0, &["0", "1"]))?;
    a.end(&me, Abort).is(0)?;
    write(&mut a, &t, &me, (2, &["3"]))?;
    a.end(&me, Commit).is(0)?;
    write(&mut a, &t, &me, (3, &["5"]))?;
    a.end(&me, Abort).is(0)?;
    a.settles(&t)?;
    a.produce_plain(&t, &["7"]).is_stored_at(7)?;
    for version in offered(probe, ApiKey::Fetch, 4..=18)? {
        for from in 0..8 {
            let answer = fetch(&mut a, &t, (from, Isolation::Committed), version)?;
            let listed = answer.aborted_transactions.unwrap_or_default();
            let mut listed: Vec<_> = listed.iter().map(|one| one.first_offset.get()).collect();
            listed.sort_unstable();
            // The one whose marker is below the start must not be listed: its producer's next commit would be hidden.
            let due = [(0, 2), (5, 6)].into_iter().filter(|(_, marker)| *marker >= from);
            let due: Vec<_> = due.map(|(first, _)| first).collect();
            probe.same(&format!("aborted transactions listed from {from}, v{version}"), listed, due)?;
        }
    }
    a.reads(&t, &["3", "7"])
}

fn write(a: &mut Actor, t: &Place, me: &Producer, (sequence, values): (i32, &[&str])) -> Kept {
    a.add(me, &[t])?;
    a.produce(t, me, sequence, values).is(0).map(|_| ())
}

const LIST: Scenario = Scenario {
    id: "T4.3-list",
    title: "ListOffsets by isolation level and version",
    promise: "The end that a reader is told is one that it can reach.",
    source: "KIP-98; segmentio/kafka-go#407; confluentinc/librdkafka#3423",
    versions: "ListOffsets 1 to 11",
    ..Scenario::kafka(Area::Reading, list)
};

/// How much later than the first record the second one is.
const LATER_MS: i64 = 10_000;

fn list(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let now = i64::try_from(now).unwrap_or_default();
    a.produce_batch("Produce plain", &t, None, dated(None, now)).is_stored_at(0)?;
    a.add(&me, &[&t])?;
    let later = dated(Some(&me), now + LATER_MS);
    a.produce_batch("Produce open, ten seconds later", &t, me.id.as_deref(), later).is_stored_at(1)?;
    for version in offered(probe, ApiKey::ListOffsets, 1..=11)? {
        let mut look = |timestamp, isolation| list_offset(&mut a, &t, timestamp, isolation, version).is(0);
        probe.same(&format!("latest, level 0, v{version}"), look(-1, 0)?, 2)?;
        probe.same(&format!("a time between the two, level 0, v{version}"), look(now + 1, 0)?, 1)?;
        probe.same(&format!("a time to come, v{version}"), look(i64::MAX / 2, 0)?, -1)?;
        // Version 1 has no isolation level.
        let is_stable = version >= 2;
        probe.same(&format!("latest, level 1, v{version}"), look(-1, 1)?, if is_stable { 1 } else { 2 })?;
        probe.same(&format!("earliest, level 1, v{version}"), look(-2, 1)?, 0)?;
        probe.same(&format!("the first record by time, level 1, v{version}"), look(1, 1)?, 0)?;
        // The record is there, and nobody may have it yet.
        let undecided = if is_stable { -1 } else { 1 };
        probe.same(&format!("a time between the two, level 1, v{version}"), look(now + 1, 1)?, undecided)?;
    }
    a.end(&me, Abort).is(0)?;
    a.settles(&t)?;
    for isolation in [0, 1] {
        probe.same("latest after the abort", list_offset(&mut a, &t, -1, isolation, 7).is(0)?, 3)?;
        probe.same("by time after the abort", list_offset(&mut a, &t, now + 1, isolation, 7).is(0)?, 1)?;
    }
    Ok(())
}

/// A batch of one record of a time.
fn dated(producer: Option<&Producer>, timestamp_ms: i64) -> Batch {
    let builder = BatchBuilder::new();
    let builder = match producer {
        Some(producer) => builder.stamped(producer.stamp, Sequence::default()).transactional(),
        None => builder,
    };
    let timestamp = Some(WallTime::from_ms(timestamp_ms));
    builder.records([NewRecord { timestamp, ..NewRecord::of(b"dated") }]).build()
}

const PLACES: Scenario = Scenario {
    id: "T4.3-places",
    title: "the special places of ListOffsets by version",
    promise: "A tool that asks for a place that its version does not have is told so, and not given a time's offset.",
    source: "apache/kafka ReplicaManager.fetchOffset; KIP-734; KIP-405; KIP-1005; KIP-1023",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "ListOffsets 1 to 11",
    ..Scenario::kafka(Area::Reading, places)
};

fn places(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    a.produce_plain(&t, &["0"]).is_stored_at(0)?;
    // Of two records of one millisecond brokers name either as the one with the largest timestamp.
    thread::sleep(Duration::from_millis(2));
    a.produce_plain(&t, &["1"]).is_stored_at(1)?;
    a.delete_records(&t, 1).is(0)?;
    for version in offered(probe, ApiKey::ListOffsets, 1..=11)? {
        // The largest timestamp, the first local record, the last tiered one, the first one to be tiered.
        for (place, since, due) in [(-3, 7, 1), (-4, 8, 1), (-5, 9, -1), (-6, 11, -1)] {
            let answer = list_offset(&mut a, &t, place, 0, version);
            if version < since {
                answer.is(35)?;
            } else {
                probe.same(&format!("place {place}, v{version}"), answer.is(0)?, due)?;
            }
        }
    }
    Ok(())
}

fn list_offset(a: &mut Actor, t: &Place, timestamp: i64, isolation_level: i8, version: i16) -> Answer<i64> {
    let partition_index = PartitionIndex::new(t.index);
    let partition = ListOffsetsPartition { partition_index, timestamp, ..Default::default() };
    let topics = vec![ListOffsetsTopic { name: t.topic.as_str().into(), partitions: vec![partition] }];
    let request = ListOffsetsRequest { replica_id: -1, isolation_level, topics, ..Default::default() };
    let said = format!("ListOffsets at time {timestamp}, level {isolation_level}");
    let answer = a.ask(&said, &request, version, |response| {
        let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.next().map_or(WireCode(-1), |partition| partition.error_code)
    });
    answer.map(|response| {
        let mut partitions = response.topics.into_iter().flat_map(|topic| topic.partitions);
        partitions.next().map_or(-1, |partition| partition.offset.get())
    })
}

fn fetch(
    a: &mut Actor,
    t: &Place,
    (offset, isolation): (i64, Isolation),
    version: i16,
) -> Kept<FetchPartitionResponse> {
    let partition = FetchPartition {
        partition: PartitionIndex::new(t.index),
        fetch_offset: RawOffset(offset),
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    // From here on topics are named by their ids.
    let topic_id = if version >= 13 { a.session.topic_id(&t.topic)? } else { TopicId::default() };
    let topics = vec![FetchTopic { topic: t.topic.as_str().into(), topic_id, partitions: vec![partition] }];
    let isolation_level = i8::from(isolation == Isolation::Committed);
    let request =
        FetchRequest { min_bytes: 0, max_wait_ms: 0, isolation_level, topics, ..Default::default() };
    let answer = a.ask(&format!("Fetch from {offset} {isolation:?}"), &request, version, |response| {
        let mut partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
        partitions.next().map_or(WireCode(-1), |partition| partition.error_code)
    });
    let mut partitions = answer.is(0)?.responses.into_iter().flat_map(|topic| topic.partitions);
    Ok(partitions.next().unwrap_or_default())
}

/// Offsets of everything that an answer holds, markers included.
fn offsets(answer: &FetchPartitionResponse) -> Vec<i64> {
    let blob = answer.records.as_ref().map(semel_wire::Records::to_bytes).unwrap_or_default();
    let batches = batch::split(blob).filter_map(Result::ok);
    batches.flat_map(|batch| batch.base_offset().get()..=batch.last_offset().get()).collect()
}
