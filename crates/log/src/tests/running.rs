//! The log with its threads, on real directories, in memory, and on a disk that is full.

use std::{
    path::{Path, PathBuf},
    sync::{Condvar, Mutex},
    time::Duration,
};

use super::*;
use crate::{Room, RoomClass, disk::BLOCK};

/// A directory that is removed again.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("semel-log-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a scratch directory");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits for outcomes.
#[derive(Clone, Default)]
struct Wait(Arc<(Mutex<u64>, Condvar)>);

impl Wait {
    fn listen(&self) -> crate::OnOutcome {
        let shared = self.0.clone();
        Box::new(move |outcome| {
            if let Outcome::Durable(sequence) = outcome {
                let mut durable = shared.0.lock().unwrap();
                *durable = sequence.get().max(*durable);
                shared.1.notify_all();
            }
        })
    }

    fn for_sequence(&self, sequence: LogSequence) {
        let durable = self.0.0.lock().unwrap();
        let behind = |durable: &mut u64| *durable < sequence.get();
        let waited = self.0.1.wait_timeout_while(durable, Duration::from_secs(20), behind).unwrap();
        assert!(!waited.1.timed_out(), "{sequence} becomes durable");
    }
}

fn small(mut options: Options) -> Options {
    options.file_bytes_min = 1 << 20;
    options.file_bytes_max = 2 << 20;
    options.reserve_bytes = 1 << 20;
    options.snapshot_interval_bytes = 16 << 10;
    options
}

/// Opens with threads; the recovered state is the author's whole history.
fn launch(options: &Options, author: &mut Author) -> (Log, Wait, bool) {
    let (wait, mut node) = (Wait::default(), Node::default());
    let opened = Log::open(options.clone(), &mut node, wait.listen()).expect("it opens");
    assert!(node == author.node, "everything is there");
    check_readers(&opened.log, author);
    author.epoch += 1;
    let first = author.started();
    opened.log.start(LeaderEpoch::new(author.epoch), first).expect("it starts");
    (opened.log, wait, opened.clean)
}

/// Two hundred decisions, waiting for some, with snapshots when they are wanted.
fn work(log: &Log, wait: &Wait, author: &mut Author, seed: u64) {
    let mut dice = Dice(seed);
    let mut last = LogSequence::new(0);
    for turn in 0..200 {
        while log.room(40_000, RoomClass::Produce) != Room::Enough {
            std::thread::yield_now();
        }
        last = log.submit(author.decide(&mut dice));
        if turn % 7 == 0 {
            wait.for_sequence(last);
        }
        if log.wants_snapshot() {
            log.snapshot(Box::new(author.node.clone()));
        }
    }
    wait.for_sequence(last);
    assert_eq!(log.published().sequence(), last);
    check_readers(log, author);
}

fn lives(options: &Options) {
    let mut author = author();
    for life in 0..4 {
        let (log, wait, clean) = launch(options, &mut author);
        assert_eq!(clean, life != 2, "the second life ends without a clean stop");
        work(&log, &wait, &mut author, life);
        if life != 1 {
            log.shutdown(Some(Box::new(author.node.clone()))).expect("it stops");
        }
    }
    launch(options, &mut author).0.shutdown(None).expect("it stops");
}

#[test]
fn direct_synced_files_survive_lives_with_and_without_a_clean_stop() {
    let scratch = Scratch::new("direct");
    lives(&small(Options::files(&scratch.0)));
}

#[test]
fn buffered_files_with_fdatasync_survive_the_same() {
    let scratch = Scratch::new("buffered");
    lives(&Options { direct: false, ..small(Options::files(&scratch.0)) });
}

#[test]
fn interval_durability_survives_the_same() {
    let scratch = Scratch::new("interval");
    let mut options = small(Options::files(&scratch.0));
    options.durability = Durability::Interval(100);
    lives(&options);
}

