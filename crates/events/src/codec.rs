//! How fields are written: numbers as variable-length integers (signed ones zigzag), strings and lists with their
//! length in front, options with a byte in front. Snapshots use the same forms.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::fmt;

use semel_types::{
    ClusterId, ConnectionNumber, CoordinatorEpoch, DurationMs, GroupId, LeaderEpoch, LogSequence, Now,
    Offset, PartitionHandle, PartitionIndex, PayloadChecksum, ProducerEpoch, ProducerId, ProducerStamp,
    Sequence, ShardEpoch, ShardId, TopicId, TopicName, TransactionNumber, TransactionalId, WallTime,
};

/// What is wrong with written bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The bytes end inside a field, at this position.
    Truncated {
        /// Bytes from the start of the section.
        position: usize,
    },
    /// A variable-length number does not fit its type.
    Number {
        /// Bytes from the start of the section.
        position: usize,
    },
    /// A text is not UTF-8.
    Text {
        /// Bytes from the start of the section.
        position: usize,
    },
    /// A byte that names no variant of a choice.
    Choice {
        /// Name of the choice.
        of: &'static str,
        /// The byte found.
        found: u8,
    },
    /// An event number that this build does not know.
    UnknownEvent {
        /// The number found.
        number: u8,
    },
    /// An event in a version that this build does not know.
    NewerEvent {
        /// Name of the event.
        event: &'static str,
        /// The version found.
        version: u8,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { position } => write!(f, "the bytes end inside a field at {position}"),
            Self::Number { position } => write!(f, "a number at {position} does not fit its type"),
            Self::Text { position } => write!(f, "a text at {position} is not UTF-8"),
            Self::Choice { of, found } => write!(f, "{found} is no {of}"),
            Self::UnknownEvent { number } => {
                write!(f, "event {number} is unknown to this version of Semel; a newer one wrote it")
            }
            Self::NewerEvent { event, version } => {
                write!(f, "event {event} has version {version}; a newer Semel wrote it")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

/// Walks written bytes.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Bytes read so far.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Bytes left.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// True at the end.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// One byte.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] at the end.
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if fewer are left.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let error = DecodeError::Truncated { position: self.position };
        let end = self.position.checked_add(count).ok_or(error)?;
        let taken = self.bytes.get(self.position..end).ok_or(error)?;
        self.position = end;
        Ok(taken)
    }

    /// A variable-length unsigned number.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] or [`DecodeError::Number`].
    pub fn unsigned(&mut self) -> Result<u64, DecodeError> {
        let position = self.position;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Number { position })
    }

    /// A length, never more than the bytes left: each element takes at least one.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if it claims more.
    pub fn length(&mut self) -> Result<usize, DecodeError> {
        let position = self.position;
        let length = usize::try_from(self.unsigned()?).map_err(|_| DecodeError::Number { position })?;
        if length > self.remaining() { Err(DecodeError::Truncated { position }) } else { Ok(length) }
    }
}

/// Appends a variable-length unsigned number.
pub fn put_unsigned(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Something with a written form.
pub trait Encode {
    /// Appends the written form.
    fn encode(&self, out: &mut Vec<u8>);
}

/// Something that can be read back.
pub trait Decode: Sized {
    /// Reads the written form.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with the bytes.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

macro_rules! unsigned {
    ($($type:ty),*) => {$(
        impl Encode for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                put_unsigned(u64::from(*self), out);
            }
        }

        impl Decode for $type {
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let position = reader.position();
                Self::try_from(reader.unsigned()?).map_err(|_| DecodeError::Number { position })
            }
        }
    )*};
}

macro_rules! signed {
    ($($type:ty),*) => {$(
        impl Encode for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                let value = i64::from(*self);
                put_unsigned(((value << 1) ^ (value >> 63)) as u64, out);
            }
        }

        impl Decode for $type {
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let position = reader.position();
                let raw = reader.unsigned()?;
                let value = (raw >> 1) as i64 ^ -((raw & 1) as i64);
                Self::try_from(value).map_err(|_| DecodeError::Number { position })
            }
        }
    )*};
}

