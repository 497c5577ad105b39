//! ListTransactions: what an operator sees of all transactional ids.

use semel_wire::{
    RawProducerId,
    api::list_transactions::{ListTransactionsRequest, ListTransactionsResponse},
};

use super::Actor;
use crate::{Answer, scenario::Kept};

/// Filters of ListTransactions; an id must pass every one, and an empty one lets all pass.
#[derive(Clone, Copy, Default, Debug)]
pub struct Filter<'a> {
    /// Names of states.
    pub states: &'a [&'a str],
    /// Producer ids.
    pub producer_ids: &'a [i64],
}

/// What ListTransactions gave.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Transactional ids with producer id and state.
    pub found: Vec<(String, i64, String)>,
    /// Names of states in the filter that do not exist.
    pub unknown_states: Vec<String>,
}

impl Listing {
    /// The state of an id; `None` if it is not listed.
    #[must_use]
    pub fn state_of(&self, id: &str) -> Option<&str> {
        self.found.iter().find(|(listed, _, _)| listed == id).map(|(_, _, state)| state.as_str())
    }
}

impl Actor {
    /// ListTransactions.
    pub fn list_transactions(&mut self, filter: Filter<'_>) -> Answer<Listing> {
        let request = ListTransactionsRequest {
            state_filters: filter.states.iter().map(|state| (*state).into()).collect(),
            producer_id_filters: filter.producer_ids.iter().map(|id| RawProducerId(*id)).collect(),
            ..Default::default()
        };
        let said =
            format!("ListTransactions states {:?} producer ids {:?}", filter.states, filter.producer_ids);
        self.ask(&said, &request, 0, |response| response.error_code).map(listing)
    }

    /// The state of an id among all; `None` if it is not listed.
    ///
    /// # Errors
    /// It was refused.
    pub fn listed_state(&mut self, id: &str) -> Kept<Option<String>> {
        Ok(self.list_transactions(Filter::default()).is(0)?.state_of(id).map(str::to_owned))
    }
}

fn listing(response: ListTransactionsResponse) -> Listing {
    let found = response.transaction_states.into_iter().map(|one| {
        let id = one.transactional_id.as_str().to_owned();
        (id, one.producer_id.get(), one.transaction_state.as_str().to_owned())
    });
    let unknown = response.unknown_state_filters.iter().map(|state| state.as_str().to_owned());
    Listing { found: found.collect(), unknown_states: unknown.collect() }
}
