//! The controller's notes as events of the log.

use sluice_control::Note;
use sluice_log::LogEvent;

/// The event that a note is.
pub(super) const fn event(note: &Note) -> LogEvent {
    match note {
        Note::WorkerJoined { .. } => LogEvent::WorkerJoined,
        Note::WorkerDied { .. } => LogEvent::WorkerDied,
        Note::WorkerLeft { .. } => LogEvent::WorkerLeft,
        Note::WorkerMoved { .. } => LogEvent::WorkerMoved,
        Note::WorkerLent { .. } => LogEvent::WorkerLent,
        Note::DepthsEvened { .. } => LogEvent::DepthsEvened,
        Note::ClientJoined { .. } => LogEvent::ClientJoined,
        Note::ClientLeft { .. } => LogEvent::ClientLeft,
        Note::ClientDied { .. } => LogEvent::ClientDied,
        Note::ClientMoved { .. } => LogEvent::ClientMoved,
        Note::ServerJoined { .. } => LogEvent::ServerJoined,
        Note::ServerLeft { .. } => LogEvent::ServerLeft,
        Note::ServerDied { .. } => LogEvent::ServerDied,
        Note::SliceOpened { .. } => LogEvent::SliceOpened,
        Note::SliceClosed { .. } => LogEvent::SliceClosed,
        Note::ClassOpened { .. } => LogEvent::ClassOpened,
        Note::ClassClosed { .. } => LogEvent::ClassClosed,
        Note::SwitchUp { .. } => LogEvent::SwitchUp,
        Note::SwitchRestarted { .. } => LogEvent::SwitchRestarted,
        Note::SwitchDown => LogEvent::SwitchDown,
        Note::ReadBack { .. } => LogEvent::ReadBack,
        Note::SwitchConfused => LogEvent::SwitchConfused,
        Note::SwitchTooSmall => LogEvent::SwitchTooSmall,
        Note::Superseded { .. } => LogEvent::Superseded,
        Note::Stalled { .. } => LogEvent::Stalled,
        Note::Leads => LogEvent::Leads,
        Note::StandsBy => LogEvent::StandsBy,
    }
}

/// Logs a note, with the names and indices that it has. All notes have level info.
pub(super) fn log(note: &Note) {
    let about = NoteSubject::of(note);
    sluice_log::log_at!(
        event(note),
        LogEvent::WorkerJoined.level(),
        host = about.host,
        worker = about.worker,
        client = about.client,
        server = about.server,
        slice = about.slice,
        "{note}"
    );
}

/// Whom and what a note is about.
#[derive(Default)]
struct NoteSubject<'n> {
    host: Option<&'n str>,
    worker: Option<u64>,
    client: Option<u64>,
    server: Option<u64>,
    slice: Option<&'n str>,
}

impl<'n> NoteSubject<'n> {
    fn of(note: &'n Note) -> Self {
        let none = Self::default();
        let named = |name: &'n String| Some(name.as_str()).filter(|name| !name.is_empty());
        match note {
            Note::WorkerJoined { name, worker, slice, .. }
            | Note::WorkerMoved { name, worker, slice, .. }
            | Note::WorkerLent { name, worker, to: slice, .. } => {
                Self { host: named(name), worker: Some(worker.0.into()), slice: Some(slice), ..none }
            }
            Note::WorkerDied { name, worker } | Note::WorkerLeft { name, worker } => {
                Self { host: named(name), worker: Some(worker.0.into()), ..none }
            }
            Note::ClientJoined { name, client }
            | Note::ClientLeft { name, client }
            | Note::ClientDied { name, client }
            | Note::ClientMoved { name, client } => {
                Self { host: named(name), client: Some(client.0.into()), ..none }
            }
            Note::ServerJoined { name, server, .. }
            | Note::ServerLeft { name, server }
            | Note::ServerDied { name, server } => {
                Self { host: named(name), server: Some(server.0.into()), ..none }
            }
            Note::DepthsEvened { slice, .. }
            | Note::SliceOpened { slice }
            | Note::SliceClosed { slice }
            | Note::ClassOpened { slice, .. }
            | Note::ClassClosed { slice, .. } => Self { slice: Some(slice), ..none },
            _ => none,
        }
    }
}
