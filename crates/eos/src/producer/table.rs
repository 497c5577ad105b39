//! The one producer table of a shard.

use alloc::collections::BTreeMap;

use semel_types::{ProducerEpoch, ProducerId, ProducerStamp, TransactionNumber, TransactionalId};

/// What the coordinator says of an owned id. It changes only through the methods of [`Table`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedSlot {
    /// The owner, also after the slot was closed.
    pub owner: TransactionalId,
    /// The owner's current epoch; of a closed slot its last.
    pub epoch: ProducerEpoch,
    /// Rotated away, or its transactional id expired: nobody may write under it again.
    pub closed: bool,
    /// The open transaction.
    pub open: Option<TransactionNumber>,
}

/// Slots by producer id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    owned: BTreeMap<ProducerId, OwnedSlot>,
}

impl Table {
    /// What the coordinator said of an id; `None` for an id without owner.
    #[must_use]
    pub fn owned(&self, id: ProducerId) -> Option<&OwnedSlot> {
        self.owned.get(&id)
    }

    /// An identity was given: the id belongs to `owner` from here on, at this epoch, nothing open.
    pub(crate) fn set_identity(&mut self, identity: ProducerStamp, owner: &TransactionalId) {
        let slot = OwnedSlot { owner: owner.clone(), epoch: identity.epoch, closed: false, open: None };
        self.owned.insert(identity.id, slot);
    }

    /// The open transaction of an owned id changed: started (`Some`) or ended (`None`).
    pub(crate) fn set_open(&mut self, id: ProducerId, open: Option<TransactionNumber>) {
        if let Some(slot) = self.owned.get_mut(&id) {
            slot.open = open;
        }
    }

    /// An owned id was rotated away, or its transactional id expired: closed for good.
    pub(crate) fn close(&mut self, id: ProducerId) {
        if let Some(slot) = self.owned.get_mut(&id) {
            slot.closed = true;
            slot.open = None;
        }
    }
}
