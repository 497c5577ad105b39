//! What a transaction holds: a sorted list that is shared until it grows.
//!
//! Purpose: up to 10,000 partitions in a few bytes each, found by halving, walked in order when the transaction
//! ends. A clone costs one counter; growing copies the list only while a clone lives. What it does not do: shrink.

use alloc::{sync::Arc, vec::Vec};

use semel_events::{Decode, DecodeError, Encode, Reader};

/// A sorted list without doubles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Members<T>(Arc<Vec<T>>);

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Ord + Clone> Members<T> {
    /// True if it is one of them.
    #[must_use]
    pub fn contains(&self, member: &T) -> bool {
        self.0.binary_search(member).is_ok()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them in order.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// Adds some, in any order.
    pub(super) fn extend(&mut self, more: &[T]) {
        match more {
            [] => {}
            [one] => self.insert(one),
            more => {
                let members = Arc::make_mut(&mut self.0);
                members.extend_from_slice(more);
                members.sort();
                members.dedup();
            }
        }
    }

    fn insert(&mut self, one: &T) {
        if let Err(place) = self.0.binary_search(one) {
            Arc::make_mut(&mut self.0).insert(place, one.clone());
        }
    }
}

impl<T: Encode> Encode for Members<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl<T: Decode + Ord + Clone> Decode for Members<T> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut members = Self::default();
        members.extend(&Vec::decode(reader)?);
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stay_sorted_without_doubles_however_they_come() {
        let mut members = Members::default();
        members.extend(&[5, 1, 5, 3]);
        members.extend(&[2]);
        members.extend(&[3]);
        members.extend(&[4, 2, 9]);
        assert_eq!(members.as_slice(), [1, 2, 3, 4, 5, 9]);
        assert!(members.contains(&4) && !members.contains(&6));
    }

    #[test]
    fn a_clone_keeps_what_it_had() {
        let mut members = Members::default();
        members.extend(&[1]);
        let clone = members.clone();
        members.extend(&[2]);
        assert_eq!((clone.as_slice(), members.len()), ([1].as_slice(), 2));
    }
}