#[test]
fn a_log_in_memory_serves_what_it_took() {
    let mut author = author();
    let (log, wait, _) = launch(&small(Options::memory()), &mut author);
    work(&log, &wait, &mut author, 3);
    assert!(!log.wants_snapshot());
    log.shutdown(None).expect("it stops");
}

#[test]
fn a_file_system_without_direct_writes_is_served_through_the_page_cache() {
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let path = PathBuf::from(format!("/dev/shm/semel-log-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a scratch directory");
    let scratch = Scratch(path);
    lives(&small(Options::files(&scratch.0)));
}

#[test]
fn a_second_process_is_told_who_has_the_directory() {
    let scratch = Scratch::new("lock");
    let options = small(Options::files(&scratch.0));
    let held = Log::open(options.clone(), &mut Node::default(), Wait::default().listen()).expect("it opens");
    let refused = Log::open(options.clone(), &mut Node::default(), Wait::default().listen()).err();
    let text = refused.expect("it is refused").to_string();
    assert!(text.contains("in use by process"), "{text}");
    assert!(text.contains(scratch.0.to_str().unwrap()), "{text}");
    drop(held);
    assert!(Log::open(options, &mut Node::default(), Wait::default().listen()).is_ok(), "free again");
}

#[test]
fn a_directory_that_is_not_there_is_refused_by_name() {
    let options = Options::files("/nowhere/at/all");
    let refused = Log::open(options, &mut Node::default(), Wait::default().listen()).err();
    let text = refused.expect("it is refused").to_string();
    assert!(text.contains("/nowhere/at/all is not writable"), "{text}");
}

#[test]
fn a_decision_larger_than_any_file_gets_one_that_holds_it() {
    let scratch = Scratch::new("large");
    let options = small(Options::files(&scratch.0));
    let mut author = author();
    let (log, wait, _) = launch(&options, &mut author);
    let mut proposal = Proposal::default();
    author.produced(&mut proposal, 0, 1, 5 << 20);
    while log.room(5 << 20, RoomClass::Produce) != Room::Enough {
        std::thread::yield_now();
    }
    wait.for_sequence(log.submit(proposal));
    check_readers(&log, &author);
    log.shutdown(None).expect("it stops");
    drop(log);
    launch(&options, &mut author).0.shutdown(None).expect("it stops");
}

#[test]
fn silence_is_followed_by_one_rest_group() {
    let disk = SimulatedDisk::new(1);
    let mut options = options(&disk, Durability::Sync);
    options.rest_after_ms = 0;
    let mut author = author();
    let opened = open(&options, &mut author, 0, &Said::default()).expect("it opens");
    let mut rig = Rig::start(opened, &mut author).expect("it starts");
    rig.thread.turn(Instant::now()).expect("it rests");
    let rested = disk.operations();
    rig.thread.turn(Instant::now()).expect("nothing to do");
    assert_eq!(disk.operations(), rested, "a log at rest is left alone");
}

#[test]
fn an_interval_start_after_a_kill_says_that_writes_may_be_missing() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Interval(100));
    let mut author = author();
    let opened = open(&options, &mut author, 0, &Said::default()).expect("it opens");
    assert!(opened.clean && opened.fresh && !opened.may_have_lost_writes);
    let mut rig = Rig::start(opened, &mut author).expect("it starts");
    rig.thread.rest().expect("it rests");
    drop(rig);
    // The Rest group is no proof: something may have been acknowledged after it and lost without a trace.
    let opened = open(&options, &mut author, 1, &Said::default()).expect("it opens");
    assert!(!opened.clean && opened.may_have_lost_writes);
    Rig::start(opened, &mut author).expect("it starts").stop().expect("it stops");
    let opened = open(&options, &mut author, 2, &Said::default()).expect("it opens");
    assert!(opened.clean && !opened.may_have_lost_writes);
}

