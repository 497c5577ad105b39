//! `semel group reset-offsets`: moves committed offsets of a group without members.

use clap::{ArgGroup, Args};
use semel_types::{PartitionIndex, WallTime};
use semel_wire::{
    RawLeaderEpoch, RawOffset, Text, WireCode,
    api::{
        list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic},
        offset_commit::{OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic},
        offset_fetch::{OffsetFetchRequest, OffsetFetchTopic},
    },
};
use serde_json::json;

use super::list::state_of;
use crate::cli::ask::{AskError, Bootstrap, Said, Target, kafka::Kafka, table};

/// Move committed offsets of a group without members.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("where").required(true).args(
    ["to_earliest", "to_latest", "to_offset", "shift_by", "to_datetime"]
)))]
#[command(after_help = "Examples:
  semel group reset-offsets orders --topic events --to-earliest              what it would do
  semel group reset-offsets orders --topic events --to-earliest --execute    do it
  semel group reset-offsets orders --topic events:3 --to-offset 17 --execute
  semel group reset-offsets orders --topic events --shift-by -100 --execute
  semel group reset-offsets orders --to-datetime 2026-11-29T12:00:00Z --execute

Without --execute nothing is changed. Without --topic it is about every partition that the group has an offset of. An
offset outside of the log is moved to its nearer end. The group must have no members: the broker refuses else. With --topic, a
group that does not exist is made.
It asks in Kafka's protocol (OffsetFetch, ListOffsets, OffsetCommit), so it works with other brokers, too.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 no such group, topic, partition or offset, 4 nobody answers at the address.")]
pub struct Reset {
    /// The group.
    #[arg(value_name = "GROUP", value_parser = super::name)]
    group: String,
    /// A topic, or one partition of it; may be given often.
    #[arg(long = "topic", value_name = "TOPIC[:P]", value_parser = Target::parse)]
    topics: Vec<Target>,
    /// To the start of the log.
    #[arg(long)]
    to_earliest: bool,
    /// To the end of the log.
    #[arg(long)]
    to_latest: bool,
    /// To this offset.
    #[arg(long, value_name = "OFFSET")]
    to_offset: Option<i64>,
    /// By so many offsets, back if negative.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    shift_by: Option<i64>,
    /// To the first record of this time or later, else to the end.
    #[arg(long, value_name = "TIME", value_parser = crate::units::parse_time)]
    to_datetime: Option<WallTime>,
    /// Do it; without this it is only shown.
    #[arg(long, conflicts_with = "dry_run")]
    execute: bool,
    /// Only show what would be done; this is the default.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    bootstrap: Bootstrap,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Version of ListOffsets.
const LIST: i16 = 7;
/// Version of OffsetFetch: the last of one group.
const FETCH: i16 = 7;
/// Version of OffsetCommit.
const COMMIT: i16 = 8;

/// ListOffsets' timestamp of the end of the log.
const LATEST: i64 = -1;
/// Of its start.
const EARLIEST: i64 = -2;

/// What is to become of one partition.
struct Move {
    topic: String,
    partition: i32,
    before: Option<i64>,
    after: i64,
}

/// Asks.
pub fn ask(reset: &Reset) -> Result<Said, AskError> {
    let mut kafka = Kafka::connect(&reset.bootstrap.bootstrap)?;
    let places = places(&mut kafka, reset)?;
    let mut moves = Vec::with_capacity(places.len());
    for (topic, partition, before) in places {
        let after = target(&mut kafka, reset, (&topic, partition), before)?;
        moves.push(Move { topic, partition, before, after });
    }
    if reset.execute && !moves.is_empty() {
        commit(&mut kafka, &reset.group, &moves)?;
    }
    let json: Vec<_> = moves.iter().map(|one| {
        json!({ "topic": one.topic, "partition": one.partition, "before": one.before, "after": one.after })
    }).collect();
    Ok(Said::new(
        json!({ "group": reset.group, "executed": reset.execute, "offsets": json }),
        lines(reset, &moves),
    ))
}

fn lines(reset: &Reset, moves: &[Move]) -> Vec<String> {
    if moves.is_empty() {
        return vec![format!("Group {:?} has no offsets; --topic names those it is to get.", reset.group)];
    }
    let row = |one: &Move| {
        let before = one.before.map_or("-".to_owned(), |offset| offset.to_string());
        vec![format!("{}-{}", one.topic, one.partition), before, one.after.to_string()]
    };
    let mut lines = table(&["PARTITION", "BEFORE", "AFTER"], &moves.iter().map(row).collect::<Vec<_>>());
    if !reset.execute {
        lines.push("Nothing was changed: --execute does it.".to_owned());
    }
    lines
}

/// The partitions it is about, with the group's offset of each.
fn places(kafka: &mut Kafka, reset: &Reset) -> Result<Vec<(String, i32, Option<i64>)>, AskError> {
    let committed = committed(kafka, &reset.group)?;
    if reset.topics.is_empty() {
        if committed.is_empty() && state_of(kafka, &reset.group)?.is_none() {
            let group = &reset.group;
            return Err(AskError::NotFound(format!(
                "there is no group {group:?}; --topic names the partitions that a new one gets offsets of"
            )));
        }
        return Ok(committed
            .into_iter()
            .map(|(topic, partition, at)| (topic, partition, Some(at)))
            .collect());
    }
    let mut places = Vec::new();
    for target in &reset.topics {
        let known = kafka.partitions(&target.topic)?;
        let wanted = match target.partition {
            None => known,
            Some(one) if known.contains(&one) => vec![one],
            Some(one) => {
                return Err(AskError::NotFound(format!("topic {:?} has no partition {one}", target.topic)));
            }
        };
        for partition in wanted {
            let before =
                committed.iter().find(|(topic, index, _)| *topic == target.topic && *index == partition);
            places.push((target.topic.clone(), partition, before.map(|(_, _, at)| *at)));
        }
    }
    places.sort();
    places.dedup();
    Ok(places)
}

/// Every offset of a group.
fn committed(kafka: &mut Kafka, group: &str) -> Result<Vec<(String, i32, i64)>, AskError> {
    let topics: Option<Vec<OffsetFetchTopic>> = None;
    let request = OffsetFetchRequest { group_id: Text::from(group), topics, ..Default::default() };
    let answer = kafka.call(&request, FETCH)?;
    check("OffsetFetch", answer.error_code)?;
    let mut offsets = Vec::new();
    for topic in &answer.topics {
        for one in topic.partitions.iter().filter(|one| one.committed_offset.get() >= 0) {
            offsets.push((
                topic.name.as_str().to_owned(),
                one.partition_index.get(),
                one.committed_offset.get(),
            ));
        }
    }
    offsets.sort();
    Ok(offsets)
}

/// Where one partition is to go, within its log.
fn target(
    kafka: &mut Kafka,
    reset: &Reset,
    place: (&str, i32),
    before: Option<i64>,
) -> Result<i64, AskError> {
    let earliest = list(kafka, place, EARLIEST)?.unwrap_or(0);
    let latest = list(kafka, place, LATEST)?.unwrap_or(0);
    let wanted = if reset.to_earliest {
        earliest
    } else if let Some(offset) = reset.to_offset {
        offset
    } else if let Some(by) = reset.shift_by {
        let none =
            || AskError::NotFound(format!("the group has no offset of {}-{} to shift", place.0, place.1));
        before.ok_or_else(none)?.saturating_add(by)
    } else if let Some(time) = reset.to_datetime {
        list(kafka, place, time.as_ms())?.unwrap_or(latest)
    } else {
        latest
    };
    Ok(wanted.clamp(earliest, latest))
}

fn list(kafka: &mut Kafka, (topic, partition): (&str, i32), timestamp: i64) -> Result<Option<i64>, AskError> {
    let partition = ListOffsetsPartition {
        partition_index: PartitionIndex::new(partition),
        current_leader_epoch: RawLeaderEpoch::NONE,
        timestamp,
    };
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![ListOffsetsTopic { name: Text::from(topic), partitions: vec![partition] }],
        ..Default::default()
    };
    let answer = kafka.call(&request, LIST)?;
    let found = answer.topics.iter().flat_map(|topic| &topic.partitions).next();
    let found = found.ok_or_else(|| AskError::Refused("ListOffsets: an empty answer".to_owned()))?;
    check(&format!("ListOffsets of {topic}"), found.error_code)?;
    Ok(found.offset.known().map(semel_types::Offset::get))
}

