//! A hundred members come, go, crash and come back at random, in both protocols: no partition is owned twice, and the
//! group settles within one rebalance timeout once they are left alone. All the while anybody commits, the paused ones
//! too: a commit that is taken came from the partition's only owner, and what was taken last is what is fetched.

use std::collections::BTreeMap;

use semel_groups::Kind;

use crate::support::*;

const PARTITIONS: i32 = 60;
const MEMBERS: usize = 100;

enum Speaks {
    Classic(Box<Classic>),
    Modern(Consumer),
}

struct Actor {
    speaks: Speaks,
    /// Neither asks nor answers: paused, to come back as a zombie.
    asleep: bool,
}

struct Crowd {
    broker: Broker,
    dice: Dice,
    actors: Vec<Actor>,
    born: usize,
    /// Of ten new members so many speak KIP-848.
    modern: usize,
    /// Members at once, at most.
    limit: usize,
    kinds: BTreeMap<&'static str, usize>,
    /// The last commit of each partition that was taken.
    committed: BTreeMap<i32, i64>,
    next: i64,
    /// Commits that were taken, and refused.
    commits: (usize, usize),
}

impl Crowd {
    fn new(seed: u64, modern: usize, limit: usize) -> Self {
        let mut broker = Broker::seeded(&[], seed);
        broker.topic("t", PARTITIONS);
        let dice = Dice::seeded(seed);
        let (kinds, committed) = (BTreeMap::new(), BTreeMap::new());
        let (actors, born, next, commits) = (Vec::new(), 0, 0, (0, 0));
        Self { broker, dice, actors, born, modern, limit, kinds, committed, next, commits }
    }

    fn arrive(&mut self) {
        self.born += 1;
        let speaks = if self.dice.below(10) < self.modern {
            Speaks::Modern(Consumer::new("g", &format!("c{}", self.born)))
        } else {
            let mut classic = Classic::new(&mut self.broker, "g");
            classic.cooperative = false;
            Speaks::Classic(Box::new(classic))
        };
        self.actors.push(Actor { speaks, asleep: false });
    }

    fn leave(&mut self, at: usize) {
        let actor = self.actors.swap_remove(at);
        match actor.speaks {
            Speaks::Modern(consumer) => {
                self.broker.leave_consumer(&consumer, -1);
            }
            Speaks::Classic(classic) if !classic.who.id.is_empty() => {
                self.broker.leave("g", &[&classic.who]);
                self.broker.close(classic.on);
            }
            Speaks::Classic(classic) => self.broker.close(classic.on),
        }
    }

    fn act(&mut self, at: usize) {
        let actor = &mut self.actors[at];
        if actor.asleep {
            return;
        }
        match &mut actor.speaks {
            Speaks::Classic(classic) => classic.step(&mut self.broker),
            Speaks::Modern(consumer) => {
                let code = self.broker.beat(consumer);
                assert!([0, 25, 69, 110].contains(&code), "heartbeat {code}");
                if code == 69 {
                    consumer.epoch = 0;
                    consumer.owned.clear();
                }
            }
        }
    }

    fn churn(&mut self) {
        let any = self.dice.below(self.actors.len().max(1));
        match self.dice.below(40) {
            0..=2 if self.actors.len() < self.limit => self.arrive(),
            3 if self.actors.len() > self.limit / 3 => self.leave(any),
            4 if self.actors.len() > self.limit / 3 => {
                self.actors.swap_remove(any);
            }
            5 if !self.actors.is_empty() => self.actors[any].asleep = !self.actors[any].asleep,
            6 if self.dice.below(30) == 0 => self.restart(),
            7..=9 if !self.actors.is_empty() => self.commit(any),
            _ if !self.actors.is_empty() => self.act(any),
            _ => self.arrive(),
        }
        let ms = if self.dice.below(50) == 0 { 6_000 } else { [0, 1, 20, 150][self.dice.below(4)] };
        self.broker.pass(ms);
        self.check();
    }

    /// Anybody commits a partition that it believes it has; those that sleep are the zombies.
    fn commit(&mut self, at: usize) {
        self.next += 1;
        let (offset, pick) = (self.next, self.dice.below(1000));
        let (id, index, code) = match &self.actors[at].speaks {
            Speaks::Classic(one) => {
                let Some(index) = one.owned.iter().copied().nth(pick % one.owned.len().max(1)) else {
                    return;
                };
                (one.who.id.clone(), index, self.broker.commit_as(&one.who, ("t", index), offset))
            }
            Speaks::Modern(one) => {
                let owned = one.indexes();
                let Some(index) = owned.get(pick % owned.len().max(1)).copied() else { return };
                (one.id.clone(), index, self.broker.commit_of(9, one, ("t", index), offset))
            }
        };
        if code == 0 {
            self.commits.0 += 1;
            self.committed.insert(index, offset);
            let others = self.owners().remove(&index).unwrap_or_default();
            assert!(others.iter().all(|other| *other == id), "{id} committed {index} of {others:?}");
        } else {
            self.commits.1 += 1;
            assert!([22, 25, 27, 69, 113].contains(&code), "commit {code}");
        }
        let due = self.committed.get(&index).copied().unwrap_or(-1);
        assert_eq!(self.broker.offset_fetch("g", ("t", index), true), (0, due));
    }

