//! The way into a switch's tables from another thread.
//!
//! A controller holds a [`TablePort`] and waits for answers; the switch's thread holds the [`TableMailbox`] and
//! empties it between two batches of packets. Neither ever waits for a lock of the other. A job is a list of
//! operations that are done in order, with no packet in between.

use std::fmt;
use std::sync::Arc;

use sluice_wire::tables::{TableAnswer, TableOp};
use tokio::sync::{mpsc, oneshot};

use crate::NetError;

/// Jobs that may wait in a mailbox; a controller that has more waits itself.
const JOBS_MAX: usize = 64;

/// Both ends of a new way; `wake` is called after each job, to end a blocking receive of the switch's thread.
pub fn table_port(wake: impl Fn() + Send + Sync + 'static) -> (TablePort, TableMailbox) {
    let (sender, jobs) = mpsc::channel(JOBS_MAX);
    (TablePort { jobs: sender, wake: Arc::new(wake) }, TableMailbox { jobs })
}

/// A controller's end.
#[derive(Clone)]
pub struct TablePort {
    jobs: mpsc::Sender<TableJob>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl TablePort {
    /// Has the switch do `ops` in order; one answer each.
    ///
    /// # Errors
    /// [`NetError::SwitchStopped`] when the switch's thread has ended; nothing can be said of `ops` then.
    pub async fn apply(&self, ops: Vec<TableOp>) -> Result<Vec<TableAnswer>, NetError> {
        let (answers, answered) = oneshot::channel();
        self.jobs.send(TableJob { ops, answers }).await.map_err(|_| NetError::SwitchStopped)?;
        (self.wake)();
        answered.await.map_err(|_| NetError::SwitchStopped)
    }
}

impl fmt::Debug for TablePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TablePort").finish_non_exhaustive()
    }
}

/// The switch's end.
#[derive(Debug)]
pub struct TableMailbox {
    jobs: mpsc::Receiver<TableJob>,
}

impl TableMailbox {
    /// The next job, if one waits. Never blocks.
    pub fn try_take(&mut self) -> Option<TableJob> {
        self.jobs.try_recv().ok()
    }
}

/// Operations to be done in order, with no packet in between.
#[derive(Debug)]
pub struct TableJob {
    ops: Vec<TableOp>,
    answers: oneshot::Sender<Vec<TableAnswer>>,
}

impl TableJob {
    /// Does each operation with `table` and sends the answers back.
    pub fn run(self, table: impl FnMut(TableOp) -> TableAnswer) {
        let answers = self.ops.into_iter().map(table).collect();
        // Whoever asked may have gone; the operations stand all the same.
        let _ = self.answers.send(answers);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_job_wakes_the_switch_and_is_answered_in_order() {
        let woken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&woken);
        let (port, mut mailbox) = table_port(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let ops = vec![TableOp::Drain, TableOp::ReadShape];
        let asked = tokio::spawn(async move { port.apply(ops).await });
        tokio::task::yield_now().await;
        mailbox.try_take().expect("a job was sent").run(|op| match op {
            TableOp::Drain => TableAnswer::Done,
            _ => TableAnswer::OutOfRange,
        });
        let answers = asked.await.expect("the task lives").expect("the switch lives");
        assert_eq!(answers, [TableAnswer::Done, TableAnswer::OutOfRange]);
        assert_eq!(woken.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_switch_that_has_ended_is_reported() {
        let (port, mailbox) = table_port(|| {});
        drop(mailbox);
        assert!(matches!(port.apply(vec![TableOp::Drain]).await, Err(NetError::SwitchStopped)));
    }
}
