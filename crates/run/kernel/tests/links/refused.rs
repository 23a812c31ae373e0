//! Impossible setups: each error names the cause and the remedy in one line, and nothing is left behind.

use std::net::SocketAddr;
use std::path::PathBuf;

use aya::maps::{Array, Map, MapData};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use sluice_kernel::KernelError;
use sluice_kernel::spaces::BPF_FOLDER;
use sluice_kernel::xdp::{XdpDriver, XdpOptions};
use sluice_switch::Config;

use crate::rig::{EPOCH, Rig};

impl Rig {
    /// Starts a switch with changed options; returns the error.
    fn refuses(&self, bend: impl FnOnce(&mut XdpOptions)) -> String {
        let mut options = self.options();
        bend(&mut options);
        let tried = self.spaces.switch().within(|| XdpDriver::new(&options, || Ok(EPOCH)));
        let why = tried.expect("it is there").err().expect("it cannot be");
        assert!(why.is_bad_input(), "{why:?}");
        let why = why.to_string();
        assert_eq!(why.lines().count(), 1, "{why}");
        why
    }
}

fn says(why: &str, words: &[&str]) {
    for word in words {
        assert!(why.contains(word), "`{why}` does not say `{word}`");
    }
}

#[test]
fn an_interface_that_is_missing() {
    let Some(rig) = Rig::new(0) else { return };
    let why = rig.refuses(|options| options.interfaces.push("nowhere0".to_owned()));
    says(&why, &["nowhere0", "ip -brief link"]);
    assert_eq!(rig.pins(), [""; 0]);
}

#[test]
fn an_interface_that_carries_another_program() {
    let Some(mut rig) = Rig::new(0) else { return };
    rig.start().expect("root may");
    let others = PathBuf::from(BPF_FOLDER).join("sluice/other");
    let why = rig.refuses(|options| options.pins.clone_from(&others));
    says(&why, &[&rig.options().interfaces[0], "carries another XDP program", "bpftool net", "--detach"]);
    assert!(!others.exists());
    let mut hosts = rig.admit();
    assert!(hosts.is_heard(), "the first is as it was");
}

#[test]
fn the_second_of_two_interfaces_carries_another_program_and_the_first_is_free_again() {
    let Some(mut rig) = Rig::new(0) else { return };
    let taken = rig.options().interfaces[1].clone();
    let mut first = rig.options();
    first.interfaces = vec![taken.clone()];
    let holds = rig.spaces.switch().within(|| XdpDriver::new(&first, || Ok(EPOCH)));
    let holds = holds.expect("it is there").expect("root may");
    let others = PathBuf::from(BPF_FOLDER).join("sluice/other");
    says(&rig.refuses(|options| options.pins.clone_from(&others)), &[&taken]);
    assert!(!others.exists());
    drop(holds);
    rig.start().expect("both are free for who has the pins");
}

#[test]
fn no_bpf_file_system() {
    let Some(rig) = Rig::new(0) else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let why = rig.refuses(|options| options.pins = folder.path().join("sluice/test"));
    says(&why, &["sluice/test", "mount -t bpf bpf /sys/fs/bpf"]);
    assert!(!folder.path().join("sluice").exists());
}

#[test]
fn pins_that_another_process_drives() {
    let Some(mut rig) = Rig::new(0) else { return };
    rig.start().expect("root may");
    says(&rig.refuses(|_| {}), &["in use by another sluice switch", "end that one"]);
    let why = sluice_kernel::xdp::detach(&rig.options().pins).expect_err("it is driven").to_string();
    says(&why, &["in use by another sluice switch"]);
}

#[test]
fn pinned_maps_of_another_size_address_or_version() {
    let Some(mut rig) = Rig::new(0) else { return };
    rig.start().expect("root may");
    rig.end();
    let before = rig.pins();
    let why = rig.refuses(|options| options.size = Config { workers: 8, ..options.size });
    says(&why, &["another size", "--detach --pins", "sluice/test"]);
    let why = rig.refuses(|options| options.at = SocketAddr::new(options.at.ip(), 1));
    says(&why, &["of a switch on", "--detach"]);
    let pinned = MapData::from_pin(rig.options().pins.join("layout")).expect("it was pinned");
    let mut layout = Array::<_, [u8; 48]>::try_from(Map::Array(pinned)).expect("an array");
    let held = layout.get(&0, 0).expect("a value");
    let mut other = held;
    other[0] ^= 1;
    layout.set(0, other, 0).expect("root may");
    says(&rig.refuses(|_| {}), &["another version", "--detach"]);
    layout.set(0, held, 0).expect("root may");
    assert_eq!(rig.pins(), before);
    rig.start().expect("nothing was changed");
}

#[test]
fn maps_for_which_there_is_no_memory() {
    let Some(rig) = Rig::new(0) else { return };
    let why = rig.refuses(|options| {
        options.size = Config { slices: 64, tasks_per_slice: 1 << 24, ..options.size };
    });
    says(&why, &["MiB", "tasks_per_slice", "MemoryMax", "ulimit -l"]);
    assert_eq!(rig.pins(), [""; 0]);
}

#[test]
fn an_address_that_is_not_this_machine_s() {
    let Some(rig) = Rig::new(0) else { return };
    says(&rig.refuses(|options| options.at = ([192, 0, 2, 1], 7_000).into()), &["192.0.2.1:7000"]);
    assert_eq!(rig.pins(), [""; 0]);
}

#[test]
fn a_user_without_the_capabilities() {
    let Some(rig) = Rig::new(0) else { return };
    let held = capabilities(None).expect("root has some");
    let mut fewer = held;
    fewer.effective -= CapabilitySet::BPF | CapabilitySet::SYS_ADMIN;
    // Dropped inside the switch's namespace, since entering it needs them too.
    let options = rig.options();
    let tried = rig.spaces.switch().within(|| {
        set_capabilities(None, fewer).expect("fewer is always allowed");
        let tried = XdpDriver::new(&options, || Ok(EPOCH)).err();
        set_capabilities(None, held).expect("they are permitted still");
        tried
    });
    let why = tried.expect("it is there").expect("it is not allowed");
    assert!(matches!(why, KernelError::XdpNotPermitted { .. }), "{why:?}");
    says(&why.to_string(), &["CAP_BPF", "sudo setcap cap_bpf,cap_net_admin,cap_perfmon+ep"]);
    assert_eq!(rig.pins(), [""; 0]);
}
