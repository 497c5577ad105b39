//! Record bytes of a Fetch answer.

use alloc::vec::Vec;
use core::slice;

use bytes::Bytes;

/// Batches of one partition in a Fetch answer: one slice as read from a frame, or several that come from different
/// places of the log. Equal if their bytes are, however they are cut.
#[derive(Clone, Debug)]
pub enum Records {
    /// One slice.
    One(Bytes),
    /// Several slices that follow each other.
    Many(Vec<Bytes>),
}

impl Records {
    /// The slices in order.
    #[must_use]
    pub fn slices(&self) -> &[Bytes] {
        match self {
            Self::One(slice) => slice::from_ref(slice),
            Self::Many(slices) => slices,
        }
    }

    /// Bytes in all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slices().iter().map(Bytes::len).sum()
    }

    /// True without any byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes as one slice; copies only if there are several.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::One(slice) => slice.clone(),
            Self::Many(slices) => Bytes::from(slices.concat()),
        }
    }
}

impl From<Bytes> for Records {
    fn from(slice: Bytes) -> Self {
        Self::One(slice)
    }
}

impl From<Vec<Bytes>> for Records {
    fn from(slices: Vec<Bytes>) -> Self {
        Self::Many(slices)
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.to_bytes() == other.to_bytes()
    }
}

impl Eq for Records {}
