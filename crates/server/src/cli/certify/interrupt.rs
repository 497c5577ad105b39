//! `semel certify --own-server` that is told to stop: its servers end before it, and what they stored is removed.

use std::{
    io, process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use semel_certify::host::OwnServers;
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

/// Waits for SIGTERM and SIGINT as long as the program runs.
pub struct Stopping {
    is_asked: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Stopping {
    /// Takes both signals over from the system: the servers end, then the process, with 128 and the signal's number as a
    /// shell has it.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn with(servers: OwnServers) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let entered = runtime.enter();
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        drop(entered);
        let is_asked = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_asked);
        let thread = thread::spawn(move || {
            let kind = runtime.block_on(async {
                tokio::select! {
                    _ = terminate.recv() => SignalKind::terminate(),
                    _ = interrupt.recv() => SignalKind::interrupt(),
                }
            });
            asked.store(true, Ordering::SeqCst);
            servers.end();
            process::exit(128 + kind.as_raw_value());
        });
        Ok(Self { is_asked, thread })
    }

    /// Does not come back if a signal has come: what the run found out without its servers is no verdict.
    pub fn wait_if_asked(self) {
        if self.is_asked.load(Ordering::SeqCst) {
            // It ends the process.
            let _ = self.thread.join();
        }
    }
}
