//! How a controller reaches the switch's tables: the switch's thread carries out table steps between two
//! batches and sends the answers back.

use std::sync::mpsc::{self, Receiver, Sender};

use sluice_net::udp::Waker;
use sluice_wire::Term;
use sluice_wire::tables::{TableAnswer, TableOp};

use crate::SwitchdError;

/// Table steps, and where their answers go.
struct TableRequest {
    /// The term of the controller that asks; `None` for this process itself.
    by: Option<Term>,
    ops: Vec<TableOp>,
    answer: Box<dyn FnOnce(Vec<TableAnswer>) + Send>,
}

/// A sender of table steps; clones lead to the same switch.
#[derive(Clone)]
pub struct TablePort {
    letters: Sender<TableRequest>,
    waker: Waker,
}

impl TablePort {
    /// Carries out these steps without a packet in between, and waits for their answers.
    ///
    /// # Errors
    /// [`SwitchdError::SwitchStopped`] if the switch's thread has ended. The steps may or may not have been
    /// carried out.
    pub fn call(&self, ops: Vec<TableOp>) -> Result<Vec<TableAnswer>, SwitchdError> {
        let (give, take) = mpsc::sync_channel(1);
        self.send(ops, move |answers| drop(give.send(answers)))?;
        take.recv().map_err(|_| SwitchdError::SwitchStopped)
    }

    /// Carries out these steps and passes their answers to `answer` on the switch's thread, which must not
    /// block. If the switch stops first, `answer` is dropped without a call.
    ///
    /// # Errors
    /// [`SwitchdError::SwitchStopped`] if the switch's thread has ended.
    pub fn send(
        &self,
        ops: Vec<TableOp>,
        answer: impl FnOnce(Vec<TableAnswer>) + Send + 'static,
    ) -> Result<(), SwitchdError> {
        self.post(None, ops, answer)
    }

    /// Like [`Self::send`], in the name of a controller, which the switch may not obey.
    ///
    /// # Errors
    /// [`SwitchdError::SwitchStopped`] if the switch's thread has ended.
    pub fn send_by(
        &self,
        term: Term,
        ops: Vec<TableOp>,
        answer: impl FnOnce(Vec<TableAnswer>) + Send + 'static,
    ) -> Result<(), SwitchdError> {
        self.post(Some(term), ops, answer)
    }

    fn post(
        &self,
        by: Option<Term>,
        ops: Vec<TableOp>,
        answer: impl FnOnce(Vec<TableAnswer>) + Send + 'static,
    ) -> Result<(), SwitchdError> {
        let letter = TableRequest { by, ops, answer: Box::new(answer) };
        self.letters.send(letter).map_err(|_| SwitchdError::SwitchStopped)?;
        self.waker.wake();
        Ok(())
    }
}

/// The switch's end.
pub struct Mailbox(Receiver<TableRequest>);

impl Mailbox {
    /// An empty mailbox, and its sender.
    pub fn new(waker: Waker) -> (TablePort, Self) {
        let (letters, inbox) = mpsc::channel();
        (TablePort { letters, waker }, Self(inbox))
    }

    /// Answers all pending requests. Returns how many steps were refused because their controller was
    /// superseded. Before a controller's steps, reads the shape through `step`, since it names the
    /// controller that the switch obeys.
    #[inline]
    pub fn answer(&self, mut step: impl FnMut(TableOp) -> TableAnswer) -> u64 {
        let mut refused = 0;
        while let Ok(TableRequest { by, ops, answer }) = self.0.try_recv() {
            let obeyed = by.map(|by| (by, obeyed(&mut step)));
            let mut take = |op| {
                let answer = match obeyed {
                    Some((by, obeyed)) if !obeyed.obeys(by, &op) => TableAnswer::Superseded(obeyed),
                    _ => step(op),
                };
                refused += u64::from(matches!(answer, TableAnswer::Superseded(_)));
                answer
            };
            answer(ops.into_iter().map(&mut take).collect());
        }
        refused
    }
}

/// The term of the controller that the switch obeys.
fn obeyed(step: &mut impl FnMut(TableOp) -> TableAnswer) -> Term {
    match step(TableOp::ReadShape) {
        TableAnswer::Shape(shape) => shape.term,
        _ => Term(0),
    }
}
