//! Services that keep state, as real processes: what docs/manual/stateful.md says and types.

mod common;

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use common::{Running, command, example, example_of, lone_switch, sluice, stderr, stdout};
use sluice_net::client::{EndedTask, Outcome};
use sluice_net::{Client, ClientOptions, FaultPlan, TaskType};
use sluice_services::kv::codec::{
    KvSet, WriteNumber, decode_kv_get_reply, decode_kv_set_reply, encode_kv_get,
};
use sluice_services::kv::{KV_GET, KV_SET};

const KV: &str = include_str!("../../../../experiments/kv.toml");
const COUNTER: &str = include_str!("../../../run/net/examples/counter.toml");
const SHARDS: &str = include_str!("../../../run/net/examples/shards.toml");
/// What the pages' plans have in common, and two racks on one machine cannot.
const CONTROL: &str = "control = \"127.0.0.1:7400\"\n";
const FAULTS: &str = "loss=0.02,dup=0.02,reorder=0.02";
/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_mins(2);

/// A folder with this plan, on free ports and with our examples.
fn folder_with(plan: &str) -> tempfile::TempDir {
    assert!(plan.contains(CONTROL), "{plan}");
    let examples = example("counter_service");
    let examples = examples.parent().expect("a folder").display().to_string();
    let plan = plan.replace(CONTROL, "").replace("target/debug/examples", &examples);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    folder
}

