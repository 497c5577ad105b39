//! Hostile bytes: a typed error or a message, never a panic, and memory within the frame's allowance.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use semel_wire::{
    ALLOWANCE_PER_FRAME_BYTE, DecodeError, DecodeErrorKind, Message, Reader, Request, RequestHeader,
    SMALL_FRAME_ALLOWANCE_BYTES, Samples, Text,
    api::{
        ApiVisitor, add_partitions_to_txn::*, fetch::*, for_each_api, metadata::MetadataRequest, metadata::*,
        offset_fetch::*, produce::*,
    },
    batch::{self, BatchBuilder, NewRecord},
};

/// Bytes allocated by this thread, in all; freeing does not count back.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system's allocator; the counter neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size());
        // SAFETY: as promised by our caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by our caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a frame costs whatever is in it: the counters of shared ownership of the frame.
const CONSTANT_BYTES: usize = 200;

fn allowance_bytes(frame_length: usize) -> usize {
    (frame_length * ALLOWANCE_PER_FRAME_BYTE).max(SMALL_FRAME_ALLOWANCE_BYTES) + CONSTANT_BYTES
}

/// Decodes, and checks what it cost.
fn decode<M: Message>(frame: &[u8], version: i16) -> Result<M, DecodeError> {
    let mut reader = Reader::new(frame.to_vec());
    let before = ALLOCATED.get();
    let outcome = M::decode_body(&mut reader, version);
    let allocated = ALLOCATED.get() - before;
    assert!(
        allocated <= allowance_bytes(frame.len()),
        "{} {version}: {allocated} bytes for a frame of {}",
        M::NAME,
        frame.len()
    );
    outcome
}

/// Decodes a frame as the message in question.
type Decode<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), DecodeError>;

