//! Allowed dependencies: crates import each other downwards only, crates below `sim` and `net` do no I/O,
//! and external crates have an accepted licence and come from crates.io.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// The crates in layers, lowest first; a crate may import only crates of earlier rows.
const FLOORS: [&[&str]; 17] = [
    &["sluice-wire", "sluice-rendezvous", "sluice-outcome", "sluice-system", "sluice-ports"],
    &["sluice-units", "sluice-dice"],
    &["sluice-switch", "sluice-host", "sluice-control", "sluice-report"],
    &["sluice-conformance", "sluice-events", "sluice-cores", "sluice-log"],
    &["sluice-fabric", "sluice-stats", "sluice-nodes", "sluice-rpc", "sluice-netem", "sluice-metrics"],
    &["sluice-workload", "sluice-traces"],
    &["sluice-net", "sluice-etcd"],
    &["sluice-testbed"],
    &["sluice-models", "sluice-faults"],
    &["sluice-sim", "sluice-testrig"],
    &["sluice-services", "sluice-switchd", "sluice-study"],
    &["sluice-kernel", "sluice-gateway", "sluice-experiment"],
    &["sluice-bmv2", "sluice-python"],
    &["sluice-support"],
    &["sluice-dashboard"],
    &["sluice-launcher", "sluice-live"],
    &["sluice-rocksdb", "sluice-cli", "sluice-cases", "sluice-c"],
];

/// The folders of crates, and the folders that each may import.
const FOLDERS: [(&str, &[&str]); 7] = [
    ("core", &[]),
    ("run", &["core"]),
    ("sim", &["core"]),
    ("lab", &["core", "run", "sim"]),
    ("cli", &["core", "run", "sim", "lab"]),
    ("check", &["core", "run", "sim"]),
    ("bindings", &["core", "run", "sim", "lab"]),
];

/// Exceptions to the rule of folders. Simulations report outcomes, workloads are text files, and live runs
/// print as commands do.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("sluice-stats", "sluice-outcome"),
    ("sluice-workload", "sluice-system"),
    ("sluice-live", "sluice-support"),
];

/// Crates that the tests of hosts and the controller may use: the real switch program and virtual time, so
/// that no test needs a second implementation of either.
const LENT_TO_TESTS: [&str; 2] = ["sluice-switch", "sluice-events"];

/// The crates that contain only state machines or formats.
const WITHOUT_IO: [&str; 6] =
    ["sluice-wire", "sluice-units", "sluice-dice", "sluice-switch", "sluice-host", "sluice-control"];

/// Crates that these may use. Each works without std, and none can do I/O.
const WITHOUT_STD: [&str; 9] = [
    "cfg-if",
    "crc32fast",
    "hashbrown",
    "libm",
    "ppv-lite86",
    "rand_chacha",
    "rand_core",
    "thiserror",
    "zerocopy",
];

/// Crates that only the switch, its controller and network namespaces need: BPF, netlink, the switch's own
/// crates and gRPC reflection. An application with a client or a service does not compile them.
const NOT_EMBEDDED: [&str; 8] = [
    "etcd-client",
    "aya",
    "netlink-packet-core",
    "netlink-packet-route",
    "netlink-sys",
    "sluice-switchd",
    "sluice-switch",
    "tonic-reflection",
];

