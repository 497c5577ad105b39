//! What strangers can make the server hold.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use semel_certify::session::{Isolation, produce_request};
use semel_wire::frame;

use crate::rig::{
    FETCH, PATIENCE, Rig, assert_kept, batch, fate, fetch, produce, record_bytes, resident_bytes,
};

const MIB: u64 = 1 << 20;

fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("up to the hard limit");
}

#[test]
fn two_thousand_idle_connections_cost_at_most_ten_kibibytes_each() {
    raise_open_files();
    let rig = Rig::with_topic(&[]);
    let mut warm: Vec<_> = (0..50).map(|_| rig.client()).collect();
    warm.iter_mut().for_each(|client| assert_kept(client));
    let before = resident_bytes(rig.server.id());
    let mut idle: Vec<_> = (0..2000).map(|_| rig.client()).collect();
    idle.iter_mut().for_each(|client| assert_kept(client));
    let grown = resident_bytes(rig.server.id()).saturating_sub(before);
    assert!(grown / 2000 <= 10 * 1024, "{} bytes a connection", grown / 2000);
}

#[test]
fn readers_that_never_read_their_answers_do_not_grow_the_server() {
    let rig = Rig::start(&[]);
    let mut writer = rig.session();
    writer.create_topic("t", 1).expect("it serves");
    let value = vec![7; 1_000_000];
    for _ in 0..16 {
        assert_eq!(fate(writer.client.call(&produce(&value), 9).expect("answered")).0, 0);
    }
    let before = resident_bytes(rig.server.id());
    let mut request = fetch(0, (1, 0), Isolation::Uncommitted);
    (request.max_bytes, request.topics[0].partitions[0].partition_max_bytes) = (16 << 20, 16 << 20);
    let mut silent: Vec<_> = (0..40).map(|_| rig.client()).collect();
    for reader in &mut silent {
        for _ in 0..50 {
            reader.send(&request, FETCH).expect("it listens");
        }
    }
    // 2,000 answers of 16 MiB are due; the server serves others meanwhile.
    for _ in 0..20 {
        let fetched = writer.client.call(&fetch(0, (1, 0), Isolation::Uncommitted), FETCH).expect("answered");
        assert!(record_bytes(&fetched) > 0);
    }
    let grown = resident_bytes(rig.server.id()).saturating_sub(before);
    assert!(grown < 96 * MIB, "grown by {grown} bytes");
}

/// A connection that sends what the server takes, and no more.
struct Flood {
    stream: TcpStream,
    frame: Vec<u8>,
    sent: usize,
}

