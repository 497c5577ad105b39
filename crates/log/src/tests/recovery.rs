//! One test for each rule of recovery.

use super::*;
use crate::{
    Corruption, ReadError,
    disk::{BLOCK, Disk},
    format::{
        file::FIRST_GROUP,
        group::{Found, GroupHeader, HEADER, Kind},
    },
    salvage::salvage_disk,
};

const FIRST: &str = "000000000001.log";

/// The groups of a file from its front on, with their positions.
fn groups(disk: &SimulatedDisk, name: &str) -> Vec<(usize, GroupHeader)> {
    let content = disk.content(name).expect("the file is there");
    let mut found = Vec::new();
    let mut at = FIRST_GROUP as usize;
    while let Some(bytes) = content.get(at..at + HEADER)
        && let Found::Header(header, _) = GroupHeader::read(bytes)
    {
        found.push((at, header));
        at += header.total();
    }
    found
}

/// One life that writes each of `lengths` as a batch in a group of its own, then is killed.
fn life(options: &Options, author: &mut Author, lengths: &[usize]) {
    let opened = open(options, author, 0, &Said::default()).expect("it opens");
    let mut rig = Rig::start(opened, author).expect("it starts");
    for length in lengths {
        write(&mut rig, author, *length);
    }
}

/// Writes one batch as a group.
fn write(rig: &mut Rig, author: &mut Author, length: usize) {
    let mut proposal = Proposal::default();
    author.produced(&mut proposal, 0, 1, length);
    rig.log.submit(proposal);
    rig.drain().expect("it is written");
}

fn reopen(options: &Options, author: &Author) -> Result<(u64, Author), OpenError> {
    let mut copy = Author { node: Node::default(), history: author.history.clone(), epoch: author.epoch };
    let opened = open(options, &mut copy, 0, &Said::default())?;
    Ok((opened.last_sequence.get(), copy))
}

fn corruption(options: &Options, author: &Author) -> Corruption {
    match reopen(options, author) {
        Err(OpenError::Corrupt(corruption)) => corruption,
        Err(error) => panic!("refused for another reason: {error}"),
        Ok((sequence, _)) => panic!("opened with {sequence} of {} events", author.history.len()),
    }
}

#[test]
fn the_last_group_cut_at_any_byte_is_dropped_whole() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    life(&options, &mut author, &[100, 5_000]);
    let whole = disk.content(FIRST).unwrap();
    let (at, header) = *groups(&disk, FIRST).last().unwrap();
    let all = author.history.len() as u64;
    let used = header.payload_start() + header.payload_length as usize;
    for rest in [0, 0xff] {
        for cut in 0..header.total() {
            let mut content = whole.clone();
            content[at + cut..at + header.total()].fill(rest);
            let is_whole = content[at..at + used] == whole[at..at + used];
            disk.set_content(FIRST, content);
            let (sequence, _) = reopen(&options, &author).expect("a torn tail is no corruption");
            assert_eq!(sequence, if is_whole { all } else { all - 1 }, "cut at {cut}");
        }
    }
}

#[test]
fn a_file_that_was_cut_is_refused_unless_only_blank_blocks_are_gone() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    life(&options, &mut author, &[100, 9_000]);
    let (whole, (at, header)) = (disk.content(FIRST).unwrap(), *groups(&disk, FIRST).last().unwrap());
    for length in [at, at + 1, at + HEADER, at + BLOCK, at + 2 * BLOCK, at + header.total()] {
        disk.set_content(FIRST, whole[..length].to_vec());
        let corruption = corruption(&options, &author);
        assert!(corruption.name.contains(FIRST), "cut at {length}: {corruption}");
        assert_eq!(corruption.position, length as u64);
    }
    disk.set_content(FIRST, whole[..at + header.total() + BLOCK].to_vec());
    let (sequence, _) = reopen(&options, &author).expect("nothing is missing");
    assert_eq!(sequence, author.history.len() as u64);
}

#[test]
fn any_flipped_bit_of_the_last_group_drops_it() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    life(&options, &mut author, &[100, 300]);
    let whole = disk.content(FIRST).unwrap();
    let (at, header) = *groups(&disk, FIRST).last().unwrap();
    for bit in 0..(header.payload_start() + header.payload_length as usize) * 8 {
        let mut content = whole.clone();
        content[at + bit / 8] ^= 1 << (bit % 8);
        disk.set_content(FIRST, content);
        let (sequence, _) = reopen(&options, &author).expect("a torn tail is no corruption");
        assert_eq!(sequence, author.history.len() as u64 - 1, "bit {bit}");
    }
}

