//! What a scenario works with: names of its own, connections, relays, and the broker's life where it may end it.
//!
//! Invariants: no two scenarios share a name, so they run side by side on one broker; everything a scenario makes is
//! noted when it is made and removed after it, however it ended.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use semel_wire::{
    ApiKey, WireCode,
    api::{
        api_versions::ApiVersionsRequest,
        create_topics::{CreatableConfig, CreatableTopic, CreateTopicsRequest},
        delete_groups::DeleteGroupsRequest,
        delete_topics::DeleteTopicsRequest,
        find_coordinator::{FindCoordinatorRequest, KEY_TYPE_GROUP, KEY_TYPE_TRANSACTION},
    },
};

use crate::{
    Actor, Client, Failure, Relay, Trace,
    host::Host,
    process::Life,
    scenario::Kept,
    session::{Isolation, Place},
};

/// What a broker says that it can.
#[derive(Clone, Default, Debug)]
pub struct Offers {
    versions: Vec<(i16, i16, i16)>,
    transaction_version: i16,
}

impl Offers {
    /// Asks a broker.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn of(address: &str) -> Kept<Self> {
        let mut client = Client::connect(address)?;
        let request = ApiVersionsRequest {
            client_software_name: "semel-certify".into(),
            client_software_version: "1".into(),
            ..Default::default()
        };
        let response = client.call(&request, 3)?;
        let versions = response.api_keys.iter().map(|api| (api.api_key, api.min_version, api.max_version));
        let feature =
            response.finalized_features.iter().find(|feature| feature.name.as_str() == "transaction.version");
        let transaction_version = feature.map_or(0, |feature| feature.max_version_level);
        Ok(Self { versions: versions.collect(), transaction_version })
    }

    /// The versions of an API; `None` if it has none.
    #[must_use]
    pub fn versions(&self, api: ApiKey) -> Option<(i16, i16)> {
        self.versions.iter().find(|(key, _, _)| *key == api.get()).map(|(_, min, max)| (*min, *max))
    }

    /// Is this version of an API offered?
    #[must_use]
    pub fn has(&self, api: ApiKey, version: i16) -> bool {
        self.versions(api).is_some_and(|(min, max)| (min..=max).contains(&version))
    }
}

/// What a scenario has made.
#[derive(Default, Debug)]
struct Made {
    topics: Vec<String>,
    ids: Vec<String>,
    groups: Vec<String>,
}

/// What has been made, to be removed by whoever runs the scenario.
#[derive(Clone, Default, Debug)]
pub(crate) struct Leftovers(Arc<Mutex<Made>>);

impl Leftovers {
    fn note(&self, list: impl FnOnce(&mut Made) -> &mut Vec<String>, name: &str) {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list(&mut made).push(name.to_owned());
    }

    /// Ends open transactions, deletes groups and topics, as far as the broker lets it.
    pub(crate) fn remove(&self, address: &str) {
        let made = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        // A broker that is gone or refuses keeps what it has: the verdict stands already.
        if let Ok(mut actor) = Actor::connect("cleanup", address, &Trace::default()) {
            made.ids.iter().for_each(|id| drop(actor.try_init(Some(id), 60_000, None)));
        }
        if let Ok(mut client) = Client::connect(address) {
            let groups_names = made.groups.iter().map(|group| group.as_str().into()).collect();
            let _ = client.call(&DeleteGroupsRequest { groups_names }, 2);
            let topic_names = made.topics.iter().map(|topic| topic.as_str().into()).collect();
            let request = DeleteTopicsRequest { topic_names, timeout_ms: 10_000, ..Default::default() };
            let _ = client.call(&request, 4);
        }
    }
}

/// What a scenario works with.
pub struct Probe {
    prefix: String,
    address: String,
    offers: Offers,
    trace: Trace,
    made: Leftovers,
    named: AtomicU32,
    is_thorough: bool,
    // Locked only so that threads of a scenario may share the probe.
    host: Option<Mutex<Box<dyn Host>>>,
}

impl Probe {
    /// A probe whose names all start with `prefix`, at a broker; `host` if it may be killed.
    pub(crate) fn new(
        prefix: &str,
        address: &str,
        host: Option<Box<dyn Host>>,
        is_thorough: bool,
    ) -> Kept<Self> {
        Ok(Self {
            prefix: prefix.to_owned(),
            address: address.to_owned(),
            offers: Offers::of(address)?,
            trace: Trace::default(),
            made: Leftovers::default(),
            named: AtomicU32::new(0),
            is_thorough,
            host: host.map(Mutex::new),
        })
    }

    /// What all names of the scenario start with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// How often, how many or how long: `short` in every run, `whole` (what the scenario's source writes down) in a
    /// thorough one.
    #[must_use]
    pub fn rounds<T>(&self, short: T, whole: T) -> T {
        if self.is_thorough { whole } else { short }
    }

