//! Which builds the processes of a rack are, as their last calls said.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sluice_rpc::{PeerVersion, v1};

/// Clients come and go under new names. Beyond so many, all are forgotten, and heard of again with their next
/// renewal.
const KNOWN_MAX: usize = 8_192;

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ProcessKind {
    Worker,
    Client,
    Server,
}

impl ProcessKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// The builds of registered hosts, by their names.
#[derive(Debug, Default)]
pub(super) struct Builds(Mutex<HashMap<(ProcessKind, String), PeerVersion>>);

impl Builds {
    /// Notes what a host said with its renewal.
    pub(super) fn note(&self, kind: ProcessKind, name: &str, said: &PeerVersion) {
        // Nothing that can panic happens under this lock.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert((kind, name.to_owned()), said.clone());
    }

    /// The builds of this controller, its switch if that is known, and the hosts of a status.
    pub(super) fn of(
        &self,
        switch: Option<PeerVersion>,
        status: &v1::StatusResponse,
    ) -> Vec<v1::ProcessBuild> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let named = |kind: ProcessKind, name: &str| {
            let said = known.get(&(kind, name.to_owned()))?;
            Some(build(kind.word(), name, said))
        };
        let own = build("controller", "", &PeerVersion::own());
        let switch = switch.map(|said| build("switch", "", &said));
        let workers = status.workers.iter().filter_map(|worker| named(ProcessKind::Worker, &worker.name));
        let servers = status.servers.iter().filter_map(|server| named(ProcessKind::Server, &server.name));
        let clients = status.clients.iter().filter_map(|client| named(ProcessKind::Client, &client.name));
        [own].into_iter().chain(switch).chain(workers).chain(servers).chain(clients).collect()
    }
}

fn build(kind: &str, name: &str, said: &PeerVersion) -> v1::ProcessBuild {
    let PeerVersion { build, oldest, newest } = said.clone();
    v1::ProcessBuild { kind: kind.to_owned(), name: name.to_owned(), build, oldest, newest }
}