#[test]
fn any_flipped_bit_in_the_middle_is_refused_and_the_place_named() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    life(&options, &mut author, &[100, 300, 200, 100]);
    let whole = disk.content(FIRST).unwrap();
    let (at, header) = groups(&disk, FIRST)[2];
    for bit in 0..header.payload_start() * 8 {
        let mut content = whole.clone();
        content[at + bit / 8] ^= 1 << (bit % 8);
        disk.set_content(FIRST, content);
        let found = corruption(&options, &author);
        assert_eq!((found.name.as_str(), found.position), (FIRST, at as u64));
        assert_eq!(found.first_missing, header.first_sequence);
        assert_eq!(found.last_durable.get(), author.history.len() as u64 - 1);
        assert_eq!(found.partitions, [PartitionHandle::new(0)]);
        assert!(found.to_string().contains("semel log salvage"));
    }
}

#[test]
fn damage_to_the_last_group_is_refused_once_a_rest_group_witnesses_it() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    let opened = open(&options, &mut author, 0, &Said::default()).expect("it opens");
    let mut rig = Rig::start(opened, &mut author).expect("it starts");
    write(&mut rig, &mut author, 100);
    rig.thread.rest().expect("it rests");
    drop(rig);
    let (at, _) = groups(&disk, FIRST)[1];
    let mut content = disk.content(FIRST).unwrap();
    content[at + 20] ^= 1;
    disk.set_content(FIRST, content);
    assert_eq!(corruption(&options, &author).position, at as u64);
}

#[test]
fn a_damaged_group_without_events_does_not_hide_the_acknowledged_one_behind_it() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    let opened = open(&options, &mut author, 0, &Said::default()).expect("it opens");
    let mut rig = Rig::start(opened, &mut author).expect("it starts");
    rig.thread.rest().expect("it rests");
    write(&mut rig, &mut author, 100);
    drop(rig);
    let (at, header) = groups(&disk, FIRST)[1];
    assert_eq!(header.kind, Kind::Rest);
    let mut content = disk.content(FIRST).unwrap();
    content[at + 20] ^= 1;
    disk.set_content(FIRST, content);
    assert_eq!(corruption(&options, &author).position, at as u64);
}

#[test]
fn payloads_of_old_groups_are_checked_where_that_is_asked_for() {
    let disk = SimulatedDisk::new(1);
    let mut options = options(&disk, Durability::Sync);
    let mut author = author();
    life(&options, &mut author, &[100, 300, 200, 100]);
    let (at, header) = groups(&disk, FIRST)[2];
    let mut content = disk.content(FIRST).unwrap();
    content[at + header.payload_start() + 70] ^= 1;
    disk.set_content(FIRST, content);
    options.verify_payloads = true;
    assert_eq!(corruption(&options, &author).position, at as u64);
}

#[test]
fn a_whole_group_behind_a_lost_one_does_not_come_back_after_a_second_crash() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Interval(100));
    let mut author = author();
    life(&options, &mut author, &[100, 100, 100]);
    let found = groups(&disk, FIRST);
    let (lost, behind) = (found[2].0, found[3].0);
    let mut content = disk.content(FIRST).unwrap();
    content[lost..behind].fill(0);
    disk.set_content(FIRST, content);
    let kept = found[2].1.first_sequence.get() - 1;
    let opened = open(&options, &mut author, kept, &Said::default()).expect("a torn tail");
    assert_eq!(opened.last_sequence.get(), kept);
    drop(Rig::start(opened, &mut author).expect("it starts"));
    // The new Open group stands where the lost one stood and takes as many sequences.
    let opens = groups(&disk, FIRST);
    assert_eq!((opens[2].1.kind, opens[2].1.end().position), (Kind::Open, behind as u64));
    assert_eq!(opens[3].1.first_sequence.get(), kept + 2, "the remains would chain by sequence and position");
    let (sequence, _) = reopen(&options, &author).expect("it opens");
    assert_eq!(sequence, kept + 1);
}

