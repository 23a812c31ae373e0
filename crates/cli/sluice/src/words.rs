//! The ends of help texts: examples (a test runs each of them), words, and exit codes.

use sluice_net::exit::{self, Kind};

pub(crate) const UP: &str = "\
Examples:
  sluice up                                    # the demo: 8 workers under load, with kills
  sluice up experiments/demo.toml --rate 500 --length 5s
  sluice up --threshold 'get.p99<50ms'         # decides the exit code
  sluice up --policy rain:adaptive             # another scheduler: see sluice policies
  sluice up --sweep 0.3,0.6 --policy rain:2,racksched   # live beside the simulator
  sluice up --sweep out/live/sweep.toml                 # the same again";

pub(crate) const SWITCH: &str = "\
Examples:
  sluice switch experiments/demo.toml   # then, in other terminals:
  sluice worker rocksdb --slice get
  sluice load --mix get=1 --rate 100 --length 3s
  sluice status";

pub(crate) const CONTROLLER: &str = "\
Examples:
  sluice switch --controller-apart --control 127.0.0.1:7401   # then, in other terminals:
  sluice controller --tables 127.0.0.1:7401
  sluice status                          # asks the controller, at 127.0.0.1:7400";

pub(crate) const SERVER: &str = "\
Examples:
  sluice switch experiments/demo.toml   # then, in other terminals:
  sluice server --name here --memory /dev/shm/sluice/here
  sluice worker rocksdb --slice get --server here --memory /dev/shm/sluice/here --link-mtu 3400";

pub(crate) const DOCTOR: &str = "\
Examples:
  sluice doctor
  sluice doctor --state out/demo/state   # whether a rack could keep its state there";

pub(crate) const REPORT: &str = "\
Examples:
  sluice report out/mine/study.json      # of a study that was run with --out out/mine
  sluice report out/mine/study.json --out out/again
  sluice report out/one/study.json out/two/study.json --out out/both   # both in one page
  sluice report out/mine/study.json --figure p99 --size 3.3in --only rain:2,central   # for a paper
  sluice report out/mine/study.json --figure p99 --slo 100us --out figures/p99.pdf
  sluice report out/mine/study.json --figure list    # the names of all figures";

pub(crate) const DIFF: &str = "\
Examples:
  sluice diff out/mine/study.json out/again/study.json   # or the folders that have them
  sluice diff out/mine/study.json out/again/study.json --exit-code   # 3 if one differs";

pub(crate) const REPLAY_FAULT: &str = "\
Examples:
  sluice replay-fault 7                  # all that happens in the run of seed 7
  sluice replay-fault 7 --only worker:0  # what this worker does and suffers
  sluice replay-fault 7 --only task:0.3  # what becomes of client 0's task number 3

Each line says when, in microseconds of virtual time, who, to whom, and what. docs/manual/faults.md names
the promises.";

pub(crate) const WORKER: &str = "\
Examples:
  sluice worker rocksdb --slice get
  sluice worker rocksdb --slice scan --quota 1 --name scan-9";

pub(crate) const LOAD: &str = "\
Examples:
  sluice load --mix get=1 --rate 100 --length 3s
  sluice load --mix get=0.9,scan=0.1 --rate 500 --out out/load
  sluice load --mix get=1 --stages 100:5s,100..500:5s,500:5s --threshold 'get.p99<50ms'";

pub(crate) const WRITE: &str = "\
Examples:
  sluice write                                     # to itself, over the loopback
  sluice write --wait sleep --alpha none --threshold 2ms
  sluice write --listen 127.0.0.1:4791             # on one machine, and on another:
  sluice write 127.0.0.1:4791 --flows 8 --rate 50k --length 5s";

pub(crate) const STATUS: &str = "\
Examples:
  sluice status
  sluice status --json

Words:
  balance  of a slice: +5 are 5 tokens parked (workers wait), -5 are 5 tasks that wait for workers
  quotas   how many tokens the slice's workers have together, each its quota
  stale    at most so many tokens of workers that died or moved still wait among them, and count for nothing";

pub(crate) const DASHBOARD: &str = "\
Examples:
  sluice dashboard                       # then open http://127.0.0.1:7410/ in a browser
  sluice dashboard --listen 127.0.0.1:8000
  sluice dashboard --study out/mine      # of a study that is run with --out out/mine";

