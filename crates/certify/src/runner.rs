//! Runs scenarios, side by side where they may, and says how each ended.
//!
//! Invariants: a scenario has a time limit; what it made is removed, however it ended; one that could not be tried is
//! [`Verdict::NotRun`] with its reason and never counted as kept.

use std::{
    any::Any,
    collections::VecDeque,
    path::Path,
    sync::{
        Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{
    Failure, Probe,
    answer::Step,
    host::{Commanded, CommandedOnSmallDisk, Host, OwnServers},
    probe::wait_until_serving,
    scenario::{Kept, Needs, Scenario, Settings, SmallDisk},
};

/// How a scenario ended.
#[derive(Debug)]
pub enum Verdict {
    /// The promise was kept.
    Kept,
    /// It was not.
    Broken(Failure),
    /// It could not be tried; the text says why.
    NotRun(String),
}

/// A scenario and how it ended.
#[derive(Debug)]
pub struct Finding {
    /// What was tried.
    pub scenario: &'static Scenario,
    /// How it ended.
    pub verdict: Verdict,
    /// The exchanges.
    pub steps: Vec<Step>,
    /// How long it took.
    pub took: Duration,
}

/// Which broker is judged.
#[derive(Clone)]
pub enum Target {
    /// One that listens, and the command that kills and restarts it, if there is one.
    Listening {
        /// `host:port`.
        address: String,
        /// See [`Commanded`].
        restart_command: Option<String>,
    },
    /// `semel serve` processes that are started for it.
    Own(OwnServers),
}

impl Target {
    /// Servers of a program, started for the run.
    #[must_use]
    pub fn own(program: &Path) -> Self {
        Self::Own(OwnServers::of(program))
    }
}

/// What is to be run.
#[derive(Clone)]
pub struct Plan {
    /// The scenarios, in the order of the report.
    pub scenarios: Vec<&'static Scenario>,
    /// Who is judged.
    pub target: Target,
    /// How many run side by side.
    pub jobs: usize,
    /// Longest time of one.
    pub limit: Duration,
    /// With the rounds and sizes that the sources write down ([`Probe::rounds`]), which takes many minutes.
    pub is_thorough: bool,
    /// When none is begun any more; those that are left are not run.
    pub last_start: Option<Instant>,
}

impl Plan {
    fn is_over(&self) -> bool {
        self.last_start.is_some_and(|last| Instant::now() > last)
    }
}

/// Runs a plan; `progress` hears of each scenario as it ends. The findings are in the order of the plan.
///
/// # Errors
/// The broker cannot be reached at all.
pub fn run(plan: &Plan, progress: &(dyn Fn(&Finding) + Sync)) -> Result<Vec<Finding>, Failure> {
    let mut findings = match &plan.target {
        Target::Own(servers) => {
            let ran = run_on_own(plan, servers, progress);
            // Scenarios that were left behind still have their directories.
            servers.clear();
            ran?
        }
        Target::Listening { address, restart_command } => {
            wait_until_answering(address)?;
            run_on_listening(plan, address, restart_command.as_deref(), progress)?
        }
    };
    findings.sort_by_key(|finding| plan.scenarios.iter().position(|one| one.id == finding.scenario.id));
    Ok(findings)
}

/// Nobody may be at an address: that is said at once, not after a minute.
fn wait_until_answering(address: &str) -> Kept {
    crate::Client::connect(address)?;
    wait_until_serving(address)
}

/// Why a scenario was not begun.
const OUT_OF_TIME: &str = "the time for the whole run was over";

type Progress<'a> = &'a (dyn Fn(&Finding) + Sync);

/// One scenario and where it runs.
struct Job<'a> {
    scenario: &'static Scenario,
    ground: Ground<'a>,
}

impl Job<'_> {
    /// A broker of somebody else's may take a quarter of a minute to come up again, several times.
    const fn patience(&self) -> u32 {
        match self.ground {
            Ground::Shared(_) | Ground::Fresh(..) | Ground::Small(..) => 1,
            Ground::Commanded(_) => 4,
        }
    }
}