/// Damages the frame of every message in one way.
struct Damage(fn(Decode<'_>, &[u8], &mut Samples));

impl Damage {
    fn all_versions<M: Message>(&self) {
        for version in M::API.spec().decodable() {
            for seed in 0..3 {
                let mut samples = Samples::new(seed);
                let message = M::sample_body(&mut samples, version).expect("a version of the table");
                let mut bytes = Vec::new();
                message.encode_into(version, &mut bytes).expect("samples can be written");
                (self.0)(&mut |frame| decode::<M>(frame, version).map(drop), &bytes, &mut samples);
            }
        }
    }
}

impl ApiVisitor for Damage {
    fn visit<R: Request>(&mut self) {
        self.all_versions::<R>();
        self.all_versions::<R::Response>();
    }
}

#[test]
fn a_frame_cut_anywhere_is_a_typed_error() {
    for_each_api(&mut Damage(|decode, whole, _| {
        for cut in 0..whole.len() {
            let error = decode(&whole[..cut]).expect_err("a part is not the whole");
            assert!(!error.field.is_empty(), "the error names its field: {error}");
            assert!(error.position <= cut, "{error}");
        }
    }));
}

#[test]
fn huge_and_negative_lengths_cost_nothing() {
    const LENGTHS: [&[u8]; 7] = [
        &[0x7f, 0xff, 0xff, 0xff],
        &[0x80, 0, 0, 0],
        &[0xff, 0xff, 0xff, 0xfe],
        &[0xff, 0xff],
        &[0x7f, 0xff],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0xff, 0xff, 0xff, 0xff, 0xff],
    ];
    for_each_api(&mut Damage(|decode, whole, _| {
        for at in 0..whole.len() {
            for length in LENGTHS {
                let mut frame = whole.to_vec();
                let end = (at + length.len()).min(frame.len());
                frame[at..end].copy_from_slice(&length[..end - at]);
                // Some of these are sound messages; cost and panics are what counts.
                let _outcome = decode(&frame);
            }
        }
    }));
}

#[test]
fn random_damage_costs_nothing() {
    for_each_api(&mut Damage(|decode, whole, samples| {
        for _ in 0..200 {
            let mut frame = whole.to_vec();
            for _ in 0..=samples.below(4) {
                match samples.below(3) {
                    0 => frame.push(samples.next() as u8),
                    1 if !frame.is_empty() => drop(frame.remove(samples.below(frame.len()))),
                    _ if !frame.is_empty() => {
                        let at = samples.below(frame.len());
                        frame[at] = samples.next() as u8;
                    }
                    _ => {}
                }
            }
            let _outcome = decode(&frame);
        }
    }));
}

#[test]
fn frames_of_one_byte_value_cost_nothing() {
    struct Monotone;
    impl ApiVisitor for Monotone {
        fn visit<R: Request>(&mut self) {
            for version in R::API.spec().decodable() {
                for byte in [0, 1, 2, 0x7f, 0x80, 0xff] {
                    let frame = vec![byte; 100_000];
                    let _request = decode::<R>(&frame, version);
                    let _response = decode::<R::Response>(&frame, version);
                }
            }
        }
    }
    for_each_api(&mut Monotone);
}

#[test]
fn the_twelve_bytes_that_abort_the_public_codec_are_refused() {
    // Produce 9: no transactional id, acks, timeout, then an array of 2^28 topics.
    let frame = [0, 0, 1, 0, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x01];
    let error = decode::<ProduceRequest>(&frame, 9).expect_err("no topics follow");
    assert_eq!(error.field, "ProduceRequest.topics");
    assert!(matches!(error.kind, DecodeErrorKind::CountBeyondFrame { left: 0, .. }), "{error}");
}

#[test]
fn a_frame_denser_than_its_allowance_is_refused() {
    // 100,000 topics without name and partitions: six bytes each on the wire, forty in memory.
    let topics = vec![AddPartitionsToTxnTopic::default(); 100_000];
    let request = AddPartitionsToTxnRequest { topics, ..Default::default() };
    let mut bytes = Vec::new();
    request.encode(0, &mut bytes).expect("encodes");
    let error = decode::<AddPartitionsToTxnRequest>(&bytes, 0).expect_err("too dense");
    assert_eq!(error.kind, DecodeErrorKind::TooDense);
}

/// Kafka takes them too: a client id in Latin-1, binary metadata of a committed offset.
#[test]
fn strings_that_are_not_utf8_keep_their_length_and_cost_no_more_than_allowed() {
    let latin1 = [0, 18, 0, 0, 0, 0, 0, 1, 0, 4, b'M', 0xfc, b'l', b'l'];
    let header = RequestHeader::decode(&mut Reader::new(latin1.to_vec())).expect("taken");
    assert_eq!(header.client_id, Some(Text::from("M?ll")));

    let mut few = vec![0, 0, 0, 2];
    few.extend([0, 2, 0xff, b'x'].repeat(2));
    let request = decode::<MetadataRequest>(&few, 1).expect("taken");
    let names: Vec<_> = request.topics.into_iter().flatten().map(|topic| topic.name).collect();
    assert_eq!(names, vec![Some(Text::from("?x")); 2]);

    let mut many = 100_000_i32.to_be_bytes().to_vec();
    many.extend([0, 1, 0xff].repeat(100_000));
    let error = decode::<MetadataRequest>(&many, 1).expect_err("each would be a copy");
    assert_eq!(error.kind, DecodeErrorKind::TooDense);
}

fn accepted<M: Message>(message: &M, version: i16) {
    let mut bytes = Vec::new();
    message.encode_into(version, &mut bytes).expect("encodes");
    let read = decode::<M>(&bytes, version);
    assert!(read.as_ref() == Ok(message), "{} {version}: {:?}", M::NAME, read.err());
}

/// Large but sound requests stay within the allowance, in every version.
#[test]
fn large_sound_requests_are_accepted() {
    let names = || (0..20_000).map(|i| Text::from(format!("topic-{i}").as_str()));
    let one = || vec![semel_types::PartitionIndex::new(0)];
    for version in 0..=13 {
        let topic = |name| MetadataRequestTopic { name: Some(name), ..Default::default() };
        let topics = Some(names().map(topic).collect());
        accepted(&MetadataRequest { topics, ..Default::default() }, version);
    }
    for version in 0..=3 {
        let topic = |name| AddPartitionsToTxnTopic { name, partitions: one() };
        let topics = names().map(topic).collect();
        accepted(&AddPartitionsToTxnRequest { topics, ..Default::default() }, version);
    }
    for version in 4..=12 {
        let topic =
            |topic| FetchTopic { topic, partitions: vec![FetchPartition::default()], ..Default::default() };
        let topics = names().map(topic).collect();
        accepted(&FetchRequest { topics, ..Default::default() }, version);
    }
    for version in 1..=7 {
        let topic = |name| OffsetFetchTopic { name, partition_indexes: one() };
        let topics = Some(names().map(topic).collect());
        accepted(&OffsetFetchRequest { topics, ..Default::default() }, version);
    }
}

#[test]
fn damaged_headers_are_typed_errors() {
    for length in 0..8 {
        let frame = vec![0; length];
        let error = RequestHeader::decode(&mut Reader::new(frame)).expect_err("too short");
        assert!(matches!(error.kind, DecodeErrorKind::Truncated { .. }), "{error}");
    }
    let negative = [0, 18, 0, 3, 0, 0, 0, 1, 0xff, 0xf0];
    let error = RequestHeader::decode(&mut Reader::new(negative.to_vec())).expect_err("length -16");
    assert_eq!(error.kind, DecodeErrorKind::NegativeLength(-16));
}

#[test]
fn damaged_batches_neither_panic_nor_cost_memory() {
    let headers = [("h", Some(b"1".as_slice())), ("n", None)];
    let record = |value| NewRecord { headers: &headers, ..NewRecord::of(value) };
    let sound = BatchBuilder::new().record(record(b"one")).record(record(b"two")).build();
    let mut samples = Samples::new(1);
    for _ in 0..50_000 {
        let mut bytes = [sound.bytes().as_ref(), sound.bytes()].concat();
        for _ in 0..=samples.below(3) {
            let at = samples.below(bytes.len());
            bytes[at] = samples.next() as u8;
        }
        let blob = bytes::Bytes::from(bytes);
        let before = ALLOCATED.get();
        for batch in batch::split(blob).flatten() {
            let _count = batch.check_count();
            let _headers = batch
                .records()
                .map(|records| records.flatten().map(|record| record.headers().count()).sum::<usize>());
        }
        assert!(ALLOCATED.get() - before <= CONSTANT_BYTES);
    }
}
