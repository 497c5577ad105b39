//! Puts the server together and takes it apart: log, node, network, signals.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    process, slice,
    sync::{Arc, atomic::AtomicU64},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use semel_broker::{Facts, Node, RoomKeeper, State};
use semel_log::{Durability, Log, Opened, Options, Outcome, Room, RoomClass};
use semel_types::LeaderEpoch;
use tokio::{
    net::{TcpListener, lookup_host},
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    task::JoinSet,
};

use crate::{
    admin::{self, Admin},
    cli::{
        EXIT_FAILED, EXIT_OK, EXIT_USAGE,
        serve::{DurabilityArgument, Serve},
    },
    clock::Clock,
    config::{Config, ConfigError},
    limits,
    net::{
        budget::Budget,
        endpoint::{Endpoint, EndpointError},
        listener::{self, Shared},
        state_call, view_call,
    },
    node_thread::{Driver, NodeQueue, NodeThread},
    rate_limit::{RateLimit, SaidOnce},
    say,
};

/// How long connections may take to write what they still owe when the server stops.
const DRAIN_MAX: Duration = Duration::from_millis(300);

/// Why the server does not start, or ends badly.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address is wrong.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A name has no address.
    #[error("cannot resolve the listener {endpoint}: {source}")]
    Unresolvable {
        /// As given.
        endpoint: String,
        /// Why.
        source: io::Error,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {endpoint}: {source}{hint}")]
    Listen {
        /// As given.
        endpoint: String,
        /// Why.
        source: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// The log does not open.
    #[error(transparent)]
    Open(#[from] semel_log::OpenError),
    /// Anything else of the system.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// Runs the command; the exit status.
pub fn run(arguments: &Serve, started: Instant) -> u8 {
    match serve(arguments, started) {
        Ok(()) => EXIT_OK,
        Err(error) => {
            say::error(&error);
            match error {
                ServeError::Config(_) | ServeError::Endpoint(_) => EXIT_USAGE,
                ServeError::Unresolvable { .. }
                | ServeError::Listen { .. }
                | ServeError::Open(_)
                | ServeError::System { .. } => EXIT_FAILED,
            }
        }
    }
}

fn serve(arguments: &Serve, started: Instant) -> Result<(), ServeError> {
    let config = Config::gather(arguments.config.as_deref(), &arguments.settings())?;
    let advertised = arguments.advertise.as_deref().map(Endpoint::parse).transpose()?;
    let endpoints =
        arguments.listen.iter().map(|text| Endpoint::parse(text)).collect::<Result<Vec<_>, _>>()?;
    limits::raise_open_files();
    if arguments.end_with_stdin {
        end_with_stdin();
    }
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let mut signals = Signals::install()?;
        let listeners = bind(&endpoints).await?;
        let (admin, no_admin) = bind_admin(arguments.admin.as_str()).await?;
        let broker = Broker::start(arguments, &config)?;
        say_ready(arguments, &listeners, admin.as_ref(), started);
        no_admin.iter().for_each(|note| tracing::warn!("{note}"));
        config.unused().iter().for_each(|note| tracing::warn!("{note}"));
        broker.run(listeners, admin, advertised, &config, &mut signals).await
    });
    // A connection that is stuck in a write is not waited for.
    runtime.shutdown_background();
    served
}

/// Ends the process when stdin closes, which it does with its owner. As after a kill: nothing acknowledged is lost.
fn end_with_stdin() {
    thread::spawn(|| {
        // A stdin that cannot be read has nobody at its other end either.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        process::exit(EXIT_FAILED.into());
    });
}

fn say_ready(arguments: &Serve, listeners: &[TcpListener], admin: Option<&TcpListener>, started: Instant) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        listeners = %addresses(listeners),
        admin = %admin.map_or_else(|| "none".to_owned(), |one| addresses(slice::from_ref(one))),
        data_dir = %shown_directory(arguments),
        durability = %arguments.durability,
        ready_ms = started.elapsed().as_millis(),
        "ready"
    );
}

