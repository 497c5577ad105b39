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
