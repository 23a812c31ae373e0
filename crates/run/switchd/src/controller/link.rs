//! The controller's connection to its switch, in this process or another.
//!
//! The events about the switch come in the order in which they happened: up, answers, down. Table steps
//! that were meant for an earlier connection are dropped.

use std::time::Duration;

use sluice_control::{LeadAnswer, LeadCall, LinkState};
use sluice_rpc::{PeerVersion, Remote, v1};
use sluice_wire::tables::{Shape, TableAnswer, TableOp};
use sluice_wire::{Endpoint, Epoch, Nanos, Term};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tonic::Status;

use crate::SwitchdError;
use crate::rpc::LocalSwitch;
use crate::rpc::tables::RemoteSwitch;

/// After so long without a table step, the controller asks the switch for its state.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// How long a switch in another process may take to say what it counted: whoever asks the controller is told
/// the rest without it.
const COUNT_PATIENCE: Duration = Duration::from_millis(500);
/// The same for a lost switch. It may be reached although it cannot be used.
const LOST_PATIENCE: Duration = Duration::from_millis(300);
/// The pause between two attempts to reach a lost switch.
const RETRY_EVERY: Duration = Duration::from_millis(100);
/// How many batches and events may be under way. The runner waits for the answers of each batch.
const UNDER_WAY: usize = 4;

/// Where the controller's switch runs.
#[derive(Clone)]
pub enum SwitchLink {
    /// In this process.
    Here(LocalSwitch),
    /// In another process, which serves its tables.
    There(Remote),
}

/// A switch in this process or in another.
#[derive(Clone)]
pub(super) enum Source {
    Here(LocalSwitch),
    There(Box<RemoteSwitch>),
}

impl Source {
    /// Must be called inside a tokio runtime.
    pub(super) fn new(switch: SwitchLink) -> Self {
        match switch {
            SwitchLink::Here(local) => Self::Here(local),
            SwitchLink::There(remote) => Self::There(Box::new(RemoteSwitch::new(remote))),
        }
    }

    /// Whether the switch runs in another process.
    pub(super) const fn is_apart(&self) -> bool {
        matches!(self, Self::There(_))
    }

    /// What the switch counted, and how its process finds itself; empty if it cannot be reached. The
    /// counters of a switch that cannot be used are left out. A standby does not ask.
    pub(super) async fn count(&mut self, link: LinkState) -> v1::CountResponse {
        if link == LinkState::Standby {
            return v1::CountResponse::default();
        }
        let is_lost = link == LinkState::Down;
        let mut counted = match self {
            Self::Here(local) => local.count("switch and controller"),
            Self::There(remote) => {
                let patience = if is_lost { LOST_PATIENCE } else { COUNT_PATIENCE };
                timeout(patience, remote.count()).await.ok().and_then(Result::ok).unwrap_or_default()
            }
        };
        if is_lost {
            counted.counters.clear();
        }
        counted
    }

    /// What the switch's process says about itself; `None` before it has answered.
    pub(super) fn said(&self) -> Option<PeerVersion> {
        match self {
            Self::Here(_) => Some(PeerVersion::own()),
            Self::There(remote) => remote.said(),
        }
    }

    async fn describe(&mut self, by: Term) -> Result<(Shape, Endpoint), SwitchdError> {
        match self {
            Self::Here(local) => Ok((local.shape().await?, local.at())),
            Self::There(remote) => remote.describe(by).await,
        }
    }

    async fn apply(
        &mut self,
        epoch: Epoch,
        Batch { by, waits, ops, .. }: Batch,
    ) -> Result<Vec<TableAnswer>, SwitchdError> {
        match self {
            Self::Here(local) => local.apply(by, waits, ops).await,
            Self::There(remote) => remote.apply(epoch, by, waits, &ops).await,
        }
    }

    /// Calls the switch about who leads.
    pub(super) async fn lead(&mut self, call: &LeadCall) -> Result<LeadAnswer, Status> {
        match self {
            Self::Here(local) => local.lead(call).await.map_err(|why| Status::unavailable(why.to_string())),
            Self::There(remote) => remote.lead(call).await,
        }
    }
}

/// The number of a connection: a lost connection is replaced by one with the next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionId(u64);

/// What the connection reports to the runner.
#[derive(Debug)]
pub(super) enum SwitchEvent {
    Up { line: ConnectionId, shape: Shape, at: Endpoint },
    Answered(Vec<TableAnswer>),
    Down,
}