    fn restart(&mut self) {
        self.broker.restart();
        for actor in &mut self.actors {
            if let Speaks::Classic(classic) = &mut actor.speaks {
                classic.on = self.broker.connect();
                if !classic.is_working() {
                    classic.doing = Doing::Nothing;
                }
            }
        }
    }

    /// Who has a partition, of those that are members in the generation or epoch in which they believe.
    fn owners(&self) -> BTreeMap<i32, Vec<String>> {
        let mut owners: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        let Some(group) = self.broker.state().groups.group(&"g".into()) else { return owners };
        for actor in &self.actors {
            let (id, epoch, owned): (&str, i32, Vec<i32>) = match &actor.speaks {
                Speaks::Classic(one) => {
                    (&one.who.id, one.who.generation, one.owned.iter().copied().collect())
                }
                Speaks::Modern(one) => (&one.id, one.epoch, one.indexes()),
            };
            let is_member = match group.kind() {
                Kind::Classic(membership) => membership.has(id) && membership.generation() == epoch,
                Kind::Consumer(roster) => roster.seat(id).is_some_and(|seat| seat.member_epoch == epoch),
                Kind::Streams(_) => false,
            };
            if is_member {
                owned.into_iter().for_each(|index| owners.entry(index).or_default().push(id.to_owned()));
            }
        }
        owners
    }

    fn check(&mut self) {
        if let Some(group) = self.broker.state().groups.group(&"g".into()) {
            *self.kinds.entry(group.kind().name()).or_default() += 1;
        }
        for (index, owners) in self.owners() {
            assert!(owners.len() <= 1, "partition {index} is owned by {owners:?}");
        }
    }

    /// Everybody wakes, nobody comes or goes: how long it takes until everything is owned and nobody is on its way.
    fn settle(&mut self) -> i64 {
        let start = self.broker.now_ms();
        self.actors.iter_mut().for_each(|actor| actor.asleep = false);
        loop {
            for at in 0..self.actors.len() {
                self.act(at);
            }
            self.check();
            let working = self.actors.iter().all(|actor| match &actor.speaks {
                Speaks::Classic(classic) => classic.is_working(),
                Speaks::Modern(consumer) => consumer.epoch > 0 && !consumer.unsaid,
            });
            let took = self.broker.now_ms() - start;
            if working && self.owners().len() == usize::try_from(PARTITIONS).unwrap() && self.is_stable() {
                return took;
            }
            assert!(took <= i64::from(REBALANCE_MS), "after {took} ms the group has not settled");
            self.broker.pass(1000);
        }
    }

    fn is_stable(&self) -> bool {
        let group = self.broker.state().groups.group(&"g".into()).unwrap();
        let members = match group.kind() {
            Kind::Classic(membership) if membership.is_assigned() => membership.len(),
            Kind::Consumer(roster) if roster.phase().name() == "Stable" => roster.len(),
            Kind::Classic(_) | Kind::Consumer(_) | Kind::Streams(_) => return false,
        };
        members == self.actors.len()
    }
}

fn run(modern: usize, rounds: usize) -> BTreeMap<&'static str, usize> {
    let (mut kinds, mut taken, mut refused) = (BTreeMap::new(), 0, 0);
    for seed in 1..=3 {
        let mut crowd = Crowd::new(seed, modern, MEMBERS);
        (0..MEMBERS).for_each(|_| crowd.arrive());
        for _ in 0..rounds {
            for _ in 0..300 {
                crowd.churn();
            }
            crowd.settle();
        }
        taken += crowd.commits.0;
        refused += crowd.commits.1;
        crowd.kinds.into_iter().for_each(|(kind, count)| *kinds.entry(kind).or_default() += count);
    }
    assert!(taken > 30 && refused > 5, "{taken} commits were taken, {refused} refused");
    kinds
}

#[test]
fn a_hundred_members_of_kip_848_churn_and_settle() {
    let kinds = run(10, 6);
    assert_eq!(kinds.keys().copied().collect::<Vec<_>>(), ["consumer"]);
}

#[test]
fn a_hundred_members_of_the_classic_protocol_churn_and_settle() {
    let kinds = run(0, 6);
    assert_eq!(kinds.keys().copied().collect::<Vec<_>>(), ["classic"]);
}

#[test]
fn a_hundred_members_of_both_protocols_churn_and_settle() {
    let kinds = run(3, 6);
    assert!(kinds.get("consumer").is_some_and(|count| *count > 500), "{kinds:?}");
}

#[test]
fn a_group_with_a_few_members_of_kip_848_goes_to_and_fro() {
    let (mut ups, mut downs) = (0, 0);
    for seed in 1..=20 {
        let mut crowd = Crowd::new(seed, 2, 6);
        let mut before = "";
        for _ in 0..800 {
            crowd.churn();
            let group = crowd.broker.state().groups.group(&"g".into());
            let now = group.map_or("", |group| group.kind().name());
            ups += usize::from(before == "classic" && now == "consumer");
            downs += usize::from(before == "consumer" && now == "classic");
            before = now;
        }
        crowd.settle();
    }
    assert!(ups > 5 && downs > 5, "{ups} changes to KIP-848, {downs} back");
}
