//! Event 1: a shard was opened for writing. The first event of each incarnation, in the `Open` group.

use alloc::string::String;

use semel_types::{ClusterId, Now, ShardEpoch, ShardId, WallTime};

record! {
    /// A shard was opened for writing.
    ShardStarted {
        /// Which shard.
        shard: ShardId,
        /// The data directory's id: random at the first start, repeated by all later ones.
        cluster: ClusterId,
        /// Its epoch, one more than before; also leader epoch and coordinator epoch.
        shard_epoch: ShardEpoch,
        /// The broker's clock at start: the larger of wall time and the last logged time.
        now: Now,
        /// Wall clock at start.
        wall: WallTime,
        /// The stop before was not clean and acknowledged writes may be missing (durability `interval`): until its
        /// next accepted batch on a partition, an id issued before here is told 59 there instead of 45.
        may_have_lost_writes: bool,
        /// Version of the server, for people who read the log.
        software: String,
    }
}
