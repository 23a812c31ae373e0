//! Builds the gRPC services around the messages of `rpc`, without protoc, and stores their descriptors for
//! reflection.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

const PROTOS: [&str; 2] = ["sluice/v1/controller.proto", "sluice/v1/tables.proto"];
const FOLDER: &str = "../rpc/proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let descriptors = protox::compile(PROTOS, [FOLDER])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    fs::write(out.join("sluice.v1.bin"), descriptors.encode_to_vec())?;
    let services = tonic_prost_build::configure().build_client(false).emit_rerun_if_changed(false);
    Ok(services.extern_path(".sluice.v1", "::sluice_rpc::v1").compile_fds(descriptors)?)
}
