//! One module for each command.

pub(crate) mod beside;
pub(crate) mod change;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod controller;
pub(crate) mod dashboard;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod faults;
pub(crate) mod gateway;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod policies;
pub(crate) mod profile;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod resources;
pub(crate) mod server;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod sweep;
pub(crate) mod switch;
pub(crate) mod table;
pub(crate) mod throughput;
pub(crate) mod up;
pub(crate) mod worker;
pub(crate) mod write;

use std::time::Duration;

use sluice_net::client::deadline_default;
use sluice_rpc::ServerTls;
use sluice_support::fail::Outcome;
use sluice_support::plan::{Plan, SwitchRole};
use sluice_switchd::rpc::{Guard, RpcServer};

use crate::args::GuardArgs;

/// The longest time that a packet may be under way; the controller adds it to deadlines.
const PACKET_LIFETIME: Duration = Duration::from_secs(1);
/// How far apart agents may report the same interval; dilated, up to a limit.
const GATHER_AGENTS: sluice_wire::Nanos = sluice_wire::Nanos::from_millis(2);
const GATHER_AGENTS_MAX: sluice_wire::Nanos = sluice_wire::Nanos::from_millis(200);
/// How often a running command checks whether it should stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The controller's part of a plan: slices, limits and times.
fn control_plan(plan: &Plan, switch: sluice_wire::Endpoint, role: SwitchRole) -> sluice_control::Plan {
    let slices = plan.slices.iter().map(|slice| sluice_control::SlicePlan {
        name: slice.name.clone(),
        types: slice
            .types
            .iter()
            .filter_map(|name| plan.types.number(name))
            .map(sluice_wire::TaskType)
            .collect(),
        limit: slice.limit,
        sizes: slice.sizes,
        serving: plan.serving(slice).expect("it was checked"),
        target: plan.target(slice).expect("it was checked"),
        service: plan.service(slice),
    });
    let mut control = sluice_control::Plan::new(switch, slices.collect());
    control.tier = role.tier();
    let names = plan.label_names();
    control.labels = names.all().to_vec();
    let needs = plan.slices.iter().flat_map(|slice| &slice.needs);
    control.needs = needs
        .filter_map(|need| {
            Some((sluice_wire::TaskType(plan.types.number(&need.class)?), names.bits(&need.labels)))
        })
        .collect();
    control.type_names =
        plan.types.all().map(|(name, number)| (sluice_wire::TaskType(*number), name.clone())).collect();
    let factor = u64::from(plan.dilation);
    control.max_wait = control.max_wait.times(factor);
    control.retry_after = control.retry_after.times(factor);
    let deadline = plan.load.as_ref().map_or_else(|| deadline_default(plan.dilation), |load| load.deadline);
    control.retry_for = sluice_support::load::nanos(deadline);
    control.packet_lifetime = sluice_support::load::nanos(PACKET_LIFETIME);
    // Agents of servers whose intervals end together report a moment apart.
    control.gather_agents = GATHER_AGENTS.times(plan.dilation.into()).min(GATHER_AGENTS_MAX);
    control.rdma = sluice_control::RdmaPlan {
        first_bytes: plan.first_packet().bytes as u32,
        stall_tasks: plan.rdma.stall_tasks,
        copies: plan.rdma.copies,
        tiny_rings: plan.rdma.tiny_slots.is_some(),
    };
    control
}

/// Who may call the services of this process.
fn guard(args: &GuardArgs) -> Outcome<Guard> {
    Ok(match args.certificate.as_deref() {
        Some([certificate, key]) => {
            Guard::Tls(ServerTls::from_files(certificate, key, args.client_ca.as_deref())?)
        }
        _ if args.own_network => Guard::OwnNetwork,
        _ => Guard::Loopback,
    })
}

/// The address at which a controller in this process is reached.
fn reached_at(server: &RpcServer, args: &GuardArgs) -> String {
    let scheme = if args.certificate.is_some() { "https://" } else { "" };
    format!("{scheme}{}", server.local())
}

/// What a process prints when it listens, with the address of its metrics if it serves any.
fn with_metrics(mut line: serde_json::Value, at: Option<std::net::SocketAddr>) -> serde_json::Value {
    if let Some(at) = at {
        line["metrics"] = at.to_string().into();
    }
    line
}
