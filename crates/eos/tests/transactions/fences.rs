//! The fence log: every fence has its cause, author and victim, and the victim is told.

use semel_eos::{Refusal, Reply, txn::FenceCause};
use semel_events::{Outcome, Protocol};

use super::world::{TIMEOUT_MS, World, id, shifted};

fn causes(world: &World) -> Vec<FenceCause> {
    world.state.transactions().fences().of(&id("app")).map(|fence| fence.cause).collect()
}

#[test]
fn a_refused_request_says_who_fenced_its_sender_and_what_became_of_its_transaction() {
    let mut world = World::new();
    world.now_ms = 1_764_417_784_120;
    let old = world.init("app", None);
    world.write("app", old, 0, 0, Protocol::Version2).expect("the owner writes");
    let new = world.init("app", None);
    let told = world.end_v2("app", old, Outcome::Commit).expect_err("fenced").to_string();
    assert_eq!(
        told,
        "fenced: epoch 0 was replaced by 1 at 2025-11-29T12:03:04.120Z by client \"app\" \
         (java 4.4.0, 10.0.0.7:51544) with InitProducerId; the open transaction of epoch 0 was aborted \
         (number 1, open for 0.000 s, records in 1 partition)"
    );
    match world.write("app", old, 0, 1, Protocol::Version2) {
        Err(refusal @ Refusal::Fenced { sent, current, .. }) => {
            assert_eq!((sent, current), (old, Some(new)));
            assert_eq!(refusal.to_string(), told, "Produce is told the same");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_kind_of_fence_is_kept_with_its_cause_and_an_ordinary_commit_is_none() {
    let mut world = World::new();
    let mut owner = world.init("app", None);
    assert_eq!(causes(&world), []);
    world.write("app", owner, 0, 0, Protocol::Version2).expect("the owner writes");
    assert_eq!(world.end_v2("app", owner, Outcome::Commit), Ok(Reply::Ended(shifted(owner, 1))));
    assert_eq!(causes(&world), [], "the bump of an ordinary end is no fence");
    owner = world.init("app", None);
    owner = world.init("app", Some(owner));
    assert_eq!(world.init("app", Some(shifted(owner, -1))), owner, "a repeated request makes none");
    world.write("app", owner, 0, 0, Protocol::Version2).expect("the owner writes");
    world.pass(TIMEOUT_MS);
    owner = world.identity("app");
    world.write("app", owner, 0, 0, Protocol::Version2).expect("the owner writes");
    assert_eq!(world.marker(owner, Outcome::Abort, &[0]), Ok(Reply::Done));
    owner = world.identity("app");
    world.write("app", owner, 0, 0, Protocol::Version2).expect("the owner writes");
    world.restart(true);
    world.pass(world.settings.transactional_id_expiration.as_ms());
    assert_eq!(
        causes(&world),
        [
            FenceCause::Takeover,
            FenceCause::Recovery,
            FenceCause::Timeout,
            FenceCause::Admin,
            FenceCause::UncleanStart,
            FenceCause::Expiry,
        ]
    );
    let log = world.state.transactions().fences();
    let aborted: Vec<_> =
        log.of(&id("app")).map(|fence| fence.aborted.as_ref().map(|aborted| aborted.number.get())).collect();
    assert_eq!(aborted, [None, None, Some(2), Some(3), Some(4), None]);
    world.assert_replays();
}

#[test]
fn a_refusal_makes_no_event_but_is_counted_and_the_last_sixteen_are_kept() {
    let mut world = World::new();
    let old = world.init("app", None);
    world.init("app", None);
    let logged = world.log.len();
    for _ in 0..20 {
        assert!(super::world::is_fenced(&world.add("app", old, &[0])));
    }
    assert_eq!(world.log.len(), logged);
    let refused = world.volatile.refused(&id("app")).expect("counted");
    assert_eq!((refused.count, refused.last.len()), (20, 16));
    assert!(world.write("app", old, 0, 0, Protocol::Version2).is_err());
    assert_eq!(world.volatile.refused(&id("app")).map(|refused| refused.count), Some(21), "Produce, too");
    let connection = semel_types::ConnectionNumber::new(world.connection);
    assert_eq!(world.volatile.refused_on(connection), 21);
    world.volatile.connection_closed(connection);
    assert_eq!(world.volatile.refused_on(connection), 0);
    let _ = world.add("nobody", old, &[0]);
    assert!(world.volatile.refused(&id("nobody")).is_none(), "unknown ids take no memory");
}
