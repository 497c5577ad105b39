//! CRC32C, and the CRC of a part derived from that of the whole.
//!
//! With `CRC(A ‖ B) = shift(CRC(A), |B|) xor CRC(B)`, the checksum of a batch's payload follows from the batch's own
//! CRC (verified on arrival anyway) and the few header bytes, without a second pass over the payload.

/// Castagnoli's polynomial, reflected: bit 31 is the coefficient of x^0.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// x^0 in the reflected form.
const ONE: u32 = 1 << 31;

/// `POWERS[k]` is x^(8 * 2^k) modulo the polynomial: the shift by 2^k bytes.
const POWERS: [u32; 64] = powers();

const fn powers() -> [u32; 64] {
    let mut table = [ONE >> 8; 64];
    let mut k = 1;
    while k < table.len() {
        table[k] = multiply(table[k - 1], table[k - 1]);
        k += 1;
    }
    table
}

/// The product of two polynomials modulo Castagnoli's.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = ONE;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = (b >> 1) ^ (POLYNOMIAL & (b & 1).wrapping_neg());
        bit >>= 1;
    }
    product
}

/// CRC32C of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The part of `CRC(A ‖ B)` that stems from A, given `CRC(A)` and the length of B in bytes.
#[must_use]
pub const fn shift(crc: u32, length: usize) -> u32 {
    let mut shifted = crc;
    let mut rest = length;
    let mut k = 0;
    while rest != 0 {
        if rest & 1 != 0 {
            shifted = multiply(POWERS[k], shifted);
        }
        rest >>= 1;
        k += 1;
    }
    shifted
}

/// `CRC(B)` from `CRC(A ‖ B)`, `CRC(A)` and the length of B in bytes.
#[must_use]
pub const fn crc32c_of_rest(whole: u32, front: u32, rest_length: usize) -> u32 {
    whole ^ shift(front, rest_length)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn crc32c_of_the_check_string_is_the_published_one() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn the_crc_of_the_rest_equals_direct_computation_for_many_lengths() {
        let bytes: Vec<u8> = (0..70_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let lengths = (0..600).chain([1023, 1024, 1025, 4096, 65_535, 65_536, 69_000]);
        for length in lengths {
            for front in [0, 1, 40, 61] {
                let (a, b) = bytes[..front + length].split_at(front);
                let derived = crc32c_of_rest(crc32c(&bytes[..front + length]), crc32c(a), length);
                assert_eq!(derived, crc32c(b), "front {front}, length {length}");
            }
        }
    }

    #[test]
    fn shifting_twice_is_shifting_by_the_sum() {
        for (a, b) in [(3, 5), (1 << 20, 77), (1 << 31, 1 << 31)] {
            assert_eq!(shift(shift(0x1234_5678, a), b), shift(0x1234_5678, a + b));
        }
    }
}