const LICENCES: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Forbidden crates, also as indirect dependencies, and their replacements.
const BANNED: [(&str, &str); 5] = [
    ("openssl", "rustls"),
    ("openssl-sys", "rustls"),
    ("native-tls", "rustls"),
    ("async-std", "tokio, off the packet path"),
    ("serde_yaml", "toml"),
];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn imports_run_downwards() {
    let metadata = metadata("Cargo.toml");
    let mut wrong = Vec::new();
    for package in list(&metadata["packages"]).filter(|package| package["source"].is_null()) {
        let name = text(&package["name"]);
        for dependency in list(&package["dependencies"]) {
            let (imported, is_for_tests) = (text(&dependency["name"]), dependency["kind"] == "dev");
            let is_lent = is_for_tests && LENT_TO_TESTS.contains(&imported);
            if imported.starts_with("sluice-") && !is_lent && floor(imported) >= floor(name) {
                wrong.push(format!("{name} imports {imported}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_folder_imports_only_folders_that_it_may() {
    let metadata = metadata("Cargo.toml");
    let ours = || list(&metadata["packages"]).filter(|package| package["source"].is_null());
    let folders: BTreeMap<&str, &str> =
        ours().map(|package| (text(&package["name"]), folder(package))).collect();
    let (mut wrong, mut idle) = (Vec::new(), EXCEPTIONS.to_vec());
    for package in ours() {
        let (name, from) = (text(&package["name"]), folder(package));
        let normal = list(&package["dependencies"]).filter(|dependency| dependency["kind"].is_null());
        for imported in normal.map(|dependency| text(&dependency["name"])) {
            let may = FOLDERS.iter().find(|(folder, _)| *folder == from).map_or(&[][..], |(_, may)| *may);
            let Some(to) = folders.get(imported).copied() else { continue };
            idle.retain(|exception| *exception != (name, imported));
            if to != from && !may.contains(&to) && !EXCEPTIONS.contains(&(name, imported)) {
                wrong.push(format!("{name}, in {from}, imports {imported}, in {to}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(idle.is_empty(), "no exception any more: {idle:#?}");
}

#[test]
fn what_has_no_io_is_built_on_nothing_that_has() {
    let metadata = metadata("Cargo.toml");
    for name in WITHOUT_IO {
        for (used, version) in linked_with(name) {
            assert!(
                WITHOUT_IO.contains(&used.as_str()) || WITHOUT_STD.contains(&used.as_str()),
                "{name} is built on {used}, which is not on the list of crates that do without std"
            );
            let package = list(&metadata["packages"])
                .find(|package| package["name"] == used && package["version"] == version)
                .unwrap();
            let library = std::fs::read_to_string(library(package)).unwrap();
            assert!(library.contains("no_std"), "{used}, under {name}, needs std");
        }
    }
}

#[test]
fn only_its_own_program_needs_rocksdb() {
    let is_library = |(name, _): &(String, String)| name == "librocksdb-sys";
    assert!(linked_with("sluice-rocksdb").iter().any(is_library));
    let built_on_it: Vec<&str> = FLOORS
        .into_iter()
        .flatten()
        .copied()
        .filter(|name| *name != "sluice-rocksdb" && linked_with(name).iter().any(is_library))
        .collect();
    assert!(built_on_it.is_empty(), "{built_on_it:?}");
}

#[test]
fn what_an_application_embeds_is_built_without_a_racks_middle() {
    let embedded = linked_with("sluice-net");
    let found = NOT_EMBEDDED.iter().filter(|name| embedded.iter().any(|(used, _)| used == *name));
    assert!(embedded.len() > 1 && found.count() == 0, "{embedded:?}");
    assert!(
        linked_with("sluice-kernel").iter().filter(|(used, _)| NOT_EMBEDDED.contains(&used.as_str())).count()
            == NOT_EMBEDDED.len()
    );
}

/// So that each event that is logged has a name: `sluice_log::log!` asks for one.
#[test]
fn only_the_crate_for_logs_can_log() {
    let metadata = metadata("Cargo.toml");
    let ours = list(&metadata["packages"]).filter(|package| package["source"].is_null());
    let logs = |package: &&Value| {
        let names = list(&package["dependencies"]).map(|dependency| text(&dependency["name"]));
        names.into_iter().any(|name| ["tracing", "tracing-subscriber", "log"].contains(&name))
    };
    let found: Vec<&str> = ours.filter(logs).map(|package| text(&package["name"])).collect();
    assert_eq!(found, ["sluice-log"], "log with sluice_log::log!, whose table names all events");
}

/// Counts as the command beside the number does.
#[test]
fn the_architecture_says_from_how_many_crates_an_application_is_built() {
    let architecture = sluice_house::root().join("ARCHITECTURE.md");
    let tree = ["tree", "--locked", "-p", "sluice-net", "-e", "normal", "--prefix", "none", "--no-dedupe"];
    let counted = cargo(&tree).lines().map(str::to_owned).collect::<BTreeSet<_>>().len();
    let told = format!("An application's client or service is built from {counted} crates");
    assert!(std::fs::read_to_string(architecture).unwrap().contains(&told), "{told}");
}

/// A crate of somebody else, in a folder of its own.
#[test]
fn another_crate_can_depend_on_the_library_as_the_manual_says() {
    let page = std::fs::read_to_string(sluice_house::root().join("docs/manual/own-service.md")).unwrap();
    let (_, told) = page.split_once("```toml\n[dependencies]\n").expect("it says how");
    let (dependency, _) = told.split_once("```").unwrap();
    let net = sluice_house::root().join("crates/run/net").canonicalize().unwrap();
    let dependency = dependency.replace("../sluice/crates/run/net", net.to_str().unwrap());
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("another-crate");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("src/main.rs"), "fn main() {}\n").unwrap();
    std::fs::copy(sluice_house::root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let package = "[package]\nname = \"another\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n";
    std::fs::write(folder.join("Cargo.toml"), package.to_owned() + &dependency).unwrap();
    let manifest = folder.join("Cargo.toml");
    // Downloads what the lock file names. Offline, cargo takes these versions and looks for no later ones.
    metadata("Cargo.toml");
    let tree = cargo(&["tree", "--offline", "--prefix=none", "--manifest-path", manifest.to_str().unwrap()]);
    assert!(tree.lines().any(|line| line.starts_with("sluice-net v")), "{tree}");
}

#[test]
fn what_a_run_came_to_needs_serde_only_and_who_tells_it_needs_nothing_that_runs() {
    let ours = |name: &str| {
        let linked = linked_with(name).into_iter().map(|(used, _)| used);
        linked.filter(|used| used.starts_with("sluice-")).collect::<Vec<_>>()
    };
    let outcome = linked_with("sluice-outcome").into_iter().map(|(used, _)| used);
    assert_eq!(outcome.collect::<Vec<_>>(), ["serde", "serde_core", "sluice-outcome"]);
    assert_eq!(ours("sluice-report"), ["sluice-outcome", "sluice-report"]);
}

#[test]
fn every_dependency_has_a_licence_that_we_accept() {
    for metadata in [metadata("Cargo.toml"), metadata("fuzz/Cargo.toml")] {
        for package in list(&metadata["packages"]).filter(|package| !package["source"].is_null()) {
            let licence = package["license"].as_str().unwrap_or("");
            assert!(accepts(licence), "{}: licence `{licence}`", package["name"]);
        }
    }
}

#[test]
fn every_dependency_comes_from_crates_io() {
    for metadata in [metadata("Cargo.toml"), metadata("fuzz/Cargo.toml")] {
        for package in list(&metadata["packages"]) {
            let source = package["source"].as_str();
            let ours = source.is_none() && text(&package["name"]).starts_with("sluice-");
            assert!(ours || source == Some(CRATES_IO), "{} comes from {source:?}", package["name"]);
        }
    }
}

#[test]
fn no_banned_crate_comes_in() {
    let metadata = metadata("Cargo.toml");
    for package in list(&metadata["packages"]) {
        let banned = BANNED.iter().find(|(name, _)| package["name"] == *name);
        assert!(banned.is_none(), "banned crate, and what to use instead: {banned:?}");
    }
}

#[test]
fn a_licence_with_a_choice_is_accepted_for_its_best_branch() {
    assert!(accepts("GPL-3.0 OR (MIT AND Unicode-3.0)"));
    assert!(accepts("MIT/Apache-2.0"));
    assert!(!accepts("MIT AND GPL-3.0"));
    assert!(!accepts("(MIT OR ISC) AND GPL-3.0"));
    assert!(!accepts(""));
}

fn metadata(manifest: &str) -> Value {
    let platform = "--filter-platform=x86_64-unknown-linux-gnu";
    let output =
        cargo(&["metadata", "--format-version=1", "--locked", platform, "--manifest-path", manifest]);
    serde_json::from_str(&output).unwrap()
}

/// The output of cargo, run in the repository's root.
fn cargo(arguments: &[&str]) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn floor(name: &str) -> usize {
    FLOORS.iter().position(|floor| floor.contains(&name)).unwrap_or(FLOORS.len())
}

/// The root file of a package's library.
fn library(package: &Value) -> &str {
    let is_library = |target: &&Value| list(&target["kind"]).any(|kind| kind == "lib" || kind == "rlib");
    text(&list(&package["targets"]).find(is_library).unwrap()["src_path"])
}

/// Names and versions of all crates that are linked into one of ours when it is built alone.
fn linked_with(name: &str) -> BTreeSet<(String, String)> {
    let tree =
        cargo(&["tree", "--locked", "--edges=normal,no-proc-macro", "--prefix=none", "--package", name]);
    let pairs = tree.lines().filter_map(|line| line.split_once(" v"));
    let version = |rest: &str| rest.split(' ').next().unwrap_or_default().to_owned();
    pairs.map(|(name, rest)| (name.to_owned(), version(rest))).collect()
}

/// Whether the accepted licences satisfy an SPDX expression.
fn accepts(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any_of(&mut words) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>) -> bool {
    let mut accepted = all_of(words);
    while words.next_if_eq(&"OR").is_some() {
        accepted |= all_of(words);
    }
    accepted
}

fn all_of(words: &mut Words<'_>) -> bool {
    let mut accepted = one_of(words);
    while words.next_if_eq(&"AND").is_some() {
        accepted &= one_of(words);
    }
    accepted
}

fn one_of(words: &mut Words<'_>) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let accepted = any_of(words);
        return words.next() == Some(")") && accepted;
    }
    let name = words.next().unwrap_or_default();
    if words.next_if_eq(&"WITH").is_some() {
        let exception = words.next().unwrap_or_default();
        return LICENCES.contains(&format!("{name} WITH {exception}").as_str());
    }
    LICENCES.contains(&name)
}

/// The folder below `crates` that contains a crate of ours.
fn folder(package: &Value) -> &str {
    let (_, inside) = text(&package["manifest_path"]).split_once("/crates/").expect("it is ours");
    inside.split('/').next().expect("a folder")
}
