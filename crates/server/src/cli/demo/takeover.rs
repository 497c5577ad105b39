//! Step 3: a second instance takes the transactional id; the first one is a zombie from then on.

use semel_certify::{
    Identity, Session,
    session::{Isolation, Place, Write},
};
use semel_types::Offset;
use semel_wire::WireCode;

use super::{DemoError, Stage};

const ID: &str = "order-service";
const GROUP: &str = "order-readers";

/// Shows it.
pub fn play(stage: &mut Stage) -> Result<(), DemoError> {
    stage.report.chapter("3. A second instance takes over a transactional id");
    let place = Place::of("orders", 0);
    let mut zombie = Session::connect(stage.server.address())?;
    zombie.create_topic(&place.topic, 1)?;
    let old = open_transaction(stage, &mut zombie, &place)?;
    let mut successor = Session::connect(stage.server.address())?;
    let new = successor.init(Some(ID))?;
    stage.report.exchange("the second instance: InitProducerId", &new.to_string());
    stage.report.promise("the successor keeps the producer id", &old.id.to_string(), &new.id.to_string());
    what_readers_see(stage, &mut successor, &place)?;
    refusals(stage, &mut zombie, old, &place)?;
    successor_commits(stage, &mut successor, new, &place)
}

fn write<'a>(identity: Identity, sequence: i32, values: &'a [&'a [u8]]) -> Write<'a> {
    Write { identity: Some(identity), sequence, values, transactional_id: Some(ID) }
}

fn open_transaction(stage: &mut Stage, session: &mut Session, place: &Place) -> Result<Identity, DemoError> {
    let identity = session.init(Some(ID))?;
    stage.report.exchange("the first instance: InitProducerId", &identity.to_string());
    session.add(ID, identity, std::slice::from_ref(place))?;
    let answer = session.produce(place, write(identity, 0, &[b"half an order"]))?;
    stage.report.exchange("it writes \"half an order\" in a transaction", &answer.code.to_string());
    Ok(identity)
}

fn what_readers_see(stage: &mut Stage, session: &mut Session, place: &Place) -> Result<(), DemoError> {
    let committed = session.read(place, Isolation::Committed)?.len();
    let (stable, end) = (
        session.end_offset(place, Isolation::Committed)?,
        session.end_offset(place, Isolation::Uncommitted)?,
    );
    let report = &mut stage.report;
    report.tell(&format!("read_committed sees {committed} records; last stable offset {stable} of {end}."));
    report.promise(
        "nothing of the open transaction is visible",
        "0 records",
        &format!("{committed} records"),
    );
    report.promise(
        "it is gone when the successor is answered: nothing holds readers",
        &end.to_string(),
        &stable.to_string(),
    );
    Ok(())
}

fn refusals(stage: &mut Stage, zombie: &mut Session, old: Identity, place: &Place) -> Result<(), DemoError> {
    let produced = zombie.produce(place, write(old, 1, &[b"the other half"]))?;
    let message = produced.message.map_or_else(String::new, |message| format!(": {message}"));
    let added = zombie.add(ID, old, std::slice::from_ref(place))?.first().copied().unwrap_or(WireCode::NONE);
    let offsets = zombie.add_offsets(ID, old, GROUP)?;
    let ended = zombie.end(ID, old, true)?.code;
    let sent = zombie.commit_offset(ID, old, GROUP, (place, Offset::ZERO))?;
    let refusals = [
        ("Produce", produced.code, "INVALID_PRODUCER_EPOCH (47)"),
        ("AddPartitionsToTxn", added, "PRODUCER_FENCED (90)"),
        ("AddOffsetsToTxn", offsets, "PRODUCER_FENCED (90)"),
        ("TxnOffsetCommit", sent, "INVALID_PRODUCER_EPOCH (47)"),
        ("EndTxn", ended, "PRODUCER_FENCED (90)"),
    ];
    for (api, code, due) in refusals {
        let detail = if api == "Produce" { message.as_str() } else { "" };
        stage.report.exchange(&format!("the zombie: {api}"), &format!("{code}{detail}"));
        stage.report.promise(&format!("the zombie is refused: {api}"), due, &code.to_string());
    }
    Ok(())
}

fn successor_commits(
    stage: &mut Stage,
    session: &mut Session,
    identity: Identity,
    place: &Place,
) -> Result<(), DemoError> {
    session.add(ID, identity, std::slice::from_ref(place))?;
    session.produce(place, write(identity, 0, &[b"a whole order"]))?;
    let ended = session.end(ID, identity, true)?.code;
    stage.report.exchange("the successor writes \"a whole order\" and commits", &ended.to_string());
    let read = session.read(place, Isolation::Committed)?;
    let seen: Vec<_> = read.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
    stage.report.promise(
        "readers get the successor's transaction and nothing else",
        "a whole order",
        &seen.join(", "),
    );
    Ok(())
}
