//! What the package starts: the commands of its units, and its rack in /etc/sluice.

mod common;

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use common::{Running, command, sluice, stderr, terminate};

/// Where a unit's sandbox begins.
const SANDBOX: &str = "\n# What it may do";
/// The lines of the sandbox that the switch in the kernel has others of.
const RIGHTS: [&str; 5] = [
    "AmbientCapabilities=",
    "CapabilityBoundingSet=",
    "PrivateUsers=",
    "RestrictAddressFamilies=",
    "SystemCallFilter=bpf ",
];

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging").join(name)
}

/// The units' names and texts.
fn units() -> Vec<(String, String)> {
    let files = fs::read_dir(packaging("systemd")).expect("a folder").map(|file| file.expect("readable"));
    let read = |path: PathBuf| fs::read_to_string(path).expect("readable");
    files.map(|file| (file.file_name().to_string_lossy().into_owned(), read(file.path()))).collect()
}

/// The only value of a key.
fn value<'a>(unit: &'a str, key: &str) -> &'a str {
    let mut values = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let first = values.next().unwrap_or_else(|| panic!("no {key} in:\n{unit}"));
    assert_eq!(values.next(), None, "{key} twice in:\n{unit}");
    first
}

/// The rack in a folder of its own, on free ports, with a text replaced by another.
fn rack(folder: &Path, from: &str, to: &str) {
    let mut text = fs::read_to_string(packaging("etc/rack.toml")).expect("readable");
    for port in ["7000", "7400", "9464"] {
        assert!(text.contains(&format!("\"127.0.0.1:{port}\"")), "no port {port}");
        text = text.replace(&format!("127.0.0.1:{port}"), "127.0.0.1:0");
    }
    assert!(text.contains(from), "{from}");
    fs::write(folder.join("rack.toml"), text.replacen(from, to, 1)).expect("written");
}

#[test]
fn each_unit_starts_a_command_with_flags_that_exist() {
    assert_eq!(units().len(), 9);
    for (name, unit) in units() {
        let line = value(&unit, "ExecStart").replace("%i", "spin-1");
        let mut words = line.split_whitespace();
        assert_eq!((words.next(), words.next_back()), (Some("/usr/bin/sluice"), Some("$OPTIONS")), "{name}");
        let mut args: Vec<&str> = words.collect();
        let takes_the_plan = args.contains(&"/etc/sluice/rack.toml");
        let asks_the_rack = ["sluice-dashboard.service", "sluice-gateway.service"].contains(&&*name);
        assert_eq!(takes_the_plan, !asks_the_rack, "{name}");
        args.push("--help");
        let output = sluice(Path::new("."), &args);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{name}: {line}");
        // Wrong input must not be tried again and again.
        assert_eq!(value(&unit, "RestartPreventExitStatus").split(' ').next(), Some("2"), "{name}");
        assert_eq!(value(&unit, "User"), "sluice", "{name}");
    }
}

#[test]
fn all_units_have_the_same_sandbox_and_only_the_one_for_the_kernel_has_rights() {
    let sandbox = |unit: &str| unit.split_once(SANDBOX).expect("it has one").1.to_owned();
    let units = units();
    let (_, switch) = units.iter().find(|(name, _)| name == "sluice-switch.service").expect("a switch");
    assert_eq!(value(switch, "CapabilityBoundingSet"), "");
    let without_rights = |unit: &str| -> Vec<String> {
        let lines = sandbox(unit);
        let lines = lines.lines().filter(|line| !RIGHTS.iter().any(|right| line.starts_with(right)));
        lines.map(str::to_owned).collect()
    };
    for (name, unit) in &units {
        if name == "sluice-switch-xdp.service" {
            let three = "CAP_BPF CAP_NET_ADMIN CAP_PERFMON";
            assert_eq!(value(unit, "CapabilityBoundingSet"), three);
            assert_eq!(value(unit, "AmbientCapabilities"), three);
            assert_eq!(without_rights(unit), without_rights(switch), "{name}");
        } else {
            assert_eq!(sandbox(unit), sandbox(switch), "{name}");
        }
    }
}

#[test]
fn the_rack_starts_as_it_is_and_tells_systemd_when_it_is_ready_and_when_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    rack(folder.path(), "", "");
    let told = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
    told.set_read_timeout(Some(Duration::from_mins(2))).expect("a timeout");
    let said = || {
        let mut text = [0; 64];
        let length = told.recv(&mut text).expect("the switch speaks within minutes");
        String::from_utf8_lossy(&text[..length]).trim().to_owned()
    };
    let mut switch = command(folder.path(), &["switch", "rack.toml", "--state", "state/switch"]);
    switch.env("NOTIFY_SOCKET", folder.path().join("notify")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut switch = Running(switch.spawn().expect("sluice starts"));
    assert_eq!(said(), "READY=1");
    terminate(&switch.0);
    assert_eq!(said(), "STOPPING=1");
    assert_eq!(switch.0.wait().expect("it ends").code(), Some(0));
    // Its comments name these workers.
    let output = sluice(folder.path(), &["worker", "--plan", "rack.toml", "--name", "none"]);
    assert!(stderr(&output).contains("spin-1, spin-2"), "{}", stderr(&output));
}

#[test]
fn an_unknown_key_of_the_rack_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().expect("a folder");
    rack(folder.path(), "name = \"rack\"", "nmae = \"rack\"");
    for args in [&["switch", "rack.toml"][..], &["worker", "--plan", "rack.toml", "--name", "spin-1"]] {
        let output = sluice(folder.path(), args);
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains("rack.toml") && said.contains("unknown key `nmae`"), "{said}");
    }
}
