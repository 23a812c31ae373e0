//! The controller's gRPC service: turns messages into events, and answers into messages.

use std::mem;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use sluice_control::{
    Answer, ClassView, ClientHello, Event, LinkState, Note, Refusal, ServerHello, ServerView, SliceView,
    View, WorkerHello, WorkerPhase, WorkerView,
};
use sluice_net::agent::messages;
use sluice_rpc::Caller;
use sluice_rpc::fields::{self, number, present};
use sluice_rpc::misanswered;
use sluice_rpc::{Malformed, PeerVersion, shown, v1};
use sluice_wire::{Endpoint, Generation, Incarnation, Key, TaskType, WorkerId};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, async_trait};

use super::builds::{Builds, ProcessKind};
use super::handle::RunnerHandle;
use super::link::Source;
use super::note_counts::kind;
use super::pod_registry::PodRegistry;
use super::runner::{Command, ControllerSnapshot, HeldRow, NotOwn, NoteContent, NoteSink, Report, TimedNote};
use crate::rpc::refused::{Reason, Refused};
use crate::rpc::services::controller_server::Controller;

/// Events that are buffered for one watcher; a slower watcher misses events.
const ON_THE_WAY: usize = 16;

pub(super) struct Service {
    handle: RunnerHandle,
    pods: Option<ServedSpine>,
    telling: NoteSink,
    source: Source,
    refused: Arc<Refused>,
    builds: Builds,
}

/// For a controller above several spines: the spine that this service serves.
#[derive(Clone)]
pub(super) struct ServedSpine {
    pub(super) spine: usize,
    pub(super) desk: Arc<PodRegistry>,
}

impl Service {
    pub(super) fn new(
        handle: RunnerHandle,
        pods: Option<ServedSpine>,
        telling: NoteSink,
        source: Source,
        refused: Arc<Refused>,
    ) -> Self {
        Self { handle, pods, telling, source, refused, builds: Builds::default() }
    }

    /// Checks that a host's certificate grants the name that it uses, including the name of the server on
    /// its machine.
    fn check_own(&self, caller: &Caller, name: &str) -> Result<(), Status> {
        if caller.may_be(name) {
            return Ok(());
        }
        let own = caller.name().unwrap_or("NAME");
        let why = format!(
            "{caller} does not speak for {name:?}: it speaks for {own} and names that begin with {own}/; take one of those, \
             or another certificate"
        );
        self.refused.log_refusal(Reason::OtherName, caller, &why);
        Err(Status::permission_denied(why))
    }

    /// Checks that packets for a host go to the host's own machine, so that no stranger receives them.
    fn check_address(&self, caller: &Caller, name: &str, at: Endpoint) -> Result<(), Status> {
        let asked = SocketAddr::from(at).ip().to_canonical();
        if caller.may_be_at(asked) {
            return Ok(());
        }
        let from = caller.from().map_or_else(|| "an unknown address".to_owned(), |from| from.to_string());
        let why = format!(
            "packets for {name:?} would go to {asked}, and {caller} calls from {from}: listen on the address that you call from, \
             or take a certificate whose subjectAltName has IP:{asked} as well"
        );
        self.refused.log_refusal(Reason::OtherAddress, caller, &why);
        Err(Status::permission_denied(why))
    }

    fn not_own(&self, caller: &Caller, worker: WorkerId) -> Status {
        let why = format!(
            "the interval tells of worker {worker}, and {caller} does not speak for it: an agent tells of workers whose names its \
             certificate gives, those of its own machine; what it sees of others is not taken"
        );
        self.refused.log_refusal(Reason::OtherWorker, caller, &why);
        Status::permission_denied(why)
    }

    /// Returns a field that was read. If it was malformed, counts that and returns an error.
    fn read<T>(&self, read: Result<T, Malformed>) -> Result<T, Status> {
        read.inspect_err(|malformed| self.refused.count(Reason::of(malformed))).map_err(Status::from)
    }
}

