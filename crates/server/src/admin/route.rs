//! Which paths there are, and what each answers.

use std::{str::FromStr, time::Duration};

use semel_types::{GroupId, PartitionIndex, TransactionalId};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Admin, describe, group, reply::Failure};
use crate::node_thread::Inspected;

/// Every path, as `docs/admin-api.yaml` has them.
#[cfg(test)]
pub const ROUTES: [&str; 7] = [
    "/v1/health",
    "/v1/ready",
    "/v1/fences",
    "/v1/refused",
    "/v1/transactions/{id}",
    "/v1/partitions/{topic}/{partition}/stability",
    "/v1/groups/{group}",
];

/// Entries of one answer, unless asked otherwise, and at most.
const LIMIT: usize = 1_000;

/// How long a request may wait for something to happen.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Which fences are wanted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FenceFilter {
    /// Of this transactional id alone.
    pub id: Option<TransactionalId>,
    /// With a higher number.
    pub after: u64,
    /// At or after this moment, in ms since 1970.
    pub since_ms: Option<i64>,
    /// At most so many, the newest.
    pub limit: usize,
}

/// What is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Route {
    /// Is the process there?
    Health,
    /// Does the node decide and the log write?
    Ready,
    /// Fences; if there are none yet, those that come within `wait`.
    Fences {
        /// Which.
        filter: FenceFilter,
        /// How long to wait.
        wait: Duration,
    },
    /// Refused requests, of one transactional id or of all.
    Refused {
        /// Of this one alone.
        id: Option<TransactionalId>,
        /// At most so many ids.
        limit: usize,
    },
    /// Everything about a transactional id.
    Transaction(TransactionalId),
    /// What holds the last stable offset of a partition.
    Stability {
        /// The topic.
        topic: String,
        /// The partition.
        partition: PartitionIndex,
    },
    /// A group: members, offsets, rebalances.
    Group(GroupId),
}

impl Route {
    /// Reads path and query.
    ///
    /// # Errors
    /// There is no such path, or a value is wrong.
    pub fn parse(path: &str, query: &str) -> Result<Self, Failure> {
        let query = Query::parse(query)?;
        let segments: Vec<String> = path.split('/').skip(1).map(decode).collect::<Result<_, _>>()?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let route = match segments[..] {
            ["v1", "health"] => Self::Health,
            ["v1", "ready"] => Self::Ready,
            ["v1", "fences"] => Self::Fences {
                filter: FenceFilter {
                    id: query.text("id").map(TransactionalId::new),
                    after: query.number("after")?.unwrap_or(0),
                    since_ms: query.number("since_ms")?,
                    limit: query.limit()?,
                },
                wait: Duration::from_millis(query.number("wait_ms")?.unwrap_or(0)).min(WAIT_MAX),
            },
            ["v1", "refused"] => {
                Self::Refused { id: query.text("id").map(TransactionalId::new), limit: query.limit()? }
            }
            ["v1", "transactions", id] => Self::Transaction(TransactionalId::new(id)),
            ["v1", "partitions", topic, partition, "stability"] => {
                let wrong = |_| Failure::invalid(format!("{partition:?} is no number of a partition"));
                let partition = PartitionIndex::new(partition.parse().map_err(wrong)?);
                Self::Stability { topic: topic.to_owned(), partition }
            }
            ["v1", "groups", group] => Self::Group(GroupId::new(group)),
            _ => return Err(Failure::not_found(format!("there is no {path}; see docs/admin-api.yaml"))),
        };
        query.all_known(&route)?;
        Ok(route)
    }

