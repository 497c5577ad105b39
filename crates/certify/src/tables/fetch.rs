//! Tables 4.1 to 4.3: Fetch and ListOffsets by isolation level and version.

use semel_types::PartitionIndex;
use semel_wire::{
    RawOffset, WireCode,
    api::{
        fetch::{FetchPartition, FetchPartitionResponse, FetchRequest, FetchTopic},
        list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic},
    },
    batch,
};

use crate::{
    Actor,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    scenario::{Area, Kept},
    session::{Isolation, Place},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&LEVELS, &ABORTED, &LIST];

const LEVELS: Scenario = Scenario {
    id: "T4.1-levels",
    title: "Fetch by isolation level and version",
    promise: "A reader of committed records gets nothing undecided, any other reader gets everything.",
    source: "KIP-98; redpanda-data/redpanda#6630, PR #18852",
    versions: "Fetch 4 to 12",
    ..Scenario::kafka(Area::Reading, levels)
};

fn levels(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let aborted = a.open(&t, &probe.id("aborted"), "aborted")?;
    a.end(&aborted, Abort).is(0)?;
    a.settles(&t)?;
    a.open(&t, &probe.id("open"), "open")?;
    for version in 4..=12 {
        let all = fetch(&mut a, &t, (0, Isolation::Uncommitted), version)?;
        probe.same(&format!("offsets at level 0, v{version}"), offsets(&all), vec![0, 1, 2])?;
        let listed = all.aborted_transactions.map_or(0, |listed| listed.len());
        probe.same(&format!("aborted transactions listed at level 0, v{version}"), listed, 0)?;
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
    }
    Ok(())
}

const ABORTED: Scenario = Scenario {
    id: "T4.2-aborted",
    title: "which aborted transactions a Fetch lists",
    promise: "From wherever a reader starts, aborted records are hidden and no committed one is.",
    source: "apache/kafka TransactionIndex.collectAbortedTxns; KIP-98",
    versions: "Fetch 12",
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
    for from in 0..8 {
        let answer = fetch(&mut a, &t, (from, Isolation::Committed), 12)?;
        let listed = answer.aborted_transactions.unwrap_or_default();
        let mut listed: Vec<_> = listed.iter().map(|one| one.first_offset.get()).collect();
        listed.sort_unstable();
        // The one whose marker is below the start must not be listed: its producer's next commit would be hidden.
        let due: Vec<_> =
            [(0, 2), (5, 6)].iter().filter(|(_, marker)| *marker >= from).map(|(first, _)| *first).collect();
        probe.same(&format!("aborted transactions listed from {from}"), listed, due)?;
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
    versions: "ListOffsets 2 to 8",
    ..Scenario::kafka(Area::Reading, list)
};

fn list(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    a.produce_plain(&t, &["plain"]).is_stored_at(0)?;
    let me = a.open(&t, &probe.id("x"), "open")?;
    for version in 2..=8 {
        let mut look = |timestamp, isolation| list_offset(&mut a, &t, timestamp, isolation, version);
        probe.same(&format!("latest, level 0, v{version}"), look(-1, 0)?, 2)?;
        probe.same(&format!("latest, level 1, v{version}"), look(-1, 1)?, 1)?;
        probe.same(&format!("earliest, level 1, v{version}"), look(-2, 1)?, 0)?;
        probe.same(&format!("the first record by time, level 1, v{version}"), look(1, 1)?, 0)?;
        probe.same(&format!("a time to come, v{version}"), look(i64::MAX / 2, 0)?, -1)?;
    }
    a.end(&me, Abort).is(0)?;
    a.settles(&t)?;
    for isolation in [0, 1] {
        probe.same("latest after the abort", list_offset(&mut a, &t, -1, isolation, 7)?, 3)?;
    }
    Ok(())
}

fn list_offset(a: &mut Actor, t: &Place, timestamp: i64, isolation_level: i8, version: i16) -> Kept<i64> {
    let partition_index = PartitionIndex::new(t.index);
    let partition = ListOffsetsPartition { partition_index, timestamp, ..Default::default() };
    let topics = vec![ListOffsetsTopic { name: t.topic.as_str().into(), partitions: vec![partition] }];
    let request = ListOffsetsRequest { replica_id: -1, isolation_level, topics, ..Default::default() };
    let said = format!("ListOffsets at time {timestamp}, level {isolation_level}");
    let answer = a.ask(&said, &request, version, |response| {
        let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.next().map_or(WireCode(-1), |partition| partition.error_code)
    });
    let mut partitions = answer.is(0)?.topics.into_iter().flat_map(|topic| topic.partitions);
    Ok(partitions.next().map_or(-1, |partition| partition.offset.get()))
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
    let topics = vec![FetchTopic {
        topic: t.topic.as_str().into(),
        partitions: vec![partition],
        ..Default::default()
    }];
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
