//! Serves the switch's tables over gRPC, for a controller in another process.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_control::{Arbiter, LeadAnswer, LeadCall};
use sluice_net::clock::Clock;
use sluice_rpc::fields::{Malformed, endpoint, present};
use sluice_rpc::v1::tables_client::TablesClient;
use sluice_rpc::{Caller, PeerVersion, Remote, RenewedChannel, shown, v1};
use sluice_wire::tables::{Shape, TableAnswer, TableOp};
use sluice_wire::{Endpoint, Epoch, Nanos, Term};
use tokio::sync::oneshot;
use tonic::service::Routes;
use tonic::{Request, Response, Status, async_trait};

use super::Guard;
use super::connection::ConnectionPeer;
use super::refused::Refused;
use super::server::{RpcServer, reflection};
use super::services::tables_server::{Tables, TablesServer};
use super::superseded::SupersededCallers;
use crate::SwitchdError;
use crate::health::ProcessWatch;
use crate::state::StateFolder;
use crate::switch::SwitchHandle;

const SERVICE: &str = "sluice.v1.Tables";
/// How many table operations one call may bring.
const OPS_MAX: usize = 4_096;
/// How long the address of a controller may be.
const LEADER_CHARS_MAX: usize = 300;

/// A switch in this process.
#[derive(Clone)]
pub struct LocalSwitch {
    handle: SwitchHandle,
    at: Endpoint,
    state: Option<Arc<StateFolder>>,
    watch: Arc<ProcessWatch>,
    clock: Clock,
    /// Who leads; `None` until the switch's term was read.
    arbiter: Arc<Mutex<Option<Arbiter>>>,
}

impl LocalSwitch {
    /// A switch, and the address at which hosts reach it.
    pub fn new(handle: SwitchHandle, at: Endpoint) -> Self {
        let (clock, arbiter) = (Clock::start(), Arc::default());
        Self { handle, at, state: None, watch: Arc::default(), clock, arbiter }
    }

    /// Stores in this folder which controller the switch obeys.
    #[must_use]
    pub fn keeping(self, state: StateFolder) -> Self {
        Self { state: Some(Arc::new(state)), ..self }
    }

    /// The address at which hosts reach the switch.
    pub fn at(&self) -> Endpoint {
        self.at
    }

    /// Carries out a controller's table steps. If the controller claims the switch, the claim is stored on
    /// disk before it is granted. Claims are as rare as controller starts, so waiting for the disk costs
    /// little. A claim by a controller that `waits` for the lead for this long is refused if the arbiter
    /// does not let it make one.
    pub(crate) async fn apply(
        &self,
        by: Term,
        waits: Option<Nanos>,
        ops: Vec<TableOp>,
    ) -> Result<Vec<TableAnswer>, SwitchdError> {
        let claims = ops.iter().any(|op| matches!(op, TableOp::Claim(_)));
        if claims && let Some(lease) = waits {
            let is_let = self.arbitrate(|arbiter, now| arbiter.lets_claim(now, by, lease)).await?;
            if !is_let {
                let obeyed = self.shape().await?.term;
                return Ok(ops.iter().map(|_| TableAnswer::Superseded(obeyed)).collect());
            }
        }
        let answers = self.take(by, ops).await?;
        if !claims {
            self.arbitrate(|arbiter, now| arbiter.heard(now, by)).await?;
            return Ok(answers);
        }
        let obeyed = self.shape().await?.term;
        if let Some(state) = &self.state {
            state.keep_term(obeyed)?;
        }
        self.arbitrate(|arbiter, now| arbiter.obeys(now, obeyed)).await?;
        Ok(answers)
    }

    /// Takes a call about who leads.
    pub(crate) async fn lead(&self, call: &LeadCall) -> Result<LeadAnswer, SwitchdError> {
        self.arbitrate(|arbiter, now| arbiter.call(now, call)).await
    }

    async fn arbitrate<T>(&self, ask: impl FnOnce(&mut Arbiter, Nanos) -> T) -> Result<T, SwitchdError> {
        let is_new = self.arbiter().is_none();
        let term = if is_new { Some(self.shape().await?.term) } else { None };
        let now = self.clock.now();
        let mut arbiter = self.arbiter();
        let arbiter = arbiter.get_or_insert_with(|| Arbiter::new(now, term.unwrap_or_default()));
        Ok(ask(arbiter, now))
    }

