//! Generates P4Runtime's messages and calls from `proto/`, without protoc.

use std::error::Error;

const PROTOS: [&str; 2] = ["p4/v1/p4runtime.proto", "p4/config/v1/p4info.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    let calls = tonic_prost_build::configure().emit_rerun_if_changed(false);
    // Tests have a server of their own.
    let calls = calls.server_mod_attribute("p4.v1", "#[cfg(test)]");
    Ok(calls.compile_fds(descriptors)?)
}
