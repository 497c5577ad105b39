//! Why groups rebalanced: the last rounds of each group, for people.
//!
//! Purpose: `semel group explain` names the cause of each rebalance. Decisions of any protocol hand in a finished
//! [`Round`] with [`Change::Rebalanced`](crate::Change::Rebalanced). Invariants: bounded whatever clients do
//! ([`ROUNDS_PER_GROUP`], [`ROUNDS_MAX`], [`CAUSES_PER_ROUND`]); nothing here is read by a decision or by `apply`. It is
//! not in the log: a restart forgets it. What it does not do: count, measure.

use alloc::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    vec::Vec,
};

use rpds::RedBlackTreeMapSync;
use semel_types::{GroupId, Now};

use crate::{MemberId, Who};

/// Rounds that are kept of one group.
pub const ROUNDS_PER_GROUP: usize = 16;

/// Rounds that are kept of all groups: beyond it those of the group that rebalanced longest ago go first.
pub const ROUNDS_MAX: usize = 20_000;

/// Causes that are kept of one round; more are counted.
pub const CAUSES_PER_ROUND: usize = 8;

/// What made a group rebalance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A member came.
    Joined,
    /// A member left by itself, or was removed by an administrator.
    Left,
    /// A member was silent for longer than its session timeout.
    SessionExpired,
    /// A member did not ask for its part in time.
    NotSynced,
    /// A member did not come back in time when the group asked everybody to.
    DidNotRejoin,
    /// A member of a consumer group (KIP-848) did not give up in time what it had to.
    DidNotRevoke,
    /// A static member came back with a new id, and its protocol differs or the group was not stable.
    StaticReplaced,
    /// A member wants other topics or protocols.
    SubscriptionChanged,
    /// The leader joined again: it saw a change of the topics, or wants to assign anew.
    LeaderRejoined,
    /// Another member joined again: it gave partitions up (cooperative protocols), or its assignor asks for it.
    Rejoined,
    /// A topic that is read came, went or grew.
    TopicsChanged,
    /// Members went before a restart and the generation was not renewed.
    Restarted,
    /// The group goes on in another protocol.
    ProtocolChanged,
}

impl Reason {
    /// Its name in machine-readable output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Left => "left",
            Self::SessionExpired => "session-expired",
            Self::NotSynced => "not-synced",
            Self::DidNotRejoin => "did-not-rejoin",
            Self::DidNotRevoke => "did-not-revoke",
            Self::StaticReplaced => "static-replaced",
            Self::SubscriptionChanged => "subscription-changed",
            Self::LeaderRejoined => "leader-rejoined",
            Self::Rejoined => "rejoined",
            Self::TopicsChanged => "topics-changed",
            Self::Restarted => "restarted",
            Self::ProtocolChanged => "protocol-changed",
        }
    }
}

/// One cause of a rebalance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    /// What happened.
    pub reason: Reason,
    /// To which member; empty if to none.
    pub member: MemberId,
    /// The static member's name.
    pub instance: Option<Arc<str>>,
    /// The member's `client.id`.
    pub client_id: Arc<str>,
    /// The address that it came from.
    pub client_host: Arc<str>,
    /// When.
    pub at: Now,
}

impl Cause {
    /// Of a member.
    #[must_use]
    pub fn of<'a>(reason: Reason, member: impl Into<Who<'a>>, at: Now) -> Self {
        let who = member.into();
        Self {
            reason,
            member: Arc::clone(who.id),
            instance: who.instance.clone(),
            client_id: Arc::clone(who.client_id),
            client_host: Arc::clone(who.client_host),
            at,
        }
    }

    /// Of no member.
    #[must_use]
    pub fn nobodys(reason: Reason, at: Now) -> Self {
        let (member, instance) = (MemberId::default(), None);
        Self { reason, member, instance, client_id: Arc::default(), client_host: Arc::default(), at }
    }
}

/// Causes of a round that is under way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Causes {
    kept: Vec<Cause>,
    more: u32,
}

