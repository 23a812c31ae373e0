//! Serves the switch's tables over gRPC, for a controller in another process.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use sluice_rpc::fields::{Malformed, endpoint, present};
use sluice_rpc::v1::tables_client::TablesClient;
use sluice_rpc::{PeerVersion, Remote, RenewedChannel, shown, v1};
use sluice_wire::tables::{Shape, TableAnswer, TableOp};
use sluice_wire::{Endpoint, Epoch, Term};
use tokio::sync::oneshot;
use tonic::service::Routes;
use tonic::{Request, Response, Status, async_trait};

use super::Guard;
use super::refused::Refused;
use super::server::{RpcServer, reflection};
use super::services::tables_server::{Tables, TablesServer};
use crate::SwitchdError;
use crate::state::StateFolder;
use crate::switch::SwitchHandle;

const SERVICE: &str = "sluice.v1.Tables";
/// How many table operations one call may bring.
const OPS_MAX: usize = 4_096;

/// A switch in this process.
#[derive(Clone)]
pub struct LocalSwitch {
    handle: SwitchHandle,
    at: Endpoint,
    state: Option<Arc<StateFolder>>,
}

impl LocalSwitch {
    /// A switch, and the address at which hosts reach it.
    pub fn new(handle: SwitchHandle, at: Endpoint) -> Self {
        Self { handle, at, state: None }
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
    /// little.
    pub(crate) async fn apply(&self, by: Term, ops: Vec<TableOp>) -> Result<Vec<TableAnswer>, SwitchdError> {
        let claims = ops.iter().any(|op| matches!(op, TableOp::Claim(_)));
        let answers = self.take(by, ops).await?;
        if claims && let Some(state) = &self.state {
            state.keep_term(self.shape().await?.term)?;
        }
        Ok(answers)
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

    pub(crate) fn counters(&self) -> Vec<(String, u64)> {
        self.handle.counters().all().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Serves a switch's tables on `at` for a controller in another process, until the server is dropped.
///
/// # Errors
/// [`SwitchdError::Insecure`] for an address beyond loopback without TLS; [`SwitchdError::Net`] if a thread
/// or socket cannot be had or a certificate cannot be used.
pub fn serve_tables(at: SocketAddr, guard: &Guard, switch: LocalSwitch) -> Result<RpcServer, SwitchdError> {
    RpcServer::start("sluice-tables", at, guard, |refused| {
        let service = TablesServer::new(Service { switch, refused });
        let routes = Routes::new(service).add_service(reflection(SERVICE));
        (routes, Box::pin(std::future::pending()))
    })
}

struct Service {
    switch: LocalSwitch,
    refused: Arc<Refused>,
}

impl Service {
    async fn shape(&self) -> Result<Shape, Status> {
        self.switch.shape().await.map_err(|stopped| Status::unavailable(stopped.to_string()))
    }
}

#[async_trait]
impl Tables for Service {
    async fn describe(
        &self,
        _: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::DescribeResponse>, Status> {
        let shape = self.shape().await?;
        Ok(Response::new(v1::DescribeResponse { shape: Some(shape.into()), at: self.switch.at.to_string() }))
    }

    async fn apply(&self, request: Request<v1::ApplyRequest>) -> Result<Response<v1::ApplyResponse>, Status> {
        let request = request.into_inner();
        if request.ops.len() > OPS_MAX {
            return Err(Malformed::new("ops", format!("more than {OPS_MAX}")).into());
        }
        let ops = request.ops.into_iter().map(TableOp::try_from).collect::<Result<Vec<_>, _>>()?;
        let epoch = self.shape().await?.epoch;
        if epoch != Epoch(request.epoch) {
            let why = format!("the switch's epoch is {epoch}, not {}", request.epoch);
            return Err(Status::failed_precondition(why));
        }
        let answers = self
            .switch
            .apply(Term(request.term), ops)
            .await
            .map_err(|stopped| Status::unavailable(stopped.to_string()))?;
        let answers = answers.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::ApplyResponse { answers }))
    }

    async fn count(&self, _: Request<v1::CountRequest>) -> Result<Response<v1::CountResponse>, Status> {
        let named = |(name, value)| v1::Counter { name, value };
        let counted = self.switch.counters().into_iter().map(named);
        let refused = self.refused.counters().into_iter();
        let refused =
            refused.map(|v1::Counter { name, value }| named((format!("refused_call_{name}"), value)));
        Ok(Response::new(v1::CountResponse { counters: counted.chain(refused).collect() }))
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

    pub(crate) async fn describe(&mut self) -> Result<(Shape, Endpoint), SwitchdError> {
        let answer =
            self.calls.describe(v1::DescribeRequest {}).await.map_err(|status| self.failed(&status))?;
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
        ops: &[TableOp],
    ) -> Result<Vec<TableAnswer>, SwitchdError> {
        let request =
            v1::ApplyRequest { epoch: epoch.0, term: by.0, ops: ops.iter().map(|op| (*op).into()).collect() };
        let answer = self.calls.apply(request).await.map_err(|status| self.failed(&status))?.into_inner();
        if answer.answers.len() != ops.len() {
            return Err(
                self.failed(&Status::internal("it gave another number of answers than was asked for"))
            );
        }
        let answers = answer.answers.into_iter().map(TableAnswer::try_from).collect::<Result<_, _>>();
        answers.map_err(|malformed| self.failed(&malformed.into()))
    }

    pub(crate) async fn counters(&mut self) -> Result<Vec<(String, u64)>, SwitchdError> {
        let answer = self.calls.count(v1::CountRequest {}).await.map_err(|status| self.failed(&status))?;
        let counters = answer.into_inner().counters.into_iter();
        Ok(counters.map(|counter| (shown(&counter.name), counter.value)).collect())
    }

    fn failed(&self, status: &Status) -> SwitchdError {
        self.remote.failed("the switch's tables", status).into()
    }
}
