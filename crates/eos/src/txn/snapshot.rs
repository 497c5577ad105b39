//! The coordinator's section of a snapshot. The indexes are not written: they follow from the entries.

use alloc::vec::Vec;

use semel_events::{Decode, DecodeError, Encode, EndCause, Outcome, Reader, codec::put_unsigned};

use super::{
    Coordinator, Fence, FenceCause, MadeBy, OpenTransaction, Phase, Remembered, TransactionalIdEntry,
};

/// Version of this section.
const VERSION: u8 = 1;

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
        self.fences.iter().for_each(|fence| fence.encode(out));
    }

    /// Reads the snapshot form.
    ///
    /// # Errors
    /// [`DecodeError`]: the bytes are damaged, or of another version.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.byte()? {
            VERSION => {}
            found => return Err(DecodeError::Choice { of: "version of the coordinator's state", found }),
        }
        let mut coordinator = Self::default();
        for _ in 0..reader.length()? {
            let id = Decode::decode(reader)?;
            coordinator.put(id, Decode::decode(reader)?);
        }
        for _ in 0..reader.length()? {
            coordinator.fences.push(Decode::decode(reader)?);
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
    }
}

impl Decode for TransactionalIdEntry {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            identity: Decode::decode(reader)?,
            timeout: Decode::decode(reader)?,
            phase: Decode::decode(reader)?,
            last_number: Decode::decode(reader)?,
            remembered: Decode::decode(reader)?,
            updated: Decode::decode(reader)?,
        })
    }
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
        self.author.encode(out);
        self.aborted.encode(out);
        self.wall.encode(out);
    }
}

impl Decode for Fence {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: Decode::decode(reader)?,
            cause: Decode::decode(reader)?,
            victim: Decode::decode(reader)?,
            successor: Decode::decode(reader)?,
            author: Decode::decode(reader)?,
            aborted: Decode::decode(reader)?,
            wall: Decode::decode(reader)?,
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
