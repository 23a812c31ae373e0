//! What may happen to the process of a client in C: a fork, signals, the rack's death, threads, `dlclose`.
//! And what may happen to owners in C++.

use std::process::Command;

use super::common::calls::wait_for_a_worker;
use super::common::{Installed, Running, SANITIZERS, here, lone_switch, ran, root};

/// A rack with a worker for type 9, and the program that lives through `way`.
fn lives_through(way: &str) {
    let Some(installed) = Installed::of("c") else { return };
    let (rack, controller) = lone_switch(&root().join("crates/run/net/examples/reverse.toml"));
    let service = installed.build("cases/service.c", "service-c", &[]);
    // The switch gives a worker the first slice that it can serve.
    let _worker = Running::start(installed.command(&service).args(["--controller", &controller, "--quiet"]));
    wait_for_a_worker(&controller, 9);
    let program = installed.build("cases/process.c", "process", &[]);
    let mut process = installed.command(&program);
    process.args([way, &controller, &rack.0.id().to_string()]);
    assert_eq!(ran(&mut process).stdout, b"well\n");
}

#[test]
fn a_child_is_told_to_connect_itself_and_does() {
    lives_through("forks");
}

#[test]
fn signals_interrupt_nothing_and_stay_with_the_application() {
    lives_through("interrupted");
}

#[test]
fn a_rack_that_dies_raises_no_signal() {
    lives_through("alone");
}

#[test]
fn threads_come_and_go_and_one_closes_the_client_under_the_others() {
    lives_through("threads");
}

#[test]
fn a_program_goes_on_after_its_service() {
    lives_through("outlives");
}

#[test]
fn an_owner_in_cxx_frees_what_it_owned_when_it_is_assigned() {
    let Some(installed) = Installed::of("cpp") else { return };
    let program = installed.build("cases/owners.cpp", "owners", &SANITIZERS);
    assert_eq!(ran(&mut installed.command(&program)).stdout, b"well\n");
}

#[test]
fn a_program_can_unload_the_library_while_its_threads_run() {
    let Some(installed) = Installed::of("c") else { return };
    let (_rack, controller) = lone_switch(&root().join("crates/run/net/examples/reverse.toml"));
    let program = installed.build("cases/unload.c", "unload", &["-ldl"]);
    let library = installed.prefix().join("lib/libsluice.so.0");
    assert_eq!(ran(installed.command(&program).arg(library).arg(controller)).stdout, b"well\n");
}

#[test]
fn a_program_can_be_linked_with_the_static_library_and_what_pkg_config_names() {
    let Some(installed) = Installed::of("c") else { return };
    let source = here().join("examples/reverse_service.c");
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("reverse_service");
    let mut build = Command::new("cc");
    build.arg("-std=c99").arg(source).arg("-o").arg(&program).args(installed.pkg_config(&["--cflags"]));
    let flags = installed.pkg_config(&["--static", "--libs"]);
    ran(build.args(flags.iter().map(|flag| flag.replace("-lsluice", "-l:libsluice.a"))));
    // Without its folder: there is no shared library to find.
    let ended = Command::new(program).args(["--quota", "99"]).output().expect("it starts");
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
}

#[test]
fn the_library_shows_its_own_functions_only() {
    let Some(installed) = Installed::of("c") else { return };
    let library = installed.prefix().join("lib/libsluice.so.0");
    let Ok(shown) = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output() else { return };
    let shown = String::from_utf8(shown.stdout).expect("names are text");
    let names: Vec<&str> = shown.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let header = std::fs::read_to_string(installed.prefix().join("include/sluice.h")).expect("it is there");
    assert!(names.len() > 20, "{shown}");
    for name in names {
        assert!(header.contains(&format!("{name}(")), "{name} is in the library and not in its header");
    }
}
