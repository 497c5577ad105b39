//! A real process killed at each named point.

use std::{fs, path::PathBuf, process::Command, sync::mpsc, time::Duration};

use super::*;

const CHILD: &str = "SEMEL_LOG_TEST_DIRECTORY";
const POINTS: [&str; 13] = [
    "before_write:9",
    "after_write:9",
    "after_sync:9",
    "after_publish:9",
    "before_write:60",
    "file_change_before:3",
    "file_change_after:3",
    "snapshot_before_write:2",
    "snapshot_after_write:3",
    "snapshot_after_sync:3",
    "snapshot_after_rename:3",
    "snapshot_after_dir_sync:3",
    "after_sync:100",
];

fn small(directory: PathBuf) -> Options {
    Options {
        file_bytes_min: 64 << 10,
        file_bytes_max: 128 << 10,
        reserve_bytes: 64 << 10,
        ..Options::files(directory)
    }
}

/// The same decisions in every process.
fn decisions(mut each: impl FnMut(Proposal, &Author)) -> Author {
    let (mut author, mut dice) = (author(), Dice(77));
    author.epoch = 1;
    let first = author.started();
    each(first, &author);
    for _ in 0..300 {
        let proposal = author.decide(&mut dice);
        each(proposal, &author);
    }
    author
}

/// What the child does until it is killed: writes down each acknowledged sequence.
fn live(directory: PathBuf) {
    let (sender, outcomes) = mpsc::channel();
    let listen = Box::new(move |outcome| drop(sender.send(outcome)));
    let opened = Log::open(small(directory.clone()), &mut Node::default(), listen).expect("it opens");
    let mut turn = 0;
    decisions(|proposal, author| {
        turn += 1;
        if turn == 1 {
            opened.log.start(LeaderEpoch::new(1), proposal).expect("it starts");
            return;
        }
        let sequence = opened.log.submit(proposal);
        while opened.log.published().sequence() < sequence {
            outcomes.recv_timeout(Duration::from_secs(20)).expect("an outcome");
        }
        fs::write(directory.join("acknowledged"), sequence.get().to_string()).expect("written");
        if turn % 20 == 0 {
            opened.log.snapshot(Box::new(author.node.clone()));
        }
    });
}

#[test]
fn a_process_killed_at_any_named_point_loses_and_invents_nothing() {
    if let Some(directory) = std::env::var_os(CHILD) {
        return live(directory.into());
    }
    let history = decisions(|_, _| {}).history;
    for point in POINTS {
        let name = format!("semel-log-killed-{}-{}", std::process::id(), point.replace(':', "-"));
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("a scratch directory");
        let child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "tests::killed::a_process_killed_at_any_named_point_loses_and_invents_nothing"])
            .env(CHILD, &directory)
            .env("SEMEL_CRASH_POINT", point)
            .output()
            .expect("the child runs");
        assert!(!child.status.success(), "{point} is passed");
        let text = fs::read_to_string(directory.join("acknowledged")).unwrap_or_default();
        let promised = text.parse().unwrap_or(0);
        let mut author = Author { node: Node::default(), history: history.clone(), epoch: 1 };
        let opened = open(&small(directory.clone()), &mut author, promised, &Said::default());
        assert!(opened.is_ok(), "{point}: {:?}", opened.err());
        drop(opened);
        fs::remove_dir_all(&directory).expect("removed");
    }
}
