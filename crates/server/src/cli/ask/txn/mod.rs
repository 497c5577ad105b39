//! `semel txn`: transactions listed, described, explained, aborted, and those that hang.

mod abort;
mod describe;
mod explain;
mod hanging;
mod list;

use clap::{Args, Subcommand};

use super::finish;

/// Look at transactions and end them.
#[derive(Args, Debug)]
pub struct TxnCommand {
    /// What to do.
    #[command(subcommand)]
    action: TxnAction,
}

#[derive(Subcommand, Debug)]
enum TxnAction {
    /// List transactional ids and where their transactions stand.
    List(list::List),
    /// Show where the transaction of an id stands and which partitions it holds.
    Describe(describe::Describe),
    /// Tell the story of an id: who used it, what was written, who was fenced and why.
    Explain(explain::Explain),
    /// Abort the open transaction of an id, at the coordinator and in all its partitions.
    Abort(abort::Abort),
    /// Find transactions that are open in a partition and that no coordinator knows.
    Hanging(hanging::Hanging),
}

/// Runs the command; the exit status.
pub fn run(command: &TxnCommand) -> u8 {
    match &command.action {
        TxnAction::List(list) => finish(list::ask(list), list.json),
        TxnAction::Describe(describe) => finish(describe::ask(describe), describe.json),
        TxnAction::Explain(explain) => finish(explain::ask(explain), explain.json),
        TxnAction::Abort(abort) => finish(abort::ask(abort), abort.json),
        TxnAction::Hanging(hanging) => finish(hanging::ask(hanging), hanging.json),
    }
}