#[test]
fn a_header_forged_inside_a_batch_proves_nothing() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Interval(100));
    let mut author = author();
    life(&options, &mut author, &[100, 9_000]);
    let (at, header) = *groups(&disk, FIRST).last().unwrap();
    let forged = GroupHeader {
        identity: header.identity ^ 1,
        place: crate::LogPosition { file: header.place.file, position: (at + BLOCK) as u64 },
        durable_before: LogSequence::new(1 << 40),
        ..header
    };
    let mut content = disk.content(FIRST).unwrap();
    forged.write(&mut content[at + BLOCK..]);
    disk.set_content(FIRST, content);
    let (sequence, _) = reopen(&options, &author).expect("a torn tail");
    assert_eq!(sequence, author.history.len() as u64 - 1);
}

/// Fills some files, deletes the topic, takes snapshots: files are given new numbers.
fn busy(options: &Options, author: &mut Author, rounds: usize) -> io::Result<()> {
    let opened = match open(options, author, 0, &Said::default()) {
        Err(OpenError::Io(error)) => return Err(error),
        opened => opened.expect("it opens"),
    };
    let mut rig = Rig::start(opened, author)?;
    for round in 0..rounds {
        for length in [100, 12_000, 4_000, 15_000, 9_000, 11_000] {
            let mut proposal = Proposal::default();
            author.produced(&mut proposal, round as u32 % PARTITIONS, 1, length);
            rig.log.submit(proposal);
            rig.drain()?;
            rig.background.step()?;
        }
        if round % 3 == 2 {
            let mut proposal = Proposal::default();
            author.deleted(&mut proposal);
            rig.log.submit(proposal);
        }
        rig.drain()?;
        rig.log.snapshot(Box::new(author.node.clone()));
        rig.drain()?;
        rig.settle()?;
    }
    Ok(())
}

#[test]
fn the_directory_is_healthy_wherever_a_crash_meets_file_changes_snapshots_and_recycling() {
    let total = {
        let disk = SimulatedDisk::new(3);
        busy(&options(&disk, Durability::Sync), &mut author(), 7).expect("no power is lost");
        disk.operations()
    };
    assert!(total > 150, "{total} operations");
    for fuse in 0..total {
        for kill in [false, true] {
            let disk = SimulatedDisk::new(fuse);
            let options = options(&disk, Durability::Sync);
            let mut author = author();
            disk.fail_after(fuse);
            busy(&options, &mut author, 7).expect_err("the power fails");
            if kill {
                disk.restart_process()
            } else {
                disk.restore_power()
            }
            let events = author.history.len() as u64;
            // At most the decision in flight is missing.
            let promised = events.saturating_sub(2);
            if let Err(error) = open(&options, &mut author, promised, &Said::default()) {
                panic!("crash in operation {fuse}: {error}");
            }
        }
    }
}

#[test]
fn remains_of_an_older_use_of_a_recycled_file_are_not_taken_for_the_log() {
    let disk = SimulatedDisk::new(3);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    busy(&options, &mut author, 12).expect("no power is lost");
    let names = disk.list().unwrap();
    let mut older = 0;
    for name in names.iter().filter(|name| name.ends_with(".log")) {
        let content = disk.content(name).unwrap();
        let numbers: Vec<_> = content
            .chunks(BLOCK)
            .skip(1)
            .filter_map(|block| match GroupHeader::read(block) {
                Found::Header(header, _) => Some(header.place.file),
                Found::Newer(_) | Found::Nothing => None,
            })
            .collect();
        older += usize::from(numbers.windows(2).any(|two| two[1] < two[0]));
    }
    assert!(older > 0, "some file was used twice and still holds older groups");
    let (sequence, _) = reopen(&options, &author).expect("it opens");
    assert_eq!(sequence, author.history.len() as u64);
}

fn snapshots(disk: &SimulatedDisk) -> Vec<String> {
    let mut names = disk.list().unwrap();
    names.retain(|name| name.ends_with(".snapshot"));
    names.sort();
    names
}

