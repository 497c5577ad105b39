//! The steps of `cargo xtask test`, in their order.
//!
//! Purpose: cheap checks first, real clients last. Invariants: every step has one name, which `--only` takes. What it
//! does not do: it runs nothing.

use std::process::Command;

use crate::certify;
use crate::clients::{self, Client};
use crate::mutations;
use crate::process::{self, Ending};
use crate::project::Project;
use crate::tools;

/// How a step ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// What had to hold, holds.
    Passed,
    /// It does not; the text says what is wrong.
    Failed(String),
    /// It could not be tried; the text says why.
    NotRun(String),
}

/// One step.
pub struct Step {
    /// What `--only` takes.
    pub name: String,
    /// What it checks.
    pub about: String,
    /// Whether not being able to run is a failure when `CI=true`.
    pub required_in_ci: bool,
    work: Work,
}

enum Work {
    Cargo(&'static [&'static str]),
    Tool(fn(&Project) -> Outcome),
    Client(Client),
}

impl Step {
    fn cargo(name: &str, about: &str, arguments: &'static [&'static str]) -> Self {
        Self { name: name.into(), about: about.into(), required_in_ci: true, work: Work::Cargo(arguments) }
    }

    fn tool(name: &str, about: &str, work: fn(&Project) -> Outcome) -> Self {
        Self { name: name.into(), about: about.into(), required_in_ci: true, work: Work::Tool(work) }
    }

    fn client(client: Client) -> Self {
        let name = format!("clients/{}", client.name);
        let about = format!("real client `{}` against a running server", client.name);
        Self { name, about, required_in_ci: true, work: Work::Client(client) }
    }

    /// Runs it.
    pub fn run(&self, project: &Project) -> Outcome {
        match &self.work {
            Work::Cargo(arguments) => outcome(project.cargo(arguments)),
            Work::Tool(work) => work(project),
            Work::Client(client) => client.run(project),
        }
    }

    fn is_client(&self) -> bool {
        self.name.starts_with("clients/")
    }

    /// The server is built for the clients only.
    fn is_for_clients(&self) -> bool {
        self.is_client() || self.name == "server"
    }
}

/// Runs a command that stands for a step.
pub fn outcome(mut command: Command) -> Outcome {
    match process::run(&mut command) {
        Ok(()) => Outcome::Passed,
        Err(Ending::Code(code)) => {
            Outcome::Failed(format!("{} ended with exit code {code}", shown(&command)))
        }
        Err(ending) => Outcome::Failed(ending.describe()),
    }
}

fn shown(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let program =
        |word: &std::ffi::OsStr| word.to_string_lossy().rsplit('/').next().unwrap_or_default().to_owned();
    format!("`{}`", words.map(program).collect::<Vec<_>>().join(" "))
}

/// All steps in their order.
pub fn all(project: &Project) -> Vec<Step> {
    let mut steps = vec![
        Step::cargo("format", "the formatter would change nothing", &["fmt", "--all", "--check"]),
        Step::cargo(
            "clippy",
            "no warning in any target",
            &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        ),
        Step::cargo("tidy", "sizes, words, layers, fences", &["run", "--quiet", "--package", "semel-tidy"]),
        Step::tool("deny", "licences, sources and doubles of dependencies", tools::deny),
        Step {
            required_in_ci: false,
            ..Step::tool("advisories", "known faults of dependencies", tools::advisories)
        },
        Step::tool("tests", "all Rust tests", tools::tests),
        Step::cargo(
            "dropped-rules",
            "random histories notice each rule of the core that is left out",
            &[
                "test",
                "--package",
                "semel-eos",
                "--features",
                "dropped-rules",
                "--test",
                "histories",
                "dropped",
            ],
        ),
        Step::tool("certify", "Semel keeps every promise of semel certify", certify::semel),
        Step {
            required_in_ci: false,
            ..Step::tool(
                "certify-kafka",
                "Apache Kafka keeps what is said to be its promise, and only that",
                certify::kafka,
            )
        },
        Step::tool(
            "mutations",
            "semel certify notices each fault of a server that is broken on purpose",
            mutations::step,
        ),
        Step::cargo("doc-tests", "examples in the documentation", &["test", "--workspace", "--doc"]),
    ];
    let clients = clients::find(project);
    if !clients.is_empty() {
        steps.push(Step::tool(
            "server",
            "the server that the clients talk to, as released",
            clients::build_server,
        ));
    }
    steps.extend(clients.into_iter().map(Step::client));
    steps
}

