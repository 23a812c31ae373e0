//! The flags of `sluice gateway`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use sluice_gateway::GrpcMethod;
use sluice_support::flags::{LogArgs, Output};
use sluice_support::running::RackArgs;
use sluice_support::units;
use sluice_wire::Nanos;

use super::served::{GuardArgs, MetricsArgs};

#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// Serve what clients of Redis speak on this address: GET, MGET, SET, DEL, EXISTS and SCAN are tasks.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address)]
    #[arg(required_unless_present_any = ["http", "grpc"])]
    pub(crate) resp: Option<SocketAddr>,
    /// Serve HTTP/1.1 on this address: POST /TYPE is a task of that type.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address)]
    pub(crate) http: Option<SocketAddr>,
    /// Serve gRPC on this address: each unary call of a method in --grpc-map is a task.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address, requires = "grpc_map")]
    pub(crate) grpc: Option<SocketAddr>,
    /// A method and the type of its tasks, such as /words.Words/Reverse=reverse; give it again for more.
    #[arg(long, value_name = "METHOD=TYPE", requires = "grpc")]
    pub(crate) grpc_map: Vec<GrpcMethod>,
    #[command(flatten)]
    pub(crate) rack: RackArgs,
    /// Where tasks leave and replies come in: an address that the switch and the workers can reach.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address, default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// The name as a client of the rack, unlike all others [default: gateway-PID-CHANCE, behind the name in
    /// its certificate].
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// How long to look for the rack.
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = units::span)]
    pub(crate) patience: Duration,
    /// When a task's outcome is unknown, unless its caller says so [default: 5s, more when dilated].
    #[arg(long, value_name = "SPAN", value_parser = units::span)]
    pub(crate) deadline: Option<Duration>,
    /// For how long a task is worth beginning, unless its caller says so: 200us [default: no limit].
    #[arg(long, value_name = "SPAN", value_parser = sluice_workload::read_budget)]
    pub(crate) budget: Option<Nanos>,
    /// Whether tasks are tried again: `budget` (within a tenth of the sends) or `never`, for work that must
    /// not run twice.
    #[arg(long, value_name = "WHEN", value_parser = units::retry, default_value = "budget")]
    pub(crate) retry: bool,
    /// How many connections are served at once.
    #[arg(long, value_name = "COUNT", default_value_t = 1_024,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: u32,
    /// After SIGTERM or SIGINT, take nothing new and answer what runs, for so long at most.
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = units::span)]
    pub(crate) drain_limit: Duration,
    /// Times of the network, multiplied: as the rack was started.
    #[arg(long, value_name = "FACTOR", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) dilate: u32,
    /// Keep the thread that sends and receives the rack's packets on this core.
    #[arg(long, value_name = "CORE")]
    pub(crate) pin: Option<usize>,
    #[command(flatten)]
    pub(crate) guard: GuardArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}
