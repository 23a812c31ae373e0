//! What remains when the holders of namespaces and mounts are gone.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use sluice_kernel::spaces::{BPF_FOLDER, LinkEnd, Space, mounts_of_its_own};

use crate::hop::Hop;
use crate::{object, rack};

/// An environment variable that tells the test below that it is the holder's process.
const HOLDER: &str = "SLUICE_TEST_HOLDS";
/// The name of the link that a holder makes from its original namespace into its own, and of its folder of
/// pins.
const PROBE: &str = "probe";

#[test]
fn mounts_of_ones_own_are_seen_by_nobody_else() {
    if !object::is_root() {
        eprintln!("skipped: mounts take root");
        return;
    }
    let before = fs::read_to_string("/proc/thread-self/mounts").expect("it is there");
    thread::spawn(|| {
        mounts_of_its_own().expect("root may");
        fs::create_dir(format!("{BPF_FOLDER}/{PROBE}")).expect("a BPF file system");
        let inside = fs::read_to_string("/proc/thread-self/mounts").expect("it is there");
        assert!(inside.contains(&format!(" {BPF_FOLDER} bpf ")), "{inside}");
    })
    .join()
    .expect("it holds");
    assert_eq!(fs::read_to_string("/proc/thread-self/mounts").expect("it is there"), before);
}

#[test]
fn a_holder_that_is_killed_leaves_no_namespace_link_pin_or_mount() {
    if !object::is_root() {
        eprintln!("skipped: network namespaces take root");
        return;
    }
    let mounts = fs::read_to_string("/proc/self/mounts").expect("it is there");
    let outside = Space::new().expect("root may make one");
    let mut holder = outside.within(start_holder).expect("root may move");
    let said = BufReader::new(holder.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    // Skips the lines of the test harness.
    let id = said.filter_map(|line| Some(line.split_once("holds map ")?.1.parse::<u32>().expect("a number")));
    let id = id.take(1).last().expect("it holds something");
    assert!(links(&outside).contains(PROBE) && is_loaded(id), "the holder's");

    holder.kill().expect("it is ours");
    holder.wait().expect("it ends");
    // The kernel cleans up in the background, without telling when it is done.
    while links(&outside).contains(PROBE) || is_loaded(id) {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(fs::read_to_string("/proc/self/mounts").expect("it is there"), mounts);
}

#[test]
#[ignore = "the holder of the test above, which starts it"]
fn holder() {
    if std::env::var_os(HOLDER).is_none() {
        return;
    }
    let outside = Space::current().expect("this one");
    let rack = rack(2).expect("root");
    let end = |name: &str| LinkEnd { name: name.to_owned(), index: 1_000, mac: [2, 0, 0, 0, 0, 1] };
    outside.join(&end(PROBE), rack.switch(), &end("other")).expect("free names");
    mounts_of_its_own().expect("root may");
    let hop = Hop::attach(&rack);
    hop.pin(&format!("{BPF_FOLDER}/{PROBE}"));
    println!("holds map {}", hop.id());
    loop {
        thread::park();
    }
}

fn start_holder() -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "gone::holder", "--ignored", "--nocapture"])
        .env(HOLDER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// The links of a space, as the kernel lists them.
fn links(space: &Space) -> String {
    space
        .within(|| fs::read_to_string("/proc/thread-self/net/dev"))
        .expect("root may move")
        .expect("it is there")
}

fn is_loaded(map: u32) -> bool {
    aya::maps::loaded_maps().any(|loaded| loaded.is_ok_and(|loaded| loaded.id() == map))
}