/// Which steps are asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    quick: bool,
    only: Option<String>,
}

impl Selection {
    /// Reads the options of `test`.
    ///
    /// # Errors
    /// An option that is not known, or one without its value.
    pub fn parse(options: &[&str]) -> Result<Self, String> {
        let mut selection = Self::default();
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            match *option {
                "--quick" => selection.quick = true,
                "--only" => {
                    let name = rest.next().ok_or("`--only` takes the name of a step")?;
                    selection.only = Some((*name).to_owned());
                }
                other => return Err(format!("there is no option `{other}`")),
            }
        }
        Ok(selection)
    }

    /// The steps that are asked for.
    ///
    /// # Errors
    /// None has that name.
    pub fn choose(&self, steps: Vec<Step>) -> Result<Vec<Step>, String> {
        let names: Vec<_> = steps.iter().map(|step| step.name.clone()).collect();
        let chosen: Vec<_> = steps.into_iter().filter(|step| self.wants(step)).collect();
        match &self.only {
            Some(only) if chosen.iter().all(|step| !Self::is_named(step, only)) => {
                Err(format!("there is no step `{only}`; the steps are: {}", names.join(", ")))
            }
            _ => Ok(chosen),
        }
    }

    fn wants(&self, step: &Step) -> bool {
        match &self.only {
            Some(only) if only.starts_with("clients") => step.name == "server" || Self::is_named(step, only),
            Some(only) => Self::is_named(step, only),
            None => !self.quick || !(step.is_for_clients() || step.name == "certify-kafka"),
        }
    }

    fn is_named(step: &Step, only: &str) -> bool {
        step.name == only || (only == "clients" && step.is_client())
    }

    /// What is left out on purpose, for the summary.
    pub fn left_out(&self) -> Option<&'static str> {
        (self.quick && self.only.is_none()).then_some("the real clients and Apache Kafka (--quick)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<Step> {
        ["format", "tests", "server", "clients/go", "clients/java"]
            .map(|name| Step::cargo(name, "", &["--version"]))
            .into()
    }

    fn chosen(options: &[&str]) -> Vec<String> {
        let selection = Selection::parse(options).expect("the options are known");
        selection.choose(steps()).expect("the step exists").into_iter().map(|step| step.name).collect()
    }

    #[test]
    fn quick_leaves_the_clients_and_their_server_out() {
        assert_eq!(chosen(&["--quick"]), ["format", "tests"]);
        assert_eq!(chosen(&[]).len(), 5);
    }

    #[test]
    fn only_takes_one_step_and_clients_bring_their_server() {
        assert_eq!(chosen(&["--only", "tests"]), ["tests"]);
        assert_eq!(chosen(&["--only", "clients/go"]), ["server", "clients/go"]);
        assert_eq!(chosen(&["--only", "clients"]), ["server", "clients/go", "clients/java"]);
    }

    #[test]
    fn a_step_that_is_not_there_is_refused() {
        for name in ["nothing", "clients/c"] {
            let selection = Selection::parse(&["--only", name]).expect("the option is known");
            assert!(selection.choose(steps()).is_err(), "{name}");
        }
        assert!(Selection::parse(&["--only"]).is_err());
        assert!(Selection::parse(&["--fast"]).is_err());
    }

    #[test]
    fn a_command_that_fails_is_shown_as_it_was_called() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exit 3"]);
        assert_eq!(outcome(command), Outcome::Failed("`sh -c exit 3` ended with exit code 3".into()));
    }
}
