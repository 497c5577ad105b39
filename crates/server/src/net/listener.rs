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

use parking_lot::Mutex;
use semel_broker::{ClientInfo, Facts};
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
    rate_limit::{RateLimit, SaidOnce},
};

/// What all connections share.
pub struct Shared {
    /// Where requests are decided.
    pub node: Arc<NodeQueue>,
    /// Complaints about what clients send.
    pub complaints: Mutex<RateLimit>,
    /// What cannot be read.
    pub damage: Mutex<SaidOnce>,
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
    /// Bound on long answers built at a time.
    pub state_calls: Semaphore,
    /// True once the server stops.
    pub stop: watch::Receiver<bool>,
    /// One counter for all listeners: a later connection has a higher number.
    pub connections: AtomicU64,
}

impl Shared {
    /// What answers on a connection say: clients are told to come back the way they came, unless an address is
    /// advertised. Its port 0 stands for the listener's.
    pub fn facts_for(&self, local: SocketAddr) -> Facts {
        let mut endpoint = self.advertised.clone().unwrap_or_else(|| Endpoint::from(local));
        if endpoint.port == 0 {
            endpoint.port = local.port();
        }
        let advertised = semel_broker::Endpoint { host: endpoint.host.into(), port: endpoint.port };
        Facts { advertised, ..self.facts.clone() }
    }

    fn next_number(&self) -> ConnectionNumber {
        ConnectionNumber::new(self.connections.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// One line about a client's mistake, at most so many a second.
    pub fn complain(&self, client: &ClientInfo, reason: &str) {
        let ClientInfo { client_id, address, .. } = client;
        self.complaints.lock().say(&format!("client {client_id:?} at {address}: {reason}"));
    }
}

/// Accepts connections until the task is ended. Each gets its number here, in the order of their arrival.
pub async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                let number = shared.next_number();
                tokio::spawn(serve(socket, number, Arc::clone(&shared)));
            }
            Err(error) => pause_after(&error, &shared).await,
        }
    }
}

async fn serve(socket: TcpStream, number: ConnectionNumber, shared: Arc<Shared>) {
    let mut connection = match Connection::new(socket, number, Arc::clone(&shared)) {
        Ok(connection) => connection,
        Err(error) => return tracing::debug!("connection {number} was gone at once: {error}"),
    };
    let ending = connection.run().await;
    match &ending {
        Ending::Malformed(_) | Ending::Stalled | Ending::InTheWay(_) => {
            shared.complain(connection.client(), &format!("closed its connection: {ending}"));
        }
        Ending::Unanswerable(_) => {
            let address = &connection.client().address;
            tracing::error!(%address, "closed a connection: {ending}; please report this as a bug");
        }
        Ending::Closed | Ending::ByNode | Ending::Stopping | Ending::Io(_) | Ending::Idle => {
            tracing::debug!("connection {number} ended: {ending}");
        }
    }
}

/// Out of file descriptors or the like: accepting at full speed would only burn a core.
async fn pause_after(error: &io::Error, shared: &Shared) {
    shared.complaints.lock().say(&format!("cannot accept a connection: {error}"));
    tokio::time::sleep(Duration::from_millis(100)).await;
}
