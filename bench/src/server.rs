//! The two servers: started in empty directories, watched through `/proc`, stopped.

use std::{
    env,
    error::Error,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use semel_certify::{Client, Session};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long a server may take to answer its first request, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// `semel serve`, synced before each answer.
    Semel,
    /// Apache Kafka 4.4 as it comes: never synced.
    Kafka,
}

/// Where things are.
pub struct Places {
    /// The binary `semel`.
    pub semel: PathBuf,
    /// The script that runs Kafka.
    pub kafka: PathBuf,
    /// Semel's data directories go below.
    pub data: PathBuf,
}

/// A running server. Dropped, it is stopped and its data are deleted.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: String,
    port: u16,
    side: Side,
    data: PathBuf,
    kafka: PathBuf,
    /// From exec to the first InitProducerId answered.
    pub start: Duration,
}

impl Server {
    /// Starts a server in an empty directory and waits until it has given out a producer id.
    pub fn start(side: Side, places: &Places) -> Outcome<Self> {
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let data = places.data.join(format!("semel-{port}"));
        let mut command = match side {
            Side::Semel => {
                let mut command = Command::new(&places.semel);
                command.arg("serve").arg("--data-dir").arg(&data).args(["--listen", &address]);
                command
            }
            Side::Kafka => {
                kafka(&places.kafka, "prepare", port)?;
                let mut command = Command::new(&places.kafka);
                command.args(["exec", &port.to_string()]);
                command
            }
        };
        // Diagnostics: what the environment names takes the server's words, else nobody does.
        let words = || match env::var_os("BENCH_SERVER_LOG") {
            Some(file) => fs::File::options().append(true).create(true).open(file).map(Stdio::from),
            None => Ok(Stdio::null()),
        };
        command.stdin(Stdio::null()).stdout(words()?).stderr(words()?);
        let started = Instant::now();
        let child = command.spawn()?;
        let kafka = places.kafka.clone();
        let mut server = Self { child, address, port, side, data, kafka, start: Duration::ZERO };
        server.wait_for_producer_id(started + PATIENCE)?;
        server.start = started.elapsed();
        Ok(server)
    }

    fn wait_for_producer_id(&mut self, deadline: Instant) -> Outcome<()> {
        loop {
            if gives_producer_id(&self.address) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("{:?} ended: {status}", self.side).into());
            }
            if Instant::now() > deadline {
                return Err(format!("{:?} does not answer", self.side).into());
            }
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// A raw connection.
    pub fn session(&self) -> Outcome<Session> {
        Ok(Session::connect(&self.address)?)
    }

    /// CPU time used so far, in seconds.
    pub fn cpu_s(&self) -> Outcome<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The command's name, in brackets, may contain anything; user and system time are fields 14 and 15.
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        // SAFETY: sysconf only reads.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Ok(ticks as f64 / ticks_per_s as f64)
    }

    /// Resident memory, in MiB.
    pub fn resident_mib(&self) -> Outcome<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
        let kib = line.split_whitespace().nth(1).ok_or("no VmRSS")?;
        Ok(kib.parse::<f64>()? / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: the process is our child and not waited for yet, so the id is its own.
        unsafe { libc::kill(self.child.id().cast_signed(), libc::SIGTERM) };
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Left-overs are a nuisance, no wrong figure.
        let _ = match self.side {
            Side::Semel => fs::remove_dir_all(&self.data).map_err(Into::into),
            Side::Kafka => kafka(&self.kafka, "stop", self.port),
        };
    }
}

fn gives_producer_id(address: &str) -> bool {
    let Ok(client) = Client::connect(address) else { return false };
    let mut session = Session { client, versions: semel_certify::session::Versions::CLASSIC };
    matches!(session.try_init(None, 60_000, None), Ok((code, Some(_))) if !code.is_error())
}

fn kafka(script: &Path, action: &str, port: u16) -> Outcome<()> {
    let status = Command::new(script).args([action, &port.to_string()]).stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{} {action}: {status}", script.display()).into()) }
}

/// A free port whose next three are free as well: Kafka takes them.
fn free_port() -> Outcome<u16> {
    for _ in 0..100 {
        let first = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut all =
            (0..4).map(|step| first.checked_add(step).map(|port| TcpListener::bind(("127.0.0.1", port))));
        if all.all(|bound| matches!(bound, Some(Ok(_)))) {
            return Ok(first);
        }
    }
    Err("no free ports".into())
}
