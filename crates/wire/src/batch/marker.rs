//! Transaction markers: the control batches that end a transaction in a partition (KIP-98).

use semel_types::{
    CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, ProducerStamp, WallTime,
};

use super::{Batch, BatchBuilder, BatchError, NewRecord};

/// How the transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkerKind {
    /// Its records are to be skipped.
    Abort,
    /// Its records count.
    Commit,
}

impl MarkerKind {
    const fn number(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
        }
    }

    const fn from_number(number: i16) -> Option<Self> {
        match number {
            0 => Some(Self::Abort),
            1 => Some(Self::Commit),
            _ => None,
        }
    }
}

/// One marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marker {
    /// How the transaction ended.
    pub kind: MarkerKind,
    /// Whose it was.
    pub stamp: ProducerStamp,
    /// Epoch of the coordinator that ended it.
    pub coordinator_epoch: CoordinatorEpoch,
    /// When.
    pub timestamp: WallTime,
}

impl Marker {
    /// The control batch: one record whose key says how the transaction ended and whose value holds the
    /// coordinator's epoch; no sequence.
    #[must_use]
    pub fn to_batch(self, offset: Offset, leader_epoch: LeaderEpoch) -> Batch {
        let mut key = [0; 4];
        key[2..].copy_from_slice(&self.kind.number().to_be_bytes());
        let mut value = [0; 6];
        value[2..].copy_from_slice(&self.coordinator_epoch.get().to_be_bytes());
        BatchBuilder::new()
            .identity(self.stamp)
            .transactional()
            .control()
            .placed(offset, leader_epoch)
            .record(NewRecord {
                key: Some(&key),
                value: Some(&value),
                timestamp: Some(self.timestamp),
                headers: &[],
            })
            .build()
    }

    /// Reads a marker; `None` if the batch is no control batch, or one without records (what compaction leaves).
    ///
    /// # Errors
    ///
    /// A control batch of another kind, or a malformed one. Versions of key and value above 0 are read as far as we
    /// know them, as clients do.
    pub fn parse(batch: &Batch) -> Result<Option<Self>, BatchError> {
        if !batch.attributes().is_control() {
            return Ok(None);
        }
        let Some(record) = batch.records()?.next() else {
            return Ok(None);
        };
        let record = record?;
        let fields = record.key.as_deref().zip(record.value.as_deref());
        let (key, value) = fields.ok_or(BatchError::NoMarker)?;
        let kind = field(key, 2).and_then(|bytes| MarkerKind::from_number(i16::from_be_bytes(bytes)));
        let epoch = field(value, 2).map(|bytes| CoordinatorEpoch::new(i32::from_be_bytes(bytes)));
        let stamp = stamp(batch.producer_id(), batch.producer_epoch());
        Ok(Some(Self {
            kind: kind.ok_or(BatchError::NoMarker)?,
            stamp: stamp.ok_or(BatchError::NoMarker)?,
            coordinator_epoch: epoch.ok_or(BatchError::NoMarker)?,
            timestamp: record.timestamp.unwrap_or_default(),
        }))
    }
}

fn stamp(id: Option<ProducerId>, epoch: Option<ProducerEpoch>) -> Option<ProducerStamp> {
    let (id, epoch) = id.zip(epoch)?;
    Some(ProducerStamp { id, epoch })
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}
