//! Members that speak the classic protocol as clients do: they assign, when they lead, and drop what they have before they
//! join again.

use std::collections::BTreeSet;

use semel_types::ConnectionNumber;
use semel_wire::api::{join_group::JoinGroupResponse, sync_group::SyncGroupResponse};

use super::{Broker, Someone, Ticket, join_request};

/// What a classic member is doing.
#[derive(Clone, Copy)]
pub enum Doing {
    Nothing,
    Joining(Ticket),
    Syncing(Ticket),
    Working,
}

/// A consumer of topic `t`.
pub struct Classic {
    pub on: ConnectionNumber,
    pub who: Someone,
    pub doing: Doing,
    /// Indexes of the partitions that it has.
    pub owned: BTreeSet<i32>,
    /// It says what it has when it joins, and keeps it meanwhile.
    pub cooperative: bool,
}

fn list(bytes: &mut Vec<u8>, indexes: &BTreeSet<i32>) {
    bytes.extend(1_i32.to_be_bytes());
    bytes.extend(b"\0\x01t");
    bytes.extend(i32::try_from(indexes.len()).unwrap().to_be_bytes());
    indexes.iter().for_each(|index| bytes.extend(index.to_be_bytes()));
}

/// What a consumer of topic `t` that has these says of itself, in version 1.
pub fn owning(indexes: &BTreeSet<i32>) -> Vec<u8> {
    let mut bytes = b"\0\x01\0\0\0\x01\0\x01t\xff\xff\xff\xff".to_vec();
    list(&mut bytes, indexes);
    bytes
}

/// These partitions of topic `t`, as a leader gives them out. All of its bytes are text.
pub fn part(indexes: &BTreeSet<i32>) -> String {
    let mut bytes = b"\0\x01".to_vec();
    list(&mut bytes, indexes);
    bytes.extend([0; 4]);
    String::from_utf8(bytes).unwrap()
}

fn read_part(bytes: &[u8]) -> BTreeSet<i32> {
    let Some(rest) = bytes.get(13..) else { return BTreeSet::new() };
    let count = usize::try_from(i32::from_be_bytes(bytes[9..13].try_into().unwrap())).unwrap();
    let words = rest.chunks_exact(4).take(count);
    words.map(|word| i32::from_be_bytes(word.try_into().unwrap())).collect()
}

impl Classic {
    pub fn new(broker: &mut Broker, group: &'static str) -> Self {
        let (on, who) = (broker.connect(), Someone::new(group));
        Self { on, who, doing: Doing::Nothing, owned: BTreeSet::new(), cooperative: false }
    }

    pub fn is_working(&self) -> bool {
        matches!(self.doing, Doing::Working)
    }

    /// Does the next thing that it would do.
    pub fn step(&mut self, broker: &mut Broker) {
        self.doing = match self.doing {
            Doing::Nothing => {
                if !self.cooperative {
                    self.owned.clear();
                }
                let request = join_request(&self.who, &[("range", &owning(&self.owned))]);
                Doing::Joining(broker.park(self.on, 5, &request))
            }
            Doing::Joining(ticket) => match broker.late::<JoinGroupResponse>(ticket) {
                None => Doing::Joining(ticket),
                Some(answer) => self.join_answered(broker, &answer),
            },
            Doing::Syncing(ticket) => match broker.late::<SyncGroupResponse>(ticket) {
                None => Doing::Syncing(ticket),
                Some(answer) => self.sync_answered(&answer),
            },
            Doing::Working => {
                let code = broker.heartbeat(&self.who);
                self.heartbeat_answered(code)
            }
        };
    }

    fn join_answered(&mut self, broker: &mut Broker, answer: &JoinGroupResponse) -> Doing {
        match answer.error_code.get() {
            0 => {}
            79 => {
                self.who.id = answer.member_id.as_str().to_owned();
                return Doing::Nothing;
            }
            25 => return self.forgotten(),
            27 => return Doing::Nothing,
            other => panic!("join {other}"),
        }
        self.who.id = answer.member_id.as_str().to_owned();
        self.who.generation = answer.generation_id;
        let topic = broker.state().catalog.topic("t").unwrap();
        let count = i32::try_from(topic.partitions().len()).unwrap();
        let mut parts: Vec<(String, BTreeSet<i32>)> =
            answer.members.iter().map(|one| (one.member_id.as_str().to_owned(), BTreeSet::new())).collect();
        for index in 0..if parts.is_empty() { 0 } else { count } {
            let place = usize::try_from(index).unwrap() % parts.len();
            parts[place].1.insert(index);
        }
        let parts: Vec<_> = parts.iter().map(|(id, indexes)| (id.as_str(), part(indexes))).collect();
        let parts: Vec<_> = parts.iter().map(|(id, part)| (*id, part.as_str())).collect();
        Doing::Syncing(broker.sync(self.on, &self.who, &parts))
    }

    fn sync_answered(&mut self, answer: &SyncGroupResponse) -> Doing {
        match answer.error_code.get() {
            0 => {
                self.owned = read_part(&answer.assignment);
                Doing::Working
            }
            22 | 27 => Doing::Nothing,
            25 => self.forgotten(),
            other => panic!("sync {other}"),
        }
    }

    fn heartbeat_answered(&mut self, code: i16) -> Doing {
        match code {
            0 => Doing::Working,
            27 => Doing::Nothing,
            22 => {
                self.owned.clear();
                Doing::Nothing
            }
            25 => self.forgotten(),
            other => panic!("heartbeat {other}"),
        }
    }

    fn forgotten(&mut self) -> Doing {
        self.owned.clear();
        self.who.id.clear();
        self.who.generation = -1;
        Doing::Nothing
    }
}
