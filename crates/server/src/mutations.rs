//! A server with a fault, to see that `semel certify` finds it; compiled in test builds alone (feature `mutations`).
//!
//! Purpose: the environment variable `SEMEL_MUTATION` names the one rule that this process breaks: a fault of
//! [`Mutation`], or a rule of the core that is left out ([`Rule`]). Invariants: an unknown name starts nothing; a
//! process with a fault says so. What it does not do: break anything itself.

use std::env;

use semel_eos::dropped::{Rule, drop_rule};
use semel_types::mutation::{Mutation, mutate};

/// Names the fault.
const VARIABLE: &str = "SEMEL_MUTATION";

/// Breaks what the environment names, if it names anything.
///
/// # Errors
/// There is no such fault; the text has the names of all.
pub fn break_named() -> Result<(), String> {
    let Ok(name) = env::var(VARIABLE) else { return Ok(()) };
    let mutation = Mutation::ALL.iter().find(|mutation| mutation.name() == name);
    let rule = Rule::ALL.into_iter().find(|rule| format!("{rule:?}") == name);
    match (mutation, rule) {
        (Some(mutation), _) => mutate(*mutation),
        (None, Some(rule)) => drop_rule(rule),
        (None, None) => {
            return Err(format!("{VARIABLE}: there is no fault {name:?}; there are: {}", names()));
        }
    }
    tracing::error!(fault = name, "THIS SERVER IS BROKEN ON PURPOSE, for a test of semel certify");
    Ok(())
}

fn names() -> String {
    let mutations = Mutation::ALL.iter().map(|mutation| mutation.name().to_owned());
    let rules = Rule::ALL.iter().map(|rule| format!("{rule:?}"));
    mutations.chain(rules).collect::<Vec<_>>().join(", ")
}