#[test]
fn a_full_disk_refuses_records_but_ends_transactions_from_the_reserve_and_starts_again() {
    let disk = SimulatedDisk::new(5);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    let opened = open(&options, &mut author, 0, &Said::default()).expect("it opens");
    let mut rig = Rig::start(opened, &mut author).expect("it starts");
    rig.settle().expect("the next file and the reserve are prepared");
    disk.set_capacity(0);
    let mut produced = 0;
    let refused = loop {
        match rig.log.room(2_000, RoomClass::Produce) {
            Room::Enough => {}
            Room::Wait => {
                if rig.background.step().expect("being full is no failure") == Progress::Full {
                    break rig.log.room(2_000, RoomClass::Produce);
                }
                continue;
            }
            Room::Full => break Room::Full,
        }
        let mut proposal = Proposal::default();
        author.produced(&mut proposal, 0, 1, 1_500);
        rig.log.submit(proposal);
        rig.drain().expect("what was promised fits");
        produced += 1;
    };
    assert!(produced > 20);
    assert_eq!(refused, Room::Full);
    assert_eq!(rig.log.room(2_000, RoomClass::Identity), Room::Full);
    let mut ended = 0;
    while rig.log.room(2_000, RoomClass::Reserve) == Room::Enough {
        let mut proposal = Proposal::default();
        author.produced(&mut proposal, 1, 1, 100);
        rig.log.submit(proposal);
        rig.drain().expect("the reserve holds it");
        ended += 1;
    }
    assert!(ended >= 5, "{ended} commands were served from the reserve");
    drop(rig);
    let promised = author.history.len() as u64;
    let opened = open(&options, &mut author, promised, &Said::default()).expect("reads are served");
    assert_eq!(opened.last_sequence.get(), promised);
}

/// A disk of this many bytes, filled with records until they are refused; what stays is what the server has then.
fn filled_up(disk: &SimulatedDisk, options: &Options, bytes: u64) -> (Rig, Author) {
    disk.set_capacity(bytes);
    let mut author = author();
    let opened = open(options, &mut author, 0, &Said::default()).expect("it opens");
    let mut rig = Rig::start(opened, &mut author).expect("it starts");
    loop {
        match rig.log.room(20_000, RoomClass::Produce) {
            Room::Enough => {
                let mut proposal = Proposal::default();
                author.produced(&mut proposal, 0, 1, 20_000);
                rig.log.submit(proposal);
                rig.drain().expect("what was promised fits");
            }
            Room::Wait => rig.settle().expect("being full is no failure"),
            Room::Full => return (rig, author),
        }
    }
}

/// A quarter of the sizes that a server has.
fn quarter(disk: &SimulatedDisk) -> Options {
    Options {
        file_bytes_min: 1 << 20,
        file_bytes_max: 32 << 20,
        reserve_bytes: 16 << 20,
        kept_bytes: 256 << 10,
        ..options(disk, Durability::Sync)
    }
}

fn used_bytes(disk: &SimulatedDisk) -> u64 {
    let names = crate::disk::Disk::list(disk).unwrap();
    names.iter().map(|name| disk.content(name).unwrap().len() as u64).sum()
}

#[test]
fn a_small_disk_gives_smaller_files_and_a_smaller_reserve_before_records_are_refused() {
    for megabytes in [6, 11] {
        let disk = SimulatedDisk::new(7);
        let options = quarter(&disk);
        let (rig, _) = filled_up(&disk, &options, megabytes << 20);
        assert!(used_bytes(&disk) + (1 << 20) > megabytes << 20, "less than the smallest file is left");
        let taken = rig.log.reserve_taken().expect("it is known by now");
        assert_eq!(taken.wanted_bytes, 16 << 20);
        assert!((1 << 20..16 << 20).contains(&taken.got_bytes), "{taken:?}");
        assert_eq!(rig.log.room(10_000, RoomClass::Reserve), Room::Enough, "transactions end");
    }
}

