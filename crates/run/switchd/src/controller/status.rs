//! What a controller knows, as the message that answers who asks for its status.

use sluice_control::{ClassView, LinkState, ServerView, SliceView, View, WorkerPhase, WorkerView};
use sluice_rpc::v1;
use sluice_wire::Endpoint;

use crate::rpc::refused::Refused;

/// What is known now, without what the controller remembers.
pub(super) fn status_of(
    view: &View,
    at: Option<Endpoint>,
    counted: v1::CountResponse,
    refused: &Refused,
) -> v1::StatusResponse {
    let View { epoch, link, slices, workers, clients, servers, type_names, unused_types } = view;
    let link = match link {
        LinkState::Down => v1::LinkState::Down,
        LinkState::Reading => v1::LinkState::Reading,
        LinkState::Up => v1::LinkState::Up,
        LinkState::TooSmall => v1::LinkState::TooSmall,
        LinkState::Superseded => v1::LinkState::Superseded,
        LinkState::Standby => v1::LinkState::Standby,
    };
    v1::StatusResponse {
        switch: Some(v1::SwitchStatus {
            epoch: epoch.0,
            link: link.into(),
            at: at.map(|at| at.to_string()).unwrap_or_default(),
            counters: counted.counters,
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
        refused: refused.counters(),
        ending: refused.ending(),
        lost: Vec::new(),
        earlier: Vec::new(),
        processes: counted.health.into_iter().collect(),
        superseded: counted.superseded,
        standing: None,
        builds: Vec::new(),
        type_names: type_names.iter().map(v1::TypeName::from).collect(),
        unused_types: unused_types.iter().map(|of| of.0.into()).collect(),
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
