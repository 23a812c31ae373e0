//! How a controller reaches the switch's tables: steps go in between two batches, answers come back.

use std::sync::mpsc::{self, Receiver, Sender};

use sluice_wire::tables::{TableAnswer, TableOp};

use crate::NetError;
use crate::udp::Waker;

/// Steps, and who wants their answers.
struct Letter {
    ops: Vec<TableOp>,
    answer: Box<dyn FnOnce(Vec<TableAnswer>) + Send>,
}

/// A controller's way to the tables; clones lead to the same switch.
#[derive(Clone)]
pub struct TablePort {
    letters: Sender<Letter>,
    waker: Waker,
}

impl TablePort {
    /// Takes these steps, one after the other with nothing between, and waits for their answers.
    ///
    /// # Errors
    /// [`NetError::SwitchStopped`] when the switch's thread has ended; the steps may have been taken.
    pub fn call(&self, ops: Vec<TableOp>) -> Result<Vec<TableAnswer>, NetError> {
        let (give, take) = mpsc::sync_channel(1);
        self.send(ops, move |answers| drop(give.send(answers)))?;
        take.recv().map_err(|_| NetError::SwitchStopped)
    }

    /// Takes these steps and hands their answers to `answer`, on the switch's thread: it must not wait. It is dropped
    /// uncalled when the switch stops first.
    ///
    /// # Errors
    /// [`NetError::SwitchStopped`] when the switch's thread has ended.
    pub fn send(
        &self,
        ops: Vec<TableOp>,
        answer: impl FnOnce(Vec<TableAnswer>) + Send + 'static,
    ) -> Result<(), NetError> {
        let letter = Letter { ops, answer: Box::new(answer) };
        self.letters.send(letter).map_err(|_| NetError::SwitchStopped)?;
        self.waker.wake();
        Ok(())
    }
}

/// The switch's end.
pub(crate) struct Mailbox(Receiver<Letter>);

impl Mailbox {
    pub(crate) fn new(waker: Waker) -> (TablePort, Self) {
        let (letters, inbox) = mpsc::channel();
        (TablePort { letters, waker }, Self(inbox))
    }

    /// Answers everything that has come, step by step.
    #[inline]
    pub(crate) fn answer(&self, mut step: impl FnMut(TableOp) -> TableAnswer) {
        while let Ok(letter) = self.0.try_recv() {
            (letter.answer)(letter.ops.into_iter().map(&mut step).collect());
        }
    }
}
