//! Where a zombie is fenced. The ONLY module that compares epochs; everybody else asks here and gets a typed answer.
//!
//! | fence | what stops | who asks |
//! |---|---|---|
//! | F1 | a batch with a producer id that belongs to a transactional id: plain, another owner's, or with an epoch other than the current one, lower or higher; a producer id that was rotated away or expired | `producer/judge.rs`: [`batch_owner`] |
//! | F2 | a batch of an id without owner with an epoch older than the one on file | `producer/judge.rs`: [`standing`] |
//! | F3 | AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn with an identity that is not current | `txn/draft.rs`: [`identity`] |
//! | F4 | InitProducerId with a pair (KIP-360) that is neither current nor remembered | `txn/init.rs`: [`identity`] |
//! | F5 | an administrator's marker for an identity that is not current | `txn/marker.rs`: [`is_same`] |
//! | F6 | a late copy of a request, by its connection | `txn/draft.rs`, `producer/judge.rs`: `Volatile`, which asks nothing here |
//!
//! And what replaces a fenced identity: [`successor`], [`bumped_marker`]. An identity is a producer id *and* an
//! epoch; a newer epoch than the current one is as wrong as an older one (EOS-31), because only the coordinator
//! makes epochs of an owned id. What it does not do: hold state, know wire codes, decide what a refusal costs.

use core::cmp::Ordering;

use semel_types::{
    ProducerEpoch, ProducerId, ProducerStamp, TransactionalId,
    mutation::{Mutation, mutated},
};

use crate::{
    Refusal,
    dropped::{Rule, keeps},
    producer::OwnedSlot,
    txn::{FenceLog, Remembered, TransactionalIdEntry},
};

/// How a claimed identity stands against a transactional id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdentityStanding {
    /// The one current pair.
    Current,
    /// The remembered pair, and no transaction has started since.
    Remembered(Remembered),
    /// A producer id that is not this transactional id's.
    OtherProducer,
    /// The producer id with another epoch than the current one.
    Fenced,
}

/// How a claimed identity stands against a transactional id (F3, F4). The remembered pair may have another producer
/// id (after a rotation), so it is recognised before producer ids are told apart.
#[must_use]
pub fn identity(entry: &TransactionalIdEntry, stamp: ProducerStamp) -> IdentityStanding {
    if is_same(entry.identity, stamp) {
        return IdentityStanding::Current;
    }
    match entry.remembered.filter(|_| !mutated(Mutation::RetryNotRemembered)) {
        Some(pair) if is_same(pair.stamp, stamp) && pair.number == entry.last_number => {
            IdentityStanding::Remembered(pair)
        }
        _ if entry.identity.id != stamp.id => IdentityStanding::OtherProducer,
        _ => IdentityStanding::Fenced,
    }
}

/// True if two identities are one and the same: producer id and epoch.
#[must_use]
pub fn is_same(one: ProducerStamp, other: ProducerStamp) -> bool {
    one == other
}

/// Where an epoch stands against the one on file (F2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochStanding {
    /// Older: a zombie.
    Older,
    /// The same session.
    Current,
    /// Newer: a new session, whose sequences start at 0.
    Newer,
}

/// Compares a batch's epoch with the one on file for its producer and partition (F2).
#[must_use]
pub fn standing(sent: ProducerEpoch, on_file: ProducerEpoch) -> EpochStanding {
    match sent.cmp(&on_file) {
        Ordering::Less => EpochStanding::Older,
        Ordering::Equal => EpochStanding::Current,
        Ordering::Greater => EpochStanding::Newer,
    }
}

/// What comes after an identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Successor {
    /// The same producer id, one epoch higher.
    Bumped(ProducerStamp),
    /// The last usable epoch is spent: a new producer id at epoch 0.
    NewProducer,
}

/// What comes after an identity (F4 and every bump). 32767 is never given to an owned id.
#[must_use]
pub fn successor(identity: ProducerStamp) -> Successor {
    if !keeps(Rule::Rotation) {
        return Successor::Bumped(ProducerStamp { epoch: identity.epoch.next(), ..identity });
    }
    match identity.epoch.bumped() {
        Some(epoch) => Successor::Bumped(ProducerStamp { epoch, ..identity }),
        None => Successor::NewProducer,
    }
}

/// The identity in the markers of an end that bumps: the old producer id, by which readers know what was aborted,
/// with the epoch after the current one; 32767 at the last usable epoch, as in Kafka (it stands in markers only).
#[must_use]
pub const fn bumped_marker(identity: ProducerStamp) -> ProducerStamp {
    ProducerStamp { id: identity.id, epoch: identity.epoch.next() }
}

/// How a batch claims to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim<'a> {
    /// The batch's producer id and epoch.
    pub stamp: ProducerStamp,
    /// The batch is transactional.
    pub transactional: bool,
    /// The request's transactional id.
    pub transactional_id: Option<&'a TransactionalId>,
}

/// May this batch be written in the name of this producer id (F1)? Design section 3, step 2, in its order.
///
/// # Errors
/// [`Refusal::PlainBatchOfOwnedId`], [`Refusal::WrongOwner`], [`Refusal::Fenced`].
pub fn batch_owner(slot: Option<&OwnedSlot>, claim: Claim<'_>, fences: &FenceLog) -> Result<(), Refusal> {
    let Some(slot) = slot else {
        return if claim.transactional { Err(Refusal::WrongOwner { owner: None }) } else { Ok(()) };
    };
    let owner = &slot.owner;
    if !claim.transactional && keeps(Rule::PlainOfOwned) {
        return Err(Refusal::PlainBatchOfOwnedId { owner: owner.clone() });
    }
    if claim.transactional_id != Some(owner) && keeps(Rule::PlainOfOwned) {
        return Err(Refusal::WrongOwner { owner: Some(owner.clone()) });
    }
    let sent = claim.stamp;
    let current = (!slot.closed).then_some(ProducerStamp { id: sent.id, epoch: slot.epoch });
    if current == Some(sent) || !keeps(Rule::OwnersIdentity) {
        return Ok(());
    }
    Err(Refusal::Fenced { sent, current, since: None, fence: fences.of_victim(owner, sent) })
}

/// The wrong-identity refusal of the coordinator's APIs (F3, F4): what replaced the claimed identity, if known.
#[must_use]
pub fn fenced(
    id: &TransactionalId,
    sent: ProducerStamp,
    current: Option<ProducerStamp>,
    fences: &FenceLog,
) -> Refusal {
    Refusal::Fenced { sent, current, since: None, fence: fences.of_victim(id, sent) }
}

/// True if a producer id is the one of an identity; epochs aside.
#[must_use]
pub fn is_producer(identity: ProducerStamp, producer: ProducerId) -> bool {
    identity.id == producer
}

/// True if an epoch is the one of an identity; producer ids aside.
#[must_use]
pub fn is_epoch(identity: ProducerStamp, epoch: ProducerEpoch) -> bool {
    identity.epoch == epoch
}
