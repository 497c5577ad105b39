//! The coordinator's section of a snapshot. The indexes are not written: they follow from the entries.

use alloc::{string::String, sync::Arc, vec::Vec};

use semel_events::{Author, Decode, DecodeError, Encode, EndCause, Outcome, Reader, codec::put_unsigned};
use semel_types::{DurationMs, TransactionNumber, WallTime};

use super::{
    Aborted, Coordinator, Fence, FenceCause, MadeBy, OpenTransaction, Phase, Remembered,
    TransactionalIdEntry, Written,
};

/// Version of this section: with owners, and fences numbered, with age and partitions of what was aborted.
const VERSION: u8 = 2;

/// The first version, still read.
const FIRST: u8 = 1;

impl Coordinator {
    /// Appends the snapshot form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        put_unsigned(self.len() as u64, out);
        for (id, entry) in self.iter() {
            id.encode(out);
            entry.encode(out);
        }
        put_unsigned(self.fences.len() as u64, out);
        for (number, fence) in self.fences.after(0) {
            put_unsigned(number, out);
            fence.encode(out);
        }
    }

    /// Reads the snapshot form.
    ///
    /// # Errors
    /// [`DecodeError`]: the bytes are damaged, or of another version.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let version = match reader.byte()? {
            version @ (FIRST | VERSION) => version,
            found => return Err(DecodeError::Choice { of: "version of the coordinator's state", found }),
        };
        let mut coordinator = Self::default();
        for _ in 0..reader.length()? {
            let id = Decode::decode(reader)?;
            coordinator.put(id, decode_entry(reader, version)?);
        }
        for _ in 0..reader.length()? {
            let number =
                if version == FIRST { coordinator.fences.newest() + 1 } else { reader.unsigned()? };
            coordinator.fences.put(number, decode_fence(reader, version)?);
        }
        Ok(coordinator)
    }
}

impl Encode for TransactionalIdEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        self.identity.encode(out);
        self.timeout.encode(out);
        self.phase.encode(out);
        self.last_number.encode(out);
        self.remembered.encode(out);
        self.updated.encode(out);
        self.owner.encode(out);
        self.owned_since.encode(out);
    }
}

fn decode_entry(reader: &mut Reader<'_>, version: u8) -> Result<TransactionalIdEntry, DecodeError> {
    Ok(TransactionalIdEntry {
        identity: Decode::decode(reader)?,
        timeout: Decode::decode(reader)?,
        phase: Decode::decode(reader)?,
        last_number: Decode::decode(reader)?,
        remembered: Decode::decode(reader)?,
        updated: Decode::decode(reader)?,
        owner: decode_owner(reader, version)?,
        owned_since: if version == FIRST { WallTime::default() } else { Decode::decode(reader)? },
    })
}

/// Who had an identity: not written in the first version.
fn decode_owner(reader: &mut Reader<'_>, version: u8) -> Result<Arc<Author>, DecodeError> {
    if version != FIRST {
        return Ok(Arc::new(Decode::decode(reader)?));
    }
    let unknown = || Arc::from("");
    let author = Author {
        client_id: Arc::from("unknown"),
        software: unknown(),
        address: unknown(),
        api: String::from("InitProducerId"),
    };
    Ok(Arc::new(author))
}

impl Encode for Phase {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Empty => out.push(0),
            Self::Ongoing(open) => {
                out.push(1);
                open.encode(out);
            }
            Self::Complete { outcome, cause } => {
                out.push(2);
                outcome.encode(out);
                cause.encode(out);
            }
        }
    }
}

impl Decode for Phase {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.byte()? {
            0 => Ok(Self::Empty),
            1 => OpenTransaction::decode(reader).map(Self::Ongoing),
            2 => Ok(Self::Complete { outcome: Outcome::decode(reader)?, cause: EndCause::decode(reader)? }),
            found => Err(DecodeError::Choice { of: "Phase", found }),
        }
    }
}

impl Encode for OpenTransaction {
    fn encode(&self, out: &mut Vec<u8>) {
        self.number.encode(out);
        self.started.encode(out);
        self.protocol.encode(out);
        self.partitions.encode(out);
        self.groups.encode(out);
    }
}

impl Decode for OpenTransaction {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            number: Decode::decode(reader)?,
            started: Decode::decode(reader)?,
            protocol: Decode::decode(reader)?,
            partitions: Decode::decode(reader)?,
            groups: Decode::decode(reader)?,
        })
    }
}

impl Encode for Remembered {
    fn encode(&self, out: &mut Vec<u8>) {
        self.stamp.encode(out);
        self.number.encode(out);
        out.push(match self.made_by {
            MadeBy::Recovery => 0,
            MadeBy::EndTxn(Outcome::Abort) => 1,
            MadeBy::EndTxn(Outcome::Commit) => 2,
            MadeBy::Abort => 3,
        });
    }
}

