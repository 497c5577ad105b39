//! The admin endpoint: what Kafka's protocol has no request for, as HTTP and JSON on a port of the loopback interface.
//!
//! Purpose: fences as they happen, the story of a transactional id, what holds the last stable offset, refused
//! requests. `docs/admin-api.yaml` describes every route; a test holds it to [`route::ROUTES`]. Invariants: it only
//! reads; an answer is made from a clone of the state's root that the node's thread gives away, and leaves once
//! everything in it is durable; it listens on loopback addresses only and answers only requests that name one as
//! their host, so that no web page can ask in a browser's name. What it does not do: change anything: commands do
//! that through Kafka's protocol.

mod describe;
mod group;
mod host;
mod reply;
pub mod route;
mod story;

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use semel_log::Published;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};

use crate::node_thread::{Inspected, NodeQueue};
use reply::Failure;
use route::Route;

/// Where it listens unless told otherwise.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:9192";

/// Connections served at a time.
const CONNECTIONS_MAX: usize = 64;

/// How long a client may take to send a request's head.
const HEAD_MAX: Duration = Duration::from_secs(10);

/// What every request needs.
pub struct Admin {
    node: Arc<NodeQueue>,
    published: Arc<Published>,
    /// Where this machine's Kafka clients reach the broker: stands in the commands that answers name.
    bootstrap: String,
    /// The cluster's id: of the data directory.
    cluster_id: Arc<str>,
    connections: Semaphore,
    stop: watch::Receiver<bool>,
}

impl Admin {
    /// For a running node.
    pub fn new(
        node: Arc<NodeQueue>,
        published: Arc<Published>,
        bootstrap: String,
        cluster_id: Arc<str>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self { node, published, bootstrap, cluster_id, connections: Semaphore::new(CONNECTIONS_MAX), stop }
    }

    /// Completes when the server stops.
    async fn stopping(&self) {
        let mut stop = self.stop.clone();
        // An error means that the server is gone, which is a stop as well.
        let _ = stop.wait_for(|stopping| *stopping).await;
    }

    /// The state, once everything in it is durable.
    async fn inspect(&self) -> Result<Inspected, Failure> {
        let inspected = self.node.inspect().await.ok_or_else(Failure::stopping)?;
        self.published.reached(inspected.rests_on).await;
        Ok(inspected)
    }
}

/// Takes a port of the loopback interface.
///
/// # Errors
/// The system's error, or one that says that the address is not of this machine alone.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    if !address.ip().is_loopback() {
        let text =
            format!("{address} can be reached from other machines, and the admin endpoint asks no password");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    TcpListener::bind(address).await
}

/// Answers until the server stops.
pub async fn serve(listener: TcpListener, admin: Arc<Admin>) {
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => drop(tokio::spawn(connection(socket, Arc::clone(&admin)))),
                Err(error) => {
                    tracing::warn!("cannot accept an admin connection: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            () = admin.stopping() => return,
        }
    }
}

async fn connection(socket: TcpStream, admin: Arc<Admin>) {
    let Ok(_permit) = admin.connections.acquire().await else { return };
    let service = service_fn(|request| answer(Arc::clone(&admin), request));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
    tokio::select! {
        served = http.serve_connection(TokioIo::new(socket), service) => {
            if let Err(error) = served {
                tracing::debug!("an admin connection ended: {error}");
            }
        }
        () = admin.stopping() => {}
    }
}

async fn answer(admin: Arc<Admin>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let answered = match permitted(&request) {
        Ok(route) => route.answer(&admin).await,
        Err(failure) => Err(failure),
    };
    Ok(reply::response(answered))
}

/// What is asked, if it may be asked.
fn permitted(request: &Request<Incoming>) -> Result<Route, Failure> {
    let host = request.headers().get(hyper::header::HOST).and_then(|host| host.to_str().ok());
    if !host.is_some_and(host::is_loopback) {
        return Err(Failure::foreign_host());
    }
    if request.method() != Method::GET {
        return Err(Failure::method());
    }
    Route::parse(request.uri().path(), request.uri().query().unwrap_or_default())
}
