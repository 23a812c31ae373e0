//! Results on the page: a study that runs, from before it begins until it is complete, and two results beside
//! each other.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Browser, Running, WIDTHS, command, listening, text};

/// A study writes its files when a run ends, and so long after it began at the earliest.
const FIRST_WRITE: Duration = Duration::from_secs(3);
/// So many lines has the journal when the first of four points is complete.
const ENOUGH: usize = 25;
const STUDY: [&str; 12] = [
    "sweep",
    "rain:1",
    "central",
    "--load",
    "0.3,0.6",
    "--tasks",
    "400k",
    "--replications",
    "20",
    "--threads",
    "1",
    "--quiet",
];

#[test]
fn a_study_is_shown_as_it_grows_and_then_beside_another_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let Some(mut browser) = Browser::start(at) else {
        eprintln!("skipped: chromium is not installed here");
        return;
    };
    let (_page, url) = shows(at, &["--study", "grows"]);
    browser.set_size(1_400, 1_000);
    browser.open(&url);
    browser
        .wait_for("document.querySelector('.notice:not([hidden])')?.textContent.includes('study.json yet')");
    browser.keep_picture("study-none");
    let mut study = Paused::after_its_first_write(at, "grows");
    browser.wait_for("document.querySelector('.report svg')");
    let line = "document.querySelector('main .state').textContent";
    let said = browser.value(line);
    let said = said.as_str().expect("a line");
    assert!(said.starts_with("The study grows: points are still missing. Its last run ended "), "{said}");
    browser.fits("study-grows", &WIDTHS);
    browser.speaks_of(&[
        ("main", ""),
        ("navigation", "On this page"),
        ("heading", "Settings"),
        ("image", "p99 latency"),
    ]);
    // What a reader opened stays open, and keeps the focus, while the study grows around it.
    let numbers =
        "[...document.querySelectorAll('#numbers summary')].find((one) => /^rain:1 /.test(one.textContent))";
    let summary = browser.value(&format!("{numbers}.textContent"));
    browser.tab_to(summary.as_str().expect("the numbers of rain:1"));
    browser.press("Enter");
    browser.wait_for(&format!("{numbers}.parentElement.open"));
    study.goes_on_to_its_end();
    browser.wait_for(&format!("{line}.startsWith('The study is complete.')"));
    browser.wait_for(&format!("{numbers}.textContent.endsWith(' 2 points')"));
    assert_ne!(summary, browser.value(&format!("{numbers}.textContent")), "it has not grown");
    assert_eq!(browser.value(&format!("{numbers}.parentElement.open")), true, "it was closed");
    assert_eq!(browser.value(&format!("document.activeElement === {numbers}")), true, "the focus is lost");
    browser.speaks_of(&[("table", ""), ("rowheader", "")]);
    browser.fits("study-complete", &WIDTHS);

    let other = [&STUDY[..], &["--seed", "2", "--out", "other"]].concat();
    assert!(command(at, &other).stderr(Stdio::null()).status().expect("it runs").success());
    let (_beside, url) = shows(at, &["--results", "grows", "other"]);
    browser.open(&url);
    browser.wait_for("document.querySelectorAll('.report table').length > 0");
    browser.fits("beside", &WIDTHS);
    browser.speaks_of(&[("heading", "Two results"), ("table", ""), ("main", "")]);
    assert_eq!(browser.value("document.querySelectorAll('[style], script:not([src])').length"), 0);
}

fn shows(folder: &Path, what: &[&str]) -> (Running, String) {
    let args = [&["dashboard", "--listen", "127.0.0.1:0", "--json", "--quiet"], what].concat();
    let (page, said) = listening(folder, &args);
    (page, text(&said, "dashboard").to_owned())
}

/// A study that stands still.
struct Paused(Running);

impl Paused {
    /// Starts a study. It stands still early, until its files are due, and again when they are there: however
    /// fast this machine is, it is not over then.
    fn after_its_first_write(folder: &Path, out: &str) -> Self {
        let began = Instant::now();
        let args = [&STUDY[..], &["--out", out]].concat();
        let study = command(folder, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut study = Self(Running(study.expect("it starts")));
        let folder = folder.join(out);
        let runs = || fs::read_to_string(folder.join("journal.jsonl")).map_or(0, |text| text.lines().count());
        study.runs_until(|| runs() > ENOUGH);
        study.signal(Signal::STOP);
        sleep((FIRST_WRITE + FIRST_WRITE / 10).saturating_sub(began.elapsed()));
        study.signal(Signal::CONT);
        study.runs_until(|| folder.join("study.json").exists());
        study.signal(Signal::STOP);
        study
    }

    fn runs_until(&mut self, is_so: impl Fn() -> bool) {
        while !is_so() {
            assert!(self.0.runs(), "it ended");
            sleep(Duration::from_millis(2));
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0.0), signal).expect("it lives");
    }

    fn goes_on_to_its_end(&mut self) {
        self.signal(Signal::CONT);
        assert!(self.0.0.wait().expect("it ends").success());
    }
}
