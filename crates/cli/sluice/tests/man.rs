//! Manual pages and completions: made from the command line, so they have all commands and all flags.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::{sluice, stderr, stdout};

/// The commands in `sluice --help`.
fn commands() -> Vec<String> {
    let help = stdout(&sluice(Path::new("."), &["--help"]));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    listed.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The flags in a help text.
fn flags(help: &str) -> BTreeSet<String> {
    let begins = |line: &str| line.trim_start().starts_with('-');
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | '=');
    let words = help.lines().filter(|line| begins(line)).flat_map(|line| line.split(ends));
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

#[test]
fn each_command_has_a_page_with_its_flags_and_examples() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("new/man");
    let output = sluice(folder.path(), &["man", "new/man"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let page = |name: &str| {
        let text = fs::read_to_string(pages.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
        text.replace("\\-", "-")
    };
    let all = page("sluice.1");
    assert!(all.contains(".SH WORDS") && all.contains(".SH EXIT CODES"), "{all}");
    let commands: Vec<String> = commands().into_iter().filter(|command| command != "help").collect();
    assert!(commands.len() > 20, "{commands:?}");
    for command in &commands {
        let page = page(&format!("sluice-{command}.1"));
        assert!(all.contains(&format!("sluice-{command}(1)")), "sluice.1 lacks {command}");
        assert!(page.contains(".SH EXAMPLES"), "sluice-{command}.1 has no examples");
        let help = stdout(&sluice(folder.path(), &[command, "--help"]));
        let missing: Vec<_> = flags(&help).into_iter().filter(|flag| !page.contains(&**flag)).collect();
        assert!(missing.is_empty(), "sluice-{command}.1 lacks {missing:?}");
    }
    assert_eq!(fs::read_dir(&pages).expect("readable").count(), commands.len() + 1);
}

#[test]
fn pages_that_cannot_be_written_are_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), "").expect("written");
    let output = sluice(folder.path(), &["man", "file"]);
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("manual pages cannot be written to file"), "{said}");
}

#[test]
fn bash_completes_commands_and_flags_and_every_shell_knows_all_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&sluice(folder.path(), &["completions", shell]));
        for command in commands() {
            assert!(script.contains(&command), "{shell} does not know {command}");
        }
        fs::write(folder.path().join(shell), script).expect("written");
    }
    let typed = r#"
        . ./bash
        COMP_WORDS=(sluice "$@") COMP_CWORD=$#
        _sluice sluice "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        echo "${COMPREPLY[@]}"
    "#;
    let completed = |words: &[&str]| {
        let mut bash = Command::new("bash");
        bash.args(["-c", typed, "bash"]).args(words).current_dir(folder.path());
        stdout(&bash.output().expect("there is bash")).trim().to_owned()
    };
    assert_eq!(completed(&["stat"]), "status");
    assert_eq!(completed(&["switch", "--controller-a"]), "--controller-apart");
}
