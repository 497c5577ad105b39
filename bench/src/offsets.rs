//! Committed offsets, raw: one partition of one group for each client, as a consumer commits after each poll.

use std::{
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use semel_certify::Session;
use semel_types::{ErrorCode, PartitionIndex};
use semel_wire::{
    RawLeaderEpoch, RawOffset, Text,
    api::{
        find_coordinator::FindCoordinatorRequest,
        offset_commit::{OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic},
        offset_fetch::{OffsetFetchRequest, OffsetFetchTopic},
    },
};

use crate::{
    Outcome,
    measure::{Transacted, create, delete, side_by_side, write_back},
    server::Server,
};

/// Version that clients of the last years send.
const VERSION: i16 = 8;

/// Version of OffsetFetch: the last of one group.
const FETCH: i16 = 7;

/// Version of FindCoordinator: the last for one key.
const FIND: i16 = 3;

/// How long a broker may take to have a coordinator.
const COORDINATOR_MAX: Duration = Duration::from_secs(30);

/// Every client commits one offset after the other for `span`.
pub fn commit(server: &Server, topic: &str, clients: usize, span: Duration) -> Outcome<Transacted> {
    create(server, topic, 1)?;
    write_back();
    let commits = side_by_side(clients, |number, ready| commit_for(server, topic, number, ready, span))?;
    delete(server, topic)?;
    Ok(Transacted::of(commits, span))
}

fn commit_for(
    server: &Server,
    topic: &str,
    number: usize,
    ready: &Barrier,
    span: Duration,
) -> Outcome<Vec<Duration>> {
    let group = format!("{topic}-{number}");
    let prepared = server.session().and_then(|mut session| {
        // Kafka makes the coordinator's topic when a client looks for the coordinator, not before.
        let deadline = Instant::now() + COORDINATOR_MAX;
        let coordinator = FindCoordinatorRequest { key: Text::from(&*group), ..Default::default() };
        session.client.call(&coordinator, FIND)?;
        while let Some(code) = once(&mut session, topic, &group, 0)? {
            if Instant::now() > deadline {
                return Err(format!("no coordinator for {group} within {COORDINATOR_MAX:?}: {code:?}").into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(session)
    });
    ready.wait();
    let mut session = prepared?;
    let started = Instant::now();
    let mut commits = Vec::new();
    while started.elapsed() < span {
        let asked = Instant::now();
        if let Some(code) = once(&mut session, topic, &group, commits.len() as i64)? {
            return Err(format!("OffsetCommit: {code:?}").into());
        }
        commits.push(asked.elapsed());
    }
    check(&mut session, topic, &group, commits.len() as i64 - 1)?;
    Ok(commits)
}

/// The last offset is the committed one.
fn check(session: &mut Session, topic: &str, group: &str, due: i64) -> Outcome<()> {
    let topic = OffsetFetchTopic { name: Text::from(topic), partition_indexes: vec![PartitionIndex::new(0)] };
    let request =
        OffsetFetchRequest { group_id: Text::from(group), topics: Some(vec![topic]), ..Default::default() };
    let answer = session.client.call(&request, FETCH)?;
    let found = answer.topics[0].partitions[0].committed_offset.get();
    if found == due { Ok(()) } else { Err(format!("{group} is at {found} instead of {due}").into()) }
}

/// One commit; the code if it was not taken because the coordinator is not there yet.
fn once(session: &mut Session, topic: &str, group: &str, offset: i64) -> Outcome<Option<ErrorCode>> {
    let partition = OffsetCommitPartition {
        partition_index: PartitionIndex::new(0),
        committed_offset: RawOffset(offset),
        committed_leader_epoch: RawLeaderEpoch::NONE,
        committed_metadata: Some(Text::EMPTY),
    };
    let topic =
        OffsetCommitTopic { name: Text::from(topic), partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: Text::from(group),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    let answer = session.client.call(&request, VERSION)?;
    match answer.topics[0].partitions[0].error_code.known() {
        Some(ErrorCode::None) => Ok(None),
        Some(
            code @ (ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
            | ErrorCode::CoordinatorLoadInProgress),
        ) => Ok(Some(code)),
        code => Err(format!("OffsetCommit: {code:?}").into()),
    }
}
