//! Random lives of members against a plain model: they join, sync, commit, crash, pause and come back as zombies, and
//! the broker restarts. No commit of somebody who is no member of the present generation is taken, the generation only
//! rises, and what was last taken is what is fetched.
//!
//! The model knows who was told what, and nothing of the protocol: it believes the answers, and checks that a commit
//! that is taken came from the generation that was told last, and from a member whose part nobody else was given.

use std::collections::BTreeMap;

use semel_types::ConnectionNumber;
use semel_wire::api::join_group::JoinGroupResponse;

use crate::support::*;

const PLACE: Place<'static> = ("t", 0);

/// What a client is doing.
#[derive(Clone, Copy)]
enum Doing {
    Nothing,
    Joining(Ticket),
    Syncing(Ticket, bool),
    Working,
}

struct Client {
    on: ConnectionNumber,
    who: Someone,
    doing: Doing,
    /// It has crashed or sleeps: it does nothing but commit late.
    asleep: bool,
    leads: bool,
    others: Vec<String>,
}

struct World {
    broker: Broker,
    dice: Dice,
    clients: Vec<Client>,
    generation: i32,
    /// Who was given which generation.
    told: BTreeMap<i32, Vec<String>>,
    left: Vec<String>,
    committed: i64,
    next: i64,
    taken: usize,
    refused: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut broker = Broker::seeded(&[], seed);
        broker.topic("t", 1);
        Self {
            broker,
            dice: Dice::seeded(seed),
            clients: Vec::new(),
            generation: 0,
            told: BTreeMap::new(),
            left: Vec::new(),
            committed: -1,
            next: 0,
            taken: 0,
            refused: 0,
        }
    }

    fn step(&mut self) {
        match self.dice.below(24) {
            0 if self.clients.len() < 8 => self.start_client(),
            1 => self.fall_asleep(),
            2 => self.leave(),
            3 => self.restart(),
            4..=6 => {
                let ms = [10, 500, 4000][self.dice.below(3)];
                self.broker.pass(ms);
            }
            7..=10 => self.commit(),
            _ => self.live(),
        }
    }

    fn any(&mut self) -> Option<usize> {
        (!self.clients.is_empty()).then(|| self.dice.below(self.clients.len()))
    }

    fn start_client(&mut self) {
        let names = [None, None, Some("static-1"), Some("static-2")];
        let instance = names[self.dice.below(names.len())];
        let (on, who) = (self.broker.connect(), Someone { instance, ..Someone::new("g") });
        let (doing, others) = (Doing::Nothing, Vec::new());
        self.clients.push(Client { on, who, doing, asleep: false, leads: false, others });
    }

    fn fall_asleep(&mut self) {
        let Some(at) = self.any() else { return };
        let (client, wakes) = (&mut self.clients[at], self.dice.below(2) == 0);
        client.asleep = !(client.asleep && wakes);
        if client.asleep && self.dice.below(2) == 0 {
            self.broker.close(client.on);
            client.on = self.broker.connect();
            if matches!(client.doing, Doing::Joining(_) | Doing::Syncing(..)) {
                client.doing = Doing::Nothing;
            }
        }
        if self.clients.len() > 6 {
            self.clients.remove(at);
        }
    }

    fn leave(&mut self) {
        let Some(at) = self.any() else { return };
        let who = self.clients[at].who.clone();
        if !who.id.is_empty() && self.dice.below(3) == 0 {
            if self.broker.leave("g", &[&who]) == [0] {
                self.left.push(who.id.clone());
            }
            self.clients[at].asleep = true;
        }
    }

    fn restart(&mut self) {
        self.broker.restart();
        for client in &mut self.clients {
            client.on = self.broker.connect();
            if matches!(client.doing, Doing::Joining(_) | Doing::Syncing(..)) {
                client.doing = Doing::Nothing;
            }
        }
    }

    fn live(&mut self) {
        let Some(at) = self.any().filter(|at| !self.clients[*at].asleep) else { return };
        let (on, who) = (self.clients[at].on, self.clients[at].who.clone());
        let doing = match self.clients[at].doing {
            Doing::Nothing => Doing::Joining(self.broker.join(on, &who)),
            Doing::Joining(ticket) => match self.broker.late::<JoinGroupResponse>(ticket) {
                None => Doing::Joining(ticket),
                Some(answer) => self.join_answered(at, &answer),
            },
            Doing::Syncing(ticket, brought) => self.sync_answered(at, ticket, brought),
            Doing::Working => match self.broker.heartbeat(&who) {
                0 => Doing::Working,
                22 | 27 => Doing::Nothing,
                25 | 82 => {
                    let client = &mut self.clients[at];
                    client.who.id.clear();
                    client.asleep = client.who.instance.is_some();
                    Doing::Nothing
                }
                other => panic!("heartbeat {other}"),
            },
        };
        self.clients[at].doing = doing;
    }

    fn join_answered(&mut self, at: usize, answer: &JoinGroupResponse) -> Doing {
        let client = &mut self.clients[at];
        match answer.error_code.get() {
            0 => {}
            79 => {
                client.who.id = answer.member_id.as_str().to_owned();
                return Doing::Nothing;
            }
            25 | 27 | 82 => {
                client.who.id.clear();
                return Doing::Nothing;
            }
            other => panic!("join {other}"),
        }
        client.who.id = answer.member_id.as_str().to_owned();
        client.who.generation = answer.generation_id;
        client.leads = answer.leader == answer.member_id;
        client.others = answer.members.iter().map(|member| member.member_id.as_str().to_owned()).collect();
        self.generation = self.generation.max(answer.generation_id);
        self.told.entry(answer.generation_id).or_default().push(client.who.id.clone());
        let parts: Vec<_> = client.others.iter().map(|id| (id.as_str(), "part")).collect();
        let parts = if client.leads { parts } else { Vec::new() };
        Doing::Syncing(self.broker.sync(client.on, &client.who, &parts), client.leads)
    }

    fn sync_answered(&mut self, at: usize, ticket: Ticket, brought: bool) -> Doing {
        let answer = self.broker.late::<semel_wire::api::sync_group::SyncGroupResponse>(ticket);
        let Some(answer) = answer else { return Doing::Syncing(ticket, brought) };
        match answer.error_code.get() {
            0 => Doing::Working,
            22 | 27 => Doing::Nothing,
            25 | 82 => {
                self.clients[at].who.id.clear();
                Doing::Nothing
            }
            other => panic!("sync {other}"),
        }
    }

    /// Anybody commits, whatever it is now: the sleeping ones are the zombies.
    fn commit(&mut self) {
        let Some(at) = self.any() else { return };
        let who = self.clients[at].who.clone();
        if who.generation < 0 || who.id.is_empty() {
            return;
        }
        self.next += 1;
        let code = self.broker.commit_as(&who, PLACE, self.next);
        if code == 0 {
            self.taken += 1;
            self.committed = self.next;
            let present = self.broker.state().groups.group(&"g".into()).unwrap().classic().unwrap();
            assert_eq!(who.generation, present.generation(), "a commit of an old generation");
            assert!(present.has(&who.id), "{} is no member any more", who.id);
            assert!(!self.left.contains(&who.id), "{} has left", who.id);
            assert!(self.told[&who.generation].contains(&who.id), "{} was never told of it", who.id);
        } else {
            self.refused += 1;
            assert!([22, 25, 27, 82].contains(&code), "commit {code}");
        }
        assert_eq!(self.broker.offset_fetch("g", PLACE, true), (0, self.committed));
    }

    fn check(&self, before: i32) -> i32 {
        let group = self.broker.state().groups.group(&"g".into());
        let generation =
            group.and_then(|group| group.classic()).map_or(0, |membership| membership.generation());
        assert!(generation >= before, "the generation fell from {before} to {generation}");
        generation
    }
}

#[test]
fn members_crash_pause_and_come_back_and_no_zombie_commits() {
    let (mut taken, mut refused, mut generations) = (0, 0, 0);
    for seed in 1..=40 {
        let mut world = World::new(seed);
        let mut generation = 0;
        for _ in 0..1000 {
            world.step();
            generation = world.check(generation);
        }
        taken += world.taken;
        refused += world.refused;
        generations += generation;
    }
    assert!(taken > 500, "members commit: {taken}");
    assert!(refused > 500, "zombies are met: {refused}");
    assert!(generations > 200, "groups rebalance: {generations}");
}