/// Starts the rack of the plan; returns the address of its controller.
fn rack(folder: &Path) -> (Running, String) {
    let up = command(folder, &["up", "plan.toml"]).stderr(Stdio::piped()).spawn();
    let mut up = Running(up.expect("it starts"));
    let mut said = BufReader::new(up.0.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let at = said.find_map(|line| Some(line.split_once("controller is at ")?.1.to_owned()));
    (up, at.expect("it says where it is"))
}

/// A worker of the plan, as a process of its own.
fn worker(folder: &Path, controller: &str, name: &str) -> Running {
    let args = ["worker", "--plan", "plan.toml", "--name", name, "--controller", controller, "--quiet"];
    Running(command(folder, &args).stderr(Stdio::null()).spawn().expect("it starts"))
}

/// Tries until there is an answer: a worker that was started must register first.
fn answer(program: &Path, args: &[&str]) -> String {
    let patience = Instant::now() + PATIENCE;
    loop {
        let output = Command::new(program).args(args).output().expect("it starts");
        if output.status.success() {
            return stdout(&output).trim_end().to_owned();
        }
        assert!(Instant::now() < patience, "{}", stderr(&output));
    }
}

fn fails(program: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    stderr(&output)
}

#[test]
fn the_page_s_store_is_written_by_one_worker_and_read_by_others() {
    let folder = folder_with(KV);
    let (up, at) = rack(folder.path());
    let client = example_of("sluice-services", "kv_client");
    let asks = |words: &[&str]| answer(&client, &[&[at.as_str()], words].concat());
    assert_eq!(asks(&["set", "colour", "green"]), "write 1");
    assert_eq!(asks(&["set", "shape", "round"]), "write 2");
    assert_eq!(asks(&["get", "2", "colour", "shape", "size"]), "green\nround\n(none)");
    assert_eq!(asks(&["scan", "2", "1"]), "colour\n(more)");
    assert_eq!(asks(&["scan", "2", "1", "colour"]), "shape");
    assert_eq!(asks(&["del", "colour", "size"]), "write 3, 1 removed");
    assert_eq!(asks(&["get", "3", "colour"]), "(none)");
    let ahead = fails(&client, &[&at, "get", "4", "shape"]);
    assert!(ahead.contains("no write has the number 4 here: the last one"), "{ahead}");
    up.ends_well();
}

#[test]
fn a_second_writer_is_refused_in_one_line_and_so_are_roles_that_make_no_sense() {
    let folder = folder_with(KV);
    let (_switch, at) = lone_switch(folder.path());
    let mut first = worker(folder.path(), &at, "writer");
    let client = example_of("sluice-services", "kv_client");
    answer(&client, &[&at, "set", "key", "value"]);
    let common = ["--controller", &at, "--slice", "kv-write", "--db", "out/store"];
    let run = |args: &[&str]| sluice(folder.path(), &[&["worker"], args, &common].concat());
    let refused = |output: &Output| {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
        stderr(output)
    };
    let said = refused(&run(&["kv", "--role", "writer"]));
    assert!(said.contains("has a writer: stop that one") && said.lines().count() == 1, "{said}");
    assert!(first.runs());
    let said = refused(&run(&["kv", "--role", "reader"]));
    assert!(said.contains("no slice") || said.contains("kv-write"), "{said}");
    assert!(refused(&run(&["kv"])).contains("--role"));
    assert!(refused(&run(&["kv", "--role", "reader", "--sync"])).contains("--sync is for the writer"));
    assert!(refused(&run(&["hold", "--role", "reader"])).contains("`hold` has neither"));
    first.ends_well();
}

#[test]
fn a_reader_without_a_store_gives_up_after_a_while_and_says_what_is_missing() {
    let folder = folder_with(KV);
    let args = ["worker", "kv", "--role", "reader", "--db", "nowhere", "--controller", "127.0.0.1:9"];
    let output = sluice(folder.path(), &args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no store at nowhere yet; waiting"), "{said}");
    assert!(said.contains("there is no store at nowhere (--db): start its writer (--role writer)"), "{said}");
}

#[test]
fn a_counter_in_one_worker_s_memory_starts_anew_when_the_worker_is_killed() {
    let folder = folder_with(COUNTER);
    let (_switch, at) = lone_switch(folder.path());
    let service = || {
        let mut service = Command::new(example("counter_service"));
        Running(
            service.args(["--controller", &at, "--name", "counter", "--quiet"]).spawn().expect("it starts"),
        )
    };
    let client = example("counter_client");
    let counts = |name: &str| answer(&client, &[&at, "1", name]);
    let first = service();
    assert_eq!(
        ["sparrow", "sparrow", "wren", "sparrow"].map(counts),
        ["shard 0: 1", "shard 0: 2", "shard 0: 1", "shard 0: 3"]
    );
    // Dropping it kills it with SIGKILL.
    drop(first);
    let _second = service();
    assert_eq!(counts("sparrow"), "shard 0: 1", "the state was in the process");
}

#[test]
fn a_rack_of_the_page_s_plan_counts_in_its_one_worker() {
    let folder = folder_with(COUNTER);
    let (up, at) = rack(folder.path());
    let client = example("counter_client");
    assert_eq!(
        ["sparrow"; 3].map(|name| answer(&client, &[&at, "1", name])).last().expect("three"),
        "shard 0: 3"
    );
    up.ends_well();
}

#[test]
fn shards_keep_their_own_state_and_one_that_is_mapped_elsewhere_begins_there_without_it() {
    let folder = folder_with(SHARDS);
    let (up, at) = rack(folder.path());
    let client = example("counter_client");
    let counts = |name: &str| answer(&client, &[&at, "4", name]);
    let names: Vec<String> = (0..40).map(|number| format!("bird-{number}")).collect();
    let shard = |said: &str| said.split(':').next().expect("a shard").to_owned();
    let firsts: Vec<String> = names.iter().map(|name| counts(name)).collect();
    for number in 0..4 {
        let of = firsts.iter().filter(|said| shard(said) == format!("shard {number}")).count();
        assert!(of > 2, "{of} of 40 names are in shard {number}");
    }
    assert!(firsts.iter().all(|said| said.ends_with(": 1")), "{firsts:?}");
    let of_shard = |number: usize| {
        let at = firsts.iter().position(|said| shard(said) == format!("shard {number}"));
        names[at.expect("there is one")].as_str()
    };
    let (stays, moves) = (of_shard(0), of_shard(3));
    assert_eq!(counts(moves), "shard 3: 2");

    let mut third = Command::new(example("counter_service"));
    let third = third.args(["--types", "4", "--slice", "c", "--name", "c", "--controller", &at, "--quiet"]);
    let third = Running(third.spawn().expect("it starts"));
    wait_for_worker(folder.path(), &at, "c");
    let mapped = sluice(folder.path(), &["map", "count-3", "c", "--controller", &at]);
    assert_eq!(mapped.status.code(), Some(0), "{}", stderr(&mapped));
    assert_eq!(counts(moves), "shard 3: 1", "its state stayed with the worker of slice b");
    assert_eq!(counts(stays), "shard 0: 2");
    let back = sluice(folder.path(), &["map", "count-3", "b", "--controller", &at]);
    assert_eq!(back.status.code(), Some(0), "{}", stderr(&back));
    assert_eq!(counts(moves), "shard 3: 3");
    third.ends_well();
    up.ends_well();
}

fn wait_for_worker(folder: &Path, controller: &str, name: &str) {
    let patience = Instant::now() + PATIENCE;
    let has_it = |status: &str| status.contains(&format!("\"name\":\"{name}\""));
    while !has_it(
        &stdout(&sluice(folder, &["status", "--json", "--controller", controller])).replace(' ', ""),
    ) {
        assert!(Instant::now() < patience, "worker {name} never registered");
    }
}

/// What was acknowledged last: the write, its key and its value.
#[derive(Clone, Copy, Debug, Default)]
struct Acknowledged {
    write: WriteNumber,
    value: u64,
}

const KEYS: u64 = 20;
const WRITES: u64 = 450;

/// One client's own packets are lost, repeated and swapped, too.
fn client(at: &str, name: &str) -> Client {
    let options = ClientOptions::new(at).expect("an address");
    let faults = FaultPlan::both(7, name, FAULTS.parse().expect("legal"));
    Client::connect(&ClientOptions { faults, ..options }).expect("it registers")
}

fn run(client: &Client, of: TaskType, bytes: &[u8]) -> EndedTask {
    client.submit(of, bytes, Duration::from_secs(30)).expect("it is open").wait()
}

/// Stores the value; tries again after a task that was refused. What is unknown may be there, or come yet.
fn store(client: &Client, value: u64) -> Option<WriteNumber> {
    let (mut bytes, mut request) = (vec![b'.'; 3_000], Vec::new());
    bytes[..8].copy_from_slice(&value.to_be_bytes());
    KvSet { key: &[(value % KEYS) as u8], value: &bytes }.encode(&mut request).expect("legal");
    loop {
        match run(client, KV_SET, &request).outcome {
            Outcome::Reply(reply) if reply.failed => panic!("{}", String::from_utf8_lossy(&reply.bytes)),
            Outcome::Reply(reply) => return Some(decode_kv_set_reply(&reply.bytes).expect("a number")),
            Outcome::Refused(_) => {}
            Outcome::Unknown(_) => return None,
        }
    }
}

/// The value of a key in a state that has this write; `None` if the task was refused or is unknown.
fn load(client: &Client, seen: WriteNumber, key: u64) -> Option<u64> {
    let mut request = Vec::new();
    encode_kv_get(seen, [&[key as u8][..]], &mut request).expect("legal");
    let Outcome::Reply(reply) = run(client, KV_GET, &request).outcome else { return None };
    assert!(!reply.failed, "{}", String::from_utf8_lossy(&reply.bytes));
    let value = decode_kv_get_reply(&reply.bytes, 1).expect("a reply")[0].expect("it was written");
    Some(u64::from_be_bytes(value[..8].try_into().expect("a number")))
}

/// Waits until so many values are acknowledged.
fn wait_for(last: &Mutex<Acknowledged>, value: u64) {
    let patience = Instant::now() + PATIENCE;
    while last.lock().expect("no panic").value < value {
        assert!(Instant::now() < patience, "{:?} is the last, not {value}", last.lock());
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn no_acknowledged_write_is_lost_and_no_read_is_too_old_while_writer_and_readers_are_killed() {
    let folder = folder_with(&format!("faults = \"{FAULTS}\"\n{KV}"));
    let (_switch, at) = lone_switch(folder.path());
    let start = |name: &str| worker(folder.path(), &at, name);
    let (mut writer, mut readers) = (start("writer"), [start("reader-1"), start("reader-2")]);
    let last = Mutex::new(Acknowledged::default());
    let mut acknowledged = HashMap::new();
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let (client, mut all) = (client(&at, "writing"), HashMap::new());
            for value in 1..=WRITES {
                if let Some(write) = store(&client, value) {
                    all.insert(value % KEYS, value);
                    *last.lock().expect("no panic") = Acknowledged { write, value };
                }
            }
            client.close().expect("each task has ended");
            all
        });
        let reading = ["one", "two"].map(|name| {
            let (at, last) = (&at, &last);
            scope.spawn(move || {
                let (client, mut reads) = (client(at, name), 0);
                loop {
                    let Acknowledged { write, value } = *last.lock().expect("no panic");
                    if value == 0 {
                        thread::sleep(Duration::from_millis(1));
                        continue;
                    }
                    let read = load(&client, write, value % KEYS);
                    assert!(read.is_none_or(|read| read >= value), "{read:?} is older than {value}");
                    reads += u64::from(read.is_some());
                    if value >= WRITES {
                        client.close().expect("each task has ended");
                        return reads;
                    }
                }
            })
        });
        for (at_value, kills_reader) in [(100, None), (150, Some(0)), (250, None), (300, Some(1))] {
            wait_for(&last, at_value);
            // What is replaced is killed with SIGKILL first; its successor waits for the end of its lease.
            match kills_reader {
                None => {
                    drop(writer);
                    writer = start("writer");
                }
                Some(number) => {
                    let name = format!("reader-{}", number + 1);
                    readers[number].0.kill().expect("it lives");
                    readers[number] = start(&name);
                }
            }
        }
        acknowledged = writing.join().expect("no write failed");
        assert!(reading.into_iter().all(|reads| reads.join().expect("no read was old") > 0));
    });
    let client = client(&at, "checking");
    let seen = last.lock().expect("no panic").write;
    assert!(acknowledged.len() as u64 == KEYS && seen.0 >= WRITES * 9 / 10, "{seen:?} {acknowledged:?}");
    for (key, value) in acknowledged {
        let read = load(&client, seen, key).expect("nobody is killed any more");
        assert!(read >= value, "{read} is older than {value}");
    }
    client.close().expect("each task has ended");
}
