//! Room: bytes left in the current and the prepared file minus what is promised; never what the file system says.
//!
//! Invariants: what was told `Enough` fits, however it is cut into groups (a promise is the worst case of each
//! decision being a group of its own; what does not fit the current file as a whole is counted against the prepared
//! one alone); the last bytes of a file are not given to records. What it does not do: touch the disk; the node asks
//! without waiting.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::{Room, RoomClass, disk::BLOCK, format::group::HEADER};

/// Index entries of a Produce take at most as many bytes as its batches: a batch has at least 61, an entry 56.
const PRODUCE_FACTOR: u64 = 2;
/// An abort also has an entry for each aborted transaction.
const OTHER_FACTOR: u64 = 3;

/// How much of the reserve a start got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReserveTaken {
    /// Bytes that were asked for.
    pub wanted_bytes: u64,
    /// Bytes that the disk gave; 0 if it gave none.
    pub got_bytes: u64,
}

/// What the node may know of the files, kept up by the threads that change them.
#[derive(Debug, Default)]
pub struct RoomBook {
    /// Bytes left in the current file.
    pub current: AtomicU64,
    /// The current file was made of the reserve.
    pub current_is_reserve: AtomicBool,
    /// Bytes of the prepared file that groups may take, 0 if there is none.
    pub prepared: AtomicU64,
    /// The prepared file was made of the reserve.
    pub prepared_is_reserve: AtomicBool,
    /// Bytes of the reserve, 0 if it is used up.
    pub reserve: AtomicU64,
    /// Length of the reserve's file as it is wanted and as it was when it was first taken, if it was.
    pub reserve_taken: OnceLock<ReserveTaken>,
    /// Bytes at the end of each file that records do not get, and of which the reserve class gets half.
    pub kept: AtomicU64,
    /// The disk refused to give more at the last attempt.
    pub full: AtomicBool,
    /// Bytes submitted and not yet written, as promised.
    pub promised: AtomicU64,
    /// The prepared file should have at least this many bytes for groups.
    pub wanted: AtomicU64,
    /// Somebody was told to wait.
    pub asked: AtomicBool,
}

/// Worst case of a command on the disk.
pub fn worst_case(bytes: u64, class: RoomClass) -> u64 {
    let factor = match class {
        RoomClass::Produce => PRODUCE_FACTOR,
        RoomClass::Identity | RoomClass::Reserve => OTHER_FACTOR,
    };
    (bytes.saturating_mul(factor)).saturating_add(HEADER as u64).next_multiple_of(BLOCK as u64)
}

impl RoomBook {
    /// May a command of at most `bytes` be decided?
    pub fn ask(&self, bytes: u64, class: RoomClass) -> Room {
        let kept = self.kept.load(Ordering::Acquire);
        let spared = if class == RoomClass::Reserve { kept / 2 } else { kept };
        let need = worst_case(bytes, class).saturating_add(spared);
        let all = need.saturating_add(self.promised.load(Ordering::Acquire));
        let full = self.full.load(Ordering::Acquire);
        let may_use = |is_reserve: &AtomicBool| {
            class == RoomClass::Reserve || !(full && is_reserve.load(Ordering::Acquire))
        };
        let current = may_use(&self.current_is_reserve) && all <= self.current.load(Ordering::Acquire);
        let prepared = may_use(&self.prepared_is_reserve) && all <= self.prepared.load(Ordering::Acquire);
        let reserve = class == RoomClass::Reserve && all <= self.reserve.load(Ordering::Acquire);
        if current || prepared || reserve {
            return Room::Enough;
        }
        self.wanted.fetch_max(need, Ordering::AcqRel);
        self.asked.store(true, Ordering::Release);
        if full { Room::Full } else { Room::Wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(current: u64, prepared: u64, reserve: u64) -> RoomBook {
        let book = RoomBook::default();
        book.current.store(current, Ordering::Release);
        book.prepared.store(prepared, Ordering::Release);
        book.reserve.store(reserve, Ordering::Release);
        book
    }

    #[test]
    fn while_a_file_is_being_prepared_requests_wait_and_only_a_refused_allocation_is_full() {
        let book = book(8192, 0, 0);
        assert_eq!(book.ask(100, RoomClass::Produce), Room::Enough);
        assert_eq!(book.ask(10_000, RoomClass::Produce), Room::Wait);
        assert!(book.wanted.load(Ordering::Acquire) >= 20_000, "the next file is made large enough");
        book.full.store(true, Ordering::Release);
        assert_eq!(book.ask(10_000, RoomClass::Produce), Room::Full);
        assert_eq!(book.ask(100, RoomClass::Produce), Room::Enough, "what is left may be used");
    }

    #[test]
    fn what_is_promised_and_not_yet_written_is_not_promised_twice() {
        let book = book(8192, 0, 0);
        book.promised.store(8192, Ordering::Release);
        assert_eq!(book.ask(1, RoomClass::Produce), Room::Wait);
    }

    #[test]
    fn records_leave_the_end_of_a_file_and_the_reserve_class_half_of_that() {
        for (current, prepared) in [(40_960, 0), (0, 40_960)] {
            let book = book(current, prepared, 0);
            book.kept.store(32_768, Ordering::Release);
            assert_eq!(book.ask(100, RoomClass::Produce), Room::Enough);
            book.promised.store(8_192, Ordering::Release);
            assert_eq!(book.ask(100, RoomClass::Produce), Room::Wait);
            assert_eq!(book.ask(100, RoomClass::Identity), Room::Wait);
            assert_eq!(book.ask(100, RoomClass::Reserve), Room::Enough);
            book.promised.store(24_576, Ordering::Release);
            assert_eq!(book.ask(100, RoomClass::Reserve), Room::Wait, "the rest is for starts");
        }
    }

    #[test]
    fn only_the_reserve_class_may_use_the_reserve() {
        let book = book(0, 0, 1 << 20);
        book.full.store(true, Ordering::Release);
        assert_eq!(book.ask(100, RoomClass::Produce), Room::Full);
        assert_eq!(book.ask(100, RoomClass::Identity), Room::Full);
        assert_eq!(book.ask(100, RoomClass::Reserve), Room::Enough);
        assert_eq!(book.ask(1 << 20, RoomClass::Reserve), Room::Full, "used up");
    }

    #[test]
    fn a_file_made_of_the_reserve_is_not_given_to_records_while_the_disk_is_full() {
        let book = book(1 << 20, 0, 0);
        book.current_is_reserve.store(true, Ordering::Release);
        book.full.store(true, Ordering::Release);
        assert_eq!(book.ask(100, RoomClass::Produce), Room::Full);
        assert_eq!(book.ask(100, RoomClass::Reserve), Room::Enough);
        book.full.store(false, Ordering::Release);
        assert_eq!(book.ask(100, RoomClass::Produce), Room::Enough);
    }
}
