//! What a page shows: racks, or a document about results.

use std::time::SystemTime;

use serde_json::{Value, json};
use sluice_rpc::Remote;
use sluice_support::board::Board;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::rack_change::ChangeDone;

use crate::document::DocumentWatch;
use crate::racks::{ASK_EVERY, EVENTS_MAX, RackWatches, SAMPLES_MAX, unix_ms};
use crate::visitor::Visitor;
use crate::watched::{CONTROLLERS_MAX, Watched};

/// What a page will show, checked before its thread starts.
pub(crate) enum Prepared {
    Racks { title: String, controllers: Vec<Remote>, board: Option<Board> },
    Document(DocumentWatch),
}

/// What a page shows.
pub(crate) enum ShownPage {
    Racks(RackWatches),
    Document(DocumentWatch),
}

impl Prepared {
    pub(crate) fn of(watched: Watched) -> Outcome<Self> {
        match watched {
            Watched::Racks { controllers, .. } if controllers.len() > CONTROLLERS_MAX => {
                Err(Failure::bad_input(format!(
                    "{} controllers are too many for one page, which watches {CONTROLLERS_MAX}: \
                     start several",
                    controllers.len()
                )))
            }
            Watched::Racks { title, controllers, board } => Ok(Self::Racks { title, controllers, board }),
            Watched::Study(folder) => Ok(Self::Document(DocumentWatch::of_study(folder))),
            Watched::Results(results) => DocumentWatch::of_results(results).map(Self::Document),
        }
    }

    /// Begins to look. Must be called inside a [`LocalSet`](tokio::task::LocalSet).
    pub(crate) fn show(self) -> ShownPage {
        match self {
            Self::Racks { title, controllers, board } => {
                ShownPage::Racks(RackWatches::start(title, controllers, board))
            }
            Self::Document(document) => ShownPage::Document(document),
        }
    }
}

impl ShownPage {
    /// `state.json`: all that the page shows but its charts, as `schemas/dashboard.v1.json` describes it.
    pub(crate) fn state(&self, visitor: &Visitor) -> Value {
        let (title, [racks, load, events], document) = match self {
            Self::Racks(racks) => (racks.title().to_owned(), racks.to_json(), Value::Null),
            Self::Document(document) => {
                (document.title(), [json!([]), Value::Null, json!([])], document.to_json())
            }
        };
        json!({
            "schema": "sluice.dashboard.v1",
            "title": title,
            "version": env!("CARGO_PKG_VERSION"),
            "at_unix_ms": unix_ms(SystemTime::now()),
            "visitor": { "name": visitor.name(), "may_change": visitor.may_change().is_ok() },
            "asked_every_ms": ASK_EVERY.as_millis() as u64,
            "samples_kept": SAMPLES_MAX,
            "events_kept": EVENTS_MAX,
            "racks": racks,
            "load": load,
            "events": events,
            "document": document,
        })
    }

    /// The piece of HTML at a path.
    pub(crate) fn piece(&self, path: &str) -> Option<String> {
        match self {
            Self::Racks(racks) => {
                let of = path.strip_prefix("/charts/").and_then(|rest| rest.strip_suffix(".html"))?;
                racks.figures(of)
            }
            Self::Document(document) => (path == "/document.html").then(|| document.html()),
        }
    }

    /// Moves a worker of a rack.
    pub(crate) async fn move_worker(&self, rack: usize, worker: &str, slice: &str) -> Outcome<ChangeDone> {
        self.racks()?.move_worker(rack, worker, slice).await
    }

    /// Maps a type of a rack.
    pub(crate) async fn map_type(&self, rack: usize, of: &str, slice: Option<&str>) -> Outcome<ChangeDone> {
        self.racks()?.map_type(rack, of, slice).await
    }

    fn racks(&self) -> Outcome<&RackWatches> {
        match self {
            Self::Racks(racks) => Ok(racks),
            Self::Document(_) => Err(Failure::bad_input("this page shows results, which do not change")),
        }
    }
}