fn runtime() -> Result<Runtime, ServeError> {
    let built = Builder::new_multi_thread().worker_threads(worker_threads()).enable_all().build();
    built.map_err(|source| ServeError::System { what: "cannot start the runtime", source })
}

/// Node and log have threads of their own; more than a few workers only help with many cores.
fn worker_threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 16)
}

fn shown_directory(arguments: &Serve) -> String {
    match arguments.durability {
        DurabilityArgument::Memory => "none".to_owned(),
        DurabilityArgument::Sync | DurabilityArgument::Interval => arguments.data_dir.display().to_string(),
    }
}

fn addresses(listeners: &[TcpListener]) -> String {
    let texts: Vec<_> =
        listeners.iter().filter_map(|one| one.local_addr().ok()).map(|address| address.to_string()).collect();
    texts.join(",")
}

async fn bind(endpoints: &[Endpoint]) -> Result<Vec<TcpListener>, ServeError> {
    let mut listeners = Vec::new();
    for endpoint in endpoints {
        listeners.extend(bind_all(endpoint).await?);
    }
    Ok(listeners)
}

/// The admin endpoint's port, or why there is none: that the default one is taken is no reason not to start; that one
/// that was asked for is taken is.
async fn bind_admin(text: &str) -> Result<(Option<TcpListener>, Option<String>), ServeError> {
    if text == "none" {
        return Ok((None, None));
    }
    let endpoint = Endpoint::parse(text)?;
    let mut addresses = resolve(&endpoint).await?;
    match admin::bind(addresses.swap_remove(0)).await {
        Ok(listener) => Ok((Some(listener), None)),
        Err(source) if text == admin::DEFAULT_ADDRESS => {
            let note = format!("no admin endpoint: {text}: {source}; --admin chooses another port, or none");
            Ok((None, Some(note)))
        }
        Err(source) => Err(ServeError::Listen { endpoint: endpoint.to_string(), source, hint: " (--admin)" }),
    }
}

/// Where a client on this machine reaches the broker.
fn bootstrap(listeners: &[TcpListener]) -> String {
    let Some(Ok(mut address)) = listeners.first().map(TcpListener::local_addr) else { return String::new() };
    if address.ip().is_unspecified() {
        let loopback =
            if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        address.set_ip(loopback);
    }
    address.to_string()
}

/// Listens on every address of a name: `localhost` is two, and clients may take either. One that this machine does
/// not have is left out if there is another.
async fn bind_all(endpoint: &Endpoint) -> Result<Vec<TcpListener>, ServeError> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    let mut absent = None;
    for mut address in resolve(endpoint).await? {
        if let Some(Ok(first)) = listeners.first().map(TcpListener::local_addr) {
            address.set_port(first.port());
        }
        match TcpListener::bind(address).await {
            Ok(listener) => listeners.push(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => absent = Some(error),
            Err(error) => return Err(cannot_listen(endpoint, error)),
        }
    }
    match absent {
        Some(error) if listeners.is_empty() => Err(cannot_listen(endpoint, error)),
        Some(_) | None => Ok(listeners),
    }
}

/// The addresses of a name, each once.
async fn resolve(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, ServeError> {
    let unresolvable = |source| ServeError::Unresolvable { endpoint: endpoint.to_string(), source };
    let found = lookup_host((endpoint.host.as_str(), endpoint.port)).await.map_err(unresolvable)?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        let source = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        return Err(unresolvable(source));
    }
    Ok(addresses)
}

fn cannot_listen(endpoint: &Endpoint, source: io::Error) -> ServeError {
    let hints = [
        (io::ErrorKind::AddrInUse, "; stop the other server or choose another port with --listen"),
        (io::ErrorKind::PermissionDenied, "; ports below 1024 need privileges"),
        (io::ErrorKind::AddrNotAvailable, "; this machine has no such address"),
    ];
    let hint = hints.iter().find(|(kind, _)| *kind == source.kind()).map_or("", |(_, hint)| hint);
    ServeError::Listen { endpoint: endpoint.to_string(), source, hint }
}

