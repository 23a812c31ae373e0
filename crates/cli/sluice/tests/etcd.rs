//! Several controllers above two spines, of which one leads by a lease of Debian's etcd: they are killed,
//! stopped and ended, and etcd is, under a load that loses nothing. The commands are those of
//! `docs/manual/etcd.md`, on free ports.

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::controlled::role;
use common::page_rack::PageRack;
use common::{Running, command, free_tcp, json, sluice, stderr};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const PAGE: &str = include_str!("../../../../docs/manual/etcd.md");
const ALL: &str = "127.0.0.1:7401+127.0.0.1:7501,127.0.0.1:7402+127.0.0.1:7502";
const PORTS: [&str; 13] = [
    "127.0.0.1:2379",
    "127.0.0.1:7001",
    "127.0.0.1:7002",
    "127.0.0.1:7101",
    "127.0.0.1:7102",
    "127.0.0.1:7401",
    "127.0.0.1:7402",
    "127.0.0.1:7411",
    "127.0.0.1:7412",
    "127.0.0.1:7501",
    "127.0.0.1:7502",
    "127.0.0.1:7601",
    "127.0.0.1:7602",
];
const PATIENCE: Duration = Duration::from_mins(2);
/// The first address of each controller.
const CONTROLLERS: [&str; 2] = ["127.0.0.1:7401", "127.0.0.1:7501"];

struct Datacenter {
    page: PageRack,
    etcd: Running,
    others: Vec<Running>,
    controllers: [Option<Running>; 2],
}

impl Datacenter {
    /// Starts what the page starts; `None` if no etcd is here.
    fn start() -> Option<Self> {
        let page = PageRack::of(PAGE, &PORTS);
        let etcd = etcd(&page, &[])?;
        let mut all = Self { page, etcd, others: Vec::new(), controllers: [None, None] };
        let lines: Vec<_> = all.page.lines("sh stays").collect();
        for line in lines {
            let running = all.page.start(line);
            match CONTROLLERS.iter().position(|at| line.contains(&format!("--control {at}"))) {
                Some(controller) => all.controllers[controller] = Some(running),
                None => all.others.push(running),
            }
        }
        Some(all)
    }

    fn start_controller(&mut self, controller: usize) {
        let is_it = |line: &&str| line.contains(&format!("--control {}", CONTROLLERS[controller]));
        let line = self.page.lines("sh stays").find(is_it).expect("the page starts it");
        self.controllers[controller] = Some(self.page.start(line));
    }

    /// The status of one of a controller's spines, if it answers.
    fn status(&self, controller: usize, spine: usize) -> Option<Value> {
        let written = [["127.0.0.1:7401", "127.0.0.1:7402"], ["127.0.0.1:7501", "127.0.0.1:7502"]];
        let at = self.page.here(written[controller][spine]);
        let status = sluice(self.page.path(), &["status", "--json", "--controller", &at]);
        status.status.success().then(|| json(&status))
    }

    /// Waits until something is so.
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < end, "never {what}: {}", self.page.logs());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until this controller leads, at both spines, with a rack below each.
    fn leads(&self, controller: usize) {
        self.until(&format!("leads controller {controller}"), || {
            (0..2).all(|spine| {
                self.status(controller, spine).is_some_and(|status| {
                    let racks = status["workers"].as_array().map_or(0, Vec::len);
                    role(&status) == "leads" && status["switch"]["link"] == "up" && racks == 1
                })
            })
        });
    }

    fn waits(&self, controller: usize) {
        self.until(&format!("waits controller {controller}"), || {
            self.status(controller, 0).is_some_and(|status| role(&status) == "standby")
        });
    }

    /// The controller that leads.
    fn leader(&self) -> usize {
        let leads =
            |controller: &usize| self.status(*controller, 0).is_some_and(|status| role(&status) == "leads");
        self.until("a leader", || (0..2).any(|controller| leads(&controller)));
        let leader = (0..2).find(leads).expect("it leads");
        self.leads(leader);
        leader
    }

    /// A load that lasts for a while, once it has begun.
    fn load(&self) -> Child {
        let load =
            ["load", "--mix", "hold=1", "--rate", "100", "--warm-up", "0s", "--length", "8s", "--json"];
        let all = self.page.here(ALL);
        let args = [&load[..], &["--controller", &all]].concat();
        let started = command(self.page.path(), &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        thread::sleep(Duration::from_secs(1));
        started.expect("it starts")
    }

    fn signal(&self, controller: usize, signal: Signal) {
        let running = self.controllers[controller].as_ref().expect("it runs");
        kill_process(Pid::from_child(&running.0), signal).expect("it lives");
    }
}

