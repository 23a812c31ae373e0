//! Several controllers above two spines, of which one leads by a lease of Debian's etcd: they are killed,
//! stopped and ended, and etcd is, under a load that loses nothing. The commands are those of
//! `docs/manual/etcd.md`, on free ports.

mod common;

use std::cell::Cell;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::controlled::role;
use common::loaded::tasks;
use common::page_rack::PageRack;
use common::relay::{Cut, Relay};
use common::{Running, command, json, sluice, sluice_succeeds, stderr};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sluice_ports::free_address;

const PAGE: &str = include_str!("../../../../docs/manual/etcd.md");
const ALL: &str = "127.0.0.1:7401+127.0.0.1:7501,127.0.0.1:7402+127.0.0.1:7502";
const ETCD: &str = "127.0.0.1:2379";
const PORTS: [&str; 13] = [
    ETCD,
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
    /// The network between each controller and etcd.
    relays: [Relay; 2],
    others: Vec<Running>,
    controllers: [Option<Running>; 2],
}

impl Datacenter {
    /// Starts what the page starts; `None` if no etcd is here.
    fn start() -> Option<Self> {
        let page = PageRack::of(PAGE, &PORTS);
        let etcd = etcd(&page, &[])?;
        let etcd_at = page.here(ETCD).parse().expect("an address");
        let relays = [(); 2].map(|()| Relay::start(etcd_at));
        let mut all = Self { page, etcd, relays, others: Vec::new(), controllers: [None, None] };
        let lines: Vec<_> = all.page.lines("sh stays").collect();
        for line in lines {
            match CONTROLLERS.iter().position(|at| line.contains(&format!("--control {at}"))) {
                Some(controller) => all.start_controller(controller),
                None => all.others.push(all.page.start(line)),
            }
        }
        Some(all)
    }

    fn start_controller(&mut self, controller: usize) {
        let is_it = |line: &&str| line.contains(&format!("--control {}", CONTROLLERS[controller]));
        let line = self.page.lines("sh stays").find(is_it).expect("the page starts it");
        let (etcd, relay) = (self.page.here(ETCD), self.relays[controller].at().to_string());
        let args = self.page.args(line).iter().map(|arg| arg.replace(&etcd, &relay)).collect::<Vec<_>>();
        self.controllers[controller] = Some(self.page.start_args(&args));
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
        let found = Cell::new(None);
        self.until("a leader", || {
            let leads = |status: Value| role(&status) == "leads";
            found.set((0..2).find(|controller| self.status(*controller, 0).is_some_and(leads)));
            found.get().is_some()
        });
        let leader = found.get().expect("it was waited for");
        self.leads(leader);
        leader
    }

