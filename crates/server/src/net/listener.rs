//! Listeners, and what all connections share.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use semel_broker::Facts;
use semel_log::{BlockCache, Published};
use semel_types::ConnectionNumber;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};

use crate::{
    net::{
        budget::Budget,
        connection::{Connection, Ending},
        endpoint::Endpoint,
    },
    node_thread::NodeQueue,
};

/// What all connections share.
pub struct Shared {
    /// Where requests are decided.
    pub node: Arc<NodeQueue>,
    /// What readers may see.
    pub published: Arc<Published>,
    /// Bound on the bytes of all requests in flight.
    pub budget: Budget,
    /// Where readers get bytes.
    pub cache: Arc<BlockCache>,
    /// What answers say about this server.
    pub facts: Facts,
    /// The address that clients are told, unless it is the one they came by.
    pub advertised: Option<Endpoint>,
    /// `socket.request.max.bytes`.
    pub request_bytes_max: usize,
    /// `connections.max.idle.ms`; none for ever.
    pub idle_max: Option<Duration>,
    /// Bound on reads that go to the disk.
    pub cold_reads: Semaphore,
    /// True once the server stops.
    pub stop: watch::Receiver<bool>,
    /// One counter for all listeners: a later connection has a higher number.
    pub connections: AtomicU64,
}

impl Shared {
    /// Completes when the server stops.
    pub async fn stopping(&self) {
        let mut stop = self.stop.clone();
        // An error means that the server is gone, which is a stop as well.
        let _ = stop.wait_for(|stopping| *stopping).await;
    }

    /// What answers on a connection say: clients are told to come back the way they came, unless an address is
    /// advertised.
    pub fn facts_for(&self, local: SocketAddr) -> Facts {
        let endpoint = self.advertised.clone().unwrap_or_else(|| Endpoint::from(local));
        let advertised = semel_broker::Endpoint { host: endpoint.host.into(), port: endpoint.port };
        Facts { advertised, ..self.facts.clone() }
    }

    fn next_number(&self) -> ConnectionNumber {
        ConnectionNumber::new(self.connections.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Accepts connections until the server stops.
pub async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    tokio::spawn(serve(socket, Arc::clone(&shared)));
                }
                Err(error) => pause_after(&error).await,
            },
            () = shared.stopping() => return,
        }
    }
}

async fn serve(socket: TcpStream, shared: Arc<Shared>) {
    let number = shared.next_number();
    let address = socket.peer_addr().map_or_else(|_| "unknown".to_owned(), |address| address.to_string());
    match Connection::serve(socket, number, shared).await {
        Ending::Malformed(reason) => {
            tracing::warn!(%address, "closed a connection that sent no valid request: {reason}");
        }
        Ending::Unanswerable(reason) => {
            tracing::error!(%address, "closed a connection: {reason}; please report this as a bug");
        }
        ending @ (Ending::Closed | Ending::ByNode | Ending::Stopping | Ending::Io(_) | Ending::Idle) => {
            tracing::debug!(%address, "connection {number} ended: {ending}");
        }
    }
}

/// Out of file descriptors or the like: accepting at full speed would only burn a core.
async fn pause_after(error: &io::Error) {
    tracing::warn!("cannot accept a connection: {error}");
    tokio::time::sleep(Duration::from_millis(100)).await;
}
