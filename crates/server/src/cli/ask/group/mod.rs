//! `semel group`: groups listed, described, explained, deleted, and their offsets moved.

mod delete;
mod describe;
mod explain;
mod lag;
mod list;
mod reset;

use clap::{Args, Subcommand};

use super::finish;

/// Look at groups and their offsets, and change them.
#[derive(Args, Debug)]
pub struct GroupCommand {
    /// What to do.
    #[command(subcommand)]
    action: GroupAction,
}

#[derive(Subcommand, Debug)]
enum GroupAction {
    /// List groups with their type and state.
    List(list::List),
    /// Show members, what each has, and how far the group is behind.
    Describe(describe::Describe),
    /// Move committed offsets of a group without members.
    ResetOffsets(reset::Reset),
    /// Delete groups without members, and their offsets.
    Delete(delete::Delete),
    /// Tell why a group rebalanced, the newest last.
    Explain(explain::Explain),
}

/// Takes the name of a group. Kafka's tools know the empty one, of consumers of long ago; here nothing has it.
fn name(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("a group's name is not empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Runs the command; the exit status.
pub fn run(command: &GroupCommand) -> u8 {
    match &command.action {
        GroupAction::List(list) => finish(list::ask(list), list.json),
        GroupAction::Describe(describe) => finish(describe::ask(describe), describe.json),
        GroupAction::ResetOffsets(reset) => finish(reset::ask(reset), reset.json),
        GroupAction::Delete(delete) => finish(delete::ask(delete), delete.json),
        GroupAction::Explain(explain) => finish(explain::ask(explain), explain.json),
    }
}
