//! With a closed pipe the bench ends as usual; with a full disk it reports an error.

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").expect("Linux has it").into()
}

fn bench(word: &str, stdout: Stdio, stderr: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice-bench"));
    command.arg(word).stdout(stdout).stderr(stderr).output().expect("it starts")
}

#[test]
fn a_figure_that_nobody_reads_is_no_failure_and_one_without_room_is() {
    let unread = bench("memory", closed(), Stdio::piped());
    assert!(unread.status.success() && unread.stderr.is_empty(), "{unread:?}");
    let lost = bench("memory", full(), Stdio::piped());
    let why = String::from_utf8_lossy(&lost.stderr);
    assert_eq!(lost.status.code(), Some(1), "{why}");
    assert!(why.contains("cannot be written to stdout") && why.lines().count() == 1, "{why}");
}

#[test]
fn what_is_wrong_keeps_its_exit_code_where_nobody_hears_it() {
    for stderr in [closed(), full()] {
        assert_eq!(bench("nonsense", Stdio::null(), stderr).status.code(), Some(1));
    }
}
