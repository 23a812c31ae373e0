//! What happened: the events that controllers tell of, or that the run of this process notes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sluice_rpc::Remote;
use sluice_rpc::v1::WatchRequest;
use sluice_rpc::v1::controller_client::ControllerClient;
use sluice_support::board::{Board, NoteKind};
use sluice_support::controller_caller::kind;
use sluice_support::decisions::Decisions;
use tokio::time::sleep;

use super::limits::{ASK_EVERY, EVENTS_MAX};

/// The last events, oldest first.
#[derive(Default)]
pub(crate) struct RackEvents {
    kept: VecDeque<RackEvent>,
    /// The number of the next event.
    next: u64,
    /// How many notes of the board were taken.
    notes: usize,
}

struct RackEvent {
    number: u64,
    at: SystemTime,
    /// The controller that told of it; `None` if this process did.
    controller: Option<usize>,
    kind: NoteKind,
    text: String,
}

impl RackEvents {
    fn add(&mut self, at: SystemTime, controller: Option<usize>, kind: NoteKind, text: String) {
        if self.kept.len() == EVENTS_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(RackEvent { number: self.next, at, controller, kind, text });
        self.next += 1;
    }

    /// Takes what a board noted since the last time.
    pub(crate) fn take_notes(&mut self, board: &Board) {
        for note in board.notes_from(self.notes) {
            self.notes += 1;
            self.add(note.clock, None, note.kind, note.text);
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let of = |event: &RackEvent| {
            json!({
                "number": event.number, "at_unix_ms": unix_ms(event.at), "controller": event.controller,
                "kind": word(event.kind), "text": event.text,
            })
        };
        self.kept.iter().map(of).collect()
    }
}

/// Takes a controller's events, for ever.
pub(crate) async fn hear(remote: Remote, controller: usize, events: Rc<RefCell<RackEvents>>) {
    let mut decided = Decisions::default();
    loop {
        let mut calls = ControllerClient::new(remote.connect_patiently());
        if let Ok(answer) = calls.watch(WatchRequest {}).await {
            let mut told = answer.into_inner();
            while let Ok(Some(event)) = told.message().await {
                let event = event.shown();
                let at = UNIX_EPOCH.checked_add(Duration::from_nanos(event.at_unix_ns)).unwrap_or(UNIX_EPOCH);
                let mut events = events.borrow_mut();
                if event.missed > 0 {
                    let text = format!("{} events were missed: this page read too slowly", event.missed);
                    events.add(at, Some(controller), NoteKind::Plain, text);
                }
                for line in decided.on_event(&event) {
                    events.add(at, Some(controller), kind(&event.kind), line);
                }
            }
        }
        sleep(ASK_EVERY).await;
    }
}

const fn word(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::Plain => "plain",
        NoteKind::Kill => "kill",
        NoteKind::Fault => "fault",
        NoteKind::Back => "back",
    }
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