    fn arbiter(&self) -> MutexGuard<'_, Option<Arbiter>> {
        // Nothing that can panic or wait happens under this lock.
        self.arbiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take(&self, by: Term, ops: Vec<TableOp>) -> Result<Vec<TableAnswer>, SwitchdError> {
        let (give, take) = oneshot::channel();
        // The caller may have hung up; the steps count all the same.
        self.handle.tables().send_by(by, ops, move |answers| drop(give.send(answers)))?;
        take.await.map_err(|_| SwitchdError::SwitchStopped)
    }

    pub(crate) async fn shape(&self) -> Result<Shape, SwitchdError> {
        match self.take(Term(0), vec![TableOp::ReadShape]).await?.as_slice() {
            [TableAnswer::Shape(shape)] => Ok(*shape),
            _ => Err(SwitchdError::SwitchStopped),
        }
    }

    /// What the switch counted, and how this process finds itself; `process` says what runs in it.
    pub(crate) fn count(&self, process: &str) -> v1::CountResponse {
        let counters = self.handle.counters();
        let named = |(name, value): (&str, u64)| v1::Counter { name: name.to_owned(), value };
        v1::CountResponse {
            counters: counters.all().map(named).collect(),
            health: Some(self.watch.health(process, self.state.as_deref())),
            superseded: Vec::new(),
        }
    }
}

/// Serves a switch's tables on `at` for a controller in another process, until the server is dropped.
///
/// # Errors
/// [`SwitchdError::Insecure`] for an address beyond loopback without TLS; [`SwitchdError::Net`] if a thread
/// or socket cannot be had or a certificate cannot be used.
pub fn serve_tables(at: SocketAddr, guard: &Guard, switch: LocalSwitch) -> Result<RpcServer, SwitchdError> {
    RpcServer::start("sluice-tables", at, guard, |_, refused| {
        let service =
            TablesServer::new(Service { switch, refused, superseded: SupersededCallers::default() });
        let routes = Routes::new(service).add_service(reflection(SERVICE));
        (routes, Box::pin(std::future::pending()))
    })
}

struct Service {
    switch: LocalSwitch,
    refused: Arc<Refused>,
    superseded: SupersededCallers,
}

impl Service {
    /// Remembers a caller that the switch does not obey any more.
    fn note_caller<T>(&self, request: &Request<T>, term: u32, obeyed: Term) {
        if (1..obeyed.0).contains(&term) {
            let extensions = request.extensions();
            let name = extensions.get::<Caller>().and_then(Caller::name);
            let from = extensions.get::<ConnectionPeer>().map(|peer| peer.from.to_string());
            self.superseded.note(term, name.map(str::to_owned).or(from).unwrap_or_default());
        }
    }

    async fn shape(&self) -> Result<Shape, Status> {
        self.switch.shape().await.map_err(|stopped| Status::unavailable(stopped.to_string()))
    }
}

