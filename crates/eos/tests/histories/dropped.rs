//! Each rule of `docs/dropped-rules.md` is dropped in turn; the histories must then break the promise named there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use semel_eos::dropped::{Rule, drop_rule};

use crate::history;

/// Histories within which a dropped rule must be noticed.
const WITHIN: u64 = 20_000;

/// The promise that each rule's row of the page names.
fn page() -> BTreeMap<String, String> {
    let page = include_str!("../../../../docs/dropped-rules.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let promise =
        |rest: &str| rest.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default().to_owned();
    rows.map(|(rule, rest)| (rule.to_owned(), promise(rest))).collect()
}

/// Runs histories until one breaks this promise (any, for an empty one): how many it took, and the promises broken
/// on the way.
fn search(promise: &str) -> (Option<u64>, BTreeSet<String>) {
    let (next, found) = (AtomicU64::new(1), AtomicU64::new(u64::MAX));
    let broken = Mutex::new(BTreeSet::new());
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            threads.spawn(|| {
                while found.load(Ordering::Relaxed) == u64::MAX {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > WITHIN {
                        break;
                    }
                    if let Err(text) = history::run(seed) {
                        let name = text.split(':').next().unwrap_or_default().to_owned();
                        if name == promise {
                            found.fetch_min(seed, Ordering::Relaxed);
                        }
                        broken.lock().unwrap().insert(name);
                    }
                }
            });
        }
    });
    let seed = found.into_inner();
    ((seed != u64::MAX).then_some(seed), broken.into_inner().unwrap())
}

#[test]
fn each_dropped_rule_is_noticed_by_the_promise_that_the_page_names() {
    let page = page();
    let named: BTreeSet<String> = Rule::ALL.iter().map(|rule| format!("{rule:?}")).collect();
    assert_eq!(page.keys().cloned().collect::<BTreeSet<_>>(), named, "docs/dropped-rules.md");
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for rule in Rule::ALL {
        drop_rule(rule);
        let (seed, broken) = search(&page[&format!("{rule:?}")]);
        match seed {
            Some(seed) => println!("{rule:?}: history {seed}"),
            None => missed.push((rule, broken)),
        }
    }
    drop_rule(Rule::None);
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not noticed so: {missed:#?}");
}
