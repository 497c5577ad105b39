//! Questions about the whole state: answered from a copy of it, so that a long answer stalls nobody.
//!
//! Purpose: the node gives a copy of its state as it is after everything proposed before; whoever holds the connection
//! builds the answer from it on a thread that may take its time. Invariants: NET-04: the answer leaves once what the copy shows
//! is durable, like any other; it changes nothing. What it does not do: look anything up that is not in the log.

use std::{fmt, sync::Arc};

use semel_types::{DurationMs, Now, WallTime};
use semel_wire::api::{
    consumer_group_describe::ConsumerGroupDescribeRequest, describe_groups::DescribeGroupsRequest,
    describe_producers::DescribeProducersRequest, describe_transactions::DescribeTransactionsRequest,
    list_groups::ListGroupsRequest, list_transactions::ListTransactionsRequest,
    streams_group_describe::StreamsGroupDescribeRequest,
};

use crate::{
    api::{self, Reply},
    call::Asked,
    node::{Handled, Step},
    state::State,
};

/// A question.
#[derive(Clone, Debug)]
pub enum Inquiry {
    /// DescribeGroups.
    Groups(Asked<DescribeGroupsRequest>),
    /// ListGroups.
    GroupList(Asked<ListGroupsRequest>),
    /// ConsumerGroupDescribe.
    ConsumerGroups(Asked<ConsumerGroupDescribeRequest>),
    /// StreamsGroupDescribe.
    StreamsGroups(Asked<StreamsGroupDescribeRequest>),
    /// DescribeProducers.
    Producers(Asked<DescribeProducersRequest>),
    /// DescribeTransactions.
    Transactions(Asked<DescribeTransactionsRequest>),
    /// ListTransactions.
    TransactionList(Asked<ListTransactionsRequest>),
}

/// The state at one moment, and that moment.
#[derive(Clone)]
pub(crate) struct Cut {
    /// The state.
    pub(crate) state: Arc<State>,
    /// What is known of groups beside the state.
    pub(crate) groups: Arc<semel_groups::Volatile>,
    now: Now,
    wall: WallTime,
}

/// A question with what is needed to answer it.
#[derive(Clone)]
pub struct StateCall {
    cut: Cut,
    inquiry: Inquiry,
}

pub(crate) fn run(step: &mut Step<'_>, inquiry: &Inquiry) -> Handled {
    let groups = match inquiry {
        Inquiry::Groups(_) | Inquiry::GroupList(_) | Inquiry::StreamsGroups(_) => {
            Arc::new(step.groups().snapshot())
        }
        Inquiry::ConsumerGroups(_)
        | Inquiry::Producers(_)
        | Inquiry::Transactions(_)
        | Inquiry::TransactionList(_) => Arc::default(),
    };
    let cut = Cut { state: step.copy(), groups, now: step.context.now, wall: step.context.wall };
    Handled::State(StateCall { cut, inquiry: inquiry.clone() })
}

impl StateCall {
    /// Builds the answer; may take long for a large state.
    #[must_use]
    pub fn answer(&self) -> Reply {
        api::answer_inquiry(&self.cut, &self.inquiry)
    }
}

impl fmt::Debug for StateCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateCall").field(&self.inquiry).finish()
    }
}

impl Cut {
    /// How long ago something was.
    pub(crate) const fn since(&self, then: Now) -> DurationMs {
        self.now.since(then)
    }

    /// A time of the broker's clock as people and clients read it, in ms since 1970.
    pub(crate) const fn wall_ms(&self, then: Now) -> i64 {
        self.wall.as_ms().saturating_sub(self.since(then).as_ms())
    }
}
