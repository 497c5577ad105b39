//! Semel and Apache Kafka side by side: both run at once on this machine, one client drives both, turn by turn
//! (A B B A ...). Only the ratios mean anything. See README.md.

mod consumer;
mod loops;
mod measure;
mod offsets;
mod producer;
mod recovery;
mod report;
mod server;

use std::{env, error::Error, fs, process::ExitCode, thread, time::Duration};

use measure::Load;
use report::{Figure, Target};
use server::{Places, Server, Side};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "usage: bench/run [--json] [--pairs N] [--seconds S] [--only NAME[,NAME...]] [--side semel|kafka]
  --pairs N     pairs of runs for each figure (7)
  --seconds S   length of a run of transactions, at most 10 (4)
  --only        of: b1-100, b1-1k, b1-100x6, b1-1kx6, b7, b7raw, b7rawx64, b7x16, offsets, loops, loops-java, takeover,
                recovery, start
  --side        only one server: for profiling, no ratios
environment: SEMEL_BIN the binary; BENCH_DATA a directory on a real disk; BENCH_SERVER_LOG a file for what servers say";

struct Options {
    json: bool,
    pairs: usize,
    span: Duration,
    only: Option<Vec<String>>,
    side: Option<Side>,
}

impl Options {
    fn read() -> Outcome<Self> {
        let mut options =
            Self { json: false, pairs: 7, span: Duration::from_secs(4), only: None, side: None };
        let mut arguments = env::args().skip(1);
        while let Some(name) = arguments.next() {
            if name == "--json" {
                options.json = true;
                continue;
            }
            let value = arguments.next().ok_or(USAGE)?;
            match name.as_str() {
                "--pairs" => options.pairs = value.parse()?,
                "--seconds" => options.span = Duration::from_secs_f64(value.parse::<f64>()?.clamp(0.1, 10.0)),
                "--only" => options.only = Some(value.split(',').map(str::to_owned).collect()),
                "--side" if value == "semel" => options.side = Some(Side::Semel),
                "--side" if value == "kafka" => options.side = Some(Side::Kafka),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|one| one == name))
    }

    fn has(&self, side: Side) -> bool {
        self.side.is_none_or(|only| only == side)
    }
}

/// Runs before the first that counts: a JVM compiles what has become hot.
const WARM_RUNS: usize = 2;

/// Both servers, and what was found so far.
struct Bench {
    options: Options,
    places: Places,
    servers: Vec<(Side, Server)>,
    figures: Vec<Figure>,
    runs: usize,
}

impl Bench {
    /// Runs `run` on both sides in turns; it gives one value for each of `figures`. The first runs of each side only
    /// warm up.
    fn pairs<const N: usize>(
        &mut self,
        mut figures: [Figure; N],
        run: impl Fn(&Server, &str) -> Outcome<[f64; N]>,
    ) -> Outcome<()> {
        eprintln!("{} ...", figures[0].name);
        for pair in 0..self.options.pairs + WARM_RUNS {
            let before = cpu_pressure();
            let mut order: Vec<_> = (0..self.servers.len()).collect();
            if pair % 2 == 1 {
                order.reverse();
            }
            let mut found = Vec::new();
            for index in order {
                self.runs += 1;
                let (side, server) = &self.servers[index];
                let values = run(server, &format!("bench-{}", self.runs))
                    .map_err(|error| format!("{} on {side:?}: {error}", figures[0].name))?;
                eprintln!("  {side:?}: {:.2}", values[0]);
                found.push((*side, values));
            }
            if pair >= WARM_RUNS {
                let pressure = [before, cpu_pressure()];
                figures.iter_mut().enumerate().for_each(|(at, figure)| take(figure, at, &found, &pressure));
            }
        }
        self.figures.extend(figures);
        Ok(())
    }

    fn idempotent(&mut self, key: &str, load: Load, target: f64) -> Outcome<()> {
        if !self.options.wants(key) {
            return Ok(());
        }
        let Load { value_bytes, partitions, .. } = load;
        let name = |what| format!("idempotent, {value_bytes} B, {partitions} partition(s){what}");
        let figures = [
            Figure::new(&name(""), "records/s", Target::Ratio(target)),
            Figure::new(&name(""), "MB/s", Target::None),
            Figure::new(&name(": server"), "CPU-s/GB", Target::None),
        ];
        self.pairs(figures, |server, topic| {
            let found = measure::produce(server, topic, &load)?;
            Ok([found.records_per_s, found.mb_per_s, found.cpu_s_per_gb])
        })
    }