#[async_trait]
impl Controller for Service {
    async fn renew_worker(
        &self,
        request: Request<v1::RenewWorkerRequest>,
    ) -> Result<Response<v1::RenewWorkerResponse>, Status> {
        let said = said(&request);
        let (caller, message) = split(request);
        let hello = self.read(WorkerHello::try_from(message))?;
        self.check_own(&caller, &hello.name)?;
        if !hello.server.is_empty() {
            self.check_own(&caller, &hello.server)?;
        }
        self.check_address(&caller, &hello.name, hello.at)?;
        self.builds.note(ProcessKind::Worker, &hello.name, &said);
        let answer = match &self.pods {
            Some(pods) => pods.desk.renew_leaf(hello).await?,
            None => self.handle.call(|call| Event::WorkerHello { call, hello }).await?,
        };
        Ok(Response::new(answer.try_into()?))
    }

    async fn await_change(
        &self,
        request: Request<v1::AwaitChangeRequest>,
    ) -> Result<Response<v1::AwaitChangeResponse>, Status> {
        let (caller, message) = split(request);
        let held = self.read(present("held", message.held))?;
        let worker = WorkerId(self.read(number("held.worker", held.worker))?);
        let held = HeldRow { worker, key: Key(held.key), generation: Generation(held.generation) };
        let unavailable = || Status::unavailable("asked again meanwhile, or the controller is stopping");
        let handle = match &self.pods {
            // A host that is registered nowhere asks again after its next renewal.
            Some(pods) => pods.desk.of_key(held.key).ok_or_else(unavailable)?,
            None => &self.handle,
        };
        let (answer, answered) = oneshot::channel();
        let asks = caller.clone();
        handle.command(Command::Await { caller, held, answer })?;
        if let Err(NotOwn(_)) = answered.await.map_err(|_| unavailable())? {
            // The same answer as for an unknown key, so that callers cannot find out which keys exist.
            let why = format!("it asks how worker {worker} is registered, and does not speak for it");
            self.refused.log_refusal(Reason::OtherWorker, &asks, &why);
            return Err(unavailable());
        }
        Ok(Response::new(v1::AwaitChangeResponse {}))
    }

    async fn leave_worker(
        &self,
        request: Request<v1::LeaveWorkerRequest>,
    ) -> Result<Response<v1::LeaveWorkerResponse>, Status> {
        let (caller, v1::LeaveWorkerRequest { name, life }) = split(request);
        let name = self.read(fields::name("name", name))?;
        self.check_own(&caller, &name)?;
        let answer = match &self.pods {
            Some(pods) => pods.desk.leave_leaf(pods.spine, name, life).await?,
            None => self.handle.call(move |call| Event::WorkerLeave { call, name, life }).await?,
        };
        Ok(Response::new(answer.try_into()?))
    }

    async fn renew_client(
        &self,
        request: Request<v1::RenewClientRequest>,
    ) -> Result<Response<v1::RenewClientResponse>, Status> {
        let said = said(&request);
        let (caller, message) = split(request);
        let hello = self.read(ClientHello::try_from(message))?;
        self.check_own(&caller, &hello.name)?;
        self.check_address(&caller, &hello.name, hello.at)?;
        self.builds.note(ProcessKind::Client, &hello.name, &said);
        let answer = match &self.pods {
            Some(pods) => pods.desk.renew_client(pods.spine, hello).await?,
            None => self.handle.call(|call| Event::ClientHello { call, hello }).await?,
        };
        Ok(Response::new(answer.try_into()?))
    }

    async fn leave_client(
        &self,
        request: Request<v1::LeaveClientRequest>,
    ) -> Result<Response<v1::LeaveClientResponse>, Status> {
        let (caller, v1::LeaveClientRequest { name, incarnation }) = split(request);
        let name = self.read(fields::name("name", name))?;
        self.check_own(&caller, &name)?;
        let incarnation = Incarnation(incarnation);
        let answer = match &self.pods {
            Some(pods) => pods.desk.leave_client(pods.spine, name, incarnation).await?,
            None => self.handle.call(move |call| Event::ClientLeave { call, name, incarnation }).await?,
        };
        Ok(Response::new(answer.try_into()?))
    }

