//! Members that come, go, crash, pause and come back as zombies, and a broker that restarts, in many orders: no task
//! can be committed by two, and in the end everybody settles.

use super::*;
use crate::Member;

/// Small, fast and the same everywhere: the seeds of a failure are told.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

struct History {
    world: World,
    clients: Vec<Client>,
    /// Copies of members as they were before a pause: they come back and know nothing of what happened since.
    zombies: Vec<Client>,
    made: u32,
}

impl History {
    fn new(dice: &mut Dice) -> Self {
        let mut world = World::new();
        world.settings.standby_replicas = dice.below(3) as u32;
        world.settings.assignment_interval = DurationMs::from_ms(dice.below(2) as i64 * 1_000);
        world.settings.initial_rebalance_delay = DurationMs::from_ms(dice.below(2) as i64 * 3_000);
        Self { world, clients: vec![], zombies: vec![], made: 0 }
    }

    fn one(&mut self, dice: &mut Dice) -> Option<usize> {
        (!self.clients.is_empty()).then(|| dice.below(self.clients.len() as u64) as usize)
    }

    fn join(&mut self, dice: &mut Dice) {
        if self.clients.len() >= 6 {
            return;
        }
        self.made += 1;
        let (id, process) = (alloc::format!("m{}", self.made), alloc::format!("p{}", dice.below(4)));
        let client = match dice.below(4) {
            0 => Client::fixed(&id, &process, &alloc::format!("i{}", self.made)),
            _ => Client::new(&id, &process),
        };
        self.clients.push(client);
    }

    fn act(&mut self, dice: &mut Dice) {
        match dice.below(20) {
            0..=1 => self.join(dice),
            2 => self.leave(dice),
            3 => {
                // A crash: nobody says anything.
                if let Some(at) = self.one(dice) {
                    self.clients.remove(at);
                }
            }
            4 => {
                if let Some(at) = self.one(dice) {
                    self.zombies.push(self.clients[at].clone());
                }
            }
            5 => self.world.restart(),
            6 => self.world.pass(dice.below(20_000) as i64),
            7 => {
                if let Some(zombie) = self.zombies.pop() {
                    let _ = zombie.clone().beat(&mut self.world);
                }
            }
            8 => {
                // The answer is lost: the member does not learn of it.
                if let Some(at) = self.one(dice) {
                    let _ = self.clients[at].clone().beat(&mut self.world);
                }
            }
            _ => {
                self.world.pass(dice.below(1_500) as i64);
                if let Some(at) = self.one(dice) {
                    let _ = self.clients[at].beat(&mut self.world);
                }
            }
        }
    }

    fn leave(&mut self, dice: &mut Dice) {
        let Some(at) = self.one(dice) else { return };
        let will_return = self.clients[at].instance.is_some() && dice.below(2) == 0;
        let _ = self.clients[at].leave(&mut self.world, will_return);
        if will_return {
            self.made += 1;
            self.clients[at].id = name(&alloc::format!("m{}", self.made));
        } else {
            self.clients.remove(at);
        }
    }

    /// Of all who believe that a task is theirs at most one may commit its source partition, zombies included.
    fn check(&self, context: &str) {
        let Some(group) = self.world.state.group(&World::group()).and_then(Group::streams) else { return };
        for partition in (0..4).map(PartitionHandle::new) {
            let Some(task) = group.task_of(partition) else { continue };
            let believers = self.clients.iter().chain(&self.zombies);
            let believers = believers.filter(|client| client.owned.active.contains(&task));
            let may: BTreeSet<_> =
                believers.filter(|client| self.may_commit(client, partition)).collect_ids();
            assert!(may.len() <= 1, "{context}: {may:?} may all commit {task:?}");
        }
    }

    fn may_commit(&self, client: &Client, partition: PartitionHandle) -> bool {
        let member = Member {
            generation: Some(client.member_epoch),
            member_id: &client.id,
            transactional: true,
            ..Member::NONE
        };
        let group = World::group();
        let partitions = core::iter::once(partition);
        self.world
            .state
            .check_commit(&self.world.volatile, (&group, member), partitions, self.world.now)
            .is_ok()
    }

    /// Nothing bad happens any more: everybody settles, with every task once and its copies elsewhere.
    fn settle(&mut self, context: &str) {
        if self.clients.is_empty() {
            self.join(&mut Dice(7));
        }
        for _ in 0..120 {
            for at in 0..self.clients.len() {
                let _ = self.clients[at].beat(&mut self.world);
                self.check(context);
            }
            self.world.pass(1_000);
        }
        assert_eq!(self.world.phase(), Phase::Stable, "{context}");
        assert_eq!(active(&self.clients).len(), 8, "{context}");
        self.check_copies(context);
    }

    fn check_copies(&self, context: &str) {
        let processes: BTreeSet<_> = self.clients.iter().map(|client| &client.process).collect();
        let mut placed = BTreeSet::new();
        let mut copies = 0;
        for client in &self.clients {
            copies += client.owned.standby.len();
            for task in client.owned.active.iter().chain(&client.owned.standby) {
                assert!(
                    placed.insert((&client.process, task)),
                    "{context}: {task:?} twice on {}",
                    client.process
                );
            }
        }
        let most = processes.len() - 1;
        let due = 4 * most.min(self.world.settings.standby_replicas as usize);
        assert_eq!(copies, due, "{context}: copies of the part with a store");
    }
}

trait Ids<'a> {
    fn collect_ids(self) -> BTreeSet<&'a MemberId>;
}

impl<'a, I: Iterator<Item = &'a Client>> Ids<'a> for I {
    fn collect_ids(self) -> BTreeSet<&'a MemberId> {
        self.map(|client| &client.id).collect()
    }
}

#[test]
fn no_two_commit_one_task_and_everybody_settles_whatever_happens() {
    for seed in 1..=150u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut history = History::new(&mut dice);
        for step in 0..120 {
            history.act(&mut dice);
            history.check(&alloc::format!("seed {seed}, step {step}"));
        }
        history.settle(&alloc::format!("seed {seed}"));
    }
}
