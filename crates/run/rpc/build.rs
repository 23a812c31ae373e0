//! Generates the messages and callers of the gRPC services from `proto/`, without protoc.

use std::error::Error;

const PROTOS: [&str; 2] = ["sluice/v1/controller.proto", "sluice/v1/tables.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    let calls = tonic_prost_build::configure().build_server(false).emit_rerun_if_changed(false);
    Ok(calls.compile_fds(descriptors)?)
}
