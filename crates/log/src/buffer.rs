//! Block-aligned buffers for direct writes, pooled: a group's buffer goes to the block cache when it is written and
//! comes back when the last reader lets go.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use bytes::Bytes;

use crate::disk::BLOCK;

/// Buffers kept per size class.
const KEPT_PER_CLASS: usize = 16;
/// Size classes: 1, 2, 4 .. 2^8 blocks (1 MiB); larger ones are not kept.
const CLASSES: usize = 9;

/// One aligned block.
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Block([u8; BLOCK]);

/// Bytes that start on a block boundary; the length is a multiple of a block.
pub struct Aligned {
    blocks: Vec<Block>,
    used: usize,
    home: Weak<Pool>,
}

/// Gives out buffers.
#[derive(Default)]
pub struct Pool {
    free: Mutex<[Vec<Vec<Block>>; CLASSES]>,
}

impl Pool {
    /// A buffer of at least `bytes`, rounded up to whole blocks. Its content is arbitrary.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Aligned {
        let used = bytes.div_ceil(BLOCK);
        let blocks = used.next_power_of_two();
        let kept = self.class(blocks, Vec::pop).flatten();
        let blocks = kept
            .unwrap_or_else(|| vec![Block([0; BLOCK]); if blocks >> CLASSES == 0 { blocks } else { used }]);
        Aligned { blocks, used: used * BLOCK, home: Arc::downgrade(self) }
    }

    fn class<R>(&self, blocks: usize, act: impl FnOnce(&mut Vec<Vec<Block>>) -> R) -> Option<R> {
        let class = blocks.checked_ilog2()? as usize;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.get_mut(class).map(act)
    }

    fn put(&self, blocks: Vec<Block>) {
        let count = blocks.len();
        self.class(count, |free| {
            if count.is_power_of_two() && free.len() < KEPT_PER_CLASS {
                free.push(blocks);
            }
        });
    }
}

impl Aligned {
    /// A zeroed buffer that belongs to no pool.
    pub fn zeroed(bytes: usize) -> Self {
        let used = bytes.div_ceil(BLOCK);
        Self { blocks: vec![Block([0; BLOCK]); used], used: used * BLOCK, home: Weak::new() }
    }

    /// Shares the buffer; it returns to its pool when the last share is dropped.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `Block` is `repr(C)` over bytes without padding (its size is its alignment), all initialised.
        let all = unsafe {
            std::slice::from_raw_parts(self.blocks.as_ptr().cast::<u8>(), self.blocks.len() * BLOCK)
        };
        &all[..self.used]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        let length = self.blocks.len() * BLOCK;
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        let all = unsafe { std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().cast::<u8>(), length) };
        &mut all[..self.used]
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        if let Some(pool) = self.home.upgrade() {
            pool.put(std::mem::take(&mut self.blocks));
        }
    }
}

/// Copies in pieces short enough that the C library never uses string moves, which on some processors slow down
/// thirtyfold when source and target lie a few bytes apart within their pages.
pub fn copy(to: &mut [u8], from: &[u8]) {
    const PIECE: usize = 2048;
    for (to, from) in to.chunks_mut(PIECE).zip(from.chunks(PIECE)) {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_start_on_a_block_and_return_to_their_pool() {
        let pool = Arc::new(Pool::default());
        let mut buffer = pool.take(5000);
        assert_eq!((buffer.as_ptr() as usize % BLOCK, buffer.len()), (0, 2 * BLOCK));
        buffer[0] = 7;
        let bytes = buffer.into_bytes();
        let other = pool.take(8192);
        drop(bytes);
        assert_eq!(pool.take(6000)[0], 7, "the first buffer is used again");
        assert_ne!(other[0], 7);
    }

    #[test]
    fn copy_moves_every_byte() {
        let from: Vec<u8> = (0..10_000_u32).map(|value| value as u8).collect();
        let mut to = vec![0; 10_000];
        copy(&mut to, &from);
        assert_eq!(to, from);
    }
}
