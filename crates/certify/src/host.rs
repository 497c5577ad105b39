//! Brokers that a run may start, kill and restart.
//!
//! Two kinds: `semel serve` processes that the run starts for itself, any number side by side; and a broker that
//! somebody else runs, with a command that kills and restarts it.

use std::{
    env,
    ffi::OsString,
    fs, io,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    Failure, Server,
    process::Life,
    scenario::{Kept, SmallDisk},
};

/// A broker that can be killed and restarted.
pub trait Host: Send {
    /// Where it listens, as `host:port`.
    fn address(&self) -> String;

    /// Kills it at once (SIGKILL).
    ///
    /// # Errors
    /// It could not be killed.
    fn kill(&mut self) -> Kept;

    /// Starts it again on the data it had, and waits until it serves.
    ///
    /// # Errors
    /// It does not come up.
    fn restart(&mut self) -> Kept;

    /// Restarts it with these settings besides those that it has.
    ///
    /// # Errors
    /// It does not come up.
    fn set(&mut self, settings: &[(&str, &str)]) -> Kept;

    /// Kills it and starts it again on an empty directory, at the same address.
    ///
    /// # Errors
    /// It does not come up.
    fn wipe(&mut self) -> Kept;

    /// Its process, if it is the run's own: ended when the scenario has had its time.
    fn life(&self) -> Option<Life>;
}

/// Starts `semel serve` processes, each with a data directory of its own that is removed at the end.
#[derive(Clone)]
pub struct OwnServers {
    program: PathBuf,
    started: Arc<Mutex<Started>>,
}

/// Everything that the clones of one [`OwnServers`] have started.
#[derive(Default)]
struct Started {
    lives: Vec<Life>,
    directories: Vec<PathBuf>,
    is_over: bool,
}

impl Started {
    fn refusal() -> Failure {
        Failure::NotRun("the run was ended".into())
    }

    fn clear(&mut self) {
        self.lives.drain(..).for_each(|life| life.end());
        // What is gone already was removed by its own owner.
        self.directories.drain(..).for_each(|directory| drop(fs::remove_dir_all(directory)));
    }
}

/// Settings of Apache Kafka that Semel has not because it needs none: it looks at once.
const NOT_NEEDED: [&str; 5] = [
    "log.cleaner.backoff.ms",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    "producer.id.expiration.check.interval.ms",
    "offsets.retention.check.interval.ms",
];

impl OwnServers {
    /// Servers of this program.
    #[must_use]
    pub fn of(program: &Path) -> Self {
        Self { program: program.to_owned(), started: Arc::default() }
    }

    /// Kills all that are running and removes their directories.
    pub fn clear(&self) {
        self.started().clear();
    }

    /// As [`OwnServers::clear`], and starts none any more.
    pub fn end(&self) {
        let mut started = self.started();
        started.is_over = true;
        started.clear();
    }

    fn started(&self) -> MutexGuard<'_, Started> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn directory(&self) -> Result<Directory, Failure> {
        let mut started = self.started();
        if started.is_over {
            return Err(Started::refusal());
        }
        let directory = Directory::new()?;
        started.directories.push(directory.0.clone());
        Ok(directory)
    }

    /// Starts what the command becomes. Nobody clears between its start and its entry in the list: it would make again the
    /// directory that was removed.
    fn own(
        &self,
        command: &[OsString],
        directory: Directory,
        settings: &[(&str, &str)],
    ) -> Result<OwnServer, Failure> {
        let options = options(settings);
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let mut started = self.started();
        if started.is_over {
            return Err(Started::refusal());
        }
        let server = Server::spawn_behind(command, &directory.0, &options, &[])?;
        started.lives.push(server.life());
        drop(started);
        Ok(OwnServer { server: server.ready()?, directory })
    }

    /// Starts one.
    ///
    /// # Errors
    /// It does not come up.
    pub fn start(&self, settings: &[(&str, &str)]) -> Result<OwnServer, Failure> {
        let directory = self.directory()?;
        self.own(&[self.program.clone().into()], directory, settings)
    }

    /// Starts one whose directory is a file system in memory, mounted where only the server and who holds it see it.
    ///
    /// # Errors
    /// [`Failure::NotRun`] if this system lets nobody mount one here; it does not come up.
    pub fn start_on(&self, disk: SmallDisk) -> Result<OnSmallDisk, Failure> {
        let directory = self.directory()?;
        let mount = Mount::at(disk, &directory.0)
            .map_err(|said| Failure::NotRun(format!("no small file system can be mounted here: {said}")))?;
        let server = self.own(&mount.entering(&self.program), directory, disk.settings)?;
        Ok(OnSmallDisk { server, _mount: mount })
    }
}