    fn transactions(&mut self, key: &str, producers: usize, target: Target) -> Outcome<()> {
        if !self.options.wants(key) {
            return Ok(());
        }
        let name = |what| format!("transactions of one 100 B record, {producers} producer(s){what}");
        let figures = [
            Figure::new(&name(""), "txn/s", target),
            Figure::new(&name(": commit p50"), "ms", Target::None),
            Figure::new(&name(": commit p99"), "ms", Target::None),
        ];
        let span = self.options.span;
        self.pairs(figures, |server, topic| {
            let found = measure::transact(server, topic, producers, span)?;
            Ok([found.per_s, found.commit_p50_ms, found.commit_p99_ms])
        })
    }

    fn raw_transactions(&mut self, key: &str, clients: usize) -> Outcome<()> {
        if !self.options.wants(key) {
            return Ok(());
        }
        let name = |what| format!("the same, {clients} raw client(s){what}");
        let figures = [
            Figure::new(&name(""), "txn/s", Target::None),
            Figure::new(&name(": EndTxn p50"), "ms", Target::None),
            Figure::new(&name(": EndTxn p99"), "ms", Target::None),
        ];
        let span = self.options.span;
        self.pairs(figures, |server, topic| {
            let found = measure::transact_raw(server, topic, clients, span)?;
            Ok([found.per_s, found.commit_p50_ms, found.commit_p99_ms])
        })
    }

    /// Committed offsets of groups without members.
    fn offsets(&mut self, clients: usize) -> Outcome<()> {
        if !self.options.wants("offsets") {
            return Ok(());
        }
        let name = |what| format!("OffsetCommit, {clients} raw clients, a group each{what}");
        let figures = [
            Figure::new(&name(""), "commits/s", Target::None),
            Figure::new(&name(": p50"), "ms", Target::None),
            Figure::new(&name(": p99"), "ms", Target::None),
        ];
        let span = self.options.span;
        self.pairs(figures, |server, topic| {
            let found = offsets::commit(server, topic, clients, span)?;
            Ok([found.per_s, found.commit_p50_ms, found.commit_p99_ms])
        })
    }

    /// Consume, transform, produce: `java` says by which client.
    fn loops(&mut self, key: &str, java: bool) -> Outcome<()> {
        if !self.options.wants(key) {
            return Ok(());
        }
        let client = if java { "Java" } else { "librdkafka" };
        let name = |what| format!("loops of 10 records with their offsets, {client}{what}");
        let figures = [
            Figure::new(&name(""), "loops/s", Target::Ratio(3.0)),
            Figure::new(&name(": p50"), "ms", Target::None),
            Figure::new(&name(": p99"), "ms", Target::None),
        ];
        let (span, kafka) = (self.options.span, self.places.kafka.clone());
        self.pairs(figures, |server, topic| {
            let found = match java {
                true => loops::java(server, topic, span, &kafka)?,
                false => loops::librdkafka(server, topic, span)?,
            };
            Ok([found.per_s, found.commit_p50_ms, found.commit_p99_ms])
        })
    }

    fn recovery(&mut self) -> Outcome<()> {
        if !self.options.wants("recovery") {
            return Ok(());
        }
        let name = "SIGKILL of one of two members to full consumption, session timeout 6 s";
        self.pairs([Figure::new(name, "ms", Target::None)], recovery::after_a_kill)
    }

    fn take_over(&mut self) -> Outcome<()> {
        if !self.options.wants("takeover") {
            return Ok(());
        }
        let figures = [
            Figure::new("takeover: second init_transactions", "ms", Target::None),
            Figure::new("takeover: InitProducerId of a raw client", "ms", Target::None),
        ];
        self.pairs(figures, measure::take_over)
    }

