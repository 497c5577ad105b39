//! A broker in a process of its own, to be stopped, killed and started again.
//!
//! Invariant: it does not outlive its owner, however that one ends: the server ends when the pipe at its stdin closes.

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

/// Why a server did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// What was started.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// It ended or kept silent instead of getting ready.
    #[error("the server did not get ready; it said:\n{said}")]
    NotReady {
        /// Its log lines.
        said: String,
    },
    /// It did not say what was waited for.
    #[error("the server did not say {text:?}; it said:\n{said}")]
    Silent {
        /// What was waited for.
        text: String,
        /// Its log lines.
        said: String,
    },
    /// It did not stop in time.
    #[error("the server did not stop within {0:?}")]
    NotStopped(Duration),
    /// It was ended for good by [`Life::end`].
    #[error("the server was ended, it is not started again")]
    Over,
    /// The system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How long a server may take to get ready.
const READY_MAX: Duration = Duration::from_secs(30);

/// A free port on the loopback interface.
const ANY_PORT: &str = "127.0.0.1:0";

/// The process of a [`Server`], for who has to end it without holding the server.
#[derive(Clone)]
pub struct Life(Arc<Mutex<Process>>);

struct Process {
    child: Child,
    is_over: bool,
}

impl Life {
    fn of(child: Child) -> Self {
        Self(Arc::new(Mutex::new(Process { child, is_over: false })))
    }

    fn lock(&self) -> MutexGuard<'_, Process> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills it, for good: a restart fails from now on.
    pub fn end(&self) {
        let mut process = self.lock();
        process.is_over = true;
        // Both fail only if the process has ended already, which is what we want.
        let _ = process.child.kill();
        let _ = process.child.wait();
    }
}

/// A running server. Dropped, it is killed.
pub struct Server {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(String, String)>,
    address: String,
    admin: String,
    life: Life,
    lines: Receiver<String>,
}

