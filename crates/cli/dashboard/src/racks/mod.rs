//! The racks that the page watches: what their controllers said last, the last minutes, and what happened.

mod charts;
mod events;
mod limits;
mod load;
mod names;
mod samples;
mod state;
mod watch;

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;
use sluice_rpc::Remote;
use sluice_support::board::Board;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::rack_change::{self, ChangeDone};
use tokio::time::sleep;

pub(crate) use events::unix_ms;
pub(crate) use limits::{ASK_EVERY, EVENTS_MAX, SAMPLES_MAX};

use events::RackEvents;
use load::LoadHistory;
use watch::RackWatch;

/// All racks of a page.
pub(crate) struct RackWatches {
    title: String,
    racks: Vec<Rc<RackWatch>>,
    events: Rc<RefCell<RackEvents>>,
    board: Option<Board>,
    load: Rc<RefCell<LoadHistory>>,
}

impl RackWatches {
    /// Begins to ask. Must be called inside a [`LocalSet`](tokio::task::LocalSet).
    pub(crate) fn start(title: String, controllers: Vec<Remote>, board: Option<Board>) -> Self {
        let racks: Vec<Rc<RackWatch>> =
            controllers.into_iter().map(|remote| Rc::new(RackWatch::new(remote))).collect();
        let events = Rc::new(RefCell::new(RackEvents::default()));
        let load = Rc::new(RefCell::new(LoadHistory::default()));
        for (number, rack) in racks.iter().enumerate() {
            tokio::task::spawn_local(Rc::clone(rack).ask());
            if board.is_none() {
                tokio::task::spawn_local(events::hear(rack.remote().clone(), number, Rc::clone(&events)));
            }
        }
        if let Some(board) = board.clone() {
            tokio::task::spawn_local(follow(board, Rc::clone(&events), Rc::clone(&load)));
        }
        Self { title, racks, events, board, load }
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// The racks, the load, and the events.
    pub(crate) fn to_json(&self) -> [Value; 3] {
        [state::racks(&self.racks), self.load.borrow().to_json(), self.events.borrow().to_json()]
    }

    /// The figures of a rack, by its number, or of the `load`.
    pub(crate) fn figures(&self, of: &str) -> Option<String> {
        if of == "load" {
            return self.board.as_ref().map(|_| self.load.borrow().figures());
        }
        let number: usize = of.parse().ok()?;
        self.racks.get(number).map(|rack| charts::figures(&rack.seen().samples))
    }

    /// Moves a worker of a rack.
    pub(crate) async fn move_worker(
        &self,
        controller: usize,
        worker: &str,
        slice: &str,
    ) -> Outcome<ChangeDone> {
        rack_change::move_worker(self.changeable(controller)?, worker, slice).await
    }

    /// Maps a type of a rack.
    pub(crate) async fn map_type(
        &self,
        controller: usize,
        task_type: &str,
        slice: Option<&str>,
    ) -> Outcome<ChangeDone> {
        rack_change::map_type(self.changeable(controller)?, task_type, slice).await
    }

    fn changeable(&self, controller: usize) -> Outcome<&Remote> {
        let all = self.racks.len();
        let rack = self.racks.get(controller).ok_or_else(|| {
            Failure::bad_input(format!("there is no controller {controller}: this page has {all}, from 0"))
        })?;
        match names::why_unchangeable(&self.racks, rack) {
            Some(why) => Err(Failure::bad_input(why)),
            None => Ok(rack.remote()),
        }
    }
}

/// Takes what a rack of this process notes, and how its load does.
async fn follow(board: Board, events: Rc<RefCell<RackEvents>>, load: Rc<RefCell<LoadHistory>>) {
    loop {
        events.borrow_mut().take_notes(&board);
        load.borrow_mut().take(board.known().load);
        sleep(ASK_EVERY).await;
    }
}
