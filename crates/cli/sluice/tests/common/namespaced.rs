//! Racks in network namespaces, whose switch is in the kernel or on BMv2.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;

use serde_json::Value;

use super::{command, json, sluice, stderr};

/// Runs a plan with a switch of this kind to its end, and checks that every task got a reply.
pub(crate) fn run(io: &str, plan: &str, args: &[&str]) -> Value {
    let folder = folder_with(plan);
    let output = sluice(folder.path(), &[&["up", "plan.toml", "--io", io, "--json"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"], "{}", result["tasks"]);
    assert_eq!(result["warm_up_tasks"]["sent"], result["warm_up_tasks"]["replied"]);
    result
}

/// Starts the folder's plan, and waits until its load runs.
pub(crate) fn start(io: &str, folder: &Path) -> Child {
    let mut up = command(folder, &["up", "plan.toml", "--io", io])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sluice starts");
    let mut said = BufReader::new(up.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(said.any(|line| line.starts_with("load ")), "the load never ran");
    thread::spawn(move || said.count());
    up
}

/// The processes that this one and its descendants have started, by any of their threads.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|pids| pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    children.into_iter().flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

/// All processes of this machine.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("procfs").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The network namespace of a process, by its number.
pub(crate) fn namespace(pid: u32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/net")).map(|namespace| namespace.ino()).ok()
}

pub(crate) fn folder_with(plan: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("plan.toml"), plan).expect("written");
    folder
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}
