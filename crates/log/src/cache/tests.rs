//! The block cache: what it keeps, what it drops, what it counts.

use super::*;

/// A source of files of endless, recognisable bytes.
struct Pattern;

impl BlockSource for Pattern {
    fn read(&self, file: FileNumber, position: u64, length: usize) -> io::Result<Bytes> {
        Ok((position..position + length as u64).map(|at| byte(file, at)).collect())
    }

    fn try_read_cached(&self, _: FileNumber, _: u64, _: usize) -> io::Result<Option<Bytes>> {
        Ok(None)
    }
}

fn byte(file: FileNumber, at: u64) -> u8 {
    (at ^ (at >> 9) ^ file.get()) as u8
}

fn block(file: u64, position: u64, length: u64) -> Block {
    Block { file: BlockFile::Log(FileNumber::new(file)), position, length, limit: u64::MAX }
}

fn cache(bytes: usize) -> BlockCache {
    BlockCache::new(Arc::new(Pattern), bytes, 1 << 20)
}

fn assert_right(block: &Block, found: &[Bytes]) {
    let BlockFile::Log(file) = block.file else { panic!("a log file") };
    let wanted: Vec<u8> = (block.position..block.end()).map(|at| byte(file, at)).collect();
    assert!(found.concat() == wanted, "other bytes than the file has at {block:?}");
}

#[test]
fn what_was_written_is_read_without_the_source() {
    let cache = cache(8 << 20);
    let whole: Bytes = (0..3 << 20).map(|at| byte(FileNumber::new(1), at)).collect();
    let mut at = 0;
    for length in [4096_usize, 512 << 10, 8192, 4096, 900 << 10, 64 << 10, 4096].into_iter().cycle() {
        if at + length > whole.len() {
            break;
        }
        cache.insert_written(FileNumber::new(1), at as u64, whole.slice(at..at + length));
        at += length;
    }
    for position in (0..at as u64 - 5000).step_by(3333) {
        let block = block(1, position, 5000);
        assert_right(&block, &cache.get_cached(&block).unwrap().unwrap());
    }
    assert_eq!(cache.figures().read_bytes, 0);
}

#[test]
fn history_is_read_once_by_windows() {
    let cache = cache(16 << 20);
    for position in (0..4 * WINDOW - 900).step_by(777) {
        let block = block(3, position, 900);
        assert_right(&block, &cache.get(&block).unwrap());
    }
    let figures = cache.figures();
    assert!(figures.read_bytes <= 16 * WINDOW, "{figures:?}");
    assert!(figures.misses < 8, "{figures:?}");
    assert!(figures.bytes as u64 >= 4 * WINDOW);
}

#[test]
fn a_block_larger_than_the_whole_cache_is_read() {
    for bytes in [0, WINDOW as usize] {
        let cache = cache(bytes);
        let block = block(1, 12_345, 5 * WINDOW);
        assert_right(&block, &cache.get(&block).unwrap());
        assert!(cache.figures().bytes <= bytes, "{:?}", cache.figures());
    }
}

#[test]
fn cached_bytes_stay_within_the_bound_under_any_load() {
    const BOUND: usize = 3 << 20;
    let cache = cache(BOUND);
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut tail = 0;
    for _ in 0..2000 {
        if next(3) == 0 {
            let length = 1 + next(200_000);
            let written: Bytes = (tail..tail + length).map(|at| byte(FileNumber::new(9), at)).collect();
            cache.insert_written(FileNumber::new(9), tail, written);
            tail += length;
        } else {
            let file = if next(2) == 0 { 9 } else { 1 + next(3) };
            let block = block(file, next(8 * WINDOW), 1 + next(30_000));
            assert_right(&block, &cache.get(&block).unwrap());
        }
        assert!(cache.figures().bytes <= BOUND, "{:?}", cache.figures());
        assert!(cache.windows.lock().clock.len() <= 64, "the clock does not outgrow the windows");
    }
}

#[test]
fn small_groups_share_the_buffer_of_their_window() {
    let cache = cache(64 << 20);
    let mut position = 0;
    for _ in 0..4096 {
        let group: Bytes = (position..position + 4096).map(|at| byte(FileNumber::new(1), at)).collect();
        cache.insert_written(FileNumber::new(1), position, group);
        position += 4096;
    }
    assert_eq!(cache.figures().bytes as u64, position, "each byte is charged once");
    let windows = cache.windows.lock();
    for window in windows.by_key.values() {
        let first = window.pieces[0].bytes.as_ptr() as usize;
        let in_order = window.pieces.iter().all(|piece| {
            piece.bytes.as_ptr() as usize == first + (piece.start - window.pieces[0].start) as usize
        });
        assert!(in_order, "no piece was copied twice or to another buffer");
    }
}

#[test]
fn nothing_past_the_readable_end_is_cached() {
    let cache = cache(8 << 20);
    let first = Block { limit: 5000, ..block(1, 100, 50) };
    cache.get(&first).unwrap();
    let after = Block { limit: u64::MAX, ..block(1, 5000, 10) };
    assert!(cache.get_cached(&first).unwrap().is_some());
    assert!(cache.get_cached(&after).unwrap().is_none(), "what is written there later must not be hidden");
}

#[test]
fn a_forgotten_file_is_not_cached() {
    let cache = cache(8 << 20);
    let kept = block(2, 0, 10);
    let gone = block(1, 0, 10);
    cache.get(&kept).unwrap();
    cache.get(&gone).unwrap();
    let before = cache.figures().bytes;
    cache.forget_file(FileNumber::new(1));
    assert!(cache.get_cached(&gone).unwrap().is_none());
    assert!(cache.get_cached(&kept).unwrap().is_some());
    assert!(cache.figures().bytes < before);
}

#[test]
fn pinned_bytes_have_a_bound_and_waking_follows_release() {
    let cache = BlockCache::new(Arc::new(Pattern), 0, 1000);
    let first = cache.pin(600).unwrap();
    assert!(cache.pin(401).is_none());
    let second = Arc::new(cache.pin(400).unwrap());
    let slice = counted(Bytes::from_static(b"held by a response"), &second);
    drop(second);
    let (sender, receiver) = std::sync::mpsc::channel();
    struct Signal(std::sync::mpsc::Sender<()>);
    impl std::task::Wake for Signal {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }
    cache.wake_when_unpinned(&Waker::from(Arc::new(Signal(sender))));
    assert_eq!(cache.figures().pinned_bytes, 1000);
    assert!(receiver.try_recv().is_err());
    let clone = slice.slice(3..);
    drop(slice);
    assert_eq!(cache.figures().pinned_bytes, 1000, "a slice of a slice holds it");
    drop(clone);
    assert!(receiver.try_recv().is_ok());
    assert_eq!(cache.figures().pinned_bytes, 600);
    drop(first);
    let (sender, receiver) = std::sync::mpsc::channel();
    cache.wake_when_unpinned(&Waker::from(Arc::new(Signal(sender))));
    assert!(receiver.try_recv().is_ok(), "nothing is held: nobody would wake it later");
    assert!(cache.pin(5000).is_some(), "a read above the whole bound is let in alone");
}
