//! A connection that speaks RESP, as the rest of the gateway sees it.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

use crate::resp::RespSession;

/// A connection, as whoever brings its outcomes sees it.
pub(crate) struct Talk {
    pub(crate) session: RefCell<RespSession>,
    waker: RefCell<Option<Waker>>,
    /// Whether it got outcomes of this batch.
    pub(crate) is_called: Cell<bool>,
    /// How many unread bytes the hall counts for it.
    pub(crate) counted: Cell<usize>,
}

impl Talk {
    pub(crate) fn new(id: u32) -> Self {
        Self {
            session: RefCell::new(RespSession::new(id)),
            waker: RefCell::new(None),
            is_called: Cell::new(false),
            counted: Cell::new(0),
        }
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    pub(crate) fn listen(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => *waker = Some(context.waker().clone()),
        }
    }
}
