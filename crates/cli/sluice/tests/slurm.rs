//! `sluice sweep --slurm`: the script's array tasks, run by hand, and what becomes of one that is killed.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use common::{json, sluice, stderr, stdout};

/// A shell would split and expand some of these words.
const SWEEP: [&str; 9] =
    ["sweep", "rain:1", "central", "--load", "0.3, 0.6", "--replications", "3", "--workload", "exp:10us"];
const ARRAY: &str = "an array's $HOME, 100%";

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [args, more].concat()
}

/// The script, as Slurm runs it: a copy in another place, in another folder.
fn script(folder: &Path) -> Command {
    let copy = folder.join("spool.sh");
    fs::copy(folder.join(ARRAY).join("sweep.sbatch"), &copy).expect("the script is there");
    let mut command = Command::new("bash");
    command.arg(copy).current_dir("/").env_remove("SLURM_ARRAY_TASK_ID").stdin(Stdio::null());
    command
}

fn array_task(folder: &Path, number: &str) -> Output {
    script(folder).env("SLURM_ARRAY_TASK_ID", number).output().expect("bash runs")
}

fn merge(folder: &Path) -> Output {
    script(folder).args(["merge", "--json"]).output().expect("bash runs")
}

#[test]
fn array_tasks_and_a_merge_give_the_bytes_of_one_machine_also_after_one_was_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let tasks = ["--tasks", "600k"];
    let written =
        json(&sluice(at, &with(&with(&SWEEP, &tasks), &["--slurm", ARRAY, "--array-tasks", "3", "--json"])));
    assert_eq!((&written["array_tasks"], &written["runs"]), (&3.into(), &12.into()));
    let text = fs::read_to_string(at.join(ARRAY).join("sweep.sbatch")).expect("it is written");
    assert!(text.starts_with("#!/bin/bash\n#SBATCH") && text.contains("#SBATCH --array=0-2\n"), "{text}");
    assert!(text.contains("/an array's $HOME, 100%%/slurm-%a.txt\"\n#"), "{text}");

    // One array task is killed when it has kept a replication.
    let mut killed =
        script(at).env("SLURM_ARRAY_TASK_ID", "1").stderr(Stdio::null()).spawn().expect("bash runs");
    let journal = at.join(ARRAY).join("parts/1-of-3/journal.jsonl");
    let kept = || fs::read_to_string(&journal).unwrap_or_default().lines().count();
    for _ in 0..60_000 {
        if kept() >= 2 {
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    killed.kill().expect("it still runs");
    killed.wait().expect("it was killed");
    // Where the kill came late, the last run is taken away, as if it had come in time.
    let text = fs::read_to_string(&journal).expect("it has begun");
    if let Some((last, _)) = text.match_indices('\n').nth(3).filter(|(last, _)| last + 1 < text.len()) {
        fs::write(&journal, &text[..=last]).expect("it can be written");
    }
    let kept = kept();
    assert!((2..5).contains(&kept), "it was not killed in the middle: {kept}");
    for number in ["0", "2"] {
        let ran = array_task(at, number);
        assert!(ran.status.success() && stdout(&ran).is_empty(), "{}", stderr(&ran));
    }

    let early = merge(at);
    let said = stderr(&early);
    assert_eq!(early.status.code(), Some(2), "{said}");
    assert!(
        said.contains(&format!("{} runs are missing, of array tasks 1: run these again", 5 - kept)),
        "{said}"
    );
    assert!(said.contains("sbatch --array=1 ") && said.lines().count() == 1, "{said}");

    let ran = array_task(at, "1");
    assert!(stderr(&ran).contains(&format!("part 1/3: {} runs to do", 5 - kept)), "{}", stderr(&ran));
    let merged = merge(at);
    assert!(merged.status.success(), "{}", stderr(&merged));
    let alone = sluice(at, &with(&with(&SWEEP, &tasks), &["--json", "--out", "alone"]));
    assert_eq!(stdout(&merged), stdout(&alone));
    for name in ["study.json", "study.csv", "points.csv", "report.html"] {
        let read = |of: &str| fs::read_to_string(at.join(of).join(name)).expect("it is written");
        assert_eq!(read(ARRAY), read("alone"), "{name}");
    }
}

#[test]
fn what_is_wrong_with_parts_is_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let refused = |more: &[&str]| {
        let output = sluice(at, &with(&SWEEP, more));
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        stderr(&output)
    };
    assert!(refused(&["--part", "3/3", "--out", "o"]).contains("part `3/3` is none: write 0/20"));
    assert!(refused(&["--part", "0/3"]).contains("--out"));
    assert!(refused(&["--slurm", "o", "--out", "o"]).contains("cannot be used with"));
    assert!(refused(&["--slurm", "o", "--export-markdown", "t.md"]).contains("cannot be used with"));
    assert!(refused(&["--slurm", "a\"b"]).contains("for which Slurm's lines of a script have no place"));
    assert!(refused(&["--merge", "3", "--out", "o", "--fresh"]).contains("cannot be used with"));
    assert!(refused(&["--array-tasks", "3"]).contains("--slurm"));
    assert!(refused(&["--merge", "2", "--out", "o"]).contains("12 runs are missing, of array tasks 0,1"));
    // Parts of another question are not taken.
    let part = sluice(at, &with(&SWEEP, &["--tasks", "3k", "--part", "0/1", "--out", "o"]));
    assert!(part.status.success(), "{}", stderr(&part));
    assert!(refused(&["--tasks", "6k", "--merge", "1", "--out", "p"]).contains("runs are missing"));
    fs::rename(at.join("o/parts"), at.join("p/parts")).expect("both are there");
    assert!(
        refused(&["--tasks", "6k", "--merge", "1", "--out", "p"]).contains("holds another run: its length")
    );
    // A script without Slurm says what it needs.
    let written = sluice(at, &with(&SWEEP, &["--slurm", ARRAY]));
    assert!(stdout(&written).contains("12 runs in 12 array tasks: sbatch "), "{}", stdout(&written));
    let ran = script(at).output().expect("bash runs");
    assert!(
        !ran.status.success() && stderr(&ran).contains("sbatch sets it; or set it to 0 to 11"),
        "{}",
        stderr(&ran)
    );
}
