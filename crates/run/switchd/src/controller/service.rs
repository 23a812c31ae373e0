//! The controller's gRPC service: turns messages into events, and answers into messages.

use std::mem;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use sluice_control::{Answer, ClientHello, Event, Note, Refusal, ServerHello, WorkerHello};
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
use super::memory::RackMemory;
use super::note_counts::kind;
use super::pod_registry::PodRegistry;
use super::runner::{Command, HeldRow, NotOwn, NoteContent, NoteSink, Report, TimedNote};
use super::status::status_of;
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
    memory: RackMemory,
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
        memory: RackMemory,
    ) -> Self {
        Self { handle, pods, telling, source, refused, memory, builds: Builds::default() }
    }

    /// The registry of all spines, if the controller is above several. A standby has none to offer.
    fn pods(&self) -> Result<Option<&ServedSpine>, Status> {
        if self.pods.is_some() {
            self.handle.standing().check_leads()?;
        }
        Ok(self.pods.as_ref())
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
        let answer = match self.pods()? {
            Some(pods) => pods.desk.renew_leaf(hello).await?,
            None => self.handle.call(|call| Event::WorkerHello { call, hello }).await?,
        };
        self.handle.standing().answer(answer)
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
        let handle = match self.pods()? {
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
        let answer = match self.pods()? {
            Some(pods) => pods.desk.leave_leaf(pods.spine, name, life).await?,
            None => self.handle.call(move |call| Event::WorkerLeave { call, name, life }).await?,
        };
        self.handle.standing().answer(answer)
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
        let answer = match self.pods()? {
            Some(pods) => pods.desk.renew_client(pods.spine, hello).await?,
            None => self.handle.call(|call| Event::ClientHello { call, hello }).await?,
        };
        self.handle.standing().answer(answer)
    }

    async fn leave_client(
        &self,
        request: Request<v1::LeaveClientRequest>,
    ) -> Result<Response<v1::LeaveClientResponse>, Status> {
        let (caller, v1::LeaveClientRequest { name, incarnation }) = split(request);
        let name = self.read(fields::name("name", name))?;
        self.check_own(&caller, &name)?;
        let incarnation = Incarnation(incarnation);
        let answer = match self.pods()? {
            Some(pods) => pods.desk.leave_client(pods.spine, name, incarnation).await?,
            None => self.handle.call(move |call| Event::ClientLeave { call, name, incarnation }).await?,
        };
        self.handle.standing().answer(answer)
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
        self.handle.standing().answer(answer)
    }

    async fn leave_server(
        &self,
        request: Request<v1::LeaveServerRequest>,
    ) -> Result<Response<v1::LeaveServerResponse>, Status> {
        let (caller, v1::LeaveServerRequest { name, life }) = split(request);
        let name = self.read(fields::name("name", name))?;
        self.check_own(&caller, &name)?;
        let answer = self.handle.call(move |call| Event::ServerLeave { call, name, life }).await?;
        self.handle.standing().answer(answer)
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

    async fn standing(
        &self,
        _: Request<v1::StandingRequest>,
    ) -> Result<Response<v1::StandingResponse>, Status> {
        Ok(Response::new(self.handle.standing().read()))
    }

    async fn status(&self, _: Request<v1::StatusRequest>) -> Result<Response<v1::StatusResponse>, Status> {
        let sight = self.handle.look().await?;
        let counted = self.source.clone().count(sight.view.link).await;
        let mut status = status_of(&sight.view, sight.at, counted, &self.refused);
        status.standing = Some(self.handle.standing().read());
        self.memory.add_to(&mut status, self.source.is_apart());
        status.builds = self.builds.of(self.source.said(), &status);
        Ok(self.handle.standing().mark(Response::new(status)))
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
        Ok(()) => sluice_log::log!(OperatorAsked, "{asked}"),
        Err(why) => {
            let why = shown(why.message());
            sluice_log::log!(OperatorRefused, why, "{asked}, which was not done: {why}");
        }
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
