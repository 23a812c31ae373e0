//! What the log of a switch says of its callers: each `sluice move` and `sluice map` with the certificate
//! that asked, and who was refused and why (`docs/manual/two-machines.md`).

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{ChildStderr, ChildStdout, Command, Output, Stdio};

use common::{Running, hearing_hup, stderr, terminate};
use serde_json::Value;

const RACK: &str = r#"
name = "asked"
[[slice]]
name = "work"
types = ["hold"]
[[slice]]
name = "spare"
[[worker]]
name = "w"
count = 1
slice = "work"
service = "hold"
"#;
/// Callers by their certificates; each is its own authority.
const CALLERS: [(&str, &str); 2] =
    [("ann", "URI:sluice:operator/ann,URI:sluice:host/ann"), ("eve", "URI:sluice:reader/eve")];

#[test]
fn moves_and_maps_are_in_the_log_with_the_certificate_that_asked() {
    let folder = certified();
    let mut switch = Switch::start(folder.path(), &TLS);
    let worker = ["worker", "hold", "--name", "ann/w", "--slice", "work"];
    let worker = switch.as_caller(&worker, "ann");
    let worker = command(folder.path(), &strs(&worker)).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _worker = Running(worker.expect("sluice starts"));
    switch.hears("worker ann/w joined slice work");
    for (asked, succeeds) in [
        (&["move", "ann/w", "spare"][..], true),
        (&["map", "hold", "spare"], true),
        (&["map", "hold"], true),
        (&["move", "ann/w", "nowhere"], false),
    ] {
        switch.asks(asked, "ann", succeeds);
    }
    let log = switch.ends();
    let said: Vec<&str> = log
        .iter()
        .filter_map(|line| line.split_once(" the certificate of ann "))
        .map(|(_, said)| said)
        .collect();
    let [moved, mapped, unmapped, not_moved] = said[..] else { panic!("{log:#?}") };
    assert_eq!(moved, "moves worker ann/w to slice spare");
    assert!(mapped.starts_with("maps task type ") && mapped.ends_with(" to slice spare"), "{mapped}");
    assert!(unmapped.starts_with("maps task type ") && unmapped.ends_with(" to no slice"), "{unmapped}");
    let refused = "moves worker ann/w to slice nowhere, which was not done: there is no slice `nowhere`";
    assert!(not_moved.starts_with(refused), "{not_moved}");
}

#[test]
fn without_certificates_the_log_says_that_anybody_may_have_asked() {
    let folder = certified();
    let switch = Switch::start(folder.path(), &[]);
    let args = ["map", "hold", "spare", "--controller", &switch.control];
    let mapped = sluice(folder.path(), &args);
    assert!(mapped.status.success(), "{}", stderr(&mapped));
    let told = "INFO operator-asked somebody on this machine or network maps task type";
    let log = switch.ends();
    assert!(log.iter().any(|line| line.contains(told)), "{log:#?}");
}

/// The log is told once a second at most, so that each switch here refuses one caller.
#[test]
fn a_refused_caller_is_in_the_log_with_its_certificate_and_the_reason() {
    let folder = certified();
    let switch = Switch::start(folder.path(), &TLS);
    switch.asks(&["map", "hold", "spare"], "eve", false);
    let log = switch.ends();
    let told = "WARN call-refused the certificate of eve was refused: SetType takes a certificate with the \
                role operator";
    assert!(log.iter().any(|line| line.contains(told)), "{log:#?}");
    assert!(log.iter().all(|line| !line.contains("maps task type")), "it was not let in: {log:#?}");
}

#[test]
fn a_caller_without_a_certificate_is_in_the_log_with_its_address() {
    let folder = certified();
    let switch = Switch::start(folder.path(), &TLS);
    let args = ["move", "ann/w", "spare", "--controller", &switch.control, "--ca", "switch.pem"];
    assert!(!sluice(folder.path(), &args).status.success());
    let log = switch.ends();
    let told = "WARN call-refused a caller from 127.0.0.1 was refused: callers have to show a certificate \
                here";
    assert!(log.iter().any(|line| line.contains(told)), "{log:#?}");
}

const TLS: [&str; 5] = ["--tls", "switch.pem", "switch.key", "--client-ca", "callers.pem"];

/// A folder with a plan, the switch's certificate and those of all callers.
fn certified() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("rack.toml"), RACK).expect("written");
    certificate(folder.path(), "switch", "IP:127.0.0.1");
    let callers = CALLERS.map(|(name, says)| certificate(folder.path(), name, says));
    fs::write(folder.path().join("callers.pem"), callers.concat()).expect("written");
    folder
}

/// Makes a certificate as the manual does, and gives its text.
fn certificate(folder: &Path, name: &str, says: &str) -> String {
    let (key, file) = (format!("{name}.key"), format!("{name}.pem"));
    let alternative = format!("subjectAltName={says}");
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "30", "-keyout", &key, "-out", &file,
    ]);
    openssl.args(["-subj", &format!("/CN={name}"), "-addext", &alternative]).current_dir(folder);
    let made = openssl.output().expect("openssl is there");
    assert!(made.status.success(), "{}", stderr(&made));
    fs::read_to_string(folder.join(file)).expect("it was made")
}

fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// A switch whose log is read.
struct Switch<'f> {
    folder: &'f Path,
    process: Running,
    /// Stays open: what it prints at its end has somewhere to go.
    _out: BufReader<ChildStdout>,
    log: BufReader<ChildStderr>,
    control: String,
}

impl<'f> Switch<'f> {
    fn start(folder: &'f Path, tls: &[&str]) -> Self {
        let args = ["switch", "rack.toml", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--json"];
        let mut switch = command(folder, &[&args[..], &["--state", "state"], tls].concat());
        let mut process =
            switch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sluice starts");
        let log = BufReader::new(process.stderr.take().expect("piped"));
        let mut said = String::new();
        let mut out = BufReader::new(process.stdout.take().expect("piped"));
        out.read_line(&mut said).expect("readable");
        let listening: Value = serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}"));
        let control = listening["control"].as_str().expect("an address").to_owned();
        Self { folder, process: Running(process), _out: out, log, control }
    }

    /// The arguments of a caller with a certificate.
    fn as_caller(&self, args: &[&str], caller: &str) -> Vec<String> {
        let (file, key) = (format!("{caller}.pem"), format!("{caller}.key"));
        let how = ["--controller", &self.control, "--ca", "switch.pem", "--identity", &file, &key];
        args.iter().chain(&how).map(|arg| (*arg).to_owned()).collect()
    }

    fn asks(&self, args: &[&str], caller: &str, succeeds: bool) {
        let asked = sluice(self.folder, &strs(&self.as_caller(args, caller)));
        assert_eq!(asked.status.success(), succeeds, "{args:?} as {caller}: {}", stderr(&asked));
    }

    /// The next line of the log with `mark` in it.
    fn hears(&mut self, mark: &str) -> String {
        let mut lines = self.log.by_ref().lines().map(|line| line.expect("readable"));
        lines.find(|line| line.contains(mark)).unwrap_or_else(|| panic!("the log ended without `{mark}`"))
    }

    /// What its log says until it has ended.
    fn ends(mut self) -> Vec<String> {
        terminate(&self.process.0);
        let left = self.log.by_ref().lines().map(|line| line.expect("readable")).collect();
        self.process.ends_well();
        left
    }
}

/// `sluice` with these arguments in `folder`; no worker here needs a database.
fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = hearing_hup(env!("CARGO_BIN_EXE_sluice"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", folder.join("runtime"));
    command
}

fn sluice(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().expect("sluice starts")
}