    async fn renew_server(
        &self,
        request: Request<v1::RenewServerRequest>,
    ) -> Result<Response<v1::RenewServerResponse>, Status> {
        let said = said(&request);
        let (caller, message) = split(request);
        let hello = self.read(ServerHello::try_from(message))?;
        self.check_own(&caller, &hello.name)?;
        self.builds.note(ProcessKind::Server, &hello.name, &said);
        self.check_address(&caller, &hello.name, hello.at)?;
        let answer = self.handle.call(|call| Event::ServerHello { call, hello }).await?;
        Ok(Response::new(answer.try_into()?))
    }

    async fn leave_server(
        &self,
        request: Request<v1::LeaveServerRequest>,
    ) -> Result<Response<v1::LeaveServerResponse>, Status> {
        let (caller, v1::LeaveServerRequest { name, life }) = split(request);
        let name = self.read(fields::name("name", name))?;
        self.check_own(&caller, &name)?;
        let answer = self.handle.call(move |call| Event::ServerLeave { call, name, life }).await?;
        Ok(Response::new(answer.try_into()?))
    }

    async fn move_worker(
        &self,
        request: Request<v1::MoveWorkerRequest>,
    ) -> Result<Response<v1::MoveWorkerResponse>, Status> {
        let (caller, v1::MoveWorkerRequest { worker, slice }) = split(request);
        let name = self.read(fields::name("worker", worker))?;
        let slice = self.read(fields::name("slice", slice))?;
        let asked = format!("{caller} moves worker {name} to slice {slice}");
        let answer = self.handle.call(move |call| Event::MoveWorker { call, name, slice }).await?;
        log_request(&asked, done(answer))?;
        Ok(Response::new(v1::MoveWorkerResponse {}))
    }

    async fn set_type(
        &self,
        request: Request<v1::SetTypeRequest>,
    ) -> Result<Response<v1::SetTypeResponse>, Status> {
        let (caller, v1::SetTypeRequest { task_type, slice }) = split(request);
        let task_type = TaskType(self.read(number("task_type", task_type))?);
        let slice = self.read(slice.map(|slice| fields::name("slice", slice)).transpose())?;
        let to = slice.as_deref().map_or_else(|| "no slice".to_owned(), |slice| format!("slice {slice}"));
        let asked = format!("{caller} maps task type {task_type} to {to}");
        let answer = self.handle.call(move |call| Event::SetType { call, task_type, slice }).await?;
        log_request(&asked, done(answer))?;
        Ok(Response::new(v1::SetTypeResponse {}))
    }

    async fn report_interval(
        &self,
        request: Request<v1::ReportIntervalRequest>,
    ) -> Result<Response<v1::ReportIntervalResponse>, Status> {
        let (caller, message) = split(request);
        let mut interval = self.read(present("interval", message.interval))?;
        interval.server = self.read(fields::name("interval.server", mem::take(&mut interval.server)))?;
        self.check_own(&caller, &interval.server)?;
        let tallies = self.read(messages::tallies(&interval))?;
        let (answer, answered) = oneshot::channel();
        let report = Box::new(Report { caller: caller.clone(), interval, tallies });
        self.handle.command(Command::Hear { report, answer })?;
        let told = answered.await.map_err(|_| Status::unavailable("the agent reported again meanwhile"))?;
        let told = told.map_err(|NotOwn(worker)| self.not_own(&caller, worker))?;
        Ok(Response::new(v1::ReportIntervalResponse {
            depths: told
                .depths
                .into_iter()
                .map(|(worker, depth)| messages::depth_of(worker, depth))
                .collect(),
            others: told.others.iter().map(messages::others_of).collect(),
        }))
    }