impl Server {
    /// Starts `program serve` with free ports on the loopback interface and these further arguments.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn start(program: &Path, data_dir: &Path, arguments: &[&str]) -> Result<Self, ServerError> {
        Self::start_with(program, data_dir, arguments, &[])
    }

    /// As [`Server::start`], with environment variables.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn start_with(
        program: &Path,
        data_dir: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self, ServerError> {
        Self::spawn_behind(&[program.into()], data_dir, arguments, environment)?.ready()
    }

    /// The first half of [`Server::start_with`]: the process is there, [`Server::ready`] waits until it serves. The command
    /// ends with the program, before which stands what becomes it (`exec`).
    ///
    /// # Errors
    /// [`ServerError`].
    pub(crate) fn spawn_behind(
        command: &[OsString],
        data_dir: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self, ServerError> {
        let (program, before) = command.split_first().expect("a command has a program");
        let mut all = before.to_vec();
        all.extend(["serve".into(), "--end-with-stdin".into(), "--data-dir".into(), data_dir.into()]);
        all.extend(arguments.iter().map(OsString::from));
        all.extend(["--listen".into(), ANY_PORT.into()]);
        if !arguments.contains(&"--admin") {
            all.extend(["--admin".into(), ANY_PORT.into()]);
        }
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (child, lines) = spawn(program, &all, &environment)?;
        let (program, address, admin) = (program.into(), String::new(), String::new());
        let life = Life::of(child);
        Ok(Self { program, arguments: all, environment, address, admin, life, lines })
    }

    /// Waits until it serves.
    ///
    /// # Errors
    /// [`ServerError`].
    pub(crate) fn ready(mut self) -> Result<Self, ServerError> {
        self.wait_ready()?;
        let is_listen = |argument: &OsString| argument == "--listen";
        let listen = self.arguments.iter().position(is_listen).expect("it was started with it") + 1;
        // Started again, it is where it was.
        self.arguments[listen] = self.address.clone().into();
        Ok(self)
    }

    /// Where it listens, as `host:port`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where its admin endpoint is, as `host:port`, or `none`.
    #[must_use]
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// The next line of its log; `None` if none comes in time, or it has ended.
    pub fn next_line(&mut self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }

    /// Waits for a line of its log that has this text.
    ///
    /// # Errors
    /// [`ServerError::Silent`] with everything that was said instead.
    pub fn wait_line(&mut self, text: &str, patience: Duration) -> Result<String, ServerError> {
        let deadline = Instant::now() + patience;
        let mut said = Vec::new();
        while let Some(line) = self.next_line(deadline.saturating_duration_since(Instant::now())) {
            if line.contains(text) {
                return Ok(line);
            }
            said.push(line);
        }
        Err(ServerError::Silent { text: text.to_owned(), said: said.join("\n") })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.life.lock().child.id()
    }

    /// Its process, to be ended by somebody else.
    #[must_use]
    pub fn life(&self) -> Life {
        self.life.clone()
    }

    /// Kills it at once (SIGKILL) and waits for its end.
    ///
    /// # Errors
    /// [`ServerError::Io`].
    pub fn kill(&mut self) -> Result<ExitStatus, ServerError> {
        let mut process = self.life.lock();
        process.child.kill()?;
        Ok(process.child.wait()?)
    }

    /// True once the process has ended by itself.
    ///
    /// # Errors
    /// [`ServerError::Io`].
    pub fn has_ended(&mut self) -> Result<bool, ServerError> {
        Ok(self.life.lock().child.try_wait()?.is_some())
    }

    /// Waits for the process to end by itself.
    ///
    /// # Errors
    /// [`ServerError::NotStopped`] after `patience`.
    pub fn wait_end(&mut self, patience: Duration) -> Result<ExitStatus, ServerError> {
        let deadline = Instant::now() + patience;
        loop {
            let ended = self.life.lock().child.try_wait()?;
            if let Some(status) = ended {
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err(ServerError::NotStopped(patience));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Asks it to stop (SIGTERM) and waits; gives its status and how long it took.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn terminate(&mut self) -> Result<(ExitStatus, Duration), ServerError> {
        let asked = Instant::now();
        Command::new("kill").args(["-TERM", &self.id().to_string()]).status()?;
        let status = self.wait_end(READY_MAX)?;
        Ok((status, asked.elapsed()))
    }

    /// Further arguments, from the next start on.
    pub fn add_arguments<'a>(&mut self, arguments: impl IntoIterator<Item = &'a str>) {
        self.arguments.extend(arguments.into_iter().map(OsString::from));
    }

    /// Starts it again with the same arguments and address.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn restart(&mut self) -> Result<(), ServerError> {
        let environment = self.environment.clone();
        self.restart_with(environment)
    }

    /// Starts it again with other environment variables.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn restart_with(&mut self, environment: Vec<(String, String)>) -> Result<(), ServerError> {
        let mut process = self.life.lock();
        if process.is_over {
            return Err(ServerError::Over);
        }
        (process.child, self.lines) = spawn(&self.program, &self.arguments, &environment)?;
        drop(process);
        self.environment = environment;
        self.wait_ready()
    }

    fn wait_ready(&mut self) -> Result<(), ServerError> {
        let deadline = Instant::now() + READY_MAX;
        let mut said = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => match ready_field(&line, "listeners=") {
                    Some(address) => {
                        address.clone_into(&mut self.address);
                        ready_field(&line, "admin=").unwrap_or("none").clone_into(&mut self.admin);
                        return Ok(());
                    }
                    None => said.push(line),
                },
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(ServerError::NotReady { said: said.join("\n") });
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.life.end();
    }
}

/// The first value of a field in the line in which a server says that it is ready.
fn ready_field<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(field)?;
    rest.split([',', ' ']).next().filter(|_| line.contains("ready_ms="))
}

/// Starts the process; its log lines arrive on the channel, which closes when it ends.
fn spawn(
    program: &std::ffi::OsStr,
    arguments: &[OsString],
    environment: &[(String, String)],
) -> Result<(Child, Receiver<String>), ServerError> {
    let named = |source| ServerError::Start { program: program.to_string_lossy().into_owned(), source };
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().cloned()).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(named)?;
    let (sender, lines) = mpsc::channel();
    if let Some(stderr) = child.stderr.take() {
        thread::spawn(move || {
            let lines = BufReader::new(stderr).lines().map_while(Result::ok);
            // Nobody listening any more is fine: the pipe is still drained.
            lines.for_each(|line| drop(sender.send(line)));
        });
    }
    Ok((child, lines))
}
