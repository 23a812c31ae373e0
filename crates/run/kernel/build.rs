//! Builds the XDP programs from `targets/ebpf` if a compiler for them is installed. Without one, everything
//! but `--io xdp` works.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let objects = ["rain.bpf.o", "pass.bpf.o", "faults.bpf.o"].map(|name| out.join(name));
    if let Err(why) = xdp(&out, &objects) {
        println!("cargo::warning=--io xdp will not work: its programs were not built ({why})");
        objects.iter().try_for_each(|object| fs::write(object, []))?;
    }
    Ok(())
}

fn xdp(out: &Path, objects: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    let source =
        Path::new(&env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo sets it")?).join("../../../targets/ebpf");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-env-changed=CLANG");
    let made = Command::new("make")
        .arg("-sBC")
        .arg(source)
        .arg(format!("OUT={}", out.display()))
        .args(objects)
        .output()?;
    if made.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&made.stderr);
    Err(said.lines().next().unwrap_or("make failed").to_owned().into())
}
