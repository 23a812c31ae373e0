//! redis-benchmark and redis-cli as they are, and a worker that is killed under them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::rig::{KvRack, PATIENCE, connect, counted, exchange, has, text};

fn port(at: &str) -> &str {
    at.rsplit(':').next().expect("a port")
}

/// A reader is killed in the middle: no command fails, and the gateway counts as many as were sent.
#[test]
fn redis_benchmark_loses_nothing_when_a_worker_is_killed() {
    if !has("redis-benchmark") {
        return;
    }
    let mut rack = KvRack::start();
    let (gateway, said) = rack.gateway(&["--resp", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    let (at, metrics) = (text(&said, "resp"), text(&said, "metrics"));
    let requests = 20_000;
    let flags = ["-h", "127.0.0.1", "-p", port(&at), "-t", "set,get", "-c", "30", "-P", "4", "-r", "500"];
    let mut benchmark = Command::new("redis-benchmark");
    benchmark.args(flags).args(["-n", &requests.to_string(), "--csv"]);
    let mut benchmark = benchmark.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // The reads begin when all is written.
    let reads_begin = f64::from(requests) + 2_000.0;
    while counted(&metrics, "sluice_gateway_commands_total", &["resp", "done"]) < reads_begin
        && benchmark.try_wait().expect("it is ours").is_none()
    {
        thread::sleep(Duration::from_millis(5));
    }
    // Killed, not asked to end.
    drop(rack.workers.remove(1));
    let ended = benchmark.wait_with_output().expect("it ends");
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && !err.contains("rror") && !out.contains("rror"), "{out}\n{err}");
    assert!(out.contains("\"SET\"") && out.contains("\"GET\""), "{out}");
    let count = |outcome: &str| counted(&metrics, "sluice_gateway_commands_total", &["resp", outcome]);
    let done = 2.0 * f64::from(requests);
    assert!((count("\"done\"") - done).abs() < 0.1, "{}", count("\"done\""));
    for outcome in ["failed", "refused", "unknown", "malformed"] {
        assert!(count(outcome).abs() < 0.1, "{outcome}");
    }
    assert!((counted(&metrics, "sluice_gateway_latency_seconds_count", &[]) - done).abs() < 10.0);
    rack.start_store("reader");
    assert_eq!(exchange(&at, b"PING\r\n"), "+PONG\r\n");
    gateway.ends_well();
}

/// The writer is killed under pipelines of writes, and another one is started: what was acknowledged is
/// there, and of all else the gateway says that it did not run.
#[test]
fn no_acknowledged_write_is_lost_when_the_writer_is_killed_and_started_again() {
    const ROUNDS: usize = 60;
    const WRITES: usize = 20;
    let mut rack = KvRack::start();
    let (gateway, at) = rack.resp(&["--deadline", "60s"]);
    let mut stream = connect(&at);
    let mut replies = BufReader::new(stream.try_clone().expect("a descriptor"));
    let mut acknowledged = BTreeMap::new();
    for round in 0..ROUNDS {
        let pipeline: Vec<u8> =
            (0..WRITES).flat_map(|key| format!("SET key-{key} {round}\r\n").into_bytes()).collect();
        stream.write_all(&pipeline).expect("it is taken");
        if round == ROUNDS / 2 {
            drop(rack.workers.remove(0));
            rack.start_store("writer");
        }
        for key in 0..WRITES {
            let mut reply = String::new();
            replies.read_line(&mut reply).expect("it comes");
            if reply == "+OK\r\n" {
                acknowledged.insert(key, round);
            } else {
                assert!(reply.starts_with("-TRYAGAIN it did not run: "), "{reply}");
            }
        }
    }
    assert_eq!(acknowledged.len(), WRITES);
    for (key, round) in acknowledged {
        stream.write_all(format!("GET key-{key}\r\n").as_bytes()).expect("it is taken");
        let (mut length, mut value) = (String::new(), String::new());
        replies.read_line(&mut length).and_then(|_| replies.read_line(&mut value)).expect("it comes");
        assert_eq!(value.trim_end(), round.to_string(), "key-{key}");
    }
    gateway.ends_well();
}

#[test]
fn redis_cli_finds_its_way_about() {
    if !has("redis-cli") {
        return;
    }
    let rack = KvRack::start();
    let (_gateway, at) = rack.resp(&[]);
    let says = |args: &[&str], input: &str| {
        let mut cli = Command::new("redis-cli");
        cli.args(["-h", "127.0.0.1", "-p", port(&at)]).args(args);
        cli.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut cli = cli.spawn().expect("it starts");
        cli.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it is read");
        let ended = cli.wait_with_output().expect("it ends");
        String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned()
    };
    // A reader may be some milliseconds behind what another connection wrote.
    let comes = |args: &[&str], input: &str, is_so: &dyn Fn(&str) -> bool| {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = says(args, input);
            if is_so(&said) {
                return;
            }
            assert!(Instant::now() < until, "{args:?} {input}: {said}");
        }
    };
    for key in 0..30 {
        assert_eq!(says(&["set", &format!("user:{key}"), "x"], ""), "OK\n");
    }
    comes(&["--scan"], "", &|said| said.lines().count() == 30);
    comes(&["--scan", "--pattern", "user:1?"], "", &|said| said.lines().count() == 10);
    comes(&[], "mget user:1 nothing\n", &|said| said == "x\n\n");
    assert_eq!(says(&["-3", "get", "nothing"], ""), "\n");
    assert_eq!(says(&["-x", "set", "piped"], "from a pipe"), "OK\n");
    comes(&["get", "piped"], "", &|said| said == "from a pipe\n");
    let piped = says(&["--pipe"], "SET a 1\r\nSET b 2\r\n*2\r\n$3\r\nDEL\r\n$1\r\na\r\n");
    assert!(piped.contains("errors: 0, replies: 3"), "{piped}");
    assert!(says(&["incr", "a"], "").starts_with("ERR unknown command 'incr'"));
    assert!(says(&["command", "docs", "get"], "").contains("Returns the value of a key."));
    comes(&["info"], "", &|said| said.contains("connected_clients:1"));
}
