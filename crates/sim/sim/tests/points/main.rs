//! Points of studies: what a run of one policy at one load comes to, by what the testbed is.

mod adaptation;
mod datacenter;
mod draconis;
mod fabric;
mod full_scale;
mod idle_racks;
mod labels;
mod notices;
mod pools;
mod rack;
mod rdma;
mod server;
mod software;
mod tokens;
mod whole;

#[path = "../../benches/baseline/timing.rs"]
mod timing;