/// The running broker without its network.
struct Broker {
    queue: Arc<NodeQueue>,
    thread: NodeThread,
    log: Arc<Log>,
    facts: Facts,
}

/// Lets the node ask the log for room, and says so when there is none.
struct LogRoom {
    log: Arc<Log>,
    complaints: Mutex<RateLimit>,
}

impl RoomKeeper for LogRoom {
    fn ask(&self, bytes: u64, class: RoomClass) -> Room {
        let room = self.log.room(bytes, class);
        if room == Room::Full {
            let what = match class {
                RoomClass::Produce => "records are refused (KAFKA_STORAGE_ERROR)",
                RoomClass::Identity => "new identities and topics are refused",
                RoomClass::Reserve => "even the ends of transactions are refused",
            };
            self.complaints.lock().say(&format!("the disk gives no more room: {what}; reads go on"));
        }
        room
    }
}

impl Broker {
    fn start(arguments: &Serve, config: &Config) -> Result<Self, ServeError> {
        let queue = NodeQueue::new();
        let options = options(arguments, config)?;
        let mut state = State::new();
        let opened = Log::open(options, &mut state, on_outcome(&queue))?;
        let Opened { log, may_have_lost_writes, last_sequence, .. } = opened;
        let log = Arc::new(log);
        let mut clock = Clock::start(state.eos.last_now());
        let settings = Arc::new(config.settings().clone());
        let keeper = Box::new(LogRoom { log: Arc::clone(&log), complaints: Mutex::new(RateLimit::new()) });
        let mut node = Node::new(Arc::clone(&settings), state, last_sequence, keeper);
        let first = node.start(&clock.context(), may_have_lost_writes, env!("CARGO_PKG_VERSION"));
        let leader_epoch = LeaderEpoch::from(node.state().eos.shard_epoch());
        let submitted = log.start(leader_epoch, first.proposal.unwrap_or_default()).map_err(cannot_start)?;
        let facts = Facts {
            settings,
            cluster_id: node.state().eos.cluster_id().to_string().into(),
            advertised: semel_broker::Endpoint { host: Arc::default(), port: 0 },
            leader_epoch,
        };
        let mut driver = Driver::new(node, Arc::clone(&log), clock, Arc::clone(&queue), submitted);
        driver.say_fences(&first.fences);
        let thread = NodeThread::start(driver)
            .map_err(|source| ServeError::System { what: "cannot start the node's thread", source })?;
        Ok(Self { queue, thread, log, facts })
    }

    async fn run(
        self,
        listeners: Vec<TcpListener>,
        admin: Option<TcpListener>,
        advertised: Option<Endpoint>,
        config: &Config,
        signals: &mut Signals,
    ) -> Result<(), ServeError> {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        if let Some(listener) = admin {
            let (node, published) = (Arc::clone(&self.queue), Arc::clone(self.log.published()));
            let cluster_id = Arc::clone(&self.facts.cluster_id);
            let admin = Admin::new(node, published, bootstrap(&listeners), cluster_id, stopped.clone());
            tasks.spawn(admin::serve(listener, Arc::new(admin)));
        }
        let shared = Arc::new(self.shared(advertised, config, stopped));
        for listener in listeners {
            tasks.spawn(listener::accept(listener, Arc::clone(&shared)));
        }
        let signal = signals.next().await;
        let asked = Instant::now();
        tracing::info!("{signal}: stopping");
        tasks.shutdown().await;
        stop.send_replace(true);
        tokio::select! {
            stopped = self.stop(shared) => stopped?,
            signal = signals.next() => {
                tracing::error!("{signal} again: stopping at once, nothing acknowledged is lost");
                process::exit(EXIT_FAILED.into());
            }
        }
        tracing::info!(stop_ms = asked.elapsed().as_millis(), "stopped");
        Ok(())
    }