    /// The parameters that a path takes.
    fn parameters(&self) -> &'static [&'static str] {
        match self {
            Self::Fences { .. } => &["id", "after", "since_ms", "limit", "wait_ms"],
            Self::Refused { .. } => &["id", "limit"],
            Self::Health | Self::Ready | Self::Transaction(_) | Self::Stability { .. } | Self::Group(_) => {
                &[]
            }
        }
    }

    /// Answers.
    ///
    /// # Errors
    /// Nothing is known of what was asked for, or the server stops.
    pub async fn answer(self, admin: &Admin) -> Result<Value, Failure> {
        match self {
            Self::Health => Ok(json!({
                "status": "ok", "version": env!("CARGO_PKG_VERSION"), "bootstrap": admin.bootstrap,
                "cluster_id": &*admin.cluster_id,
            })),
            Self::Ready => admin.inspect().await.map(|seen| {
                json!({
                    "status": "ready", "durable_sequence": seen.rests_on.get(),
                })
            }),
            Self::Fences { filter, wait } => fences(admin, &filter, wait).await,
            Self::Refused { id, limit } => {
                let seen = admin.inspect().await?;
                describe::refused(&seen, id.as_ref(), limit)
            }
            Self::Transaction(id) => describe::transaction(&admin.inspect().await?, &id),
            Self::Group(id) => group::group(&admin.inspect().await?, &id),
            Self::Stability { topic, partition } => {
                describe::stability(&admin.inspect().await?, &topic, partition, &admin.bootstrap)
            }
        }
    }
}

/// The fences wanted; without any, waits for the next ones.
async fn fences(admin: &Admin, filter: &FenceFilter, wait: Duration) -> Result<Value, Failure> {
    let deadline = Instant::now() + wait;
    loop {
        // Subscribed before the look: a fence in between is not missed.
        let mut newest = admin.node.newest_fence();
        newest.mark_unchanged();
        let seen: Inspected = admin.inspect().await?;
        let found = describe::fences(&seen, filter);
        if !found.is_empty() || Instant::now() >= deadline {
            let newest = seen.inspection.state.eos.transactions().fences().newest();
            return Ok(json!({ "fences": found, "newest": newest }));
        }
        tokio::select! {
            changed = newest.changed() => changed.map_err(|_| Failure::stopping())?,
            () = tokio::time::sleep_until(deadline) => {}
        }
    }
}

/// The parameters of a request.
struct Query(Vec<(String, String)>);

impl Query {
    fn parse(query: &str) -> Result<Self, Failure> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(&value.replace('+', " "))?))
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Failure::invalid(format!("{name}: {text:?} is no number")))
    }

    fn limit(&self) -> Result<usize, Failure> {
        Ok(self.number("limit")?.unwrap_or(LIMIT).min(LIMIT))
    }

    /// A misspelt parameter must not silently show everything.
    fn all_known(&self, route: &Route) -> Result<(), Failure> {
        let known = route.parameters();
        match self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                Err(Failure::invalid(format!("no parameter is called {name:?} here; there are {known:?}")))
            }
        }
    }
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, Failure> {
    let wrong = || Failure::invalid(format!("{text:?} is not percent-encoded text"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok()).ok_or_else(wrong)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_read_and_stands_in_the_page_that_describes_them() {
        let page = include_str!("../../../../docs/admin-api.yaml");
        let documented: Vec<_> =
            page.lines().filter_map(|line| line.strip_prefix("  /v1")?.strip_suffix(':')).collect();
        let routes: Vec<_> = ROUTES.iter().filter_map(|route| route.strip_prefix("/v1")).collect();
        assert_eq!(documented, routes, "docs/admin-api.yaml names every path once, and no other");
        for route in ROUTES {
            let path = route.replace("{partition}", "3").replace(['{', '}'], "");
            let parsed = Route::parse(&path, "").unwrap_or_else(|failure| panic!("{path}: {failure:?}"));
            for parameter in parsed.parameters() {
                assert!(page.contains(&format!("- name: {parameter}\n")), "{route}: {parameter}");
            }
        }
    }

    #[test]
    fn names_are_percent_decoded_and_nonsense_is_refused() {
        let parsed = Route::parse("/v1/transactions/a%2Fb%20c", "").expect("a path");
        assert_eq!(parsed, Route::Transaction(TransactionalId::new("a/b c")));
        for path in
            ["/v1/transactions/%zz", "/v1/transactions/%f", "/v1/partitions/t/x/stability", "/v1", "/"]
        {
            assert!(Route::parse(path, "").is_err(), "{path}");
        }
        assert!(Route::parse("/v1/fences", "ids=a").is_err(), "an unknown parameter");
        assert!(Route::parse("/v1/fences", "after=x").is_err(), "no number");
        let most = Route::parse("/v1/refused", "limit=5000").expect("cut");
        assert_eq!(most, Route::Refused { id: None, limit: LIMIT });
    }
}