/// Table steps, and the connection that they are meant for.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) line: ConnectionId,
    /// In whose name.
    pub(super) by: Term,
    /// The lease of a controller that leads only while the switch lets it.
    pub(super) waits: Option<Nanos>,
    pub(super) ops: Vec<TableOp>,
}

/// The runner's end.
pub(super) struct Link {
    pub(super) batches: mpsc::Sender<Batch>,
    pub(super) news: mpsc::Receiver<SwitchEvent>,
}

impl Link {
    /// Must be called inside a tokio runtime.
    pub(super) fn start(source: Source) -> Self {
        let (batches, to_take) = mpsc::channel(UNDER_WAY);
        let (tell, news) = mpsc::channel(UNDER_WAY);
        tokio::spawn(
            SwitchConnection {
                source,
                to_take,
                tell,
                id: ConnectionId(0),
                term: Term(0),
                waits: false,
                complained: false,
            }
            .run(),
        );
        Self { batches, news }
    }
}

struct RunnerEnded;

struct SwitchConnection {
    source: Source,
    to_take: mpsc::Receiver<Batch>,
    tell: mpsc::Sender<SwitchEvent>,
    id: ConnectionId,
    /// The controller's own term, once it has claimed one and unless it has lost it and waits for another.
    term: Term,
    /// Whether the controller leads only while the switch lets it.
    waits: bool,
    complained: bool,
}

impl SwitchConnection {
    async fn run(mut self) {
        while self.one_line().await.is_ok() {
            sleep(RETRY_EVERY).await;
        }
    }

    /// Runs one connection, from finding the switch to losing it.
    async fn one_line(&mut self) -> Result<(), RunnerEnded> {
        let (shape, at) = match self.source.describe(self.term).await {
            Ok(found) => found,
            Err(why) => {
                self.complain(&why);
                return if self.tell.is_closed() { Err(RunnerEnded) } else { Ok(()) };
            }
        };
        self.complained = false;
        self.outlived_by(shape.term);
        self.id.0 += 1;
        self.report(SwitchEvent::Up { line: self.id, shape, at }).await?;
        loop {
            let spoken = tokio::select! {
                batch = self.to_take.recv() => self.take(shape.epoch, batch.ok_or(RunnerEnded)?).await,
                () = sleep(ASK_EVERY) => self.ask(shape).await,
            };
            match spoken {
                Ok(Some(answers)) => self.report(SwitchEvent::Answered(answers)).await?,
                Ok(None) => {}
                Err(lost) => {
                    if let Some(why) = lost {
                        self.complain(&why);
                    }
                    return self.report(SwitchEvent::Down).await;
                }
            }
        }
    }

    async fn take(
        &mut self,
        epoch: Epoch,
        batch: Batch,
    ) -> Result<Option<Vec<TableAnswer>>, Option<SwitchdError>> {
        if batch.line != self.id {
            return Ok(None);
        }
        (self.term, self.waits) = (batch.by, batch.waits.is_some());
        Ok(Some(self.source.apply(epoch, batch).await?))
    }

    /// Asks the switch for its state. An error if the switch is gone, was restarted, or obeys another
    /// controller.
    async fn ask(&mut self, known: Shape) -> Result<Option<Vec<TableAnswer>>, Option<SwitchdError>> {
        let (shape, _) = self.source.describe(self.term).await?;
        let is_same = Shape { term: known.term, ..shape } == known;
        if is_same && shape.term <= known.term.max(self.term) { Ok(None) } else { Err(None) }
    }

    /// A controller whose switch obeys a later one is a standby, if it can be one: it calls no more in its
    /// former name, which would be told of as a second controller.
    const fn outlived_by(&mut self, obeyed: Term) {
        if self.waits && obeyed.0 > self.term.0 {
            self.term = Term(0);
        }
    }

    async fn report(&self, news: SwitchEvent) -> Result<(), RunnerEnded> {
        self.tell.send(news).await.map_err(|_| RunnerEnded)
    }

    /// Logs the loss of the switch, once for each loss.
    fn complain(&mut self, why: &SwitchdError) {
        if !self.complained {
            self.complained = true;
            sluice_log::log!(SwitchLost, %why, "{why}; trying again every {RETRY_EVERY:?}");
        }
    }
}
