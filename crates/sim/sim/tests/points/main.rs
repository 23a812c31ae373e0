//! Points of studies: the results of one policy at one load, for each kind of testbed.

mod adaptation;
mod budgets;
mod datacenter;
mod draconis;
mod fabric;
mod full_scale;
mod idle_racks;
mod labels;
mod notices;
mod overload;
mod pools;
mod rack;
mod rdma;
mod recovery;
mod server;
mod shares;
mod software;
mod tokens;
mod whole;

#[path = "../../benches/baseline/timing.rs"]
mod timing;
