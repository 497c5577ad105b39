//! What a connection knows of the server it belongs to.

use std::sync::Arc;

use semel_types::LeaderEpoch;

use crate::settings::Settings;

/// What answers say about this server; one for each listener, cheap to clone.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The broker's settings.
    pub settings: Arc<Settings>,
    /// The cluster's id: of the data directory.
    pub cluster_id: Arc<str>,
    /// Where clients of this listener are told to connect.
    pub advertised: Endpoint,
    /// The shard's epoch, fixed at start.
    pub leader_epoch: LeaderEpoch,
}

/// Where to connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Host name or address.
    pub host: Arc<str>,
    /// Port.
    pub port: u16,
}