/// Debian's etcd, started as the page says, with these arguments as well; `None` if none is here.
fn etcd(page: &PageRack, tls: &[&str]) -> Option<Running> {
    let line = page.lines("sh etcd").next().expect("the page starts it");
    let args = page.args(line).into_iter();
    let args = args.map(|arg| if tls.is_empty() { arg } else { arg.replace("http://", "https://") });
    let log = std::fs::File::options().create(true).append(true).open(page.path().join("etcd.log"));
    let peers = format!("http://{}", free_tcp());
    let started = Command::new("etcd")
        .args(args)
        .args(tls)
        .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
        .args(["--initial-cluster", &format!("default={peers}")])
        .current_dir(page.path())
        .stdout(Stdio::null())
        .stderr(log.expect("a file"))
        .spawn();
    let Ok(started) = started else {
        eprintln!("skipped: no etcd is here (scripts/setup --test unpacks it)");
        return None;
    };
    let running = Running(started);
    let at = page.here(PORTS[0]);
    let end = Instant::now() + PATIENCE;
    while std::net::TcpStream::connect(&at).is_err() {
        assert!(Instant::now() < end, "etcd does not listen");
        thread::sleep(Duration::from_millis(20));
    }
    Some(running)
}

#[test]
fn controllers_above_spines_and_etcd_die_under_load_and_nothing_is_lost() {
    let Some(mut all) = Datacenter::start() else { return };
    let first = all.leader();
    let other = 1 - first;
    all.waits(other);
    for line in all.page.lines("sh") {
        let args = all.page.args(line);
        let said = sluice(all.page.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(said.status.code(), Some(0), "{line}: {}", stderr(&said));
    }

    // The leader is killed.
    let load = all.load();
    drop(all.controllers[first].take());
    all.leads(other);
    all.page.lost_nothing(load);

    // A new one waits. Then the leader stands still, and goes on as a standby.
    all.start_controller(first);
    all.waits(first);
    let load = all.load();
    all.signal(other, Signal::STOP);
    all.leads(first);
    all.signal(other, Signal::CONT);
    all.waits(other);
    all.page.lost_nothing(load);

    // etcd is killed and comes back with what it stored. Meanwhile nobody leads, and tasks go on.
    let load = all.load();
    all.etcd.0.kill().expect("it lives");
    all.etcd.0.wait().expect("it ends");
    all.waits(first);
    all.waits(other);
    all.etcd = etcd(&all.page, &[]).expect("it was here before");
    let leader = all.leader();
    all.page.lost_nothing(load);

    // The leader is asked to end.
    let load = all.load();
    all.controllers[leader].take().expect("it runs").ends_well();
    all.leads(1 - leader);
    all.page.lost_nothing(load);
    for running in all.others.into_iter().rev() {
        running.ends_well();
    }
}

/// A certificate that the authority `ca` signs, and its key.
fn certificate(folder: &Path, name: &str) {
    let (key, file, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={name}"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "30", "-subj", &subject]);
    openssl.args(["-keyout", &key, "-out", &file]).current_dir(folder);
    if !name.starts_with("ca") {
        openssl.args(["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"]);
        openssl.args(["-addext", "subjectAltName=IP:127.0.0.1"]);
    }
    let made = openssl.output().expect("openssl is there");
    assert!(made.status.success(), "{}", stderr(&made));
}

#[test]
fn an_etcd_with_certificates_lets_in_who_shows_one_and_others_are_told_why_in_one_line() {
    let page = PageRack::of(PAGE, &PORTS);
    for name in ["ca", "ca-2", "etcd", "mine"] {
        certificate(page.path(), name);
    }
    let tls = ["--cert-file", "etcd.pem", "--key-file", "etcd.key", "--client-cert-auth"];
    let Some(_etcd) = etcd(&page, &[&tls[..], &["--trusted-ca-file", "ca.pem"]].concat()) else { return };
    let at = page.here(PORTS[0]);
    let run =
        ["controller", "spines.toml", "--tables", "127.0.0.1:9,127.0.0.1:9", "--control", "127.0.0.1:0"];
    let with = |etcd: &str, how: &[&str]| {
        [&run[..], &["--etcd", etcd], how].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (plain, https) = (format!("http://{at}"), format!("https://{at}"));
    let mine = ["--etcd-ca", "ca.pem", "--etcd-identity", "mine.pem", "mine.key"];
    let wrong = [
        (with(&plain, &[]), "--etcd-ca if it wants TLS"),
        (with(&https, &[]), "https needs the authority"),
        (with(&at, &["--etcd-ca", "ca.pem"]), "certificate"),
        (with(&at, &["--etcd-ca", "ca-2.pem"]), "certificate"),
        (with(&plain, &mine), "https"),
        (with(&at, &["--etcd-ca", "none.pem"]), "none.pem"),
        (with("no-such-host.invalid:2379", &[]), "no-such-host.invalid"),
        (with("", &[]), "--etcd has an empty address"),
        (with("udp://127.0.0.1:2379", &[]), "neither http nor https"),
    ];
    for (args, part) in wrong {
        let said = sluice(page.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
        let text = stderr(&said);
        assert_eq!((said.status.code(), text.lines().count()), (Some(2), 1), "{args:?}: {text}");
        assert!(text.contains(part), "{args:?}: {text}");
    }

    // The first member does not answer.
    let args = with(&format!("https://127.0.0.1:9,{https}"), &mine);
    let mut started = command(page.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
    let mut controller = Running(started.stderr(Stdio::piped()).spawn().expect("it starts"));
    let log = std::io::BufReader::new(controller.0.stderr.take().expect("piped"));
    let mut lines = std::io::BufRead::lines(log).map_while(Result::ok);
    assert!(lines.any(|line| line.contains("lease-held")), "etcd lets it in");
    controller.ends_well();
}
