//! The log's read side against a plain model: plans, reads, aborted lists, side files, restarts, recycling.
#![expect(clippy::unwrap_used, reason = "a test ends where something unexpected happens")]

mod disk;
mod model;
mod threads;
mod world;

use proptest::prelude::*;
use semel_log::{Isolation, ReadRequest};
use semel_types::Offset;

use crate::world::World;

#[derive(Clone, Debug)]
enum Step {
    Append { partition: usize, producer: Option<i64>, stamps: Vec<i64>, padding: usize },
    End { producer: i64, abort: bool },
    Commit,
    Create { topic: u8, partitions: u32 },
    Delete { topic: u8 },
    Trim { partition: usize, share: u8 },
    Roll,
    Maintain,
    Snapshot,
    Restart { damage: Option<(usize, usize)> },
    Read { partition: usize, at: u8, max_bytes: usize, at_least_one: bool, committed: bool, hold: bool },
    Release,
    List { partition: usize, timestamp: i64, committed: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let append =
        (0..9_usize, prop::option::of(0..3_i64), prop::collection::vec(0..50_i64, 1..5), 0..1500_usize);
    prop_oneof![
        12 => append.prop_map(|(partition, producer, stamps, padding)| Step::Append { partition, producer, stamps, padding }),
        5 => (0..3_i64, any::<bool>()).prop_map(|(producer, abort)| Step::End { producer, abort }),
        8 => Just(Step::Commit),
        1 => (0..4_u8, 1..4_u32).prop_map(|(topic, partitions)| Step::Create { topic, partitions }),
        1 => (1..4_u8).prop_map(|topic| Step::Delete { topic }),
        2 => (0..9_usize, any::<u8>()).prop_map(|(partition, share)| Step::Trim { partition, share }),
        3 => Just(Step::Roll),
        3 => Just(Step::Maintain),
        1 => Just(Step::Snapshot),
        1 => prop::option::of((0..9_usize, 0..20_000_usize)).prop_map(|damage| Step::Restart { damage }),
        9 => (0..9_usize, any::<u8>(), 0..6000_usize, any::<bool>(), any::<bool>(), prop::bool::weighted(0.1)).prop_map(
            |(partition, at, max_bytes, at_least_one, committed, hold)| Step::Read { partition, at, max_bytes, at_least_one, committed, hold }
        ),
        1 => Just(Step::Release),
        2 => (0..9_usize, 0..55_i64, any::<bool>()).prop_map(|(partition, timestamp, committed)| Step::List { partition, timestamp, committed }),
    ]
}

const fn isolation(committed: bool) -> Isolation {
    if committed { Isolation::ReadCommitted } else { Isolation::ReadUncommitted }
}

/// What was not committed yet is: reads compare with the model, which has it already.
fn settle(world: &mut World) {
    world.commit();
}

fn run(steps: Vec<Step>, cache_bytes: usize) {
    let mut world = World::new(cache_bytes);
    let mut held = Vec::new();
    world.create_topic(0, 3);
    world.commit();
    for step in steps {
        match step {
            Step::Append { partition, producer, stamps, padding } => {
                if let Some(handle) = world.pick(partition) {
                    world.append(handle, producer, stamps, padding);
                }
            }
            Step::End { producer, abort } => world.end_transaction(producer, abort),
            Step::Commit => world.commit(),
            Step::Create { topic, partitions } => world.create_topic(topic, partitions),
            Step::Delete { topic } => world.delete_topic(topic),
            Step::Trim { partition, share } => {
                if let Some(handle) = world.pick(partition) {
                    world.delete_records(handle, share);
                }
            }
            Step::Roll => {
                settle(&mut world);
                world.roll();
            }
            Step::Maintain => world.maintain(),
            Step::Snapshot => {
                settle(&mut world);
                world.take_snapshot();
            }
            Step::Restart { damage } => {
                settle(&mut world);
                held.clear();
                world.restart(damage);
                world.check_all();
            }
            Step::Read { partition, at, max_bytes, at_least_one, committed, hold } => {
                settle(&mut world);
                let Some(handle) = world.pick(partition) else { continue };
                let model = &world.model.partitions[&handle];
                // A little past the end and before the start too.
                let span = model.next - model.log_start + 3;
                let offset = Offset::new(model.log_start - 1 + span * i64::from(at) / 255);
                let isolation = isolation(committed);
                let request = ReadRequest { partition: handle, offset, max_bytes, at_least_one, isolation };
                world.read(&request);
                if hold {
                    held.extend(world.plan(&request).ok());
                }
            }
            Step::Release => held.drain(..).for_each(|held| drop(world.check(&held))),
            Step::List { partition, timestamp, committed } => {
                settle(&mut world);
                if let Some(handle) = world.pick(partition) {
                    world.check_timestamp(handle, timestamp, isolation(committed));
                }
            }
        }
    }
    settle(&mut world);
    held.iter().for_each(|held| drop(world.check(held)));
    world.maintain();
    world.check_all();
    world.restart(None);
    world.check_all();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn reads_agree_with_the_model(steps in prop::collection::vec(step(), 1..300), cache in prop_oneof![Just(0_usize), Just(100_000), Just(5 << 20), Just(64 << 20)]) {
        run(steps, cache);
    }
}

/// Long histories with a file for every few groups: side files are merged several levels up.
#[test]
fn many_files_leave_few_side_files_and_nothing_is_lost() {
    let mut world = World::new(1 << 20);
    world.create_topic(0, 3);
    world.create_topic(1, 2);
    world.commit();
    for round in 0..700_i64 {
        for (choice, producer) in [(0, None), (1, Some(round % 3)), (2, Some(2)), (3, None)] {
            let handle = world.pick(choice).expect("a partition");
            if round % (choice as i64 + 1) == 0 {
                world.append(handle, producer, vec![round; 1 + choice], 10);
            }
        }
        if round % 5 == 4 {
            world.end_transaction(round % 3, round % 2 == 0);
        }
        world.commit();
        world.roll();
        world.maintain();
        let sides = world.disk.ranges().len();
        assert!(sides <= 64, "{sides} side files after {round} files");
        if round == 400 {
            world.delete_topic(1);
            world.delete_records(world.pick(0).expect("a partition"), 128);
            world.commit();
            world.take_snapshot();
        }
    }
    world.check_all();
    assert!(world.disk.ranges().len() < 25, "side files are merged in levels");
    world.restart(Some((0, 5000)));
    world.check_all();
    world.maintain();
    world.check_all();
    assert!(world.disk.ranges().len() <= 64, "what was rebuilt is merged again");
}
