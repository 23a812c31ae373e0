//! The kinds of host: what each states to the controller and what it gets in return.

use sluice_control::{ClientGrant, ClientHello, ServerGrant, ServerHello, WorkerGrant, WorkerHello};
use sluice_wire::{ClientId, Generation, Key, Nanos, Serial, WorkerId};
use tonic::{Code, Response, Status};

use super::calls::{Calls, ControllerCalls};
use crate::hosts::{Departure, Renewal};
use crate::{Malformed, v1};

/// A kind of host. Sealed: only [`WorkerRole`], [`ClientRole`] and [`ServerRole`] implement it.
pub trait Role: Calls {}

/// A worker.
#[derive(Clone, Copy, Debug)]
pub struct WorkerRole;

/// A client.
#[derive(Clone, Copy, Debug)]
pub struct ClientRole;

/// A server.
#[derive(Clone, Copy, Debug)]
pub struct ServerRole;

impl Role for WorkerRole {}
impl Role for ClientRole {}
impl Role for ServerRole {}

impl Calls for WorkerRole {
    type Hello = WorkerHello;
    type Grant = WorkerGrant;
    type Held = (WorkerId, Key, Generation);

    const THREAD: &'static str = "worker-line";
    const LEAVES_AT_ONCE: bool = true;

    fn identity(hello: &WorkerHello) -> (&str, u64) {
        (&hello.name, hello.life)
    }

    fn held(grant: &WorkerGrant) -> Self::Held {
        (grant.worker, grant.key, grant.generation)
    }

    fn renew_every(grant: &WorkerGrant) -> Nanos {
        grant.renew_every
    }

    fn lease(grant: &WorkerGrant) -> Nanos {
        grant.lease
    }

    async fn renew(
        calls: &mut ControllerCalls,
        mut hello: WorkerHello,
        held: Option<Self::Held>,
        _: Serial,
    ) -> Result<Renewal<WorkerGrant>, Status> {
        hello.held = held;
        read(calls.renew_worker(v1::RenewWorkerRequest::from(&hello)).await?)
    }

    async fn changed(mut calls: ControllerCalls, held: Option<Self::Held>) {
        let Some((worker, key, generation)) = held else { return std::future::pending().await };
        let held = v1::HeldWorker { worker: worker.0.into(), key: key.0, generation: generation.0 };
        loop {
            match calls.await_change(v1::AwaitChangeRequest { held: Some(held) }).await {
                Ok(_) => return,
                // The call timed out: nothing has changed so far.
                Err(status) if matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded) => {}
                // This controller does not offer the call: the host learns of changes at its next renewal.
                Err(_) => std::future::pending().await,
            }
        }
    }

    async fn leave(calls: &mut ControllerCalls, hello: WorkerHello) -> Result<Departure, Status> {
        let request = v1::LeaveWorkerRequest { name: hello.name, life: hello.life };
        read(calls.leave_worker(request).await?)
    }
}

impl Calls for ClientRole {
    type Hello = ClientHello;
    type Grant = ClientGrant;
    type Held = (ClientId, Key);

    const THREAD: &'static str = "client-line";
    const LEAVES_AT_ONCE: bool = false;

    fn identity(hello: &ClientHello) -> (&str, u64) {
        (&hello.name, hello.incarnation.0)
    }

    fn held(grant: &ClientGrant) -> Self::Held {
        (grant.client, grant.key)
    }

    fn renew_every(grant: &ClientGrant) -> Nanos {
        grant.renew_every
    }

    fn lease(grant: &ClientGrant) -> Nanos {
        grant.lease
    }

    async fn renew(
        calls: &mut ControllerCalls,
        mut hello: ClientHello,
        held: Option<Self::Held>,
        floor: Serial,
    ) -> Result<Renewal<ClientGrant>, Status> {
        hello.held = held;
        hello.floor = floor;
        read(calls.renew_client(v1::RenewClientRequest::from(&hello)).await?)
    }

    async fn leave(calls: &mut ControllerCalls, hello: ClientHello) -> Result<Departure, Status> {
        let request = v1::LeaveClientRequest { name: hello.name, incarnation: hello.incarnation.0 };
        read(calls.leave_client(request).await?)
    }
}

impl Calls for ServerRole {
    type Hello = ServerHello;
    type Grant = ServerGrant;
    type Held = ();

    const THREAD: &'static str = "server-line";
    const LEAVES_AT_ONCE: bool = true;

    fn identity(hello: &ServerHello) -> (&str, u64) {
        (&hello.name, hello.life)
    }

    fn held(_: &ServerGrant) -> Self::Held {}

    fn renew_every(grant: &ServerGrant) -> Nanos {
        grant.renew_every
    }

    fn lease(grant: &ServerGrant) -> Nanos {
        grant.lease
    }

    async fn renew(
        calls: &mut ControllerCalls,
        hello: ServerHello,
        _: Option<()>,
        _: Serial,
    ) -> Result<Renewal<ServerGrant>, Status> {
        read(calls.renew_server(v1::RenewServerRequest::from(&hello)).await?)
    }

    async fn leave(calls: &mut ControllerCalls, hello: ServerHello) -> Result<Departure, Status> {
        let request = v1::LeaveServerRequest { name: hello.name, life: hello.life };
        read(calls.leave_server(request).await?)
    }
}

/// Reads the controller's answer. A malformed answer counts as no answer: the request was not at fault.
fn read<M, A: TryFrom<M, Error = Malformed>>(answer: Response<M>) -> Result<A, Status> {
    let senseless = |why| Status::internal(format!("the controller's answer makes no sense: {why}"));
    answer.into_inner().try_into().map_err(senseless)
}