#[async_trait]
impl Tables for Service {
    async fn describe(
        &self,
        request: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::DescribeResponse>, Status> {
        self.switch.watch.look();
        let shape = self.shape().await?;
        self.note_caller(&request, request.get_ref().term, shape.term);
        Ok(Response::new(v1::DescribeResponse { shape: Some(shape.into()), at: self.switch.at.to_string() }))
    }

    async fn apply(&self, request: Request<v1::ApplyRequest>) -> Result<Response<v1::ApplyResponse>, Status> {
        let obeyed = self.shape().await?;
        self.note_caller(&request, request.get_ref().term, obeyed.term);
        let request = request.into_inner();
        if request.ops.len() > OPS_MAX {
            return Err(Malformed::new("ops", format!("more than {OPS_MAX}")).into());
        }
        let ops = request.ops.into_iter().map(TableOp::try_from).collect::<Result<Vec<_>, _>>()?;
        let epoch = obeyed.epoch;
        if epoch != Epoch(request.epoch) {
            let why = format!("the switch's epoch is {epoch}, not {}", request.epoch);
            return Err(Status::failed_precondition(why));
        }
        let answers = self
            .switch
            .apply(Term(request.term), request.waits_ns.map(Nanos), ops)
            .await
            .map_err(|stopped| Status::unavailable(stopped.to_string()))?;
        let answers = answers.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::ApplyResponse { answers }))
    }

    async fn lead(&self, request: Request<v1::LeadRequest>) -> Result<Response<v1::LeadResponse>, Status> {
        let mut request = request.into_inner();
        // Shown to people, by other processes.
        request.at = shown(&request.at).chars().take(LEADER_CHARS_MAX).collect();
        let answer = self.switch.lead(&request.into()).await;
        let answer = answer.map_err(|stopped| Status::unavailable(stopped.to_string()))?;
        Ok(Response::new(answer.into()))
    }

    async fn count(&self, _: Request<v1::CountRequest>) -> Result<Response<v1::CountResponse>, Status> {
        let mut counted = self.switch.count("switch");
        let refused = self.refused.counters().into_iter();
        let named = |v1::Counter { name, value }| v1::Counter { name: format!("refused_call_{name}"), value };
        counted.counters.extend(refused.map(named));
        Ok(Response::new(v1::CountResponse { superseded: self.superseded.told(), ..counted }))
    }
}

/// A switch in another process.
#[derive(Clone)]
pub(crate) struct RemoteSwitch {
    remote: Remote,
    calls: TablesClient<RenewedChannel>,
    /// What the switch's process last said about itself, for all clones.
    said: Arc<Mutex<Option<PeerVersion>>>,
}

impl RemoteSwitch {
    /// Must be called inside a tokio runtime.
    pub(crate) fn new(remote: Remote) -> Self {
        let calls = TablesClient::new(remote.connect());
        Self { remote, calls, said: Arc::default() }
    }

    /// What the switch's process says about itself; `None` before it has answered.
    pub(crate) fn said(&self) -> Option<PeerVersion> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn describe(&mut self, by: Term) -> Result<(Shape, Endpoint), SwitchdError> {
        let request = v1::DescribeRequest { term: by.0 };
        let answer = self.calls.describe(request).await.map_err(|status| self.failed(&status))?;
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = answer.extensions().get().cloned();
        let answer = answer.into_inner();
        let read = || -> Result<_, Malformed> {
            Ok((present("shape", answer.shape)?.try_into()?, endpoint("at", &answer.at)?))
        };
        read().map_err(|malformed| self.failed(&malformed.into()))
    }

    pub(crate) async fn apply(
        &mut self,
        epoch: Epoch,
        by: Term,
        waits: Option<Nanos>,
        ops: &[TableOp],
    ) -> Result<Vec<TableAnswer>, SwitchdError> {
        let ops_sent = ops.iter().map(|op| (*op).into()).collect();
        let waits_ns = waits.map(|lease| lease.0);
        let request = v1::ApplyRequest { epoch: epoch.0, term: by.0, ops: ops_sent, waits_ns };
        let answer = self.calls.apply(request).await.map_err(|status| self.failed(&status))?.into_inner();
        if answer.answers.len() != ops.len() {
            return Err(
                self.failed(&Status::internal("it gave another number of answers than was asked for"))
            );
        }
        let answers = answer.answers.into_iter().map(TableAnswer::try_from).collect::<Result<_, _>>();
        answers.map_err(|malformed| self.failed(&malformed.into()))
    }

    pub(crate) async fn lead(&mut self, call: &LeadCall) -> Result<LeadAnswer, Status> {
        Ok(self.calls.lead(v1::LeadRequest::from(call)).await?.into_inner().into())
    }

    pub(crate) async fn count(&mut self) -> Result<v1::CountResponse, SwitchdError> {
        let answer = self.calls.count(v1::CountRequest {}).await.map_err(|status| self.failed(&status))?;
        let mut counted = answer.into_inner();
        counted.counters.iter_mut().for_each(|counter| counter.name = shown(&counter.name));
        Ok(counted)
    }

    fn failed(&self, status: &Status) -> SwitchdError {
        self.remote.failed("the switch's tables", status).into()
    }
}
