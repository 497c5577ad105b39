//! What the system lets this process have.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Asks for as many open files as this user may have: each connection is one, and the usual soft limit is 1,024. What
/// the system refuses is met later, by a connection that cannot be accepted.
pub fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!("cannot raise the limit of open files: {error}");
    }
}
