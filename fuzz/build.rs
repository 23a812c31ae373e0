//! The messages of the gRPC services without the services, for the target `calls`.

use std::error::Error;

const PROTOS: &str = "../crates/run/rpc/proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTOS}");
    let described = protox::compile(["sluice/v1/controller.proto", "sluice/v1/tables.proto"], [PROTOS])?;
    prost_build::Config::new().compile_fds(described)?;
    Ok(())
}