#[test]
fn the_reserve_grows_when_room_comes_back() {
    let disk = SimulatedDisk::new(7);
    let options = quarter(&disk);
    let (mut rig, _) = filled_up(&disk, &options, 6 << 20);
    disk.set_capacity(100 << 20);
    rig.settle().expect("there is room");
    assert_eq!(rig.log.shared_book().reserve.load(Ordering::Acquire), (16 << 20) - BLOCK as u64);
    assert_eq!(rig.log.room(20_000, RoomClass::Produce), Room::Enough);
}

/// Uses everything up that commands may have.
fn exhausted(disk: &SimulatedDisk, options: &Options, bytes: u64) -> (Rig, Author) {
    let (mut rig, mut author) = filled_up(disk, options, bytes);
    disk.set_capacity(0);
    while rig.log.room(2_000, RoomClass::Reserve) == Room::Enough {
        let mut proposal = Proposal::default();
        author.produced(&mut proposal, 1, 1, 1_000);
        rig.log.submit(proposal);
        rig.drain().expect("what was promised fits");
    }
    (rig, author)
}

#[test]
fn a_node_starts_on_a_full_disk_twenty_times_in_a_row_however_it_ends() {
    for durability in [Durability::Sync, Durability::Interval(100)] {
        let disk = SimulatedDisk::new(7);
        let options = Options { durability, ..quarter(&disk) };
        let (rig, mut author) = exhausted(&disk, &options, 6 << 20);
        let mut rig = Some(rig);
        for life in 0..20 {
            let last = rig.take().expect("it runs");
            if life % 2 == 0 {
                last.stop().expect("a clean stop on a full disk is no error");
            } else {
                drop(last);
            }
            let promised = author.history.len() as u64;
            let opened = open(&options, &mut author, promised, &Said::default()).expect("it opens");
            let mut next = Rig::start(opened, &mut author).expect("it starts");
            next.thread.rest().expect("silence on a full disk is no error");
            assert_ne!(next.background.step().expect("being full is no failure"), Progress::Prepared);
            assert_eq!(next.log.room(100, RoomClass::Produce), Room::Full);
            rig = Some(next);
        }
    }
}

#[test]
fn the_reserve_stays_the_reserve_over_a_start() {
    let disk = SimulatedDisk::new(7);
    let options = quarter(&disk);
    let (rig, mut author) = filled_up(&disk, &options, 6 << 20);
    disk.set_capacity(0);
    let before = rig.log.shared_book().reserve.load(Ordering::Acquire);
    assert!(before > 0);
    drop(rig);
    let promised = author.history.len() as u64;
    let opened = open(&options, &mut author, promised, &Said::default()).expect("it opens");
    let mut rig = Rig::start(opened, &mut author).expect("it starts");
    rig.settle().expect("being full is no failure");
    assert_eq!(rig.log.shared_book().reserve.load(Ordering::Acquire), before);
    assert_eq!(rig.log.room(20_000, RoomClass::Produce), Room::Full);
    assert_eq!(rig.log.room(20_000, RoomClass::Reserve), Room::Enough);
}

#[test]
fn a_deleted_topic_makes_room_on_a_full_disk_that_never_held_a_snapshot() {
    let disk = SimulatedDisk::new(7);
    let options = Options { snapshot_interval_bytes: 64 << 20, ..quarter(&disk) };
    let (mut rig, mut author) = filled_up(&disk, &options, 6 << 20);
    disk.set_capacity(used_bytes(&disk));
    rig.settle().expect("being full is no failure");
    let mut proposal = Proposal::default();
    author.deleted(&mut proposal);
    rig.log.submit(proposal);
    rig.drain().expect("a deletion is served");
    for _ in 0..4 {
        rig.settle().expect("being full is no failure");
        if rig.log.wants_snapshot() {
            rig.log.snapshot(Box::new(author.node.clone()));
            rig.drain().expect("sealed");
        }
    }
    assert_eq!(rig.log.room(20_000, RoomClass::Produce), Room::Enough);
}

