//! Where clients are, as the tasks say that spines hand down: a leaf has no rows of clients, and a task that
//! waits in it or goes round keeps no address.

use std::collections::HashMap;

use sluice_wire::{Endpoint, Incarnation, TaskId};

/// Clients that are known at once. One more, and all others are learned anew with their next task.
const KNOWN_MAX: usize = 1 << 16;

/// Clients by their starts.
#[derive(Default)]
pub(super) struct KnownClients {
    at: HashMap<Incarnation, Endpoint>,
}

impl KnownClients {
    /// A client's task came from a spine, which says where that client is.
    pub(super) fn learn(&mut self, task: TaskId, at: Endpoint) {
        if self.at.len() >= KNOWN_MAX && !self.at.contains_key(&task.incarnation) {
            self.at.clear();
        }
        self.at.insert(task.incarnation, at);
    }

    /// Where a task's client is; nowhere if that is not known, and the client's next try says it again.
    pub(super) fn of(&self, task: TaskId) -> Endpoint {
        self.at.get(&task.incarnation).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::Serial;

    use super::*;

    fn task(of: u64) -> TaskId {
        TaskId { incarnation: Incarnation(of), sequence: Serial(7) }
    }

    fn port(port: u16) -> Endpoint {
        Endpoint { ip: [1; 16], port }
    }

    #[test]
    fn a_client_is_where_its_newest_task_said_and_more_than_are_kept_are_learned_anew() {
        let mut clients = KnownClients::default();
        clients.learn(task(1), port(1));
        clients.learn(task(1), port(2));
        assert_eq!((clients.of(task(1)), clients.of(task(2))), (port(2), Endpoint::default()));
        (2..=KNOWN_MAX as u64).for_each(|of| clients.learn(task(of), port(3)));
        assert_eq!(clients.of(task(1)), port(2), "all of them have room");
        clients.learn(task(0), port(4));
        assert_eq!((clients.of(task(0)), clients.of(task(1))), (port(4), Endpoint::default()));
    }
}
