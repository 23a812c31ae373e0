//! How a controller reaches the switch's tables: steps go in between two batches, answers come back.

use std::sync::mpsc::{self, Receiver, Sender};

use sluice_net::udp::Waker;
use sluice_wire::Term;
use sluice_wire::tables::{TableAnswer, TableOp};

use crate::SwitchdError;

/// Steps, and who wants their answers.
struct TableRequest {
    /// The controller that asks; `None` for this process itself.
    by: Option<Term>,
    ops: Vec<TableOp>,
    answer: Box<dyn FnOnce(Vec<TableAnswer>) + Send>,
}

/// A controller's way to the tables; clones lead to the same switch.
#[derive(Clone)]
pub struct TablePort {
    letters: Sender<TableRequest>,
    waker: Waker,
}

impl TablePort {
    /// Takes these steps, one after the other with nothing between, and waits for their answers.
    ///
    /// # Errors
    /// [`SwitchdError::SwitchStopped`] when the switch's thread has ended; the steps may have been taken.
    pub fn call(&self, ops: Vec<TableOp>) -> Result<Vec<TableAnswer>, SwitchdError> {
        let (give, take) = mpsc::sync_channel(1);
        self.send(ops, move |answers| drop(give.send(answers)))?;
        take.recv().map_err(|_| SwitchdError::SwitchStopped)
    }

    /// Takes these steps and hands their answers to `answer`, on the switch's thread: it must not wait. It is
    /// dropped uncalled when the switch stops first.
    ///
    /// # Errors
    /// [`SwitchdError::SwitchStopped`] when the switch's thread has ended.
    pub fn send(
        &self,
        ops: Vec<TableOp>,
        answer: impl FnOnce(Vec<TableAnswer>) + Send + 'static,
    ) -> Result<(), SwitchdError> {
        self.post(None, ops, answer)
    }

    /// The same in the name of a controller, which the switch obeys or not.
    ///
    /// # Errors
    /// [`SwitchdError::SwitchStopped`] when the switch's thread has ended.
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
    /// One that is empty, and the way there.
    pub fn new(waker: Waker) -> (TablePort, Self) {
        let (letters, inbox) = mpsc::channel();
        (TablePort { letters, waker }, Self(inbox))
    }

    /// Answers everything that has come, step by step; says how many steps were not taken because their
    /// controller was superseded. `step` is asked for the shape before a controller's steps, since that tells
    /// whom the switch obeys.
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

/// The term that a switch obeys.
fn obeyed(step: &mut impl FnMut(TableOp) -> TableAnswer) -> Term {
    match step(TableOp::ReadShape) {
        TableAnswer::Shape(shape) => shape.term,
        _ => Term(0),
    }
}
