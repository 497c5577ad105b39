//! Step 4: `kill -9` in the middle of commits; after the restart each transaction is there whole or not at all.

use std::{thread, time::Duration};

use semel_certify::{
    Session,
    session::{Isolation, Place, Write},
};
use semel_wire::api::end_txn::EndTxnRequest;

use super::{DemoError, Stage};

const ID: &str = "transfers";
/// Commits that are met by a kill.
const ROUNDS: u64 = 5;

/// Shows it.
pub fn play(stage: &mut Stage) -> Result<(), DemoError> {
    stage.report.chapter("4. kill -9 in the middle of a commit over three partitions");
    let places: Vec<_> = (0..3).map(|index| Place::of("transfers", index)).collect();
    Session::connect(stage.server.address())?.create_topic("transfers", 3)?;
    for round in 0..ROUNDS {
        let value = format!("transfer {round}");
        kill_in_commit(stage, &places, &value, round)?;
        stage.server.restart()?;
        let mut session = Session::connect(stage.server.address())?;
        session.init(Some(ID))?;
        let seen = count(&mut session, &places, &value)?;
        let told = match seen {
            0 => "nothing of it is there".to_owned(),
            3 => "all of it is there".to_owned(),
            part => format!("{part} of 3 partitions have it"),
        };
        stage.report.exchange(&format!("{value}: EndTxn(commit), kill -9, restart, read"), &told);
        let whole = if seen == 0 || seen == 3 { "whole or not at all" } else { "torn" };
        stage.report.promise(&format!("{value} after the crash"), "whole or not at all", whole);
    }
    Ok(())
}

/// Writes one record to each partition, sends the commit and kills the broker a moment later, a little further into
/// the commit each time.
fn kill_in_commit(stage: &mut Stage, places: &[Place], value: &str, round: u64) -> Result<(), DemoError> {
    let mut session = Session::connect(stage.server.address())?;
    let identity = session.init(Some(ID))?;
    session.add(ID, identity, places)?;
    let values = [value.as_bytes()];
    for place in places {
        let write =
            Write { identity: Some(identity), sequence: 0, values: &values, transactional_id: Some(ID) };
        session.produce(place, write)?;
    }
    let request = EndTxnRequest {
        transactional_id: ID.into(),
        producer_id: identity.id.into(),
        producer_epoch: identity.epoch.into(),
        committed: true,
    };
    session.client.send(&request, session.versions.end_txn)?;
    thread::sleep(Duration::from_micros(round * 150));
    stage.server.kill()?;
    Ok(())
}

fn count(session: &mut Session, places: &[Place], value: &str) -> Result<usize, DemoError> {
    let mut seen = 0;
    for place in places {
        let read = session.read(place, Isolation::Committed)?;
        seen += read.iter().filter(|found| ***found == *value.as_bytes()).count();
    }
    Ok(seen)
}
