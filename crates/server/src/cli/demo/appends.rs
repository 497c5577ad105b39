//! Step 1: six appends with their verdicts, as the founding text lists them.

use semel_certify::{
    Identity, Session,
    session::{Isolation, Place, Write},
};
use semel_types::{ErrorCode, ProducerEpoch};

use super::{DemoError, Stage};

/// Epoch, sequence and the verdict due.
const APPENDS: [(i16, i32, &str); 6] = [
    (0, 0, "ACCEPTED"),
    (0, 1, "ACCEPTED"),
    (0, 1, "DUPLICATE"),
    (0, 5, "OUT_OF_ORDER"),
    (1, 0, "ACCEPTED"),
    (0, 2, "FENCED_EPOCH"),
];

/// Shows it.
pub fn play(stage: &mut Stage) -> Result<(), DemoError> {
    let report = &mut stage.report;
    report.chapter("1. Six appends of one producer to one partition");
    let mut session = Session::connect(stage.server.address())?;
    let place = Place::of("appends", 0);
    session.create_topic(&place.topic, 1)?;
    let producer = session.init(None)?;
    for (number, (epoch, sequence, due)) in APPENDS.into_iter().enumerate() {
        let identity = Identity { epoch: ProducerEpoch::new(epoch), ..producer };
        let (verdict, told) = append(&mut session, &place, identity, sequence)?;
        report.exchange(&format!("append(epoch={epoch}, sequence={sequence})"), &told);
        let promise = format!("append {}: epoch {epoch}, sequence {sequence}", number + 1);
        report.promise(&promise, due, verdict);
    }
    let stored = session.read(&place, Isolation::Committed)?.len();
    report.tell(&format!("Read back: {stored} records."));
    report.promise("records stored by the six appends", "3", &stored.to_string());
    Ok(())
}

/// Appends one record; the verdict, told by the code and by whether the partition grew.
fn append(
    session: &mut Session,
    place: &Place,
    identity: Identity,
    sequence: i32,
) -> Result<(&'static str, String), DemoError> {
    let before = session.end_offset(place, Isolation::Uncommitted)?;
    let values: [&[u8]; 1] = [b"record"];
    let write = Write { identity: Some(identity), sequence, values: &values, transactional_id: None };
    let answer = session.produce(place, write)?;
    let grew = session.end_offset(place, Isolation::Uncommitted)? != before;
    let verdict = match (answer.code.known(), grew) {
        (Some(ErrorCode::None), true) => "ACCEPTED",
        (Some(ErrorCode::None), false) => "DUPLICATE",
        (Some(ErrorCode::OutOfOrderSequenceNumber), false) => "OUT_OF_ORDER",
        (Some(ErrorCode::InvalidProducerEpoch), false) => "FENCED_EPOCH",
        _ => "UNEXPECTED",
    };
    let message = answer.message.map_or_else(String::new, |message| format!(": {message}"));
    Ok((verdict, format!("{verdict} (code {}, offset {}){message}", answer.code, answer.base_offset)))
}