/// Where a scenario runs.
#[derive(Clone, Copy)]
enum Ground<'a> {
    /// On a broker beside others.
    Shared(&'a str),
    /// On a server started for it.
    Fresh(&'a OwnServers, Settings),
    /// On a server started for it on a small disk.
    Small(&'a OwnServers, SmallDisk),
    /// Alone on a broker that is killed by command.
    Commanded(&'a Commanded),
}

fn run_on_own(plan: &Plan, servers: &OwnServers, progress: Progress<'_>) -> Kept<Vec<Finding>> {
    let shared = servers.start(&[])?;
    let address = shared.address();
    wait_until_serving(&address)?;
    // Those with a server of their own take longest: they go first.
    let (mut first, mut then) = (VecDeque::new(), VecDeque::new());
    for scenario in &plan.scenarios {
        match scenario.needs {
            Needs::Nothing => then.push_back(Job { scenario, ground: Ground::Shared(&address) }),
            Needs::Settings(settings) | Needs::Restart(settings) => {
                first.push_back(Job { scenario, ground: Ground::Fresh(servers, settings) });
            }
            Needs::SmallDisk(disk) => first.push_back(Job { scenario, ground: Ground::Small(servers, disk) }),
        }
    }
    first.append(&mut then);
    Ok(work_off(first, plan, plan.jobs, progress))
}

fn run_on_listening(
    plan: &Plan,
    address: &str,
    command: Option<&str>,
    progress: Progress<'_>,
) -> Kept<Vec<Finding>> {
    let shared = |scenario| Job { scenario, ground: Ground::Shared(address) };
    let is_free = |scenario: &&&Scenario| scenario.needs == Needs::Nothing;
    let (free, bound): (Vec<_>, Vec<_>) = plan.scenarios.iter().partition(is_free);
    let mut findings = work_off(free.into_iter().map(shared).collect(), plan, plan.jobs, progress);
    let Some(command) = command else {
        let reason = "it needs a broker that can be restarted, and there is no --restart-command";
        findings.extend(bound.into_iter().map(|scenario| not_run(scenario, reason, progress)));
        return Ok(findings);
    };
    let commanded = Commanded::new(command, address);
    for (scenario, disk) in bound.iter().filter_map(|scenario| Some((*scenario, disk_of(scenario)?))) {
        findings.push(play_on_small_disk(scenario, disk, &commanded, plan, progress)?);
    }
    let bound: Vec<_> = bound.into_iter().filter(|scenario| disk_of(scenario).is_none()).collect();
    let mut settings: Vec<Settings> = bound.iter().map(|scenario| settings_of(scenario)).collect();
    settings.sort_unstable();
    settings.dedup();
    for settings in settings {
        let now = bound.iter().copied().filter(|scenario| settings_of(scenario) == settings);
        let (alone, beside): (Vec<_>, Vec<_>) =
            now.partition(|scenario| matches!(scenario.needs, Needs::Restart(_)));
        if !settings.is_empty()
            && let Err(failure) = commanded.restart_with(settings).and_then(|()| wait_until_serving(address))
        {
            let group = alone.into_iter().chain(beside);
            findings.extend(group.map(|scenario| not_run(scenario, &failure.reason(), progress)));
            // Whoever comes next sees whether it is there.
            let _ = commanded.restart_with(&[]);
            continue;
        }
        findings.extend(work_off(beside.into_iter().map(shared).collect(), plan, plan.jobs, progress));
        let alone = alone.into_iter().map(|scenario| Job { scenario, ground: Ground::Commanded(&commanded) });
        findings.extend(work_off(alone.collect(), plan, 1, progress));
        if !settings.is_empty() {
            commanded.restart_with(&[])?;
            wait_until_serving(address)?;
        }
    }
    Ok(findings)
}

const fn settings_of(scenario: &Scenario) -> Settings {
    match scenario.needs {
        Needs::Nothing | Needs::SmallDisk(_) => &[],
        Needs::Settings(settings) | Needs::Restart(settings) => settings,
    }
}

const fn disk_of(scenario: &Scenario) -> Option<SmallDisk> {
    match scenario.needs {
        Needs::SmallDisk(disk) => Some(disk),
        Needs::Nothing | Needs::Settings(_) | Needs::Restart(_) => None,
    }
}

/// Runs a scenario on a broker that is started on a small disk by command, and brings the broker back as it was.
fn play_on_small_disk(
    scenario: &'static Scenario,
    disk: SmallDisk,
    commanded: &Commanded,
    plan: &Plan,
    progress: Progress<'_>,
) -> Kept<Finding> {
    // The scenario must not meet the broker on its usual disk: it is brought up here or not at all.
    let started = commanded.start_on(disk).and_then(|()| wait_until_serving(&commanded.address()));
    let was_started = started.is_ok();
    let finding = match started {
        Ok(()) => {
            let job = Job { scenario, ground: Ground::Commanded(commanded) };
            let finding = play(&job, plan);
            progress(&finding);
            finding
        }
        Err(failure) => {
            let reason =
                format!("the restart command starts no broker on a small disk: {}", failure.reason());
            not_run(scenario, &reason, progress)
        }
    };
    let mut broker = commanded.clone();
    // A full disk may have ended it already.
    let _: Kept = broker.kill();
    let restored = broker.restart().and_then(|()| wait_until_serving(&broker.address()));
    // Nobody may go on on the small disk; if it was not started, whoever comes next sees whether the broker is there.
    if was_started {
        restored?;
    }
    Ok(finding)
}

fn not_run(scenario: &'static Scenario, reason: &str, progress: Progress<'_>) -> Finding {
    let verdict = Verdict::NotRun(reason.to_owned());
    let finding = Finding { scenario, verdict, steps: Vec::new(), took: Duration::ZERO };
    progress(&finding);
    finding
}

/// Several threads take one job after another.
fn work_off(jobs: VecDeque<Job<'_>>, plan: &Plan, threads: usize, progress: Progress<'_>) -> Vec<Finding> {
    let count = jobs.len().min(threads.max(1));
    let (jobs, findings) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                loop {
                    let Some(job) = lock(&jobs).pop_front() else { return };
                    let finding = if plan.is_over() {
                        not_run(job.scenario, OUT_OF_TIME, progress)
                    } else {
                        let finding = play(&job, plan);
                        progress(&finding);
                        finding
                    };
                    lock(&findings).push(finding);
                }
            });
        }
    });
    findings.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one scenario within its time.
