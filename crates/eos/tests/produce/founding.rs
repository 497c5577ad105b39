//! The founding text as an oracle, written straight from it, against both forms of the core.

use std::collections::HashMap;

use semel_eos::{Judgement, ProducerStateManager, Refusal};
use semel_types::{PartitionHandle, ProducerEpoch, ProducerId};

use crate::{
    random::Random,
    shard::{Shard, batch, id, other_payload, sequence},
};

/// The text's rules 1 to 4, in their order, with its outcomes as it spells them.
#[derive(Clone, Default)]
struct Oracle {
    state: HashMap<(i64, u32), (i64, i64)>,
}

impl Oracle {
    fn append(&mut self, producer_id: i64, partition: u32, epoch: i64, sequence: i64) -> &'static str {
        let outcome = match self.state.get(&(producer_id, partition)) {
            None if sequence == 0 => "ACCEPTED",
            None => "OUT_OF_ORDER",
            Some((stored_epoch, _)) if epoch < *stored_epoch => "FENCED_EPOCH",
            Some((stored_epoch, _)) if epoch > *stored_epoch && sequence == 0 => "ACCEPTED",
            Some((stored_epoch, _)) if epoch > *stored_epoch => "OUT_OF_ORDER",
            Some((_, last_sequence)) if sequence == last_sequence + 1 => "ACCEPTED",
            Some((_, last_sequence)) if sequence <= *last_sequence => "DUPLICATE",
            Some(_) => "OUT_OF_ORDER",
        };
        if outcome == "ACCEPTED" {
            self.state.insert((producer_id, partition), (epoch, sequence));
        }
        outcome
    }

    /// A step that is likely to matter: near what is on file, or anywhere.
    fn interesting(&self, random: &mut Random, pairs: (u64, u64)) -> (i64, u32, i64, i64) {
        let (producer, partition) = (random.below(pairs.0) as i64, random.below(pairs.1) as u32);
        let (epoch, last) = self.state.get(&(producer, partition)).copied().unwrap_or((0, -1));
        let epoch = match random.below(8) {
            0 => epoch + 1,
            1 => (epoch - 1).max(0),
            2 => random.below(4) as i64,
            _ => epoch,
        };
        let sequence = match random.below(12) {
            0 => 0,
            1 => last,
            2 => last - 1 - random.below(8) as i64,
            3 => last + 2,
            4 => random.below(1 << 31) as i64,
            _ => last + 1,
        };
        (producer, partition, epoch.min(32_767), sequence.max(0))
    }
}

fn text_of(judgement: &Judgement) -> &'static str {
    match judgement {
        Judgement::Append => "ACCEPTED",
        Judgement::Duplicate { .. }
        | Judgement::Refuse(Refusal::AlreadyStored { .. } | Refusal::OtherPayload { .. }) => "DUPLICATE",
        Judgement::Refuse(Refusal::OutOfOrder { .. } | Refusal::ForgottenProducer { .. }) => "OUT_OF_ORDER",
        Judgement::Refuse(Refusal::Fenced { .. }) => "FENCED_EPOCH",
        Judgement::Refuse(other) => panic!("the founding text knows no {other:?}"),
    }
}

#[test]
fn the_manager_agrees_with_the_founding_text_and_only_accepted_changes_it() {
    let mut random = Random::new(1);
    let mut outcomes = HashMap::<&str, u32>::new();
    for history in 0..100_000 {
        let (mut oracle, mut manager) = (Oracle::default(), ProducerStateManager::new());
        for step in 0..16 {
            let (producer, partition, epoch, number) = oracle.interesting(&mut random, (3, 2));
            let expected = oracle.append(producer, partition, epoch, number);
            let before = (history % 16 == 0).then(|| manager.clone());
            let epoch = ProducerEpoch::new(epoch as i16);
            let found = manager.append(producer, PartitionHandle::new(partition), epoch, sequence(number));
            assert_eq!(found.to_string(), expected, "history {history}, step {step}");
            if let Some(before) = before {
                assert_eq!(before == manager, expected != "ACCEPTED", "history {history}, step {step}");
            }
            *outcomes.entry(expected).or_default() += 1;
        }
    }
    assert_eq!(outcomes.len(), 4);
    assert!(outcomes.values().all(|count| *count > 20_000), "{outcomes:?}");
}

/// What may happen between two batches without changing any verdict.
fn disturb(shard: &mut Shard, random: &mut Random) {
    shard.now += 1;
    match random.below(40) {
        0 => {
            shard.wait_for_expiry();
            shard.expire();
        }
        1 => {
            let mut bytes = Vec::new();
            shard.state.encode(&mut bytes);
            let decoded = semel_eos::State::decode(&mut semel_events::Reader::new(&bytes));
            shard.state = decoded.expect("what was written is read");
        }
        _ => {}
    }
}

#[test]
fn the_batch_form_agrees_with_the_founding_text_for_plain_batches_of_one_record() {
    let mut random = Random::new(2);
    let mut fresh = Shard::new(2);
    fresh.check = false;
    for history in 0..100_000 {
        let (mut oracle, mut shard) = (Oracle::default(), fresh.clone());
        for step in 0..12 {
            disturb(&mut shard, &mut random);
            let (producer, partition, epoch, number) = oracle.interesting(&mut random, (3, 2));
            let expected = oracle.append(producer, partition, epoch, number);
            // The third producer's id was never issued here.
            let producer = if producer == 2 { ProducerId::new(5) } else { id(producer) };
            let mut stamp = batch(producer, epoch as i16, number, 1);
            if random.one_in(5) {
                stamp = other_payload(stamp);
            }
            let judgement = shard.produce(partition, stamp);
            assert_eq!(text_of(&judgement), expected, "history {history}, step {step}: {judgement:?}");
        }
    }
}

#[test]
fn both_forms_agree_up_to_the_last_sequence_below_two_to_the_thirty() {
    let mut random = Random::new(3);
    for _ in 0..2_000 {
        let last = (1 << 30) - 1 - random.below(20) as i64;
        let mut shard = Shard::new(1);
        shard.check = false;
        shard.produce(0, batch(id(0), 3, 0, last as u32 + 1));
        let mut oracle = Oracle::default();
        oracle.state.insert((0, 0), (3, last));
        for _ in 0..10 {
            let (_, _, epoch, number) = oracle.interesting(&mut random, (1, 1));
            if oracle.state[&(0, 0)].1 >= (1 << 30) - 1 {
                break;
            }
            let expected = oracle.append(0, 0, epoch, number);
            assert_eq!(text_of(&shard.produce(0, batch(id(0), epoch as i16, number, 1))), expected);
        }
    }
}
