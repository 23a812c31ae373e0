//! Generates P4Runtime's messages and calls from `proto/`, without protoc.

use std::error::Error;

const PROTOS: [&str; 2] = ["p4/v1/p4runtime.proto", "p4/config/v1/p4info.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    let calls = tonic_prost_build::configure().build_server(false).emit_rerun_if_changed(false);
    Ok(calls.compile_fds(descriptors)?)
}