    async fn status(&self, _: Request<v1::StatusRequest>) -> Result<Response<v1::StatusResponse>, Status> {
        let sight = self.handle.look().await?;
        let counters = match sight.view.link {
            LinkState::Down => Vec::new(),
            _ => self.source.clone().counters().await,
        };
        let status = status(&sight, counters);
        Ok(Response::new(v1::StatusResponse {
            refused: self.refused.counters(),
            ending: self.refused.ending(),
            builds: self.builds.of(self.source.said(), &status),
            ..status
        }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<v1::WatchResponse, Status>> + Send>>;

    async fn watch(&self, _: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let (sender, stream) = mpsc::channel(ON_THE_WAY);
        tokio::spawn(forward(self.telling.listen(), sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

/// What the caller says about its build, as the gate read it.
fn said<T>(request: &Request<T>) -> PeerVersion {
    request.extensions().get().cloned().unwrap_or_else(PeerVersion::own)
}

/// Splits a request into its caller, as the gate found it, and its message.
fn split<T>(request: Request<T>) -> (Caller, T) {
    let (_, extensions, message) = request.into_parts();
    (extensions.get().cloned().unwrap_or(Caller::NOBODY), message)
}

/// Forwards events until the watcher hangs up.
async fn forward(
    mut events: broadcast::Receiver<TimedNote>,
    to: mpsc::Sender<Result<v1::WatchResponse, Status>>,
) {
    let mut missed = 0;
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = to.closed() => return,
        };
        match event {
            Ok(told) => {
                if to.send(Ok(watched(&told, missed))).await.is_err() {
                    return;
                }
                missed = 0;
            }
            Err(broadcast::error::RecvError::Lagged(count)) => missed += count,
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

fn watched(told: &TimedNote, missed: u64) -> v1::WatchResponse {
    let at_unix_ns = told.at_unix_ns;
    match &told.what {
        NoteContent::Note(note) => v1::WatchResponse {
            at_unix_ns,
            kind: kind(note).to_owned(),
            text: note.to_string(),
            missed,
            interval: None,
            step: step(note),
        },
        NoteContent::Found(text, interval) => v1::WatchResponse {
            at_unix_ns,
            kind: "interval-ended".to_owned(),
            text: text.clone(),
            missed,
            interval: Some(interval.as_ref().clone()),
            step: None,
        },
    }
}

/// The change that a slice step made, if the note is about one.
fn step(note: &Note) -> Option<v1::SliceStep> {
    let (slice, depth, lending) = match note {
        Note::DepthsEvened { slice, depth } => (slice, depth, None),
        Note::WorkerLent { worker, from, to, depth, .. } => {
            (to, depth, Some(v1::Lending { worker: worker.0.into(), from: from.clone() }))
        }
        _ => return None,
    };
    Some(v1::SliceStep { slice: slice.clone(), depth: (*depth).into(), lending })
}

/// Logs an operator's request and its result.
fn log_request(asked: &str, done: Result<(), Status>) -> Result<(), Status> {
    match &done {
        Ok(()) => tracing::info!("{asked}"),
        Err(why) => tracing::warn!("{asked}, which was not done: {}", shown(why.message())),
    }
    done
}

/// The result of an operator's request.
fn done(answer: Answer) -> Result<(), Status> {
    match answer {
        Answer::Done => Ok(()),
        Answer::Wait { why, .. } => Err(Status::unavailable(why.to_string())),
        Answer::Refused { why: why @ (Refusal::UnknownWorker { .. } | Refusal::UnknownSlice { .. }) } => {
            Err(Status::not_found(why.to_string()))
        }
        Answer::Refused { why } => Err(Status::failed_precondition(why.to_string())),
        other => Err(misanswered(&other)),
    }
}

fn status(sight: &ControllerSnapshot, counters: Vec<(String, u64)>) -> v1::StatusResponse {
    let View { epoch, link, slices, workers, clients, servers, type_names } = &sight.view;
    let link = match link {
        LinkState::Down => v1::LinkState::Down,
        LinkState::Reading => v1::LinkState::Reading,
        LinkState::Up => v1::LinkState::Up,
        LinkState::TooSmall => v1::LinkState::TooSmall,
        LinkState::Superseded => v1::LinkState::Superseded,
    };
    v1::StatusResponse {
        switch: Some(v1::SwitchStatus {
            epoch: epoch.0,
            link: link.into(),
            at: sight.at.map(|at| at.to_string()).unwrap_or_default(),
            counters: counters.into_iter().map(|(name, value)| v1::Counter { name, value }).collect(),
        }),
        slices: slices.iter().map(slice_status).collect(),
        workers: workers.iter().map(worker_status).collect(),
        clients: (clients.iter())
            .map(|client| v1::ClientStatus {
                client: client.client.0.into(),
                name: client.name.clone(),
                at: client.at.to_string(),
                renewed_ago_ns: client.renewed_ago.0,
            })
            .collect(),
        servers: servers.iter().map(server_status).collect(),
        refused: Vec::new(),
        ending: Vec::new(),
        builds: Vec::new(),
        type_names: type_names.iter().map(v1::TypeName::from).collect(),
    }
}

fn server_status(server: &ServerView) -> v1::ServerStatus {
    let (reliable, icrc) = server.pair.unwrap_or_default();
    v1::ServerStatus {
        server: server.server.0.into(),
        name: server.name.clone(),
        at: server.at.to_string(),
        mtu: server.mtu,
        reliable,
        icrc,
        rings: server.rings.iter().map(v1::Ring::from).collect(),
        renewed_ago_ns: server.renewed_ago.0,
    }
}

fn slice_status(slice: &SliceView) -> v1::SliceStatus {
    v1::SliceStatus {
        slice: slice.slice.0.into(),
        name: slice.name.clone(),
        types: slice.types.iter().map(|t| t.0.into()).collect(),
        open: slice.open,
        limit: slice.limit,
        workers: slice.workers,
        quotas: slice.quotas,
        balance: slice.balance,
        balance_age_ns: slice.balance_age.0,
        stale_tokens: slice.stale_tokens,
        classes: slice.classes.iter().map(class_status).collect(),
        wished: slice.wished,
        target_ns: slice.target.0,
        measured_limit: slice.measured_limit,
        refused_busy: slice.refused_busy,
        late_in_switch: slice.late_in_switch,
        late_at_worker: slice.late_at_worker,
    }
}

fn class_status(class: &ClassView) -> v1::ClassStatus {
    v1::ClassStatus {
        needs: class.needs.clone(),
        types: class.types.iter().map(|t| t.0.into()).collect(),
        workers: class.workers,
        refused: class.refused,
    }
}

fn worker_status(worker: &WorkerView) -> v1::WorkerStatus {
    let phase = match worker.phase {
        WorkerPhase::Joining => v1::WorkerPhase::Joining,
        WorkerPhase::Open => v1::WorkerPhase::Open,
        WorkerPhase::Changing => v1::WorkerPhase::Changing,
        WorkerPhase::Leaving => v1::WorkerPhase::Leaving,
        WorkerPhase::Dying => v1::WorkerPhase::Dying,
    };
    v1::WorkerStatus {
        worker: worker.worker.0.into(),
        name: worker.name.clone(),
        slice: worker.slice.0.into(),
        generation: worker.generation.0,
        phase: phase.into(),
        quota: worker.quota.into(),
        tasks_per_second: worker.capacity,
        recent: Some(worker.recent.into()),
        at: worker.at.to_string(),
        workers: worker.workers.into(),
        renewed_ago_ns: worker.renewed_ago.0,
        labels: worker.labels.clone(),
    }
}
