//! The decision table of the design, tried in all combinations of its situations.

use semel_eos::{
    BatchStamp,
    producer::{Entry, Finding, Known, ProducerView, Stub, verdict},
};
use semel_events::{BatchAppended, BatchProducer};
use semel_types::{PayloadChecksum, TransactionNumber};

use crate::shard::{Shard, batch, handle, id, now, sequence};

/// Epoch on file.
const EPOCH: i16 = 3;
/// The transaction that wrote the first five batches, and the one that wrote the last four.
const EARLIER: TransactionNumber = TransactionNumber::new(6);
const LATEST: TransactionNumber = TransactionNumber::new(7);
/// Batches of two records each; their count on file.
const BATCHES: u32 = 9;

/// What is on file.
#[derive(Clone, Copy, PartialEq, Debug)]
enum File {
    Nothing,
    Entry,
    Stub,
}

/// How the batch's epoch stands.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Epoch {
    Older,
    Same,
    Newer,
}

/// How the batch's sequences stand against the nine batches of two records on file.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    /// Exactly the n-th batch from the end, 0 for the last, same payload.
    Batch(i64),
    /// The same with another payload.
    OtherPayload(i64),
    /// The second half of the last batch and nothing else.
    HalfOfLast,
    /// Two remembered batches as one.
    TwoAsOne,
    /// All remembered batches as one.
    AllAsOne,
    /// The sixth from the end, which is stored and no longer remembered.
    OlderThanRemembered,
    /// From the last batch to one beyond it.
    Overlap,
    /// From an old batch to far beyond the last one.
    LongOverlap,
    Next,
    /// The next one and many more.
    NextOfMany,
    /// One missing.
    Gap,
    /// Very many missing.
    FarGap,
    /// Starts at 0, where that is none of the above.
    Zero,
}

const PLACES: [Place; 17] = [
    Place::Batch(0),
    Place::Batch(1),
    Place::Batch(3),
    Place::Batch(4),
    Place::OtherPayload(0),
    Place::OtherPayload(4),
    Place::HalfOfLast,
    Place::TwoAsOne,
    Place::AllAsOne,
    Place::OlderThanRemembered,
    Place::Overlap,
    Place::LongOverlap,
    Place::Next,
    Place::NextOfMany,
    Place::Gap,
    Place::FarGap,
    Place::Zero,
];

impl Place {
    /// First sequence relative to the last one on file, number of records, payload.
    fn shape(self, last: i64) -> (i64, u32, u32) {
        match self {
            Self::Batch(back) => (-1 - 2 * back, 2, 7),
            Self::OtherPayload(back) => (-1 - 2 * back, 2, 8),
            Self::HalfOfLast => (0, 1, 7),
            Self::TwoAsOne => (-5, 4, 7),
            Self::AllAsOne => (-9, 10, 7),
            Self::OlderThanRemembered => (-11, 2, 7),
            Self::Overlap => (-1, 3, 7),
            Self::LongOverlap => (-11, 1000, 7),
            Self::Next => (1, 1, 7),
            Self::NextOfMany => (1, 5000, 7),
            Self::Gap => (2, 1, 7),
            Self::FarGap => (1 << 29, 1, 7),
            Self::Zero => (-last, 1, 7),
        }
    }

    /// Which records on file the batch starts in, counted back from the last one; `None` if it starts beyond it.
    fn starts_back(self, last: i64) -> Option<i64> {
        let (first, ..) = self.shape(last);
        (first <= 0).then_some(-first)
    }
}

/// Who writes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Writer {
    Plain,
    /// A transactional batch; which transaction is open.
    Transactional(Option<TransactionNumber>),
}

const WRITERS: [Writer; 5] = [
    Writer::Plain,
    Writer::Transactional(None),
    Writer::Transactional(Some(EARLIER)),
    Writer::Transactional(Some(LATEST)),
    Writer::Transactional(Some(TransactionNumber::new(8))),
];

/// What is volatile or of the partition.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Flags {
    may_have_forgotten: bool,
    may_have_lost_writes: bool,
    refused_for_room: bool,
}

/// The rows of the table by name.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Row {
    Accepted,
    OutOfOrder45,
    Forgotten59,
    Fenced47,
    Stray45,
    Duplicate0(i64),
    OtherPayload46,
    AlreadyStored46,
}

