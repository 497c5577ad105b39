//! Ids, epochs and offsets. Each is a transparent newtype; `new` is unchecked on purpose where any value is valid
//! and returns `Option` where the wire's sentinel `-1` means "absent".

use core::fmt;

use crate::limits::MAX_USABLE_EPOCH;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[repr(transparent)]
        pub struct $name($inner);

        impl $name {
            /// Wraps a raw value.
            #[must_use]
            pub const fn new(raw: $inner) -> Self {
                Self(raw)
            }

            /// The raw value, for encoding and display.
            #[must_use]
            pub const fn get(self) -> $inner {
                self.0
            }

            /// The following value; saturates at the type's maximum.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

number! {
    /// A producer id (KIP-98). Never negative here; the wire's `-1` is `None`.
    ProducerId(i64), ""
}
number! {
    /// A producer epoch (KIP-98), 0..=32767. Only `eos/src/fence.rs` compares two of them.
    ProducerEpoch(i16), ""
}
number! {
    /// An offset in a partition, counted in records from 0.
    Offset(i64), ""
}
number! {
    /// A partition's number within its topic, from 0.
    PartitionIndex(i32), ""
}
number! {
    /// The epoch stamped into every batch header: equals the shard epoch, raised by one at each start.
    LeaderEpoch(i32), ""
}
number! {
    /// The epoch of a transaction coordinator, stamped into markers: equals the shard epoch.
    CoordinatorEpoch(i32), ""
}
number! {
    /// A shard's number; one node with local files has the single shard 0.
    ShardId(u32), "shard "
}
number! {
    /// Raised by one at each start of a shard; leader epoch and coordinator epoch are this number.
    ShardEpoch(u32), ""
}
number! {
    /// A partition's internal name: dense, issued once, never reused, also when its topic is deleted.
    PartitionHandle(u32), "p"
}
number! {
    /// The position of an event in a shard's log, counted in events; the first event is 1, 0 is "nothing yet".
    LogSequence(u64), "#"
}
number! {
    /// The number of a transaction within its transactional id, from 1.
    TransactionNumber(u64), ""
}
number! {
    /// A connection's number, given at accept, from one counter for all listeners; later connections are higher.
    ConnectionNumber(u64), "c"
}

number! {
    /// Names one request of one connection until it is answered; issued by the server's front.
    RequestToken(u64), "r"
}

impl ProducerId {
    /// From the wire, where a negative number means "none".
    #[must_use]
    pub const fn from_wire(raw: i64) -> Option<Self> {
        if raw < 0 { None } else { Some(Self(raw)) }
    }
}

impl ProducerEpoch {
    /// The first epoch of every producer id.
    pub const ZERO: Self = Self(0);

    /// From the wire, where a negative number means "none".
    #[must_use]
    pub const fn from_wire(raw: i16) -> Option<Self> {
        if raw < 0 { None } else { Some(Self(raw)) }
    }

    /// True at or past the last usable epoch: the next bump takes a new producer id.
    #[must_use]
    pub const fn is_exhausted(self) -> bool {
        self.0 >= MAX_USABLE_EPOCH
    }

    /// The bumped epoch, or `None` when only a new producer id can follow.
    #[must_use]
    pub const fn bumped(self) -> Option<Self> {
        if self.is_exhausted() { None } else { Some(Self(self.0 + 1)) }
    }
}

impl Offset {
    /// The offset before the first record of a new partition.
    pub const ZERO: Self = Self(0);

    /// This offset moved forward by a number of records.
    #[must_use]
    pub const fn plus(self, records: u32) -> Self {
        Self(self.0.saturating_add(records as i64))
    }

    /// Records between an earlier offset and this one; zero if `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        if self.0 > earlier.0 { self.0.abs_diff(earlier.0) } else { 0 }
    }
}

impl From<ShardEpoch> for LeaderEpoch {
    fn from(epoch: ShardEpoch) -> Self {
        Self::new(i32::try_from(epoch.get()).unwrap_or(i32::MAX))
    }
}

impl From<ShardEpoch> for CoordinatorEpoch {
    fn from(epoch: ShardEpoch) -> Self {
        Self::new(i32::try_from(epoch.get()).unwrap_or(i32::MAX))
    }
}

/// A topic's unique id (KIP-516): 16 bytes, random, all zero never used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct TopicId([u8; 16]);

impl TopicId {
    /// The wire's "no id".
    pub const ZERO: Self = Self([0; 16]);

    /// Wraps 16 bytes.
    #[must_use]
    pub const fn new(raw: [u8; 16]) -> Self {
        Self(raw)
    }

    /// The 16 bytes, as on the wire.
    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }

    /// True for the wire's "no id".
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == [0; 16]
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A data directory's unique id, random when it is made: what clients see as the cluster's id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct ClusterId([u8; 16]);

impl ClusterId {
    /// Wraps 16 bytes.
    #[must_use]
    pub const fn new(raw: [u8; 16]) -> Self {
        Self(raw)
    }

    /// The 16 bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

/// As Kafka shows its own: 22 characters of URL-safe base64.
impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let bits = u128::from_be_bytes(self.0);
        (0..22).try_for_each(|place| {
            let shifted = if place < 21 { bits >> (122 - 6 * place) } else { bits << 4 };
            write!(f, "{}", char::from(ALPHABET[(shifted & 63) as usize]))
        })
    }
}

/// Who writes: producer id and epoch, always together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProducerStamp {
    /// The producer id.
    pub id: ProducerId,
    /// Its epoch.
    pub epoch: ProducerEpoch,
}

impl fmt::Display for ProducerStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "producer {} epoch {}", self.id, self.epoch)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_cluster_id_is_shown_as_base64() {
        let ascending = ClusterId::new(core::array::from_fn(|index| index as u8));
        assert_eq!(ascending.to_string(), "AAECAwQFBgcICQoLDA0ODw");
        assert_eq!(ClusterId::new([255; 16]).to_string(), "_____________________w");
    }
}