macro_rules! newtype {
    ($($type:ident: $inner:ty, $wrap:path, $get:ident;)*) => {$(
        impl Encode for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                Encode::encode(&self.$get(), out);
            }
        }

        impl Decode for $type {
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                <$inner>::decode(reader).map($wrap)
            }
        }
    )*};
}

macro_rules! text {
    ($($type:ident),*) => {$(
        impl Encode for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                self.as_str().encode(out);
            }
        }

        impl Decode for $type {
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                read_text(reader).map(Self::from)
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64);
signed!(i16, i32, i64);
text!(String, TransactionalId, GroupId, TopicName);
newtype! {
    ProducerId: i64, ProducerId::new, get;
    ProducerEpoch: i16, ProducerEpoch::new, get;
    Offset: i64, Offset::new, get;
    PartitionIndex: i32, PartitionIndex::new, get;
    LeaderEpoch: i32, LeaderEpoch::new, get;
    CoordinatorEpoch: i32, CoordinatorEpoch::new, get;
    ShardId: u32, ShardId::new, get;
    ShardEpoch: u32, ShardEpoch::new, get;
    PartitionHandle: u32, PartitionHandle::new, get;
    LogSequence: u64, LogSequence::new, get;
    TransactionNumber: u64, TransactionNumber::new, get;
    ConnectionNumber: u64, ConnectionNumber::new, get;
    Now: i64, Now::from_ms, as_ms;
    WallTime: i64, WallTime::from_ms, as_ms;
    DurationMs: i64, DurationMs::from_ms, as_ms;
}

/// Reads a text without copying it.
fn read_text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let position = reader.position();
    let length = reader.length()?;
    core::str::from_utf8(reader.take(length)?).map_err(|_| DecodeError::Text { position })
}

impl Encode for str {
    fn encode(&self, out: &mut Vec<u8>) {
        put_unsigned(self.len() as u64, out);
        out.extend_from_slice(self.as_bytes());
    }
}

impl Encode for Arc<str> {
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
}

impl Decode for Arc<str> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        read_text(reader).map(Self::from)
    }
}

impl Encode for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl Decode for bool {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(DecodeError::Choice { of: "bool", found }),
        }
    }
}

impl Encode for PayloadChecksum {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }
}

impl Decode for PayloadChecksum {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut raw = [0; 4];
        raw.copy_from_slice(reader.take(4)?);
        Ok(Self(u32::from_le_bytes(raw)))
    }
}

macro_rules! sixteen_bytes {
    ($($type:ident),*) => {$(
        impl Encode for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.bytes());
            }
        }

        impl Decode for $type {
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let mut raw = [0; 16];
                raw.copy_from_slice(reader.take(16)?);
                Ok(Self::new(raw))
            }
        }
    )*};
}

sixteen_bytes!(TopicId, ClusterId);

impl Encode for Sequence {
    fn encode(&self, out: &mut Vec<u8>) {
        put_unsigned(self.get().unsigned_abs().into(), out);
    }
}

impl Decode for Sequence {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let position = reader.position();
        let raw = i32::try_from(reader.unsigned()?).map_err(|_| DecodeError::Number { position })?;
        Self::from_wire(raw).ok_or(DecodeError::Number { position })
    }
}

impl Encode for ProducerStamp {
    fn encode(&self, out: &mut Vec<u8>) {
        self.id.encode(out);
        self.epoch.encode(out);
    }
}

impl Decode for ProducerStamp {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { id: Decode::decode(reader)?, epoch: Decode::decode(reader)? })
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if bool::decode(reader)? { T::decode(reader).map(Some) } else { Ok(None) }
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_unsigned(self.len() as u64, out);
        self.iter().for_each(|item| item.encode(out));
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = reader.length()?;
        let mut items = Self::with_capacity(length.min(1024));
        for _ in 0..length {
            items.push(T::decode(reader)?);
        }
        Ok(items)
    }
}
