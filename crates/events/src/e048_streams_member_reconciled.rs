//! Event 48: what a member of a streams group has, and what it has to give up (KIP-1071).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{GroupId, Now};

use crate::StreamsTaskId;

choice! {
    /// How far a member is on its way to its target (upstream `MemberState`).
    StreamsProgress {
        /// It has its target.
        Stable = 0,
        /// It has to give tasks up first.
        Revoking = 1,
        /// It waits for tasks that others have to give up.
        Waiting = 2,
    }
}

record! {
    /// A task that a member works on.
    StreamsActiveTask {
        /// Which.
        task: StreamsTaskId,
        /// The assignment's epoch in which it got it: commits of older epochs are stale.
        since: i32,
    }
}

record! {
    /// Tasks that a member has, each kind in rising order.
    StreamsHeldTasks {
        /// Those that it works on.
        active: Vec<StreamsActiveTask>,
        /// Those whose stores it keeps a copy of.
        standby: Vec<StreamsTaskId>,
        /// Those whose stores it restores, to work on them later.
        warmup: Vec<StreamsTaskId>,
    }
}

record! {
    /// The member is told this from here on.
    StreamsMemberReconciled {
        /// Which group.
        group: GroupId,
        /// The member.
        member: Arc<str>,
        /// Its epoch; -2 for a static member that is away.
        epoch: i32,
        /// Its epoch before: good for a member that missed the last answer.
        previous_epoch: i32,
        /// How far it is.
        progress: StreamsProgress,
        /// What it has.
        assigned: StreamsHeldTasks,
        /// What it has to give up and still owns.
        revoking: StreamsHeldTasks,
        /// When.
        now: Now,
    }
}
