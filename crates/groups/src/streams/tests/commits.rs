//! Who may commit and read offsets.

use super::*;
use crate::{Member, Refusal};

fn member(id: &str, generation: Option<i32>, transactional: bool) -> Member<'_> {
    Member { generation, member_id: id, transactional, ..Member::NONE }
}

fn commit(world: &World, member: Member<'_>, partition: u32) -> Result<(), Refusal> {
    let partitions = core::iter::once(PartitionHandle::new(partition));
    let group = World::group();
    world.state.check_commit(&world.volatile, (&group, member), partitions, world.now).map(drop)
}

#[test]
fn a_member_commits_in_its_epoch() {
    let mut world = World::new();
    let mut clients = [Client::new("a", "p")];
    settle(&mut world, &mut clients);
    let member_epoch = clients[0].member_epoch;
    for transactional in [true, false] {
        let may = |id, generation| commit(&world, member(id, generation, transactional), 0);
        assert_eq!(may("a", Some(member_epoch)), Ok(()));
        assert_eq!(may("a", Some(member_epoch + 1)), Err(Refusal::StaleMember));
        assert_eq!(may("a", Some(member_epoch - 1)), Err(Refusal::StaleMember), "it had no task then");
        assert_eq!(may("a", None), Err(Refusal::StaleMember));
        assert_eq!(may("b", Some(member_epoch)), Err(Refusal::UnknownMember));
    }
    assert_eq!(commit(&world, member("", None, true), 0), Ok(()), "a transaction that names no member");
    assert_eq!(commit(&world, member("", None, false), 0), Err(Refusal::UnknownMember));
    let old = Member { knows_epochs: false, ..member("a", Some(member_epoch), false) };
    assert_eq!(commit(&world, old, 0), Err(Refusal::NeedsEpochs));
}

#[test]
fn a_task_kept_since_before_the_epoch_can_be_committed_with_it() {
    let mut world = World::new();
    let mut clients = vec![Client::new("a", "p")];
    settle(&mut world, &mut clients);
    let before = clients[0].member_epoch;
    clients.push(Client::new("b", "q"));
    settle(&mut world, &mut clients);
    assert!(clients[0].member_epoch > before);
    for partition in 0..4 {
        let kept = clients[0].owned.active.contains(&task("0", partition));
        let due = if kept { Ok(()) } else { Err(Refusal::StaleMember) };
        assert_eq!(commit(&world, member("a", Some(before), true), partition as u32), due, "in-{partition}");
    }
}

#[test]
fn an_empty_group_takes_commits_from_outside() {
    let mut world = World::new();
    let mut client = Client::new("a", "p");
    client.beat(&mut world).unwrap();
    client.leave(&mut world, false).unwrap();
    assert_eq!(world.phase(), Phase::Empty);
    assert_eq!(commit(&world, member("", None, false), 0), Ok(()));
    assert_eq!(commit(&world, member("a", Some(3), false), 0), Err(Refusal::UnknownMember));
}

#[test]
fn reads_name_the_members_epoch_or_nobody() {
    let mut world = World::new();
    let mut clients = [Client::new("a", "p")];
    settle(&mut world, &mut clients);
    let member_epoch = clients[0].member_epoch;
    let roster = world.roster();
    assert_eq!(roster.check_read(None, -1), Ok(()));
    assert_eq!(roster.check_read(Some("a"), member_epoch), Ok(()));
    assert_eq!(roster.check_read(Some("a"), member_epoch - 1), Err(Refusal::StaleMember));
    assert_eq!(roster.check_read(Some("b"), member_epoch), Err(Refusal::UnknownMember));
    assert_eq!(roster.check_read(None, member_epoch), Err(Refusal::UnknownMember));
}

#[test]
fn topics_that_are_read_are_known_and_others_are_not() {
    let mut world = World::new();
    let mut clients = [Client::new("a", "p")];
    settle(&mut world, &mut clients);
    assert!(world.roster().reads("in") && world.roster().reads("app-repartition"));
    assert!(!world.roster().reads("app-changelog") && !world.roster().reads("out"));
}
