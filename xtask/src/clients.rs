//! Real clients against a running server: `clients/NAME/run`.
//!
//! Purpose: what users run is what is tested. Invariants: one client at a time, each with a time limit; the server is
//! built once, as it is released. What it does not do: it knows nothing of languages; `docs/testing.md` says what a
//! script has to do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::plan::{Outcome, outcome};
use crate::process::{self, Ending};
use crate::project::Project;

/// A script that ends so says that its toolchain is missing.
const TOOLCHAIN_MISSING: i32 = 77;

/// First runs install the client from its registry.
const LIMIT_S: u64 = 20 * 60;

/// One folder under `clients/` with a script `run`.
pub struct Client {
    /// The name of its folder.
    pub name: String,
    script: PathBuf,
}

/// All clients, in order of name.
pub fn find(project: &Project) -> Vec<Client> {
    folders(project).into_iter().filter(|client| client.script.is_file()).collect()
}

/// Folders under `clients/` that are no client, in order of name: what clients share, or a script that was forgotten.
pub fn without_script(project: &Project) -> Vec<String> {
    folders(project).into_iter().filter(|client| !client.script.is_file()).map(|client| client.name).collect()
}

fn folders(project: &Project) -> Vec<Client> {
    let Ok(entries) = fs::read_dir(project.root.join("clients")) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut clients: Vec<_> = folders
        .map(|folder| Client {
            name: folder.file_name().to_string_lossy().into_owned(),
            script: folder.path().join("run"),
        })
        .collect();
    clients.sort_by(|a, b| a.name.cmp(&b.name));
    clients
}

/// Builds the server as it is released.
pub fn build_server(project: &Project) -> Outcome {
    let built = outcome(project.cargo(&["build", "--release", "--bin", "semel"]));
    if built == Outcome::Passed && !server(project).is_file() {
        return Outcome::Failed(format!("{} was not built", server(project).display()));
    }
    built
}

fn server(project: &Project) -> PathBuf {
    project.target.join("release/semel")
}

impl Client {
    /// Runs its script to the end.
    pub fn run(&self, project: &Project) -> Outcome {
        if !is_executable(&self.script) {
            return Outcome::Failed(format!("clients/{}/run is not executable: chmod +x", self.name));
        }
        let mut command = project.command(&self.script, &[]);
        if let Some(folder) = self.script.parent() {
            command.current_dir(folder);
        }
        command.env("SEMEL_BIN", server(project));
        command.env("SEMEL_CACHE", &project.cache);
        match fs::create_dir_all(&project.cache) {
            Ok(()) => verdict(process::run_group(&mut command, LIMIT_S)),
            Err(error) => Outcome::Failed(format!("{}: {error}", project.cache.display())),
        }
    }
}

fn verdict(ended: Result<(), Ending>) -> Outcome {
    match ended {
        Ok(()) => Outcome::Passed,
        Err(Ending::Code(TOOLCHAIN_MISSING)) => Outcome::NotRun("its toolchain is missing".into()),
        Err(ending) => Outcome::Failed(ending.describe()),
    }
}

fn is_executable(script: &Path) -> bool {
    fs::metadata(script).is_ok_and(|data| data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_toolchain_is_no_pass_and_no_failure() {
        assert_eq!(verdict(Ok(())), Outcome::Passed);
        assert!(matches!(verdict(Err(Ending::Code(77))), Outcome::NotRun(_)));
        assert!(matches!(verdict(Err(Ending::Code(1))), Outcome::Failed(_)));
        assert!(matches!(verdict(Err(Ending::TimedOut(1))), Outcome::Failed(_)));
    }
}