    /// A load that lasts for a while, once it has begun.
    fn load(&self) -> Child {
        // A machine that stands still for seconds is no reason to lose a task.
        let load = ["load", "--mix", "hold=1", "--rate", "100", "--warm-up", "0s", "--length", "8s"];
        let load = [&load[..], &["--deadline", "1min", "--patience", "2min", "--json"]].concat();
        let all = self.page.here(ALL);
        let args = [&load[..], &["--controller", &all]].concat();
        let leader = self.leader();
        let sums = || [0, 1].map(|spine| self.status(leader, spine).map_or(0, |status| tasks(&status)));
        let before = sums();
        let started = command(self.page.path(), &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        self.until("loaded", || sums().iter().zip(&before).all(|(now, before)| now > before));
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
    let path = page.path().join("etcd.log");
    let log = std::fs::File::options().create(true).append(true).open(&path);
    let ready = || std::fs::read_to_string(&path).map_or(0, |log| log.matches("ready to serve").count());
    let before = ready();
    let peers = format!("http://{}", free_address());
    let started = Command::new("etcd")
        .args(args)
        .args(tls)
        .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
        .args(["--initial-cluster", &format!("default={peers}")])
        // Passwords that are cheap to check, on a machine that does much else.
        .args(["--bcrypt-cost", "4"])
        .current_dir(page.path())
        .stdout(Stdio::null())
        .stderr(log.expect("a file"))
        .spawn();
    let Ok(started) = started else {
        eprintln!("skipped: no etcd is here (scripts/setup --test unpacks it)");
        return None;
    };
    let running = Running(started);
    let at = page.here(ETCD);
    let end = Instant::now() + PATIENCE;
    // It takes connections before it can answer.
    while ready() == before || std::net::TcpStream::connect(&at).is_err() {
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
        // A short load holds only if this machine does not stand still.
        let said = sluice_succeeds(all.page.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
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

#[test]
fn a_leader_that_is_cut_off_from_etcd_is_followed_and_waits_after_the_cut() {
    let Some(all) = Datacenter::start() else { return };
    let mut leader = all.leader();
    for cut in [Cut::Silent, Cut::Closed, Cut::Deaf] {
        let other = 1 - leader;
        all.waits(other);
        let load = all.load();
        all.relays[leader].cut(cut);
        all.leads(other);
        all.until("told", || {
            all.status(leader, 0).is_some_and(|status| {
                let mut found = status["findings"].as_array().into_iter().flatten();
                role(&status) == "standby" && found.any(|finding| finding["code"] == "etcd-lost")
            })
        });
        all.relays[leader].cut(Cut::None);
        all.page.lost_nothing(load);
        all.waits(leader);
        all.leads(other);
        leader = other;
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
    let at = page.here(ETCD);
    let run =
        ["controller", "spines.toml", "--tables", "127.0.0.1:9,127.0.0.1:9", "--control", "127.0.0.1:0"];
    let with = |etcd: &str, how: &[&str]| {
        [&run[..], &["--etcd", etcd], how].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (plain, https) = (format!("http://{at}"), format!("https://{at}"));
    let mine = ["--etcd-ca", "ca.pem", "--etcd-identity", "mine.pem", "mine.key"];
    let wrong = [
        (with(&plain, &[]), NOT_NOW, "--etcd-ca if it wants TLS"),
        (with(&https, &[]), NEVER, "https needs the authority"),
        (with(&at, &["--etcd-ca", "ca.pem"]), NOT_NOW, "certificate"),
        (with(&at, &["--etcd-ca", "ca-2.pem"]), NOT_NOW, "certificate"),
        (with(&plain, &mine), NEVER, "https"),
        (with(&at, &["--etcd-ca", "none.pem"]), NEVER, "none.pem"),
        (with("no-such-host.invalid:2379", &[]), NOT_NOW, "no-such-host.invalid"),
        (with("", &[]), NEVER, "--etcd has an empty address"),
        (with("udp://127.0.0.1:2379", &[]), NEVER, "neither http nor https"),
    ];
    for (args, code, part) in wrong {
        refused(&page, &args, code, part);
    }

    // The first member does not answer.
    let (controller, mut lines) = leader(&page, &with(&format!("https://127.0.0.1:9,{https}"), &mine));
    assert!(lines.any(|line| line.contains("lease-held")), "etcd lets it in");
    controller.ends_well();
}

/// The exit codes of a command that cannot work, and of one that may work later: service managers start the
/// second one again.
const NEVER: i32 = 2;
const NOT_NOW: i32 = 1;

/// Checks that a command ends with this code, and one line that has this part.
fn refused(page: &PageRack, args: &[String], code: i32, part: &str) {
    let said = sluice(page.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
    let text = stderr(&said);
    assert_eq!((said.status.code(), text.lines().count()), (Some(code), 1), "{args:?}: {text}");
    assert!(text.contains(part), "{args:?}: {text}");
}

/// Starts a controller; what it logs.
fn leader(page: &PageRack, args: &[String]) -> (Running, impl Iterator<Item = String> + use<>) {
    let mut started = command(page.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
    let mut controller = Running(started.stderr(Stdio::piped()).spawn().expect("it starts"));
    let log = std::io::BufReader::new(controller.0.stderr.take().expect("piped"));
    (controller, std::io::BufRead::lines(log).map_while(Result::ok))
}

/// Types the page's commands for etcd's users; false if no etcdctl is here.
fn make_users(page: &PageRack) -> bool {
    if Command::new("etcdctl").arg("version").output().is_err() {
        eprintln!("skipped: no etcdctl is here (scripts/setup --test unpacks it)");
        return false;
    }
    for line in page.lines("sh etcdctl") {
        let typed = Command::new("sh").args(["-c", &page.here(line)]).current_dir(page.path()).output();
        let typed = typed.expect("a shell");
        assert!(typed.status.success(), "{line}: {}", stderr(&typed));
    }
    true
}

#[test]
fn an_etcd_with_users_lets_in_who_knows_a_password_also_after_it_was_started_anew() {
    let page = PageRack::of(PAGE, &PORTS);
    let Some(mut etcd_process) = etcd(&page, &[]) else { return };
    let typed = page.args(page.lines("sh user").next().expect("the page starts it"));
    let without = |flags: &[&str]| {
        let mut rest = typed.clone();
        for flag in flags {
            let at = rest.iter().position(|arg| arg == flag).expect("it is there");
            rest.drain(at..at + 2);
        }
        rest
    };
    let with = |flag: &str, value: &str| [without(&[flag]), vec![flag.to_owned(), value.to_owned()]].concat();
    let says = |args: &[String], code, part| refused(&page, args, code, part);
    std::fs::write(page.path().join("sluice.password"), "of nobody").expect("written");
    says(&typed, NOT_NOW, "leave --etcd-user out");
    if !make_users(&page) {
        return;
    }
    std::fs::write(page.path().join("empty"), "").expect("written");
    std::fs::write(page.path().join("wrong"), "wrong\n").expect("written");
    says(&without(&["--etcd-user", "--etcd-password"]), NOT_NOW, "give --etcd-user");
    says(&with("--etcd-password", "wrong"), NOT_NOW, "authentication failed");
    says(&with("--etcd-password", "empty"), NEVER, "empty: its first line is empty");
    says(&with("--etcd-password", "none"), NEVER, "none: No such file");
    let plan = std::fs::read_to_string(page.path().join("spines.toml")).expect("the page has it");
    let other = plan.replace("name = \"spines\"", "name = \"others\"");
    std::fs::write(page.path().join("others.toml"), other).expect("written");
    let others = typed.iter().map(|arg| arg.replace("spines.toml", "others.toml")).collect::<Vec<_>>();
    says(&others, NOT_NOW, "let etcd's user read and write below /sluice/others/");

    // As the package's unit for several controllers starts them.
    let standby = [&typed[..], &["--standby".to_owned()]].concat();
    let (controller, mut lines) = leader(&page, &standby);
    assert!(lines.any(|line| line.contains("lease-held")), "etcd lets it in");
    // A new etcd knows nobody who logged in before.
    etcd_process.0.kill().expect("it lives");
    etcd_process.0.wait().expect("it ends");
    assert!(lines.any(|line| line.contains("etcd-lost")), "it misses etcd");
    etcd_process = etcd(&page, &[]).expect("it was here before");
    assert!(lines.any(|line| line.contains("etcd-back")), "it logs in again");
    controller.ends_well();
    drop(etcd_process);
}