impl Causes {
    /// Notes another one.
    pub fn push(&mut self, cause: Cause) {
        if self.kept.len() < CAUSES_PER_ROUND {
            self.kept.push(cause);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// The round that ends now with this generation or epoch.
    #[must_use]
    pub fn end(self, generation: i32, members: usize, ended: Now) -> Round {
        let began = self.kept.first().map_or(ended, |cause| cause.at);
        Round { generation, members, began, ended, causes: self.kept, more_causes: self.more }
    }
}

/// One rebalance from its first cause to its new generation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Round {
    /// The generation or epoch that it ended with.
    pub generation: i32,
    /// Members in it.
    pub members: usize,
    /// When its first cause came.
    pub began: Now,
    /// When its generation started.
    pub ended: Now,
    /// Why, in order; none if it is not known.
    pub causes: Vec<Cause>,
    /// Causes that are not kept.
    pub more_causes: u32,
}

/// The rounds of one group, the oldest first; shared by clones.
type Rounds = Arc<VecDeque<Arc<Round>>>;

/// The last rounds of every group. A clone shares everything.
#[derive(Clone, Debug, Default)]
pub struct History {
    by_group: RedBlackTreeMapSync<GroupId, (u64, Rounds)>,
    by_age: BTreeSet<(u64, GroupId)>,
    next: u64,
    rounds: usize,
}

impl History {
    /// Rounds of one group, the oldest first.
    pub fn of(&self, group: &GroupId) -> impl DoubleEndedIterator<Item = &Round> {
        self.by_group.get(group).into_iter().flat_map(|(_, rounds)| rounds.iter().map(|round| &**round))
    }

    /// A copy to look groups up in.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        Self { by_group: self.by_group.clone(), ..Self::default() }
    }

    /// A group is deleted: what comes under its name is another one.
    pub(crate) fn forget(&mut self, group: &GroupId) {
        let Some((number, rounds)) = self.by_group.get(group) else { return };
        self.rounds -= rounds.len();
        self.by_age.remove(&(*number, group.clone()));
        self.by_group.remove_mut(group);
    }

    pub(crate) fn push(&mut self, group: GroupId, round: Round) {
        let (number, mut rounds) = self.by_group.get(&group).cloned().unwrap_or_default();
        self.by_age.remove(&(number, group.clone()));
        let kept = Arc::make_mut(&mut rounds);
        if kept.len() == ROUNDS_PER_GROUP {
            kept.pop_front();
            self.rounds -= 1;
        }
        kept.push_back(Arc::new(round));
        self.rounds += 1;
        self.next += 1;
        self.by_age.insert((self.next, group.clone()));
        self.by_group.insert_mut(group, (self.next, rounds));
        while self.rounds > ROUNDS_MAX {
            let Some((_, oldest)) = self.by_age.pop_first() else { return };
            let gone = self.by_group.get(&oldest).map_or(0, |(_, rounds)| rounds.len());
            self.by_group.remove_mut(&oldest);
            self.rounds -= gone;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn round(generation: i32) -> Round {
        let mut causes = Causes::default();
        for _ in 0..CAUSES_PER_ROUND + 3 {
            causes.push(Cause::nobodys(Reason::TopicsChanged, Now::from_ms(5)));
        }
        causes.end(generation, 1, Now::from_ms(9))
    }

    #[test]
    fn of_one_group_the_last_rounds_are_kept() {
        let (mut history, group) = (History::default(), GroupId::from("g"));
        (1..=20).for_each(|generation| history.push(group.clone(), round(generation)));
        let kept: Vec<_> = history.of(&group).map(|round| round.generation).collect();
        assert_eq!(kept, (5..=20).collect::<Vec<_>>());
        let last = history.of(&group).next_back().unwrap();
        assert_eq!((last.causes.len(), last.more_causes), (CAUSES_PER_ROUND, 3));
        assert_eq!((last.began, last.ended), (Now::from_ms(5), Now::from_ms(9)));
    }

    #[test]
    fn a_group_that_is_deleted_takes_its_rounds_along_and_leaves_room_for_others() {
        let (mut history, group, other) = (History::default(), GroupId::from("g"), GroupId::from("other"));
        (1..=3).for_each(|generation| history.push(group.clone(), round(generation)));
        history.push(other.clone(), round(1));
        history.forget(&group);
        history.forget(&GroupId::from("never"));
        assert_eq!((history.of(&group).count(), history.of(&other).count()), (0, 1));
        assert_eq!((history.rounds, history.by_age.len()), (1, 1));
        history.push(group.clone(), round(7));
        let kept: Vec<_> = history.of(&group).map(|round| round.generation).collect();
        assert_eq!(kept, [7], "a new group of the name has its own history alone");
    }

    #[test]
    fn of_all_groups_the_one_that_rebalanced_longest_ago_is_forgotten() {
        let mut history = History::default();
        let name = |at: usize| GroupId::new(&format!("g{at}"));
        (0..ROUNDS_MAX).for_each(|at| history.push(name(at), round(1)));
        history.push(name(0), round(2));
        assert_eq!(history.of(&name(0)).count(), 2);
        assert_eq!(history.of(&name(1)).count(), 0);
        assert_eq!(history.of(&name(2)).count(), 1);
    }
}