impl Decode for Remembered {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (stamp, number) = (Decode::decode(reader)?, Decode::decode(reader)?);
        let made_by = match reader.byte()? {
            0 => MadeBy::Recovery,
            1 => MadeBy::EndTxn(Outcome::Abort),
            2 => MadeBy::EndTxn(Outcome::Commit),
            3 => MadeBy::Abort,
            found => return Err(DecodeError::Choice { of: "MadeBy", found }),
        };
        Ok(Self { stamp, number, made_by })
    }
}

impl Encode for Fence {
    fn encode(&self, out: &mut Vec<u8>) {
        self.id.encode(out);
        self.cause.encode(out);
        self.victim.encode(out);
        self.successor.encode(out);
        self.owner.encode(out);
        self.author.encode(out);
        self.aborted.encode(out);
        self.wall.encode(out);
    }
}

fn decode_fence(reader: &mut Reader<'_>, version: u8) -> Result<Fence, DecodeError> {
    Ok(Fence {
        id: Decode::decode(reader)?,
        cause: Decode::decode(reader)?,
        victim: Decode::decode(reader)?,
        successor: Decode::decode(reader)?,
        owner: decode_owner(reader, version)?,
        author: Decode::decode(reader)?,
        aborted: decode_aborted(reader, version)?,
        wall: Decode::decode(reader)?,
    })
}

/// The first version has the number alone.
fn decode_aborted(reader: &mut Reader<'_>, version: u8) -> Result<Option<Aborted>, DecodeError> {
    if version != FIRST {
        return Decode::decode(reader);
    }
    let number: Option<TransactionNumber> = Decode::decode(reader)?;
    Ok(number.map(|number| Aborted { number, age: DurationMs::default(), written: Written::default() }))
}

impl Encode for Aborted {
    fn encode(&self, out: &mut Vec<u8>) {
        self.number.encode(out);
        self.age.encode(out);
        self.written.partitions.encode(out);
        put_unsigned(self.written.partition_count.into(), out);
        put_unsigned(self.written.group_count.into(), out);
    }
}

impl Decode for Aborted {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            number: Decode::decode(reader)?,
            age: Decode::decode(reader)?,
            written: Written {
                partitions: Decode::decode(reader)?,
                partition_count: Decode::decode(reader)?,
                group_count: Decode::decode(reader)?,
            },
        })
    }
}

impl Encode for FenceCause {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Takeover => 0,
            Self::Recovery => 1,
            Self::Rotation => 2,
            Self::Timeout => 3,
            Self::Admin => 4,
            Self::UncleanStart => 5,
            Self::Expiry => 6,
        });
    }
}

impl Decode for FenceCause {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.byte()? {
            0 => Ok(Self::Takeover),
            1 => Ok(Self::Recovery),
            2 => Ok(Self::Rotation),
            3 => Ok(Self::Timeout),
            4 => Ok(Self::Admin),
            5 => Ok(Self::UncleanStart),
            6 => Ok(Self::Expiry),
            found => Err(DecodeError::Choice { of: "FenceCause", found }),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use semel_types::{Now, ProducerEpoch, ProducerId, ProducerStamp, TransactionalId};

    use super::*;

    fn stamp(epoch: i16) -> ProducerStamp {
        ProducerStamp { id: ProducerId::new(7), epoch: ProducerEpoch::new(epoch) }
    }

    /// One id with one fence, as the first version wrote them.
    fn first_version() -> Vec<u8> {
        let mut out = vec![FIRST];
        let id = TransactionalId::from("orders");
        put_unsigned(1, &mut out);
        id.encode(&mut out);
        stamp(1).encode(&mut out);
        DurationMs::from_ms(60_000).encode(&mut out);
        Phase::Empty.encode(&mut out);
        TransactionNumber::new(3).encode(&mut out);
        None::<Remembered>.encode(&mut out);
        Now::from_ms(5).encode(&mut out);
        put_unsigned(1, &mut out);
        id.encode(&mut out);
        FenceCause::Timeout.encode(&mut out);
        stamp(0).encode(&mut out);
        Some(stamp(1)).encode(&mut out);
        None::<Author>.encode(&mut out);
        Some(TransactionNumber::new(3)).encode(&mut out);
        WallTime::from_ms(9).encode(&mut out);
        out
    }

    #[test]
    fn the_first_version_is_read_and_written_anew_as_the_present_one() {
        let id = TransactionalId::from("orders");
        let coordinator = Coordinator::decode(&mut Reader::new(&first_version())).expect("it is read");
        let entry = coordinator.get(&id).expect("it is there");
        assert_eq!((entry.identity, &*entry.owner.client_id), (stamp(1), "unknown"));
        let fences: Vec<_> = coordinator.fences.numbered_of(&id).collect();
        assert_eq!(fences.len(), 1);
        assert_eq!((fences[0].0, fences[0].1.wall), (1, WallTime::from_ms(9)));
        assert_eq!(
            fences[0].1.aborted.as_ref().map(|aborted| aborted.number),
            Some(TransactionNumber::new(3))
        );
        let mut anew = Vec::new();
        coordinator.encode(&mut anew);
        assert_eq!(anew.first(), Some(&VERSION));
        assert_eq!(Coordinator::decode(&mut Reader::new(&anew)), Ok(coordinator));
    }
}