    /// Starts in empty directories, before the servers that the other measures use.
    fn starts(&mut self) -> Outcome<()> {
        if !self.options.wants("start") {
            return Ok(());
        }
        let mut start =
            Figure::new("start: exec to first InitProducerId answered", "ms", Target::AtMost(20.0));
        let mut idle = Figure::new("resident memory, idle", "MiB", Target::AtMost(20.0));
        eprintln!("{} ...", start.name);
        for (side, count) in [(Side::Semel, 20), (Side::Kafka, 3)] {
            for _ in 0..if self.options.has(side) { count } else { 0 } {
                start.pressure.push(cpu_pressure());
                let server = Server::start(side, &self.places)?;
                let (times, sizes) = match side {
                    Side::Semel => (&mut start.semel, &mut idle.semel),
                    Side::Kafka => (&mut start.kafka, &mut idle.kafka),
                };
                times.push(server.start.as_secs_f64() * 1e3);
                if sizes.len() < 3 {
                    thread::sleep(Duration::from_secs(2));
                    sizes.push(server.resident_mib()?);
                }
            }
        }
        self.figures.extend([start, idle]);
        Ok(())
    }

    fn start_servers(&mut self) -> Outcome<()> {
        for side in [Side::Semel, Side::Kafka] {
            if self.options.has(side) {
                eprintln!("starting {side:?} ...");
                self.servers.push((side, Server::start(side, &self.places)?));
            }
        }
        Ok(())
    }

    fn resident_after(&mut self) -> Outcome<()> {
        let mut after = Figure::new("resident memory, after these runs", "MiB", Target::None);
        for (side, server) in &self.servers {
            let values = if *side == Side::Semel { &mut after.semel } else { &mut after.kafka };
            values.push(server.resident_mib()?);
        }
        self.figures.push(after);
        Ok(())
    }

    fn run(&mut self) -> Outcome<()> {
        self.starts()?;
        self.start_servers()?;
        let load = |value_bytes, partitions, records| Load { value_bytes, partitions, records };
        self.idempotent("b1-100", load(100, 1, 2_000_000), 1.0)?;
        self.idempotent("b1-1k", load(1024, 1, 400_000), 1.5)?;
        self.idempotent("b1-100x6", load(100, 6, 2_000_000), 1.0)?;
        self.idempotent("b1-1kx6", load(1024, 6, 400_000), 1.5)?;
        self.transactions("b7", 1, Target::Ratio(3.0))?;
        self.raw_transactions("b7raw", 1)?;
        self.raw_transactions("b7rawx64", 64)?;
        self.transactions("b7x16", 16, Target::None)?;
        self.offsets(64)?;
        self.loops("loops", false)?;
        self.loops("loops-java", true)?;
        self.take_over()?;
        self.recovery()?;
        self.resident_after()
    }
}

fn take<const N: usize>(figure: &mut Figure, at: usize, found: &[(Side, [f64; N])], pressure: &[f64]) {
    for (side, values) in found {
        match side {
            Side::Semel => figure.semel.push(values[at]),
            Side::Kafka => figure.kafka.push(values[at]),
        }
    }
    figure.pressure.extend(pressure);
}

/// Share of the last ten seconds in which some task waited for a CPU, in percent; not a number without PSI.
fn cpu_pressure() -> f64 {
    let text = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let value = text.split("avg10=").nth(1).and_then(|rest| rest.split(' ').next());
    value.and_then(|value| value.parse().ok()).unwrap_or(f64::NAN)
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let outcome = match &arguments[..] {
        [word, address, topic] if word == recovery::MEMBER => {
            recovery::be_member(address, topic).map(|()| true)
        }
        _ => bench(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// True if every target is reached.
fn bench() -> Outcome<bool> {
    let options = Options::read()?;
    let place = |name: &str| env::var_os(name).ok_or_else(|| format!("{name} is not set: use bench/run"));
    let places = Places {
        semel: place("SEMEL_BIN")?.into(),
        kafka: place("KAFKA_PEER")?.into(),
        data: place("BENCH_DATA")?.into(),
    };
    fs::create_dir_all(&places.data)?;
    let json = options.json;
    let mut bench = Bench { options, places, servers: Vec::new(), figures: Vec::new(), runs: 0 };
    bench.run()?;
    println!("{}", if json { report::json(&bench.figures) } else { report::table(&bench.figures) });
    Ok(bench.figures.iter().all(|figure| figure.reached() != Some(false)))
}
