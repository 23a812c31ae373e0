//! Hosts whose leases ended, until they come back or are forgotten.

use std::collections::VecDeque;
use std::time::Instant;

use sluice_control::Note;
use sluice_rpc::v1;
use v1::HostKind;

/// How many are remembered.
const LOST_MAX: usize = 64;

/// Hosts that were removed because they did not renew their registration, the last one last.
#[derive(Debug, Default)]
pub(super) struct LostHosts(VecDeque<LostEntry>);

#[derive(Debug)]
struct LostEntry {
    kind: HostKind,
    name: String,
    index: u16,
    at: Instant,
}

impl LostHosts {
    /// Remembers a host that died, and forgets one that came back or said that it leaves.
    pub(super) fn on_note(&mut self, note: &Note) {
        match note {
            Note::WorkerDied { name, worker } => self.lose(HostKind::Worker, name, worker.0),
            Note::ClientDied { name, client } => self.lose(HostKind::Client, name, client.0),
            Note::ServerDied { name, server } => self.lose(HostKind::Server, name, server.0),
            Note::WorkerJoined { name, worker, .. } | Note::WorkerLeft { name, worker } => {
                self.forget(HostKind::Worker, name, worker.0);
            }
            Note::ClientJoined { name, client }
            | Note::ClientLeft { name, client }
            | Note::ClientMoved { name, client } => {
                self.forget(HostKind::Client, name, client.0);
            }
            Note::ServerJoined { name, server, .. } | Note::ServerLeft { name, server } => {
                self.forget(HostKind::Server, name, server.0);
            }
            _ => {}
        }
    }

    fn lose(&mut self, kind: HostKind, name: &str, index: u16) {
        self.forget(kind, name, index);
        if self.0.len() == LOST_MAX {
            self.0.pop_front();
        }
        self.0.push_back(LostEntry { kind, name: name.to_owned(), index, at: Instant::now() });
    }

    /// A host is the same by its name; one whose name was never learnt, by its index.
    fn forget(&mut self, kind: HostKind, name: &str, index: u16) {
        self.0.retain(|lost| {
            let is_same = if lost.name.is_empty() { lost.index == index } else { lost.name == name };
            lost.kind != kind || !is_same
        });
    }

    pub(super) fn told(&self) -> Vec<v1::LostHost> {
        let told = |lost: &LostEntry| v1::LostHost {
            kind: lost.kind.into(),
            name: lost.name.clone(),
            index: lost.index.into(),
            ago_ns: u64::try_from(lost.at.elapsed().as_nanos()).unwrap_or(u64::MAX),
        };
        self.0.iter().map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::{ClientId, Generation, WorkerId};

    use super::*;

    fn died(name: &str, index: u16) -> Note {
        Note::WorkerDied { name: name.to_owned(), worker: WorkerId(index) }
    }

    fn joined(name: &str, index: u16) -> Note {
        let (name, slice) = (name.to_owned(), "get".to_owned());
        Note::WorkerJoined { name, worker: WorkerId(index), slice, generation: Generation(1) }
    }

    fn after(notes: &[Note]) -> Vec<String> {
        let mut lost = LostHosts::default();
        for note in notes {
            lost.on_note(note);
        }
        lost.told().into_iter().map(|lost| format!("{} {}", lost.name, lost.index)).collect()
    }

    #[test]
    fn a_host_is_lost_until_it_comes_back_under_its_name_or_leaves() {
        assert_eq!(after(&[died("a", 1), died("b", 2)]), ["a 1", "b 2"]);
        assert_eq!(after(&[died("a", 1), died("b", 2), joined("a", 7)]), ["b 2"]);
        let left = Note::WorkerLeft { name: "b".to_owned(), worker: WorkerId(2) };
        assert_eq!(after(&[died("b", 2), left]), [""; 0]);
        assert_eq!(after(&[died("a", 1), died("a", 3)]), ["a 3"]);
        // Whose index is used again is another one.
        assert_eq!(after(&[died("a", 1), joined("c", 1)]), ["a 1"]);
        assert_eq!(after(&[died("", 1), joined("c", 1)]), [""; 0]);
        let client = Note::ClientJoined { name: "a".to_owned(), client: ClientId(1) };
        assert_eq!(after(&[died("a", 1), client]), ["a 1"]);
    }

    #[test]
    fn so_many_are_remembered_and_the_first_is_forgotten() {
        let notes: Vec<Note> = (0..100).map(|index| died(&format!("w-{index}"), index)).collect();
        let lost = after(&notes);
        assert_eq!((lost.len(), lost[0].as_str()), (LOST_MAX, "w-36 36"));
    }
}
