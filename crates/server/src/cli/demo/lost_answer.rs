//! Step 2: an acknowledgement is lost on the way, the client sends the record again.

use semel_certify::{
    Relay, Session,
    relay::Action,
    session::{Isolation, Place, Write},
};
use semel_wire::ApiKey;

use super::{DemoError, Stage};

/// Shows it.
pub fn play(stage: &mut Stage) -> Result<(), DemoError> {
    let report = &mut stage.report;
    report.chapter("2. The answer to a produce is lost");
    let relay = Relay::start(stage.server.address())?;
    let place = Place::of("payments", 0);
    let mut session = Session::connect(&relay.address())?;
    session.create_topic(&place.topic, 1)?;
    let producer = session.init(None)?;
    let values: [&[u8]; 1] = [b"pay 100"];
    let write = Write { identity: Some(producer), sequence: 0, values: &values, transactional_id: None };
    relay.on(ApiKey::Produce, 1, Action::SwallowAnswer);
    let first = session.produce(&place, write);
    let lost = first.as_ref().is_err_and(semel_certify::ClientError::is_closed);
    report.exchange(
        "Produce \"pay 100\", the answer swallowed",
        if lost { "connection lost" } else { "answered" },
    );
    let mut again = Session::connect(&relay.address())?;
    let answer = again.produce(&place, write)?;
    report.exchange(
        "the same Produce on a new connection",
        &format!("{}, offset {}", answer.code, answer.base_offset),
    );
    let stored = again.read(&place, Isolation::Committed)?.len();
    report.tell(&format!("Read back: \"pay 100\" stands there {stored} time(s)."));
    report.promise("the answer was really lost", "true", &lost.to_string());
    report.promise("the retry is acknowledged with the first offset", "0", &answer.base_offset.to_string());
    report.promise("the payment is stored", "1 time(s)", &format!("{stored} time(s)"));
    Ok(())
}