fn play(job: &Job<'_>, plan: &Plan) -> Finding {
    let started = Instant::now();
    let (verdict, steps) = match probe_for(job, plan.is_thorough) {
        Ok(probe) => {
            let own = format!("{}-", probe.prefix());
            let (verdict, steps) = watch(job.scenario, probe, plan.limit * job.patience());
            (plainly(verdict, &own), steps.into_iter().map(|step| step.without(&own)).collect())
        }
        Err(Failure::NotRun(reason)) => (Verdict::NotRun(reason), Vec::new()),
        Err(failure) => (Verdict::Broken(failure), Vec::new()),
    };
    Finding { scenario: job.scenario, verdict, steps, took: started.elapsed() }
}

/// A verdict without what every name of this run starts with: it tells nothing.
fn plainly(verdict: Verdict, own: &str) -> Verdict {
    match verdict {
        Verdict::Broken(failure) => Verdict::Broken(failure.without(own)),
        Verdict::Kept | Verdict::NotRun(_) => verdict,
    }
}

fn probe_for(job: &Job<'_>, is_thorough: bool) -> Kept<Probe> {
    let prefix = prefix(job.scenario.id);
    match job.ground {
        Ground::Shared(address) => Probe::new(&prefix, address, None, is_thorough),
        Ground::Commanded(commanded) => {
            // A scenario that ran out of time may have left it dead.
            if crate::Client::connect(commanded.address()).is_err() {
                let restarted = commanded.clone().restart();
                restarted.map_err(|failure| Failure::NotRun(failure.reason()))?;
            }
            wait_until_serving(&commanded.address())?;
            let host: Box<dyn Host> = match job.scenario.needs {
                Needs::SmallDisk(_) => Box::new(CommandedOnSmallDisk::new(commanded)),
                Needs::Nothing | Needs::Settings(_) | Needs::Restart(_) => Box::new(commanded.clone()),
            };
            Probe::new(&prefix, &commanded.address(), Some(host), is_thorough)
        }
        Ground::Fresh(servers, settings) => probe_of_own(&prefix, servers.start(settings)?, is_thorough),
        Ground::Small(servers, disk) => probe_of_own(&prefix, servers.start_on(disk)?, is_thorough),
    }
}

/// A probe at a server of its own, which ends with the probe.
fn probe_of_own(prefix: &str, server: impl Host + 'static, is_thorough: bool) -> Kept<Probe> {
    let address = server.address();
    wait_until_serving(&address)?;
    Probe::new(prefix, &address, Some(Box::new(server)), is_thorough)
}

/// Starts all names of a scenario in this run.
fn prefix(id: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    format!("certify-{}-{now:x}", id.to_lowercase())
}

/// Waits for a scenario's end. One that does not end is left behind with its connections, and loses its server if that is
/// its own.
fn watch(scenario: &'static Scenario, mut probe: Probe, limit: Duration) -> (Verdict, Vec<Step>) {
    let (trace, leftovers, life) = (probe.trace(), probe.leftovers(), probe.life());
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        let run = std::panic::AssertUnwindSafe(|| (scenario.run)(&mut probe));
        let outcome = std::panic::catch_unwind(run).unwrap_or_else(|panic| Err(broke_off(panic.as_ref())));
        leftovers.remove(probe.address());
        // Its server has ended and its directory is gone before anybody hears of the scenario's end.
        drop(probe);
        // Nobody waits any more after the time limit.
        let _ = sender.send(outcome);
    });
    let outcome = match ended.recv_timeout(limit) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            let failure = out_of_time(&trace.steps(), limit);
            if let Some(life) = life {
                life.end();
            }
            Err(failure)
        }
    };
    let verdict = match outcome {
        Ok(()) => Verdict::Kept,
        Err(Failure::NotRun(reason)) => Verdict::NotRun(reason),
        Err(failure) => Verdict::Broken(failure),
    };
    (verdict, trace.steps())
}

fn broke_off(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    Failure::Failed(format!("the scenario itself broke off: {text}"))
}

fn out_of_time(steps: &[Step], limit: Duration) -> Failure {
    let last = steps.last().map_or("nothing", |step| step.sent.as_str());
    Failure::broken(
        format!("the whole scenario; last answered: {last}"),
        format!("no end within {limit:?}"),
        "an end",
    )
}