#[test]
fn damage_to_the_newest_snapshot_falls_back_to_the_older_one() {
    let disk = SimulatedDisk::new(3);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    busy(&options, &mut author, 4).expect("no power is lost");
    let kept = snapshots(&disk);
    assert_eq!(kept.len(), 2, "two are kept");
    let whole = disk.content(&kept[1]).unwrap();
    for at in (0..whole.len()).step_by(97) {
        let mut content = whole.clone();
        content[at] ^= 0x10;
        disk.set_content(&kept[1], content);
        let (sequence, _) = reopen(&options, &author).expect("the older one serves");
        assert_eq!(sequence, author.history.len() as u64);
    }
    disk.set_content(&kept[1], whole[..BLOCK + 10].to_vec());
    assert_eq!(reopen(&options, &author).expect("the older one serves").0, author.history.len() as u64);
}

#[test]
fn without_any_good_snapshot_a_log_whose_front_is_gone_is_refused() {
    let disk = SimulatedDisk::new(3);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    busy(&options, &mut author, 12).expect("no power is lost");
    for name in snapshots(&disk) {
        disk.lose(&name);
    }
    let found = corruption(&options, &author);
    assert!(found.first_missing == LogSequence::new(1), "{found}");
}

#[test]
fn a_lost_log_file_is_refused_by_number() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    life(&options, &mut author, &[12_000; 12]);
    disk.lose("000000000002.log");
    let found = corruption(&options, &author);
    assert!(found.to_string().contains(FIRST) || found.to_string().contains("file 2"), "{found}");
}

#[test]
fn a_file_of_a_newer_format_is_refused_as_such() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    life(&options, &mut author, &[100]);
    let mut content = disk.content(FIRST).unwrap();
    content[12] = 9;
    let checksum = crc32c::crc32c(&content[12..64]);
    content[8..12].copy_from_slice(&checksum.to_le_bytes());
    disk.set_content(FIRST, content);
    let text = reopen(&options, &author).err().expect("it is refused").to_string();
    assert!(text.contains("format version 9") && text.contains("newer Semel"), "{text}");
}

#[test]
fn a_side_file_that_is_damaged_or_gone_is_made_anew() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    let opened = open(&options, &mut author, 0, &Said::default()).expect("it opens");
    let mut rig = Rig::start(opened, &mut author).expect("it starts");
    for _ in 0..20 {
        write(&mut rig, &mut author, 12_000);
        rig.settle().expect("prepared");
    }
    rig.stop().expect("it stops");
    let names = disk.list().unwrap();
    let sides: Vec<_> = names.iter().filter(|name| name.ends_with(".side")).collect();
    assert!(!sides.is_empty());
    disk.lose(sides[0]);
    if let Some(name) = sides.get(1) {
        disk.set_content(name, vec![7; BLOCK]);
    }
    let (sequence, _) = reopen(&options, &author).expect("it opens, and every partition reads back");
    assert_eq!(sequence, author.history.len() as u64);
}

#[test]
fn salvage_cuts_at_the_damage_sets_the_rest_aside_and_it_never_comes_back() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    life(&options, &mut author, &[9_000; 12]);
    let (at, header) = groups(&disk, FIRST)[2];
    let mut content = disk.content(FIRST).unwrap();
    content[at + 20] ^= 1;
    let damaged = content.clone();
    disk.set_content(FIRST, content);
    corruption(&options, &author);
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let done = salvage_disk(shared.clone(), &options).expect("it can be cut").expect("there is damage");
    assert_eq!(done.corruption.position, at as u64);
    let aside = disk.content(&done.set_aside[0]).expect("the tail is kept");
    assert_eq!(aside[..damaged.len() - at], damaged[at..]);
    assert!(done.set_aside.iter().any(|name| name.starts_with("000000000002.log")), "later files too");
    assert_eq!(salvage_disk(shared, &options).expect("nothing to do"), None);
    disk.restore_power();
    let kept = header.first_sequence.get() - 1;
    let opened = open(&options, &mut author, kept, &Said::default()).expect("it opens");
    assert_eq!(opened.last_sequence.get(), kept);
    let mut rig = Rig::start(opened, &mut author).expect("it starts");
    for _ in 0..12 {
        write(&mut rig, &mut author, 9_000);
    }
    let promised = author.history.len() as u64;
    open(&options, &mut author, promised, &Said::default()).expect("it opens");
}

