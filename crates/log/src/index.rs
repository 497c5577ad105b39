//! The written form of index entries: in a group's directory, in a snapshot.
//!
//! Purpose: extents and aborted transactions as bytes, small because each entry is written as its distance from the
//! one before. Invariants: what is encoded decodes to the same entries, given the same origin; damaged bytes are an
//! error, never a panic and never an allocation beyond a small multiple of the bytes present. What it does not do:
//! checksums (its container has one), order (entries keep the order given).

use semel_events::{AbortedTransaction, Decode, DecodeError, Encode, Reader, codec::put_unsigned};
use semel_types::PartitionHandle;

use crate::extents::{Extent, FileNumber, LogPosition};

/// Entries of the index of one group, of one file, or of all files without a side file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexEntries {
    /// Extents; those of one partition in ascending order.
    pub extents: Vec<Extent>,
    /// Aborted transactions; those of one partition in the order of their markers.
    pub aborted: Vec<(PartitionHandle, AbortedTransaction)>,
    /// Entries of files up to this one are left out: they stand in synced side files.
    pub covered_through: FileNumber,
}

impl IndexEntries {
    /// True if there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty() && self.aborted.is_empty()
    }

    /// Appends the written form. Places are written relative to `origin`: a group that names its own place can be
    /// encoded before it is known where it will lie.
    pub fn encode(&self, origin: LogPosition, out: &mut Vec<u8>) {
        put_unsigned(self.extents.len() as u64, out);
        let mut last = Last::new(origin);
        self.extents.iter().for_each(|extent| last.encode(extent, out));
        put_unsigned(self.aborted.len() as u64, out);
        for (partition, aborted) in &self.aborted {
            partition.encode(out);
            aborted.encode(out);
        }
        self.covered_through.encode(out);
    }

    /// Reads the written form, with the same `origin`.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode(reader: &mut Reader<'_>, origin: LogPosition) -> Result<Self, DecodeError> {
        let length = reader.length()?;
        let mut extents = Vec::with_capacity(length.min(1024));
        let mut last = Last::new(origin);
        for _ in 0..length {
            extents.push(last.decode(reader)?);
        }
        let length = reader.length()?;
        let mut aborted = Vec::with_capacity(length.min(1024));
        for _ in 0..length {
            aborted.push((Decode::decode(reader)?, Decode::decode(reader)?));
        }
        Ok(Self { extents, aborted, covered_through: Decode::decode(reader)? })
    }
}

/// What the next extent is measured from.
struct Last {
    partition: i64,
    file: i64,
    position: i64,
    timestamp: i64,
}

impl Last {
    fn new(origin: LogPosition) -> Self {
        Self { partition: 0, file: origin.file.get() as i64, position: origin.position as i64, timestamp: 0 }
    }

    fn encode(&mut self, extent: &Extent, out: &mut Vec<u8>) {
        difference(&mut self.partition, i64::from(extent.partition.get()), out);
        difference(&mut self.file, extent.file.get() as i64, out);
        difference(&mut self.position, extent.position as i64, out);
        difference(&mut self.timestamp, extent.max_timestamp, out);
        extent.base_offset.encode(out);
        extent.count.encode(out);
        extent.length.encode(out);
        self.position = self.position.wrapping_add(i64::from(extent.length));
    }

    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<Extent, DecodeError> {
        let partition = sum_u32(&mut self.partition, reader)?;
        let file = sum(&mut self.file, reader)? as u64;
        let position = sum(&mut self.position, reader)? as u64;
        let max_timestamp = sum(&mut self.timestamp, reader)?;
        let base_offset = Decode::decode(reader)?;
        let (count, length) = (u32::decode(reader)?, u32::decode(reader)?);
        self.position = self.position.wrapping_add(i64::from(length));
        Ok(Extent {
            partition: PartitionHandle::new(partition),
            base_offset,
            count,
            file: FileNumber::new(file),
            position,
            length,
            max_timestamp,
        })
    }
}

/// Writes how far `now` is from `last`, which becomes `now`. Wraps, so that any two values have a distance.
fn difference(last: &mut i64, now: i64, out: &mut Vec<u8>) {
    now.wrapping_sub(*last).encode(out);
    *last = now;
}

fn sum(last: &mut i64, reader: &mut Reader<'_>) -> Result<i64, DecodeError> {
    *last = last.wrapping_add(i64::decode(reader)?);
    Ok(*last)
}

fn sum_u32(last: &mut i64, reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let position = reader.position();
    u32::try_from(sum(last, reader)?).map_err(|_| DecodeError::Number { position })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use semel_types::{Offset, ProducerId};

    use super::*;

    fn extent() -> impl Strategy<Value = Extent> {
        (any::<u32>(), any::<i64>(), any::<u32>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<i64>())
            .prop_map(|(partition, base, count, file, position, length, max_timestamp)| Extent {
                partition: PartitionHandle::new(partition),
                base_offset: Offset::new(base),
                count,
                file: FileNumber::new(file),
                position,
                length,
                max_timestamp,
            })
    }

    fn aborted() -> impl Strategy<Value = (PartitionHandle, AbortedTransaction)> {
        (any::<u32>(), any::<[i64; 4]>()).prop_map(|(partition, [producer, first, last, stable])| {
            let aborted = AbortedTransaction {
                producer: ProducerId::new(producer),
                first_offset: Offset::new(first),
                last_offset: Offset::new(last),
                last_stable_offset: Offset::new(stable),
            };
            (PartitionHandle::new(partition), aborted)
        })
    }

    fn entries() -> impl Strategy<Value = IndexEntries> {
        (prop::collection::vec(extent(), 0..20), prop::collection::vec(aborted(), 0..10), any::<u64>())
            .prop_map(|(extents, aborted, covered)| IndexEntries {
                extents,
                aborted,
                covered_through: FileNumber::new(covered),
            })
    }

    proptest! {
        #[test]
        fn entries_come_back_as_they_were_written(entries in entries(), file: u64, position: u64) {
            let origin = LogPosition { file: FileNumber::new(file), position };
            let mut bytes = Vec::new();
            entries.encode(origin, &mut bytes);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(IndexEntries::decode(&mut reader, origin), Ok(entries));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn cut_entries_are_an_error(entries in entries(), cut in 0.0..1.0) {
            let mut bytes = Vec::new();
            entries.encode(LogPosition::default(), &mut bytes);
            let kept = (bytes.len() as f64 * cut) as usize;
            prop_assert!(IndexEntries::decode(&mut Reader::new(&bytes[..kept]), LogPosition::default()).is_err());
        }

        #[test]
        fn any_bytes_decode_without_panic(bytes: Vec<u8>) {
            let _ = IndexEntries::decode(&mut Reader::new(&bytes), LogPosition::default());
        }
    }

    #[test]
    fn entries_of_a_group_do_not_depend_on_where_the_group_lies() {
        let at = |file, position| IndexEntries {
            extents: vec![Extent {
                partition: PartitionHandle::new(3),
                base_offset: Offset::new(7),
                count: 2,
                file: FileNumber::new(file),
                position: position + 512,
                length: 100,
                max_timestamp: 5,
            }],
            ..IndexEntries::default()
        };
        let written = |file, position| {
            let mut bytes = Vec::new();
            at(file, position).encode(LogPosition { file: FileNumber::new(file), position }, &mut bytes);
            bytes
        };
        assert_eq!(written(1, 4096), written(9, 1 << 30));
    }
}
