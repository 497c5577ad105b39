//! ListTransactions (key 66), versions 0 to 2.
//!
//! Behaviour: the transactional ids that pass every filter, in order. Names of states that do not exist are told back
//! and match nothing; if a request names only such, nothing is listed. A pattern is a regular expression of RE2 that
//! must match the whole id; a bad one is 128.
//! Version notes: 1 filters by age (KIP-994); 2 by pattern (KIP-1152).
//! Unlike Kafka: an age is that of an open transaction; Kafka also lists every id without one, as long as it is idle.

use std::collections::BTreeSet;

use regex::Regex;
use semel_eos::txn::{TransactionState, TransactionalIdEntry};
use semel_types::{DurationMs, ErrorCode, ProducerId};
use semel_wire::{
    Text,
    api::list_transactions::{ListTransactionsRequest, ListTransactionsResponse, ListedTransaction},
};

use super::Reply;
use crate::{inquiry::Cut, pattern};

/// What an id must pass.
struct Filter {
    /// `None` if no state was named.
    states: Option<BTreeSet<TransactionState>>,
    /// `None` if no producer was named.
    producers: Option<BTreeSet<ProducerId>>,
    open_longer_than: Option<DurationMs>,
    pattern: Option<Regex>,
}

pub(super) fn answer(cut: &Cut, request: &ListTransactionsRequest) -> Reply {
    let (states, unknown) = states(&request.state_filters);
    let mut response = ListTransactionsResponse { unknown_state_filters: unknown, ..Default::default() };
    let text = request.transactional_id_pattern.as_deref().filter(|text| !text.is_empty());
    match text.map(pattern::whole).transpose() {
        Ok(pattern) => {
            let filter = Filter {
                states,
                producers: producers(request),
                open_longer_than: age(request.duration_filter),
                pattern,
            };
            response.transaction_states = list(cut, &filter);
        }
        Err(_) => response.error_code = ErrorCode::InvalidRegularExpression.into(),
    }
    response.into()
}

fn list(cut: &Cut, filter: &Filter) -> Vec<ListedTransaction> {
    let all = cut.state.eos.transactions().iter();
    let passing = all.filter(|(id, entry)| filter.passes(cut, id.as_str(), entry));
    let listed = passing.map(|(id, entry)| ListedTransaction {
        transactional_id: Text::from(id.as_str()),
        producer_id: entry.identity.id.into(),
        transaction_state: Text::from(entry.state().name()),
    });
    listed.collect()
}

impl Filter {
    fn passes(&self, cut: &Cut, id: &str, entry: &TransactionalIdEntry) -> bool {
        let is_old = |limit: &DurationMs| entry.open().is_some_and(|open| cut.since(open.started) > *limit);
        self.states.as_ref().is_none_or(|states| states.contains(&entry.state()))
            && self.producers.as_ref().is_none_or(|producers| producers.contains(&entry.identity.id))
            && self.open_longer_than.as_ref().is_none_or(is_old)
            && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(id))
    }
}

/// The states that are named and exist, and the names that do not.
fn states(names: &[Text]) -> (Option<BTreeSet<TransactionState>>, Vec<Text>) {
    let known = names.iter().filter_map(|name| TransactionState::from_name(name)).collect();
    let unknown = names.iter().filter(|name| TransactionState::from_name(name).is_none());
    ((!names.is_empty()).then_some(known), unknown.cloned().collect())
}

/// Producer ids that are named; a negative one is nobody's.
fn producers(request: &ListTransactionsRequest) -> Option<BTreeSet<ProducerId>> {
    let named = &request.producer_id_filters;
    (!named.is_empty()).then(|| named.iter().filter_map(|id| id.known()).collect())
}

fn age(duration_ms: i64) -> Option<DurationMs> {
    (duration_ms >= 0).then(|| DurationMs::from_ms(duration_ms))
}