#[test]
fn salvage_gives_a_file_that_was_cut_its_length_back() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    life(&options, &mut author, &[100, 9_000]);
    let (whole, (at, header)) = (disk.content(FIRST).unwrap(), *groups(&disk, FIRST).last().unwrap());
    disk.set_content(FIRST, whole[..at + HEADER].to_vec());
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    salvage_disk(shared.clone(), &options).expect("it can be cut").expect("there is damage");
    assert_eq!(disk.content(FIRST).map(|content| content.len()), Some(whole.len()));
    assert_eq!(salvage_disk(shared, &options).expect("nothing to do"), None);
    let (sequence, _) = reopen(&options, &author).expect("it opens");
    assert_eq!(sequence, header.first_sequence.get() - 1);
}

/// Reads a partition from an offset on: how far it comes, and what is wrong there.
fn read_on(log: &Log, partition: PartitionHandle, from: i64, end: Offset) -> (i64, Option<io::Error>) {
    let mut offset = Offset::new(from);
    while offset < end {
        let isolation = Isolation::ReadUncommitted;
        let request = ReadRequest { partition, offset, max_bytes: 1 << 20, at_least_one: true, isolation };
        let plan = log.published().read().plan(&request).expect("the partition is there");
        match plan.read_blocking(log.cache()) {
            Ok(data) => offset = data.end_offset,
            Err(ReadError::Failed(error)) => return (offset.get(), Some(error)),
            Err(error) => panic!("{error}"),
        }
    }
    (offset.get(), None)
}

/// Batches of 9000 bytes in groups of their own until a second file holds some of them; the other partition has one.
fn two_files(options: &Options, author: &mut Author) {
    let opened = open(options, author, 0, &Said::default()).expect("it opens");
    let mut rig = Rig::start(opened, author).expect("it starts");
    let mut other = Proposal::default();
    author.produced(&mut other, 1, 1, 500);
    rig.log.submit(other);
    for _ in 0..30 {
        write(&mut rig, author, 9_000);
        rig.settle().expect("files are prepared");
    }
    rig.stop().expect("it stops");
}

/// LOG-32: replay reads no payloads, so the log opens; readers are told, in sealed files and in the current one.
#[test]
fn payloads_damaged_on_disk_open_and_are_refused_to_their_readers() {
    let disk = SimulatedDisk::new(1);
    let options = options(&disk, Durability::Sync);
    let mut author = author();
    two_files(&options, &mut author);
    let names: Vec<_> = disk.list().unwrap().into_iter().filter(|name| name.ends_with(".log")).collect();
    let written: Vec<_> = names.iter().filter(|name| groups(&disk, name).len() > 3).collect();
    assert!(written.len() >= 2, "one is sealed, one is current: {names:?}");
    let flip: fn(&mut [u8]) = |page| page[1234] ^= 1;
    let zero: fn(&mut [u8]) = |page| page.fill(0);
    for (name, change) in written.iter().flat_map(|name| [(name, flip), (name, zero)]) {
        let whole = disk.content(name).unwrap();
        let holds_pages = |(_, header): &(usize, GroupHeader)| header.payload_length >= 9_000;
        let (at, header) =
            groups(&disk, name).into_iter().filter(holds_pages).nth(1).expect("there are several");
        // A page that lies in the payload alone.
        let page = (at + header.payload_start()).next_multiple_of(BLOCK);
        assert!(page + BLOCK <= at + header.payload_start() + header.payload_length as usize);
        let mut content = whole.clone();
        change(&mut content[page..page + BLOCK]);
        disk.set_content(name, content);
        let mut node = Node::default();
        let log = Log::open(options.clone(), &mut node, Said::default().listen()).expect("it opens").log;
        let ends: Vec<_> = node.ends.iter().map(|(partition, end)| (*partition, *end)).collect();
        let (partition, end) = ends[0];
        let (offset, error) = read_on(&log, partition, 0, end);
        let error = error.expect("the damage is met");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let file: u64 = name[..12].parse().unwrap();
        let place = format!("{partition} at offset {offset}, file {file} at byte ");
        assert!(error.to_string().starts_with(&place), "{error} says {place}");
        assert!(read_on(&log, partition, offset + 1, end).1.is_none(), "what follows it is whole");
        assert!(read_on(&log, ends[1].0, 0, ends[1].1).1.is_none(), "the other partition is whole");
        drop(log);
        disk.set_content(name, whole);
    }
    reopen(&options, &author).expect("it opens");
}
