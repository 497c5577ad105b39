//! Compressed batches without a compressor: every format has a form in which bytes stand as they are.
//!
//! A broker has to unpack them like any other. What it does not do: make anything smaller.

use bytes::Bytes;
use semel_wire::batch::Batch;

/// How records are packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// gzip (RFC 1952) with one stored block.
    Gzip,
    /// Snappy with one literal.
    Snappy,
    /// An LZ4 frame with one uncompressed block.
    Lz4,
    /// A Zstandard frame with one raw block.
    Zstd,
}

impl Codec {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// Its number in a batch's attributes.
    const fn number(self) -> u8 {
        match self {
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// Packs at most 255 bytes.
    fn pack(self, plain: &[u8]) -> Vec<u8> {
        let size = u8::try_from(plain.len()).expect("a few records of a few bytes");
        let length = u32::from(size);
        match self {
            Self::Gzip => [
                &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1, size, 0, !size, 0xff],
                plain,
                &crc32(plain).to_le_bytes(),
                &length.to_le_bytes(),
            ]
            .concat(),
            // The length as a varint of two bytes, a literal with one byte of length.
            Self::Snappy => [&[size | 0x80, size >> 7, 60 << 2, size - 1], plain].concat(),
            Self::Lz4 => [
                &[0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82],
                &(length | 0x8000_0000).to_le_bytes()[..],
                plain,
                &[0, 0, 0, 0],
            ]
            .concat(),
            // One segment, its size in one byte; the last block, raw.
            Self::Zstd => {
                let block = (length << 3 | 1).to_le_bytes();
                [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, size], &block[..3], plain].concat()
            }
        }
    }
}

/// Start of what a batch's checksum covers.
const CRC_START: usize = 21;
/// Bytes of a batch before its records.
const HEADER_BYTES: usize = 61;

/// The same batch with its records packed.
///
/// # Panics
/// If its records take more than 255 bytes.
#[must_use]
pub fn packed(batch: &Batch, codec: Codec) -> Batch {
    let payload = codec.pack(&batch.bytes()[HEADER_BYTES..]);
    let mut bytes = [&batch.bytes()[..HEADER_BYTES], &payload].concat();
    bytes[22] |= codec.number();
    sealed(bytes)
}

/// A batch whose length and checksum are made right after its bytes were changed.
///
/// # Panics
/// If they are no batch in the first place.
#[must_use]
pub fn sealed(mut bytes: Vec<u8>) -> Batch {
    let length = i32::try_from(bytes.len() - 12).expect("a small batch");
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    let crc = semel_wire::crc::crc32c(&bytes[CRC_START..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    Batch::parse(Bytes::from(bytes)).expect("a batch")
}

/// CRC-32 as gzip has it, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_of_gzip() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
