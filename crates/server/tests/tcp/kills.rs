//! Stricter expectations that need a process to kill: S12, S14, S15 and S18 through the protocol.

use semel_certify::{
    Server, Session,
    session::{Identity, Isolation, Place, Versions, Write},
};

use crate::support::{program, values};

fn place() -> Place {
    Place::of("t", 0)
}

fn start(directory: &std::path::Path, arguments: &[&str]) -> (Server, Session) {
    let server = Server::start(program(), directory, arguments).expect("the server starts");
    let mut session = Session::connect(server.address()).expect("the server is up");
    session.create_topic("t", 3).expect("the server is up");
    (server, session)
}

/// Code and offset of one plain record.
fn send(session: &mut Session, identity: Identity, sequence: i32, value: &str) -> (i16, i64) {
    let values = &[value.as_bytes()];
    let write = Write { identity: Some(identity), sequence, values, transactional_id: None };
    let produced = session.produce(&place(), write).expect("the server is up");
    (produced.code.get(), produced.base_offset.0)
}

fn kill_and_restart(server: &mut Server) -> Session {
    server.kill().expect("it runs");
    server.restart().expect("it starts again");
    Session::connect(server.address()).expect("the server is up")
}

#[test]
fn s12_after_a_kill_all_five_retries_get_their_first_offsets() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut server, mut session) = start(directory.path(), &[]);
    let identity = session.init(None).expect("an id");
    for sequence in 0..5 {
        assert_eq!(send(&mut session, identity, sequence, &format!("v{sequence}")), (0, i64::from(sequence)));
    }
    let mut session = kill_and_restart(&mut server);
    for sequence in [3, 0, 4, 1, 2] {
        assert_eq!(send(&mut session, identity, sequence, &format!("v{sequence}")), (0, i64::from(sequence)));
    }
    assert_eq!(send(&mut session, identity, 5, "v5"), (0, 5));
    assert_eq!(values(&mut session, &place(), Isolation::Committed).len(), 6);
}

#[test]
fn s15_a_live_producer_over_a_restarted_memory_server_is_told_59_and_nobody_gets_its_id() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut server, mut session) = start(directory.path(), &["--durability", "memory"]);
    let old = session.init(None).expect("an id");
    assert_eq!(send(&mut session, old, 0, "old 0"), (0, 0));
    let mut session = kill_and_restart(&mut server);
    session.create_topic("t", 3).expect("the server is up");
    let new = session.init(None).expect("an id");
    assert_ne!(new.id, old.id, "ids start from a random base");
    assert_eq!(send(&mut session, new, 0, "new 0"), (0, 0));
    assert_eq!(send(&mut session, old, 1, "old 1").0, 59);
    assert_eq!(send(&mut session, new, 1, "new 1"), (0, 1));
    assert_eq!(values(&mut session, &place(), Isolation::Committed), ["new 0", "new 1"]);
}

/// A transaction of one record on each partition, of one client.
fn write_everywhere(session: &mut Session, id: &str, identity: Identity, value: &str) {
    for index in 0..3 {
        let values = &[value.as_bytes()];
        let write = Write { identity: Some(identity), sequence: 0, values, transactional_id: Some(id) };
        let produced = session.produce(&Place::of("t", index), write).expect("the server is up");
        assert_eq!(produced.code.get(), 0);
    }
}

#[test]
fn s14_a_fetch_sent_after_the_commit_was_answered_sees_it_on_all_partitions() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (_server, session) = start(directory.path(), &[]);
    let mut session = session.speaking(Versions::VERSION_2);
    let mut identity = session.init(Some("cut")).expect("an identity");
    for round in 1..=50 {
        write_everywhere(&mut session, "cut", identity, &format!("v{round}"));
        let ended = session.end("cut", identity, true).expect("the server is up");
        identity = ended.identity.expect("version 2 tells it");
        for index in 0..3 {
            let committed = session.end_offset(&Place::of("t", index), Isolation::Committed);
            assert_eq!(committed.expect("the server is up").0, 2 * round, "partition {index}");
        }
    }
}

#[test]
fn s18_a_kill_in_the_commit_path_leaves_each_transaction_whole_and_none_hanging() {
    for point in ["before_write:14", "after_write:14", "after_sync:14", "after_publish:14"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let environment = [("SEMEL_CRASH_POINT", point)];
        let started = Server::start_with(program(), directory.path(), &[], &environment);
        let mut server = started.expect("the server starts");
        let mut session = Session::connect(server.address()).expect("up").speaking(Versions::VERSION_2);
        session.create_topic("t", 3).expect("the server is up");
        let known = commit_until_killed(&mut session);
        server.wait_end(std::time::Duration::from_secs(30)).expect("the point is passed");
        server.restart_with(Vec::new()).expect("the server starts again");
        let mut session = Session::connect(server.address()).expect("the server is up");
        session.init(Some("s18")).expect("what is open is aborted");
        let reads: Vec<_> =
            (0..3).map(|index| values(&mut session, &Place::of("t", index), Isolation::Committed)).collect();
        assert!(reads.windows(2).all(|pair| pair[0] == pair[1]), "{point}: torn: {reads:?}");
        assert!(known.iter().all(|value| reads[0].contains(value)), "{point}: {known:?} of {reads:?}");
        assert!(reads[0].iter().all(|value| !value.starts_with("aborted")), "{point}: {reads:?}");
        for index in 0..3 {
            let [stable, end] = [Isolation::Committed, Isolation::Uncommitted]
                .map(|level| session.end_offset(&Place::of("t", index), level).expect("up").0);
            assert_eq!(stable, end, "{point}: a transaction hangs");
        }
    }
}

/// Commits and aborts in turns until the server is gone; the values whose commit was acknowledged.
fn commit_until_killed(session: &mut Session) -> Vec<String> {
    let mut known = Vec::new();
    let Ok(mut identity) = session.init(Some("s18")) else { return known };
    for round in 0.. {
        let commit = round % 2 == 0;
        let value = format!("{} {round}", if commit { "committed" } else { "aborted" });
        for index in 0..3 {
            let values = &[value.as_bytes()];
            let write =
                Write { identity: Some(identity), sequence: 0, values, transactional_id: Some("s18") };
            if session.produce(&Place::of("t", index), write).is_err() {
                return known;
            }
        }
        let Ok(ended) = session.end("s18", identity, commit) else { return known };
        if commit {
            known.push(value);
        }
        identity = ended.identity.expect("version 2 tells it");
    }
    known
}