/// The table, row by row, in words of the situations.
fn expected(file: File, epoch: Epoch, place: Place, last: i64, writer: Writer, flags: Flags) -> Row {
    let is_zero = place.shape(last).0 == -last;
    let missing = |may_be_gone: bool| {
        if may_be_gone && !flags.refused_for_room { Row::Forgotten59 } else { Row::OutOfOrder45 }
    };
    match (file, epoch) {
        (File::Nothing, _) if is_zero => Row::Accepted,
        (File::Nothing, _) => missing(flags.may_have_forgotten || flags.may_have_lost_writes),
        (_, Epoch::Older) => Row::Fenced47,
        (_, Epoch::Newer) if is_zero => Row::Accepted,
        (_, Epoch::Newer) => missing(flags.may_have_lost_writes),
        (_, Epoch::Same) => same_epoch(file, place, last, writer, flags),
    }
}

fn same_epoch(file: File, place: Place, last: i64, writer: Writer, flags: Flags) -> Row {
    let Some(back) = place.starts_back(last) else {
        let may_be_gone = flags.may_have_lost_writes && !flags.refused_for_room;
        return match (matches!(place, Place::Next | Place::NextOfMany), may_be_gone) {
            (true, _) => Row::Accepted,
            (false, true) => Row::Forgotten59,
            (false, false) => Row::OutOfOrder45,
        };
    };
    // The latest transaction wrote the last four batches: the last eight records.
    let is_of_open = file == File::Entry && writer == Writer::Transactional(Some(LATEST)) && back < 8;
    if writer != Writer::Plain && !is_of_open {
        return Row::Stray45;
    }
    match (place, file) {
        (Place::Overlap | Place::LongOverlap, _) => Row::OutOfOrder45,
        (Place::Batch(n), File::Entry) => Row::Duplicate0(n),
        (Place::OtherPayload(_), File::Entry) => Row::OtherPayload46,
        _ => Row::AlreadyStored46,
    }
}

fn row(finding: Finding, last_offset: i64) -> Row {
    match finding {
        Finding::Append => Row::Accepted,
        Finding::Retry(stored) => Row::Duplicate0((last_offset - 1 - stored.base_offset.get()) / 2),
        Finding::OtherPayload(_) => Row::OtherPayload46,
        Finding::AlreadyStored { .. } => Row::AlreadyStored46,
        Finding::Stray { .. } => Row::Stray45,
        Finding::Overlap { .. } | Finding::Gap { .. } => Row::OutOfOrder45,
        Finding::Forgotten => Row::Forgotten59,
        Finding::Fenced { .. } => Row::Fenced47,
    }
}

/// What is on file after `before` records and nine batches of two; the last sequence and offset.
struct OnFile {
    entry: Entry,
    stub: Stub,
    last: i64,
    last_offset: i64,
}

fn on_file(before: u32) -> OnFile {
    let mut shard = Shard::new(1);
    shard.check = false;
    let mut first = 0_i64;
    for number in 0..=BATCHES {
        let count = if number == 0 { before } else { 2 };
        let transaction = if number <= 5 { EARLIER } else { LATEST };
        let base_offset = shard.state.partition(handle(0)).expect("exists").next_offset();
        if count > 0 {
            let producer = BatchProducer {
                stamp: batch(id(0), EPOCH, 0, 1).producer,
                first_sequence: sequence(first),
                checksum: PayloadChecksum(7),
                transaction: Some(transaction),
            };
            let event = BatchAppended {
                partition: handle(0),
                base_offset,
                count,
                producer: Some(producer),
                now: now(shard.now),
            };
            shard.apply(event.into());
        }
        first += i64::from(count);
    }
    let entry = shard.state.producers().held(id(0)).0[0];
    shard.wait_for_expiry();
    shard.expire();
    let stub = shard.state.producers().held(id(0)).1[0];
    OnFile { entry, stub, last: i64::from(entry.last().get()), last_offset: first - 1 }
}

fn all_flags() -> impl Iterator<Item = Flags> {
    (0..8).map(|bits| Flags {
        may_have_forgotten: bits & 1 != 0,
        may_have_lost_writes: bits & 2 != 0,
        refused_for_room: bits & 4 != 0,
    })
}

fn view(file: File, on_file: &OnFile, writer: Writer, flags: Flags) -> ProducerView<'_> {
    ProducerView {
        known: match file {
            File::Nothing => Known::Nothing,
            File::Entry => Known::Entry(&on_file.entry),
            File::Stub => Known::Stub(&on_file.stub),
        },
        open: match writer {
            Writer::Plain => None,
            Writer::Transactional(open) => open,
        },
        may_have_forgotten: flags.may_have_forgotten,
        may_have_lost_writes: flags.may_have_lost_writes,
        refused_for_room: flags.refused_for_room,
    }
}