pub(crate) const GATEWAY: &str = "\
Examples:
  sluice gateway --resp 127.0.0.1:6379   # then: redis-cli SET hello world
  sluice gateway --http 127.0.0.1:8080   # then: curl --data stressed http://127.0.0.1:8080/reverse
  sluice gateway --grpc 127.0.0.1:5005 --grpc-map /words.Words/Reverse=9";

pub(crate) const MOVE: &str = "\
Examples:
  sluice move get-1 scan         # get-1 serves the slice scan from now on";

pub(crate) const MAP: &str = "\
Examples:
  sluice map get scan            # tasks of type get go to the slice scan
  sluice map get                 # they are refused";

pub(crate) const VERSUS: &str = "\
Examples:
  sluice versus --load 0.6 --dilate 200
  sluice versus out/versus/versus.toml --seed 2              # again, on other tasks
  sluice versus --policy rain:1,racksched --today reuseport";

pub(crate) const POLICIES: &str = "\
Examples:
  sluice policies
  sluice sweep rain:2 racksched:2,tracked central --load 0.5";

pub(crate) const RESOURCES: &str = "\
Examples:
  sluice resources               # a line for each scheduler
  sluice resources rain";

pub(crate) const PROFILE: &str = "\
Examples:
  sluice profile rocksdb --get 10 --scan 500 --out rocksdb.toml";

pub(crate) const SIM: &str = "\
Examples:
  sluice sim rain:2 --load 0.8
  sluice sim rain:1 --workload bimodal:10us:100us:0.9 --rate 500k,1M --json";

pub(crate) const SWEEP: &str = "\
Examples:
  sluice sweep rain:2 racksched:2,tracked central --load 0.3..0.9/0.1
  sluice sweep --policy rain:1,rain:2 --workload bimodal:10us:100us:0.5 --rate 200k..500k/100k";

pub(crate) const COMPARE: &str = "\
Examples:
  sluice compare rain:1 rain:2 --load 0.6
  sluice compare --policy rain:2,rain:adaptive,replay --workload exp:10us --load 0.7";

pub(crate) const THROUGHPUT: &str = "\
Examples:
  sluice throughput rain:2 jbsq:2 --slo 'p99<100us'
  sluice throughput --policy rain:1,rain:2 --workload exp:5us --slo 'slowdown_p99<10'";

pub(crate) const REPRODUCE: &str = "\
Examples:
  sluice reproduce --list
  sluice reproduce rain-6b
  sluice reproduce rain-6b --tasks 50k --replications 3 # quicker, less sharp";

pub(crate) const TABLE: &str = "\
Examples:
  sluice table
  sluice table --tasks 50k --replications 3 racksched:4 # one more line, less sharp
  sluice table --only rain:1 rain:3 --workloads exp,mix # two lines, on two of the workloads";

pub(crate) const FAULT_RUNS: &str = "\
Examples:
  sluice fault-runs --count 1000
  sluice fault-runs --policy r2p2:2 --count 1000
  sluice fault-runs --policy rain:1 --cores --count 1000
  sluice replay-fault 7          # what happened in the run of seed 7";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  sluice completions bash        # put it into /etc/bash_completion.d; the package has it already";

pub(crate) const MAN: &str = "\
Examples:
  sluice man out/man             # then: man -l out/man/sluice-switch.1";

/// The end of `sluice --help`.
pub(crate) fn of_all() -> String {
    format!(
        "Examples:\n  sluice up\n  sluice sweep rain:2 racksched central --load 0.3..0.9/0.1\n  sluice policies\n\n{WORDS}\n\n{}",
        exit_codes()
    )
}

const WORDS: &str = "\
Words:
  task    a request that one worker serves; it has a type, such as get or scan
  worker  a process that serves tasks, one after the other
  token   a worker's word to the switch that it has room for one more task
  slice   a queue in the switch, with the types of tasks that go there and its workers
  quota   how many tokens a worker has: the most tasks that are at it, served or waiting
  depth   the same number; with rain:adaptive it follows the load
  policy  a scheduler and its arguments: rain:2 is Rain where each worker has two tokens";

/// The table of exit codes.
fn exit_codes() -> String {
    let failures = Kind::ALL.map(|kind| (kind.code(), kind.means()));
    let rows = std::iter::once((0, exit::WELL)).chain(failures);
    let rows: Vec<String> = rows.map(|(code, means)| format!("  {code}  {means}")).collect();
    format!("Exit codes:\n{}", rows.join("\n"))
}