/// A file system in memory at a directory, seen by the process that holds it and by who enters its namespace. It ends
/// with that process, which ends with this value or, however the run ends, with the pipe at its stdin.
struct Mount {
    holder: Child,
    is_of_users: bool,
}

/// Mounts, says so, and waits for the end of its stdin; what failed goes where its answer would.
const HOLD: &str = "mount -t tmpfs -o \"size=$0m\" tmpfs \"$1\" 2>&1 && echo mounted && exec cat";

impl Mount {
    /// Mounts one; what was said if this system lets nobody mount here.
    fn at(disk: SmallDisk, directory: &Path) -> Result<Self, String> {
        // Root needs no namespace of users, and may have none in a container; everybody else needs it.
        let first = Self::held(disk, directory, false);
        first.or_else(|_| Self::held(disk, directory, true))
    }

    fn held(disk: SmallDisk, directory: &Path, is_of_users: bool) -> Result<Self, String> {
        let mut command = Command::new("unshare");
        command.args(if is_of_users { &["--user", "--map-root-user"] as &[_] } else { &[] });
        command.args(["--mount", "sh", "-c", HOLD, &disk.size_mib.to_string()]).arg(directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let holder = command.spawn().map_err(|error| error.to_string())?;
        let mut mount = Self { holder, is_of_users };
        let mut said = String::new();
        let stdout = mount.holder.stdout.take().expect("it was piped");
        // A holder that could not even be made ends, and so does the line.
        let _ = BufReader::new(stdout).read_line(&mut said);
        if said.trim() == "mounted" {
            return Ok(mount);
        }
        let stderr = mount.holder.stderr.take().expect("it was piped");
        let _ = BufReader::new(stderr).read_line(&mut said);
        Err(said.trim().to_owned())
    }

    /// The command that enters its namespace and becomes the program.
    fn entering(&self, program: &Path) -> Vec<OsString> {
        let target = self.holder.id().to_string();
        let mut command: Vec<OsString> =
            ["nsenter", "--target", &target, "--mount"].map(OsString::from).into();
        if self.is_of_users {
            command.extend(["--user", "--preserve-credentials"].map(OsString::from));
        }
        command.push(program.into());
        command
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Both fail only if it has ended already, which is what we want.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Options of `semel serve` for the settings that Semel has.
fn options(settings: &[(&str, &str)]) -> Vec<String> {
    let settings = settings.iter().filter(|(name, _)| !NOT_NEEDED.contains(name));
    settings.flat_map(|(name, value)| ["--set".to_owned(), format!("{name}={value}")]).collect()
}

/// One `semel serve`.
pub struct OwnServer {
    server: Server,
    // Removed after the server has ended: fields are dropped in order.
    directory: Directory,
}

impl Host for OwnServer {
    fn address(&self) -> String {
        self.server.address().to_owned()
    }

    fn kill(&mut self) -> Kept {
        self.server.kill()?;
        Ok(())
    }

    fn restart(&mut self) -> Kept {
        Ok(self.server.restart()?)
    }

    fn set(&mut self, settings: &[(&str, &str)]) -> Kept {
        self.server.terminate()?;
        self.server.add_arguments(options(settings).iter().map(String::as_str));
        self.restart()
    }

    fn wipe(&mut self) -> Kept {
        self.kill()?;
        self.directory.empty()?;
        self.restart()
    }

    fn life(&self) -> Option<Life> {
        Some(self.server.life())
    }
}

/// A `semel serve` on a small file system of its own, which outlives its kills.
pub struct OnSmallDisk {
    server: OwnServer,
    // Unmounted after the server has ended: fields are dropped in order.
    _mount: Mount,
}

impl Host for OnSmallDisk {
    fn address(&self) -> String {
        self.server.address()
    }

    fn kill(&mut self) -> Kept {
        self.server.kill()
    }

    fn restart(&mut self) -> Kept {
        self.server.restart()
    }

    fn set(&mut self, settings: &[(&str, &str)]) -> Kept {
        self.server.set(settings)
    }

    fn wipe(&mut self) -> Kept {
        // What is in the directory is not seen from here.
        Err(Failure::NotRun("a small disk is not wiped".into()))
    }

    fn life(&self) -> Option<Life> {
        self.server.life()
    }
}

/// A directory that is removed with what is in it.
struct Directory(PathBuf);

impl Directory {
    fn new() -> io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("semel-certify-{}-{number}", process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Removes what is in it. It stays, so that a run that was ended meanwhile finds none that was made again.
    fn empty(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let is_folder = entry.file_type()?.is_dir();
            if is_folder { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
        }
        Ok(())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own cleaning of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A broker that somebody else runs, and the command that restarts it.
///
/// The command is given one of these words, and `CERTIFY_BOOTSTRAP` in its environment; it returns once it is done:
/// `kill` (SIGKILL the broker), `restart` (start it again on the same data, as it was set before, until it serves),
/// `wipe` (kill it, start it on an empty directory), `small-disk MIB KEY=VALUE ...` (kill it, start it on an empty file
/// system of that size with these settings besides its own; it is gone with the broker: `kill` and `restart` bring back
/// what was before), `settings KEY=VALUE ...` (restart it with these settings besides its own; with none: with its own).
/// If it fails the scenario is not run; only a failed `restart` after a `kill` is held against the broker.
#[derive(Clone, Debug)]
pub struct Commanded {
    command: String,
    address: String,
}

impl Commanded {
    /// The broker at an address.
    #[must_use]
    pub fn new(command: &str, address: &str) -> Self {
        Self { command: command.to_owned(), address: address.to_owned() }
    }

    /// Restarts it with these settings besides its own; with none: with its own.
    ///
    /// # Errors
    /// The command failed.
    pub fn restart_with(&self, settings: &[(&str, &str)]) -> Kept {
        self.run_set(&["settings"], settings)
    }

    /// Kills it and starts it on a small file system.
    ///
    /// # Errors
    /// The command failed, or does not know the word.
    pub fn start_on(&self, disk: SmallDisk) -> Kept {
        self.run_set(&["small-disk", &disk.size_mib.to_string()], disk.settings)
    }

    /// Words, and settings behind them.
    fn run_set(&self, words: &[&str], settings: &[(&str, &str)]) -> Kept {
        let pairs: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.run(&words.iter().copied().chain(pairs.iter().map(String::as_str)).collect::<Vec<_>>())
    }

    /// A command that fails says nothing of the broker: the scenario is not run.
    fn run(&self, words: &[&str]) -> Kept {
        let failed = |how: String| Failure::NotRun(format!("`{} {}` {how}", self.command, words.join(" ")));
        let mut parts = self.command.split_whitespace();
        let program = parts.next().ok_or_else(|| failed("has no program".into()))?;
        let mut command = Command::new(program);
        command.args(parts).args(words).env("CERTIFY_BOOTSTRAP", &self.address);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        let status = status.map_err(|error| failed(format!("cannot be run: {error}")))?;
        if status.success() { Ok(()) } else { Err(failed(format!("ended with {status}"))) }
    }
}

impl Host for Commanded {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn kill(&mut self) -> Kept {
        self.run(&["kill"])
    }

    /// A broker that was killed and does not come back has lost what it promised to keep.
    fn restart(&mut self) -> Kept {
        self.run(&["restart"]).map_err(|failure| Failure::Failed(format!("no restart: {}", failure.reason())))
    }

    fn set(&mut self, settings: &[(&str, &str)]) -> Kept {
        self.restart_with(settings)
    }

    fn wipe(&mut self) -> Kept {
        self.run(&["wipe"])
    }

    fn life(&self) -> Option<Life> {
        None
    }
}

/// A broker that was started by command on a small disk, which a kill would take away.
pub(crate) struct CommandedOnSmallDisk(Commanded);

impl CommandedOnSmallDisk {
    pub(crate) fn new(commanded: &Commanded) -> Self {
        Self(commanded.clone())
    }

    fn refusal() -> Kept {
        Err(Failure::NotRun("the small disk would be gone with its broker".into()))
    }
}

impl Host for CommandedOnSmallDisk {
    fn address(&self) -> String {
        self.0.address()
    }

    fn kill(&mut self) -> Kept {
        Self::refusal()
    }

    fn restart(&mut self) -> Kept {
        Self::refusal()
    }

    fn set(&mut self, _: &[(&str, &str)]) -> Kept {
        Self::refusal()
    }

    fn wipe(&mut self) -> Kept {
        Self::refusal()
    }

    fn life(&self) -> Option<Life> {
        None
    }
}
