//! What a start adds to the log, before anything is served.

use alloc::vec::Vec;

use semel_events::{EndCause, Event, ShardStarted};
use semel_types::{ClusterId, ConnectionNumber, Context, ShardId};

use super::{draft::Draft, timeout::abort};
use crate::{
    State, Volatile,
    dropped::{Rule, keeps},
};

/// The one shard of a node with local files.
const SHARD: ShardId = ShardId::new(0);

/// The events of a start: the shard's next epoch; and after an unclean stop in durability `interval`
/// (`may_have_lost_writes`) the abort of every open transaction, as by a timeout, because acknowledged writes of it
/// may be missing. Identities stay valid. Transactions that are merely overdue are left to the first tick.
#[must_use]
pub fn start(state: &State, context: &Context, may_have_lost_writes: bool, software: &str) -> Vec<Event> {
    let volatile = Volatile::new();
    let mut draft = Draft::new(state, &volatile, context, ConnectionNumber::default());
    let started = ShardStarted {
        shard: SHARD,
        cluster: cluster(state, context),
        shard_epoch: state.shard_epoch().next(),
        now: context.now,
        wall: context.wall,
        may_have_lost_writes,
        software: software.into(),
    };
    draft.events.push(started.into());
    if may_have_lost_writes && keeps(Rule::UncleanAborts) {
        for (_, id) in state.transactions.deadlines() {
            let Ok(entry) = draft.entry(id) else { continue };
            abort(&mut draft, id, entry, EndCause::UncleanStart, None);
        }
    }
    draft.events
}

/// The directory's id, drawn once.
fn cluster(state: &State, context: &Context) -> ClusterId {
    let known = state.cluster_id();
    if known != ClusterId::default() {
        return known;
    }
    let mut drawn = [0; 16];
    drawn.copy_from_slice(&context.entropy[16..]);
    ClusterId::new(drawn)
}
