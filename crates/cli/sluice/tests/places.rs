//! Racks over IPv6, and beside racks of other containers.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{SMALL, command, json, sluice, stderr};
use serde_json::Value;

/// Writes the small rack's plan with these settings of the switch.
fn plan(folder: &Path, name: &str, switch: &str) -> String {
    let file = format!("{name}.toml");
    let text = SMALL.replace("[[slice]]", &format!("[switch]\n{switch}\n[[slice]]"));
    let text = text.replace("name = \"small\"", &format!("name = \"{name}\"\nout = \"out/{name}\""));
    fs::write(folder.join(&file), text).expect("written");
    file
}

fn all_were_answered(result: &Value) {
    assert!(result["tasks"]["sent"].as_u64() > Some(0), "{result}");
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"], "{result}");
}

#[test]
fn hosts_have_addresses_of_the_switchs_family() {
    let folder = tempfile::tempdir().expect("a folder");
    let six = plan(folder.path(), "six", "listen = \"[::1]:0\"\ncontrol = \"[::1]:0\"");
    all_were_answered(&json(&sluice(folder.path(), &["up", &six, "--json"])));
    // Only the addresses for packets must be of one family.
    let mixed = plan(folder.path(), "mixed", "listen = \"[::1]:0\"");
    all_were_answered(&json(&sluice(folder.path(), &["up", &mixed, "--json"])));
}

/// In two containers that share a network, the processes of both racks have the same numbers.
#[test]
fn two_racks_of_the_same_process_number_share_a_network() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: namespaces take root");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let racks = ["one", "other"].map(|name| {
        let plan = plan(folder.path(), name, "waiting = \"block\"");
        let up = command(folder.path(), &["up", &plan, "--json"]);
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--mount-proc"]).arg(up.get_program()).args(up.get_args());
        unshare.current_dir(folder.path()).stdin(Stdio::null());
        unshare.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("util-linux is there")
    });
    for rack in racks {
        let output = rack.wait_with_output().expect("it was started");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        all_were_answered(&json(&output));
    }
}