    fn shared(&self, advertised: Option<Endpoint>, config: &Config, stop: watch::Receiver<bool>) -> Shared {
        let settings = config.settings();
        Shared {
            node: Arc::clone(&self.queue),
            published: Arc::clone(self.log.published()),
            cache: Arc::clone(self.log.cache()),
            facts: self.facts.clone(),
            complaints: Mutex::new(RateLimit::new()),
            damage: Mutex::new(SaidOnce::new()),
            budget: Budget::new(settings.queued_max_request_bytes()),
            advertised,
            request_bytes_max: settings.socket_request_max_bytes(),
            idle_max: u64::try_from(settings.connections_max_idle_ms()).ok().map(Duration::from_millis),
            cold_reads: view_call::cold_reads(),
            state_calls: state_call::state_calls(),
            stop,
            connections: AtomicU64::new(0),
        }
    }

    /// Everything decided becomes durable and is answered, then the log is closed.
    async fn stop(self, shared: Arc<Shared>) -> Result<(), ServeError> {
        let Self { thread, log, .. } = self;
        let closed = tokio::task::spawn_blocking(move || {
            let last = thread.stop();
            log.shutdown(last)
        });
        let result = closed.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        drain(&shared).await;
        result.map_err(|source| ServeError::System { what: "cannot close the log", source })
    }
}

/// Lets connections write the answers that have just become due.
async fn drain(shared: &Arc<Shared>) {
    let deadline = Instant::now() + DRAIN_MAX;
    while Arc::strong_count(shared) > 1 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The signals that stop the server.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes them over from the system.
    fn install() -> Result<Self, ServeError> {
        let handler = |kind| {
            signal(kind).map_err(|source| ServeError::System { what: "cannot handle signals", source })
        };
        let (terminate, interrupt) = (handler(SignalKind::terminate())?, handler(SignalKind::interrupt())?);
        Ok(Self { terminate, interrupt })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

fn cannot_start(error: semel_log::StartError) -> ServeError {
    ServeError::System { what: "cannot start the log", source: io::Error::other(error) }
}

fn options(arguments: &Serve, config: &Config) -> Result<Options, ServeError> {
    let mut options = match arguments.durability {
        DurabilityArgument::Memory => return Ok(Options::memory()),
        DurabilityArgument::Sync | DurabilityArgument::Interval => {
            std::fs::create_dir_all(&arguments.data_dir).map_err(|source| {
                let directory = arguments.data_dir.clone();
                let is_file = source.kind() == io::ErrorKind::AlreadyExists;
                let source = if is_file { io::Error::other("it is a file, not a directory") } else { source };
                ServeError::Open(semel_log::OpenError::NotWritable { directory, source })
            })?;
            Options::files(&arguments.data_dir)
        }
    };
    options.snapshot_interval_bytes = config.settings().snapshot_interval_bytes();
    if arguments.durability == DurabilityArgument::Interval {
        options.durability = Durability::Interval(INTERVAL_MS);
    }
    Ok(options)
}

/// How long an acknowledged write may stay unsynced in durability `interval`.
const INTERVAL_MS: u64 = 100;

/// What the log's thread does with its outcomes. A failed write or sync ends the process: what was in flight is
/// unknown, and a second try could report success for pages that the kernel has already dropped.
fn on_outcome(queue: &Arc<NodeQueue>) -> semel_log::OnOutcome {
    let queue = Arc::clone(queue);
    Box::new(move |outcome| match outcome {
        Outcome::Durable(_) => queue.durable(),
        Outcome::Deposed => {
            tracing::error!("another node owns this shard; stopping");
            process::exit(EXIT_FAILED.into());
        }
        Outcome::Failed(error) => {
            tracing::error!(
                "the log cannot be written: {error}; stopping at once, nothing acknowledged is lost"
            );
            process::exit(EXIT_FAILED.into());
        }
    })
}
