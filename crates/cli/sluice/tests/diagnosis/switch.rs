//! The switch's state folder, a switch that is gone, and two controllers at one switch.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::command;
use crate::rig::{PLAN, Rack};

/// A switch whose state folder is a small disk of its own, in a mount namespace.
struct OnSmallDisk {
    rack: Rack,
    switch: crate::common::Running,
}

impl OnSmallDisk {
    /// `None` where this user may not mount anything.
    fn start() -> Option<Self> {
        let rack = Rack::of(PLAN.split("[[worker]]").next().expect("the slice"));
        let state = rack.folder().join("state");
        std::fs::create_dir(&state).expect("made");
        let inside = |script: &str| {
            let mut unshare = Command::new("unshare");
            if !rustix::process::geteuid().is_root() {
                unshare.args(["--user", "--map-root-user"]);
            }
            let script = format!("mount -t tmpfs -o size=64k none \"$0\" && {script}");
            unshare.args(["--mount", "sh", "-c", &script]).arg(&state);
            unshare
        };
        if !inside("true").stderr(Stdio::null()).status().is_ok_and(|done| done.success()) {
            eprintln!("skipped: a small disk takes the right to mount one");
            return None;
        }
        let any = "127.0.0.1:0";
        let sluice = ["switch", "rack.toml", "--state", "state", "--json", "--control", any, "--listen", any];
        let plain = command(rack.folder(), &sluice);
        let mut unshare = inside("exec \"$@\"");
        unshare
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(rack.folder())
            .stdin(Stdio::null());
        unshare.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let (switch, _) = Rack::started(unshare);
        Some(Self { rack, switch })
    }

    /// The state folder as the switch sees it.
    fn state(&self) -> PathBuf {
        let state = self.rack.folder().join("state");
        let below = state.strip_prefix("/").expect("absolute");
        Path::new("/proc").join(self.switch.0.id().to_string()).join("root").join(below)
    }

    /// Runs a script where the switch runs.
    fn beside(&self, script: &str) {
        let pid = self.switch.0.id().to_string();
        let mut nsenter = Command::new("nsenter");
        if !rustix::process::geteuid().is_root() {
            nsenter.args(["--user", "--preserve-credentials"]);
        }
        nsenter.args(["--target", &pid, "--mount", "sh", "-c", script]);
        let done = nsenter.arg(self.rack.folder().join("state")).status().expect("util-linux is there");
        assert!(done.success(), "{script}");
    }
}

#[test]
fn a_full_disk_below_the_state_folder_is_told_until_there_is_room() {
    let Some(on) = OnSmallDisk::start() else { return };
    on.rack.is_in_order();
    let filler = on.state().join("filler");
    std::fs::write(&filler, vec![1; 1 << 20]).expect_err("it holds 64 KiB");
    let told = on.rack.finds("state-folder-full");
    assert!(told["why"].as_str().is_some_and(|why| why.contains("No space left")), "{told}");
    assert!(told["why"].as_str().is_some_and(|why| why.ends_with("; 0 B of that disk are free")), "{told}");
    assert!(on.rack.text().contains("wrong: the state folder state of the switch and controller"));
    std::fs::remove_file(&filler).expect("it is there");
    on.rack.is_in_order();
}

#[test]
fn a_state_folder_that_becomes_read_only_is_told_until_it_can_be_written() {
    let Some(on) = OnSmallDisk::start() else { return };
    on.rack.is_in_order();
    on.beside("mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\"");
    let told = on.rack.finds("state-folder-read-only");
    assert!(told["why"].as_str().is_some_and(|why| why.contains("Read-only file system")), "{told}");
    on.beside("umount \"$0\"");
    on.rack.is_in_order();
}

#[test]
fn two_controllers_at_one_switch_are_told_by_both_until_one_is_stopped() {
    let mut rack = Rack::of(PLAN.split("[[worker]]").next().expect("the slice"));
    let (_switch, tables) = rack.listens(&["switch", "rack.toml", "--controller-apart"]);
    let (old, old_at) = rack.listens(&["controller", "rack.toml", "--tables", &tables]);
    rack.asks = vec!["--controller".to_owned(), old_at];
    rack.until("up", |status| status["switch"]["link"] == "up");
    rack.is_in_order();
    let (_new, new_at) = rack.listens(&["controller", "rack.toml", "--tables", &tables]);
    let told = rack.finds("controller-superseded");
    assert_eq!(told["severity"], "wrong");
    rack.asks[1] = new_at;
    let told = rack.finds("controller-second");
    let why = told["why"].as_str().expect("a sentence");
    assert!(why.starts_with("controller number 1 called from 127.0.0.1 "), "{told}");
    old.ends_well();
    rack.is_in_order();
}

#[test]
fn a_switch_that_is_gone_is_told_until_it_is_back() {
    let mut rack = Rack::of(PLAN.split("[[worker]]").next().expect("the slice"));
    let (switch, tables) = rack.listens(&["switch", "rack.toml", "--controller-apart"]);
    let (_controller, at) = rack.listens(&["controller", "rack.toml", "--tables", &tables]);
    rack.asks = vec!["--controller".to_owned(), at];
    rack.until("up", |status| status["switch"]["link"] == "up");
    switch.ends_well();
    let told = rack.finds("switch-lost");
    assert!(told["why"].as_str().is_some_and(|why| why.starts_with("for 5 s at least")), "{told}");
    let again = [
        "switch",
        "rack.toml",
        "--controller-apart",
        "--json",
        "--control",
        &tables,
        "--listen",
        "127.0.0.1:0",
    ];
    let _switch = Rack::started(command(rack.folder(), &again));
    rack.until("back", |status| status["switch"]["link"] == "up");
    rack.is_in_order();
}