    /// The process of the broker, if it is the scenario's own.
    pub(crate) fn life(&mut self) -> Option<Life> {
        self.host.as_mut()?.get_mut().unwrap_or_else(PoisonError::into_inner).life()
    }

    pub(crate) fn leftovers(&self) -> Leftovers {
        self.made.clone()
    }

    /// The exchanges by now.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.trace.clone()
    }

    /// Where the broker listens.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What the broker says that it can.
    #[must_use]
    pub const fn offers(&self) -> &Offers {
        &self.offers
    }

    /// The scenario is not for brokers that lack a version of an API.
    ///
    /// # Errors
    /// [`Failure::NotRun`].
    pub fn needs(&self, api: ApiKey, version: i16) -> Kept {
        if self.offers.has(api, version) {
            return Ok(());
        }
        Err(Failure::NotRun(format!("the broker does not offer {api:?} version {version}")))
    }

    /// The scenario is not for brokers without `transaction.version` 2 (KIP-890).
    ///
    /// # Errors
    /// [`Failure::NotRun`].
    pub fn needs_version_2(&self) -> Kept {
        if self.offers.transaction_version >= 2 {
            return Ok(());
        }
        let level = self.offers.transaction_version;
        Err(Failure::NotRun(format!("the broker finalizes transaction.version {level}, not 2")))
    }

    /// A connection, called `name` in reports, speaking the classic protocol.
    ///
    /// # Errors
    /// Nobody listens.
    pub fn actor(&self, name: &str) -> Kept<Actor> {
        Actor::connect(name, &self.address, &self.trace)
    }

    /// A relay to the broker.
    ///
    /// # Errors
    /// There is no port.
    pub fn relay(&self) -> Kept<Relay> {
        Ok(Relay::start(&self.address)?)
    }

    /// A connection through a relay.
    ///
    /// # Errors
    /// Nobody listens.
    pub fn actor_behind(&self, name: &str, relay: &Relay) -> Kept<Actor> {
        Actor::connect(name, &relay.address(), &self.trace)
    }

    fn name(&self, word: &str) -> String {
        let number = self.named.fetch_add(1, Ordering::Relaxed);
        format!("{}-{word}-{number}", self.prefix)
    }

    /// A transactional id of this scenario alone.
    pub fn id(&self, word: &str) -> String {
        let id = self.name(word);
        self.made.note(|made| &mut made.ids, &id);
        id
    }

    /// A group of this scenario alone.
    pub fn group(&self, word: &str) -> String {
        let group = self.name(word);
        self.made.note(|made| &mut made.groups, &group);
        group
    }

    /// The name of a topic of this scenario that is made later, or by the broker itself.
    pub fn topic_name(&self, word: &str) -> String {
        let name = self.name(word);
        self.made.note(|made| &mut made.topics, &name);
        name
    }

    /// `T-0`: partition 0 of a new topic with one partition.
    ///
    /// # Errors
    /// It was refused.
    pub fn topic(&self) -> Kept<Place> {
        Ok(self.partitions(1)?.swap_remove(0))
    }

    /// `T-0`, `T-1`, ...: the partitions of a new topic.
    ///
    /// # Errors
    /// It was refused.
    pub fn partitions(&self, count: i32) -> Kept<Vec<Place>> {
        self.topic_with(count, &[])
    }

    /// The partitions of a new topic with configs of its own.
    ///
    /// # Errors
    /// It was refused.
    pub fn topic_with(&self, count: i32, configs: &[(&str, &str)]) -> Kept<Vec<Place>> {
        let name = self.topic_name("t");
        self.make_topic(&name, count, configs)?;
        Ok((0..count).map(|index| Place::of(&name, index)).collect())
    }

    /// Makes a topic of a name that this scenario has had before and deleted.
    ///
    /// # Errors
    /// It was refused for longer than a deletion may take.
    pub fn make_topic(&self, name: &str, count: i32, configs: &[(&str, &str)]) -> Kept {
        let configs = configs
            .iter()
            .map(|(key, value)| CreatableConfig { name: (*key).into(), value: Some((*value).into()) });
        let topic = CreatableTopic {
            name: name.into(),
            num_partitions: count,
            replication_factor: 1,
            configs: configs.collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let mut actor = self.actor("setup")?;
        self.eventually("the topic is made", || {
            let answer = actor.ask(&format!("CreateTopics {name}"), &request, 5, |response| {
                response.topics.first().map_or(WireCode(-1), |topic| topic.error_code)
            });
            Ok(answer.is_any(&[0, 36])?.0 == 0)
        })?;
        self.eventually("every partition has a leader", || {
            let mut places = (0..count).map(|index| Place::of(name, index));
            places.try_fold(true, |all, place| {
                Ok(all && actor.session.end_offset(&place, Isolation::Uncommitted)?.get() == 0)
            })
        })
    }

    /// Deletes a topic of this scenario.
    ///
    /// # Errors
    /// It was refused.
    pub fn delete_topic(&self, name: &str) -> Kept {
        let request =
            DeleteTopicsRequest { topic_names: vec![name.into()], timeout_ms: 10_000, ..Default::default() };
        let answer = self.actor("setup")?.ask(&format!("DeleteTopics {name}"), &request, 4, |response| {
            response.responses.first().map_or(WireCode(-1), |topic| topic.error_code)
        });
        answer.is(0).map(|_| ())
    }

    /// Kills the broker (SIGKILL).
    ///
    /// # Errors
    /// It may not be killed here.
    pub fn kill(&mut self) -> Kept {
        self.trace.add("kill -9", "the broker is gone");
        self.host()?.kill()
    }

    /// Starts the broker again on the same data and waits until its coordinators serve.
    ///
    /// # Errors
    /// It does not come up.
    pub fn restart(&mut self) -> Kept {
        self.host()?.restart()?;
        self.address = self.host()?.address();
        self.trace.add("restart", "the broker is back");
        wait_until_serving(&self.address)
    }

    /// Starts the broker again on a disk that is full: that its coordinators take anything is not waited for.
    ///
    /// # Errors
    /// It does not come up.
    pub fn restart_full(&mut self) -> Kept {
        self.host()?.restart()?;
        self.address = self.host()?.address();
        self.trace.add("restart", "the broker is back");
        Ok(())
    }

    /// Restarts the broker with these settings besides those that it has; its last restart in the scenario takes them
    /// back with `&[]` where the broker is not the scenario's own.
    ///
    /// # Errors
    /// It may not be restarted here, or does not come up.
    pub fn set(&mut self, settings: &[(&str, &str)]) -> Kept {
        self.host()?.set(settings)?;
        self.trace.add(&format!("restart with {settings:?}"), "the broker is back");
        wait_until_serving(&self.address)
    }

    /// Kills the broker and starts it again with nothing: what it knew is gone.
    ///
    /// # Errors
    /// It may not be killed here, or does not come up.
    pub fn wipe(&mut self) -> Kept {
        self.host()?.wipe()?;
        self.address = self.host()?.address();
        self.trace.add("wipe the data directory and start", "the broker is back");
        wait_until_serving(&self.address)
    }

    fn host(&mut self) -> Kept<&mut Box<dyn Host>> {
        let host =
            self.host.as_mut().ok_or_else(|| Failure::NotRun("the broker may not be killed here".into()))?;
        Ok(host.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was seen has to be what was due; `what` says what was looked at.
    ///
    /// # Errors
    /// It is not.
    pub fn same<T: PartialEq + std::fmt::Debug>(&self, what: &str, seen: T, due: T) -> Kept {
        if seen == due {
            return Ok(());
        }
        Err(Failure::broken(what, format!("{seen:?}"), format!("{due:?}")))
    }

    /// A condition has to hold; `what` says what was looked at, `due` what should have been seen.
    ///
    /// # Errors
    /// It does not.
    pub fn holds(&self, is_held: bool, what: &str, due: &str) -> Kept {
        if is_held { Ok(()) } else { Err(Failure::broken(what, "something else", due)) }
    }

    /// Looks again until something has come about; at most fifteen seconds.
    ///
    /// # Errors
    /// It has not.
    pub fn eventually(&self, due: &str, look: impl FnMut() -> Kept<bool>) -> Kept {
        self.eventually_within(crate::actor::PATIENCE, due, look)
    }

    /// Looks again until something has come about, for as long as is told.
    ///
    /// # Errors
    /// It has not.
    pub fn eventually_within(
        &self,
        patience: Duration,
        due: &str,
        mut look: impl FnMut() -> Kept<bool>,
    ) -> Kept {
        let deadline = Instant::now() + patience;
        while !look()? {
            if Instant::now() > deadline {
                return Err(Failure::broken("the same question again and again", "no change", due));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// Waits until a broker's coordinators serve: the port of Apache Kafka opens before they do.
///
/// # Errors
/// They do not within two minutes.
pub(crate) fn wait_until_serving(address: &str) -> Kept {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        match serves(address) {
            Ok(()) => return Ok(()),
            Err(failure) if Instant::now() > deadline => return Err(failure),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Finds both coordinators and takes an identity.
fn serves(address: &str) -> Kept {
    let mut actor = Actor::connect("setup", address, &Trace::default())?;
    for key_type in [KEY_TYPE_TRANSACTION, KEY_TYPE_GROUP] {
        let request = FindCoordinatorRequest { key: "certify".into(), key_type, ..Default::default() };
        actor.ask("FindCoordinator", &request, 2, |response| response.error_code).is(0)?;
    }
    actor.try_init(Some("certify-is-it-up"), 60_000, None).is_any(&[0, 51])?;
    actor.try_init(None, 60_000, None).is(0).map(|_| ())
}
