//! Events that people may want to see: each note is one line in a log or a live view.

use alloc::string::String;
use core::fmt;

use sluice_wire::{ClientId, Epoch, Generation, ServerId, Term, WorkerId};

/// An event that people may want to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A worker has its first generation and takes tasks.
    WorkerJoined {
        name: String,
        worker: WorkerId,
        slice: String,
        generation: Generation,
    },
    /// A worker's lease ended without a renewal.
    WorkerDied {
        /// The worker's name; empty if it was never learnt.
        name: String,
        worker: WorkerId,
    },
    /// A worker said that it leaves, and has left.
    WorkerLeft {
        name: String,
        worker: WorkerId,
    },
    /// A worker takes tasks of another slice now.
    WorkerMoved {
        name: String,
        worker: WorkerId,
        /// The name of the worker's new slice.
        slice: String,
        generation: Generation,
    },
    /// The controller's rule for slices (`slice_step`) lends a worker to another slice.
    WorkerLent {
        name: String,
        worker: WorkerId,
        /// The slice that gives the worker.
        from: String,
        /// How idle the giving slice was, in thousandths of a worker.
        idle_milli: u32,
        /// The slice that takes the worker.
        to: String,
        /// How many workers of the taking slice were overloaded.
        overloads: u32,
        /// The worker's depth from now on.
        depth: u8,
    },
    /// The slice step gave all workers of a slice the same depth, since some were overloaded and others
    /// idle.
    DepthsEvened {
        slice: String,
        depth: u8,
    },
    /// A client is registered.
    ClientJoined {
        name: String,
        client: ClientId,
    },
    ClientLeft {
        name: String,
        client: ClientId,
    },
    /// A client's lease ended without a renewal.
    ClientDied {
        /// The client's name; empty if it was never learnt.
        name: String,
        client: ClientId,
    },
    /// A client's lease ended at this spine after another spine's controller had granted the client.
    ClientMoved {
        /// The client's name; empty if it was never learnt.
        name: String,
        client: ClientId,
    },
    /// A server registered: waiting tasks are written into its memory.
    ServerJoined {
        /// The server's name; empty if it was never learnt.
        name: String,
        server: ServerId,
        /// How many rings the server keeps.
        rings: usize,
        bytes: u64,
    },
    /// A server said that it leaves, and has left.
    ServerLeft {
        name: String,
        server: ServerId,
    },
    /// A server's lease ended without a renewal.
    ServerDied {
        /// The server's name; empty if it was never learnt.
        name: String,
        server: ServerId,
    },
    /// A slice has a worker now and takes tasks.
    SliceOpened {
        slice: String,
    },
    /// A slice has no worker now and refuses tasks.
    SliceClosed {
        slice: String,
    },
    /// No worker of a slice serves tasks that need these labels any more; they are refused.
    ClassClosed {
        slice: String,
        needs: String,
    },
    /// A worker of a slice serves tasks that need these labels again.
    ClassOpened {
        slice: String,
        needs: String,
    },
    /// A switch can be reached.
    SwitchUp {
        epoch: Epoch,
    },
    /// The switch came back with empty registers: all hosts register anew.
    SwitchRestarted {
        /// The switch's epoch before the restart.
        before: Epoch,
        epoch: Epoch,
    },
    /// The switch cannot be reached.
    SwitchDown,
    /// The switch's tables were read back.
    ReadBack {
        /// Workers that were found.
        workers: usize,
        /// Clients that were found.
        clients: usize,
    },
    /// An answer of the switch fitted no question; its tables are read again.
    SwitchConfused,
    /// The switch is too small for the plan.
    SwitchTooSmall,
    /// Another controller has taken the switch over.
    Superseded {
        by: Term,
        /// The term of this controller.
        ours: Term,
    },
    /// The controller leads from now on.
    Leads,
    /// The controller leads no more, and waits for the lead.
    StandsBy,
    /// The controller was not called for so long that its leases prove nothing; all were extended.
    Stalled {
        /// How late the controller was called, in milliseconds.
        late_ms: u64,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkerJoined { name, worker, slice, generation } => {
                write!(f, "worker {name} joined slice {slice} (index {worker}, generation {generation})")
            }
            Self::WorkerDied { name, worker } => {
                write!(f, "worker {} died: lease ended", shown(name, worker.0))
            }
            Self::WorkerLeft { name, worker } => write!(f, "worker {} left", shown(name, worker.0)),
            Self::WorkerMoved { name, worker, slice, generation } => {
                write!(f, "worker {name} moved to slice {slice} (index {worker}, generation {generation})")
            }
            Self::WorkerLent { name, worker, from, idle_milli, to, overloads, depth } => {
                let (idle, name) = (f64::from(*idle_milli) / 1_000.0, shown(name, worker.0));
                write!(
                    f,
                    "slice {from} lends worker {name} to slice {to} at depth {depth}: {idle:.1} workers idle there, "
                )?;
                write!(f, "{overloads} overloaded here")
            }
            Self::DepthsEvened { slice, depth } => {
                write!(f, "slice {slice} sets all depths to {depth}: some workers are overloaded, some idle")
            }
            Self::ClientJoined { name, client } => write!(f, "client {name} joined (index {client})"),
            Self::ClientLeft { name, client } => write!(f, "client {} left", shown(name, client.0)),
            Self::ClientDied { name, client } => {
                write!(f, "client {} died: lease ended", shown(name, client.0))
            }
            Self::ClientMoved { name, client } => write!(f, "client {} has moved", shown(name, client.0)),
            Self::ServerJoined { name, server, rings, bytes } => {
                let (name, mib) = (shown(name, server.0), *bytes as f64 / f64::from(1 << 20));
                write!(f, "server {name} holds {rings} rings of {mib:.1} MiB together (index {server})")
            }
            Self::ServerLeft { name, server } => write!(f, "server {} left", shown(name, server.0)),
            Self::ServerDied { name, server } => {
                write!(f, "server {} died: lease ended", shown(name, server.0))
            }
            Self::SliceOpened { slice } => write!(f, "slice {slice} takes tasks"),
            Self::ClassOpened { slice, needs } => {
                write!(f, "slice {slice} takes tasks that need {needs} again")
            }
            Self::ClassClosed { slice, needs } => {
                write!(f, "slice {slice} has no worker for tasks that need {needs} and refuses them")
            }
            Self::SliceClosed { slice } => write!(f, "slice {slice} has no workers and refuses tasks"),
            Self::SwitchUp { epoch } => write!(f, "switch up, epoch {epoch}"),
            Self::SwitchRestarted { before, epoch } => {
                write!(f, "switch restarted: epoch {before} is now {epoch}, hosts register anew")
            }
            Self::SwitchDown => f.write_str("switch cannot be reached"),
            Self::ReadBack { workers, clients } => {
                write!(f, "tables read back: {workers} workers, {clients} clients")
            }
            Self::SwitchConfused => {
                f.write_str("switch gave an answer that fits no question; reading it again")
            }
            Self::Superseded { by, ours } => write!(
                f,
                "another controller has taken the switch over (its number is {by}, ours {ours}): this one writes nothing any \
                 more; stop one of the two, and start this one anew if it is to have the switch"
            ),
            Self::Leads => f.write_str("this controller leads now"),
            Self::StandsBy => f.write_str("this controller leads no more, and is a standby"),
            Self::SwitchTooSmall => f.write_str("switch is too small for the plan"),
            Self::Stalled { late_ms } => {
                write!(f, "controller was stopped for {late_ms} ms; leases extended")
            }
        }
    }
}

/// A name, or the index of a host whose name was never learnt.
struct Shown<'a>(&'a str, u16);

fn shown(name: &str, index: u16) -> Shown<'_> {
    Shown(name, index)
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { write!(f, "with index {}", self.1) } else { f.write_str(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_note_reads_as_one_line() {
        let note = Note::WorkerMoved {
            name: "w3".to_string(),
            worker: WorkerId(3),
            slice: "scan".to_string(),
            generation: Generation(5),
        };
        assert_eq!(note.to_string(), "worker w3 moved to slice scan (index 3, generation 5)");
    }

    #[test]
    fn a_servers_memory_is_said_in_mib() {
        let bytes = 5 << 19;
        let note = Note::ServerJoined { name: "s".to_string(), server: ServerId(1), rings: 2, bytes };
        assert_eq!(note.to_string(), "server s holds 2 rings of 2.5 MiB together (index 1)");
    }

    #[test]
    fn a_worker_whose_name_was_never_learnt_is_shown_by_index() {
        let note = Note::WorkerDied { name: String::new(), worker: WorkerId(7) };
        assert_eq!(note.to_string(), "worker with index 7 died: lease ended");
    }
}