#[test]
fn files_of_a_deleted_topic_are_used_again_after_two_snapshots() {
    let disk = SimulatedDisk::new(9);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    let opened = open(&options, &mut author, 0, &Said::default()).expect("it opens");
    let mut rig = Rig::start(opened, &mut author).expect("it starts");
    let mut sizes = Vec::new();
    for _ in 0..12 {
        for _ in 0..30 {
            let mut proposal = Proposal::default();
            author.produced(&mut proposal, 0, 1, 10_000);
            rig.log.submit(proposal);
            rig.drain().expect("written");
            rig.settle().expect("prepared");
        }
        let mut proposal = Proposal::default();
        author.deleted(&mut proposal);
        rig.log.submit(proposal);
        for _ in 0..2 {
            rig.drain().expect("written");
            rig.log.snapshot(Box::new(author.node.clone()));
            rig.drain().expect("sealed");
            rig.settle().expect("snapshot");
        }
        sizes.push(
            crate::disk::Disk::list(&disk).unwrap().iter().filter(|name| name.ends_with(".log")).count(),
        );
    }
    assert!(sizes[11] <= sizes[3], "the log does not grow: {sizes:?}");
    let promised = author.history.len() as u64;
    open(&options, &mut author, promised, &Said::default()).expect("it opens");
}

/// Records are much larger than the events about them: what is dead counts, too.
#[test]
fn dead_files_ask_for_the_snapshots_that_free_them() {
    let disk = SimulatedDisk::new(11);
    let options = Options { snapshot_interval_bytes: 200_000, ..options(&disk, Durability::Sync) };
    let mut author = author();
    let opened = open(&options, &mut author, 0, &Said::default()).expect("it opens");
    let mut rig = Rig::start(opened, &mut author).expect("it starts");
    let (mut sizes, mut snapshots) = (Vec::new(), 0);
    for _ in 0..12 {
        for _ in 0..30 {
            let mut proposal = Proposal::default();
            author.produced(&mut proposal, 0, 1, 10_000);
            rig.log.submit(proposal);
            rig.drain().expect("written");
            rig.settle().expect("prepared");
            if rig.log.wants_snapshot() {
                snapshots += 1;
                rig.log.snapshot(Box::new(author.node.clone()));
                rig.drain().expect("sealed");
                rig.settle().expect("snapshot");
            }
        }
        let mut proposal = Proposal::default();
        author.deleted(&mut proposal);
        rig.log.submit(proposal);
        rig.drain().expect("written");
        sizes.push(
            crate::disk::Disk::list(&disk).unwrap().iter().filter(|name| name.ends_with(".log")).count(),
        );
    }
    assert!(sizes[11] <= sizes[5], "the log does not grow: {sizes:?}");
    assert!(snapshots <= 24, "two for each time that something died: {snapshots}");
}

#[test]
fn a_failed_write_is_reported_once_and_nothing_is_durable_after_it() {
    let disk = SimulatedDisk::new(2);
    let options = options(&disk, Durability::Sync);
    let failed: Arc<Mutex<Vec<Outcome>>> = Arc::default();
    let heard = failed.clone();
    let listen = Box::new(move |outcome| heard.lock().unwrap().push(outcome));
    let opened = Log::open(options, &mut Node::default(), listen).expect("it opens");
    let mut author = author();
    author.epoch = 1;
    let first = author.started();
    opened.log.start(LeaderEpoch::new(1), first).expect("it starts");
    disk.fail_after(0);
    for _ in 0..3 {
        let mut proposal = Proposal::default();
        author.produced(&mut proposal, 0, 1, 100);
        opened.log.submit(proposal);
    }
    assert!(opened.log.shutdown(None).is_err(), "the failure is told");
    let outcomes = failed.lock().unwrap();
    let failures = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Failed(_))).count();
    assert_eq!(failures, 1);
    assert!(matches!(outcomes.last(), Some(Outcome::Failed(_))), "nothing comes after it");
}