impl Flood {
    fn start(address: &str, frame: &[u8]) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nonblocking(true).expect("a socket");
        Self { stream, frame: frame.to_vec(), sent: 0 }
    }

    /// Sends what can be sent now, up to `end`; true if anything went out.
    fn push(&mut self, end: usize) -> bool {
        let before = self.sent;
        while self.sent < end {
            match self.stream.write(&self.frame[self.sent..end]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.sent > before
    }

    /// Sends the rest and waits for the answer.
    fn finish(&mut self) -> io::Result<()> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_read_timeout(Some(PATIENCE))?;
        self.stream.write_all(&self.frame[self.sent..])?;
        self.stream.read_exact(&mut [0; 8])
    }

    /// The same, and again on a new connection if this one was given up, as clients do.
    fn insist(mut self, address: &str) {
        while let Err(error) = self.finish() {
            assert_ne!(error.kind(), ErrorKind::WouldBlock, "it waited in vain");
            self = Self::start(address, &self.frame);
        }
    }

    /// True if the server has closed it.
    fn is_given_up(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// A Produce of about `bytes` to a topic that does not exist.
fn large_frame(bytes: usize) -> Vec<u8> {
    let nowhere = semel_certify::session::Place::of("nowhere", 0);
    let request = produce_request(&[(&nowhere, batch(&vec![7; bytes]))], None);
    frame::request(&request, 9, 1, None).expect("a request")
}

/// 12 MiB of it for frames above one mebibyte.
const SMALL_BUDGET: [&str; 2] = ["--set", "queued.max.request.bytes=16777216"];

#[test]
fn unfinished_large_frames_hold_up_no_small_request_and_are_given_up_once_others_wait() {
    let mut rig = Rig::with_topic(&SMALL_BUDGET);
    let (frame, mut small) = (large_frame(8 << 20), rig.client());
    // One of them has its share, the others wait for it.
    let mut halves: Vec<_> = (0..3).map(|_| Flood::start(rig.server.address(), &frame)).collect();
    for half in &mut halves {
        half.push(60_000);
    }
    let deadline = Instant::now() + PATIENCE;
    while halves.len() > 1 {
        assert!(Instant::now() < deadline, "{} are still there", halves.len());
        let asked = Instant::now();
        assert_eq!(fate(small.call(&produce(b"x"), 9).expect("answered")).0, 0);
        assert_kept(&mut rig.client());
        assert!(asked.elapsed() < Duration::from_secs(5), "held up for {:?}", asked.elapsed());
        halves.retain_mut(|half| !half.is_given_up());
    }
    let line = rig.server.wait_line("others wait for memory", PATIENCE).expect("it is logged");
    assert!(line.contains("60000 of"), "{line}");
    // Nobody waits for the share of the last one, until an honest client does.
    assert!(!halves[0].is_given_up());
    Flood::start(rig.server.address(), &frame).finish().expect("answered");
    assert!(halves[0].is_given_up());
}

#[test]
fn a_pause_in_a_large_frame_is_nobodys_business_while_there_is_memory_for_all() {
    let rig = Rig::with_topic(&SMALL_BUDGET);
    let (mut half, mut small) = (Flood::start(rig.server.address(), &large_frame(8 << 20)), rig.client());
    half.push(60_000);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1500) {
        assert_eq!(fate(small.call(&produce(b"x"), 9).expect("answered")).0, 0);
    }
    half.finish().expect("answered");
}

#[test]
fn a_flood_of_large_requests_holds_no_more_than_queued_max_request_bytes_and_all_are_answered() {
    let rig = Rig::with_topic(&SMALL_BUDGET);
    let frame = large_frame(2 << 20);
    assert_kept(&mut rig.client());
    let before = resident_bytes(rig.server.id());
    let mut floods: Vec<_> = (0..64).map(|_| Flood::start(rig.server.address(), &frame)).collect();
    // All but the last byte of each, as far as the server takes them: until nothing has moved for a while.
    let mut moved = Instant::now();
    while moved.elapsed() < Duration::from_millis(300) {
        let pushed = floods.iter_mut().filter_map(|flood| flood.push(frame.len() - 1).then_some(()));
        if pushed.count() > 0 {
            moved = Instant::now();
        }
        thread::yield_now();
    }
    let grown = resident_bytes(rig.server.id()).saturating_sub(before);
    assert!(grown < 32 * MIB, "128 MiB were sent and 16 MiB may be held: grown by {grown} bytes");
    let address = rig.server.address();
    thread::scope(|scope| {
        floods.into_iter().for_each(|flood| drop(scope.spawn(move || flood.insist(address))));
    });
    assert_kept(&mut rig.client());
    assert!(resident_bytes(rig.server.id()).saturating_sub(before) < 40 * MIB);
}

#[test]
fn a_length_prefix_alone_costs_nothing() {
    let rig = Rig::with_topic(&[]);
    assert_kept(&mut rig.client());
    let before = resident_bytes(rig.server.id());
    let mut clients: Vec<_> = (0..500).map(|_| rig.client()).collect();
    for client in &mut clients {
        client.send_bytes(&(100_i32 << 20).to_be_bytes()).expect("it listens");
    }
    // A share of one of them is all that there is for large requests: nothing is allocated, small ones go on.
    for _ in 0..100 {
        assert_kept(&mut rig.client());
    }
    let grown = resident_bytes(rig.server.id()).saturating_sub(before);
    assert!(grown < 16 * MIB, "grown by {grown} bytes");
    drop(clients);
    assert_kept(&mut rig.client());
}

#[test]
fn producers_that_never_read_their_answers_do_not_grow_the_server() {
    let rig = Rig::with_topic(&[]);
    let frame = frame::request(&produce(&[7; 100]), 9, 1, None).expect("a request");
    let burst = frame.repeat(200);
    let mut floods: Vec<_> = (0..50).map(|_| Flood::start(rig.server.address(), &burst)).collect();
    let before = resident_bytes(rig.server.id());
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline {
        for flood in &mut floods {
            flood.push(burst.len());
            if flood.sent == burst.len() {
                flood.sent = 0;
            }
        }
    }
    let stored = u64::try_from(rig.end().get()).expect("an offset") * 200;
    let grown = resident_bytes(rig.server.id()).saturating_sub(before);
    assert!(grown < 64 * MIB + 3 * stored, "grown by {grown} bytes, {stored} bytes were stored in memory");
}
