//! Running a program and waiting for it, with a limit.
//!
//! Purpose: a client that hangs fails by itself, and the servers it left behind end with it. Invariants: only
//! processes of the group that was started here are ended. What it does not do: output goes straight to the terminal.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How a program ended, where that was not exit code 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With this exit code.
    Code(i32),
    /// By a signal, or before it started; the text says which.
    Broken(String),
    /// It was still running after this many seconds and was ended.
    TimedOut(u64),
}

impl Ending {
    /// For a failure message.
    pub fn describe(&self) -> String {
        match self {
            Self::Code(code) => format!("exit code {code}"),
            Self::Broken(text) => text.clone(),
            Self::TimedOut(seconds) => format!("still running after {seconds} s, ended"),
        }
    }
}

/// Runs `command` to its end.
///
/// # Errors
/// It did not end with exit code 0.
pub fn run(command: &mut Command) -> Result<(), Ending> {
    let status = command.stdin(Stdio::null()).status();
    status.map_err(|error| cannot_start(command, &error)).and_then(judge)
}

/// Runs `command` in a process group of its own for at most `limit_s` seconds; afterwards the group is ended, also if
/// this program is interrupted.
///
/// # Errors
/// It did not end in time with exit code 0.
pub fn run_group(command: &mut Command, limit_s: u64) -> Result<(), Ending> {
    let mut child = command
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| cannot_start(command, &error))?;
    let mut watcher = match watch(child.id()) {
        Ok(watcher) => watcher,
        Err(error) => {
            // Without its watcher nothing of the group may go on; the child is its only member so far.
            return Err(Ending::Broken(format!(
                "no watcher: {error}; {:?}",
                child.kill().and_then(|()| child.wait())
            )));
        }
    };
    let ending = wait(&mut child, limit_s);
    drop(watcher.stdin.take());
    let reaped = watcher.wait().and_then(|_| child.wait());
    ending.and_then(|()| reaped.map(|_| ()).map_err(|error| Ending::Broken(error.to_string())))
}

/// Starts a shell that waits for the end of its input and then ends the group: its input closes when this program is
/// done with the group, or is no more. The group's number is the child's, and nobody else's while a member lives.
fn watch(group: u32) -> std::io::Result<Child> {
    Command::new("sh")
        .args(["-c", "read -r _; kill -s KILL -- \"-$0\" 2>/dev/null", &group.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
}

fn wait(child: &mut Child, limit_s: u64) -> Result<(), Ending> {
    let deadline = Instant::now() + Duration::from_secs(limit_s);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return judge(status),
            Ok(None) if Instant::now() >= deadline => return Err(Ending::TimedOut(limit_s)),
            // The standard library has no wait with a limit; a client runs for seconds.
            Ok(None) => thread::sleep(Duration::from_millis(20)),
            Err(error) => return Err(Ending::Broken(error.to_string())),
        }
    }
}

fn judge(status: ExitStatus) -> Result<(), Ending> {
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(Ending::Code(code)),
        None => Err(Ending::Broken(status.to_string())),
    }
}

fn cannot_start(command: &Command, error: &std::io::Error) -> Ending {
    Ending::Broken(format!("{} cannot be started: {error}", command.get_program().to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn an_exit_code_is_told() {
        assert_eq!(run(&mut shell("exit 0")), Ok(()));
        assert_eq!(run_group(&mut shell("exit 77"), 60), Err(Ending::Code(77)));
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        assert_eq!(run_group(&mut shell("exec sleep 600"), 0), Err(Ending::TimedOut(0)));
    }

    #[test]
    fn a_group_ends_when_the_input_of_its_watcher_closes() {
        let mut child = shell("sleep 600").process_group(0).spawn().expect("a shell can be started");
        let mut watcher = watch(child.id()).expect("a shell can be started");
        assert_eq!(child.try_wait().expect("it is ours"), None);
        drop(watcher.stdin.take());
        assert_eq!(child.wait().expect("it is ours").code(), None, "ended by a signal");
        watcher.wait().expect("it is ours");
    }

    #[test]
    fn what_a_program_leaves_behind_is_ended() {
        // The pipe closes when the last process that holds its end is gone.
        let (mut reader, writer) = std::io::pipe().expect("a pipe can be made");
        let mut command = shell("sleep 600 & exit 0");
        command.stdout(writer);
        assert_eq!(run_group(&mut command, 60), Ok(()));
        drop(command);
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut rest).expect("the pipe can be read");
        assert!(rest.is_empty());
    }

    #[test]
    fn a_program_that_is_not_there_is_told_by_name() {
        let ending = run(&mut Command::new("no-such-program-here")).expect_err("it cannot start");
        assert!(ending.describe().contains("no-such-program-here"));
    }
}