fn commit(kafka: &mut Kafka, group: &str, moves: &[Move]) -> Result<(), AskError> {
    let mut topics: Vec<OffsetCommitTopic> = Vec::new();
    for one in moves {
        let partition = OffsetCommitPartition {
            partition_index: PartitionIndex::new(one.partition),
            committed_offset: RawOffset(one.after),
            committed_leader_epoch: RawLeaderEpoch::NONE,
            committed_metadata: Some(Text::EMPTY),
        };
        match topics.last_mut().filter(|topic| topic.name.as_str() == one.topic) {
            Some(topic) => topic.partitions.push(partition),
            None => topics.push(OffsetCommitTopic {
                name: Text::from(one.topic.as_str()),
                partitions: vec![partition],
                ..Default::default()
            }),
        }
    }
    let request = OffsetCommitRequest {
        group_id: Text::from(group),
        generation_id_or_member_epoch: -1,
        topics,
        ..Default::default()
    };
    let answer = kafka.call(&request, COMMIT)?;
    let mut codes = answer.topics.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code);
    match codes.find(|code| code.is_error()) {
        None => Ok(()),
        Some(code) if code.known() == Some(semel_types::ErrorCode::UnknownMemberId) => {
            Err(AskError::Refused(format!("group {group:?} has members: stop them first")))
        }
        Some(code) => Err(AskError::code("OffsetCommit", code)),
    }
}

fn check(what: &str, code: WireCode) -> Result<(), AskError> {
    if code.is_error() { Err(AskError::code(what, code)) } else { Ok(()) }
}