fn stamp_of(epoch: Epoch, place: Place, last: i64, writer: Writer) -> BatchStamp {
    let (first, count, payload) = place.shape(last);
    let epoch = match epoch {
        Epoch::Older => EPOCH - 1,
        Epoch::Same => EPOCH,
        Epoch::Newer => EPOCH + 1,
    };
    BatchStamp {
        checksum: PayloadChecksum(payload),
        transactional: writer != Writer::Plain,
        ..batch(id(0), epoch, last + first, count)
    }
}

/// Tries every combination; how many there were.
fn try_all(on_file: &OnFile) -> u32 {
    let mut tried = 0;
    for file in [File::Nothing, File::Entry, File::Stub] {
        for epoch in [Epoch::Older, Epoch::Same, Epoch::Newer] {
            for place in PLACES {
                for writer in WRITERS {
                    for flags in all_flags() {
                        let stamp = stamp_of(epoch, place, on_file.last, writer);
                        let found = verdict(&view(file, on_file, writer, flags), &stamp);
                        let expected = expected(file, epoch, place, on_file.last, writer, flags);
                        let situation = (file, epoch, place, writer, flags);
                        assert_eq!(row(found, on_file.last_offset), expected, "{situation:?}: {found:?}");
                        tried += 1;
                    }
                }
            }
        }
    }
    tried
}

#[test]
fn every_combination_of_situations_has_the_answer_of_the_table() {
    let on_file = on_file(0);
    assert_eq!(on_file.last, 17);
    assert_eq!(try_all(&on_file), 3 * 3 * 17 * 5 * 8);
}

#[test]
fn the_table_holds_far_from_zero_as_well() {
    let on_file = on_file(1_000_000);
    assert!(!on_file.entry.wrapped());
    try_all(&on_file);
}

/// The last batch ends at 2147483647; the next one is 0.
#[test]
fn the_table_holds_at_the_last_sequence_before_the_wrap() {
    let on_file = on_file((1 << 31) - 18);
    assert_eq!(on_file.last, i64::from(i32::MAX));
    assert!(!on_file.entry.wrapped() && !on_file.stub.wrapped());
    try_all_wrapped(&on_file);
}

/// Some remembered batches lie before the wrap, one across it, some after it.
#[test]
fn the_table_holds_across_the_wrap() {
    for after_the_wrap in 1..=17 {
        let on_file = on_file((1 << 31) - 18 + after_the_wrap);
        assert_eq!(on_file.last, i64::from(after_the_wrap) - 1);
        assert!(on_file.entry.wrapped() && on_file.stub.wrapped());
        try_all_wrapped(&on_file);
    }
}

/// As [`try_all`] in the current epoch, where the wrap matters; 0 has its place by the wrap, so it is left out.
fn try_all_wrapped(on_file: &OnFile) {
    for file in [File::Entry, File::Stub] {
        for place in PLACES.into_iter().filter(|place| *place != Place::Zero) {
            for writer in WRITERS {
                for flags in all_flags() {
                    let stamp = stamp_of(Epoch::Same, place, on_file.last, writer);
                    let found = verdict(&view(file, on_file, writer, flags), &stamp);
                    let expected = same_epoch(file, place, on_file.last + (1 << 40), writer, flags);
                    let situation = (file, place, writer, flags, on_file.last);
                    assert_eq!(row(found, on_file.last_offset), expected, "{situation:?}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn a_large_number_is_a_gap_until_the_sequence_has_wrapped() {
    let (unwrapped, wrapped) = (on_file(0), on_file((1 << 31) - 16));
    let old = batch(id(0), EPOCH, i64::from(i32::MAX) - 3, 1);
    let judge = |entry| verdict(&ProducerView { known: Known::Entry(entry), ..ProducerView::UNKNOWN }, &old);
    assert!(matches!(judge(&unwrapped.entry), Finding::Gap { .. }));
    assert!(matches!(judge(&wrapped.entry), Finding::AlreadyStored { .. }));
}

#[test]
fn a_new_epoch_forgets_the_wrap() {
    let mut shard = Shard::new(1);
    shard.produce(0, batch(id(0), 0, 0, (1 << 31) - 1));
    shard.produce(0, batch(id(0), 0, (1 << 31) - 1, 2));
    assert!(shard.state.producers().held(id(0)).0[0].wrapped());
    shard.produce(0, batch(id(0), 1, 0, 1));
    assert!(!shard.state.producers().held(id(0)).0[0].wrapped());
}
