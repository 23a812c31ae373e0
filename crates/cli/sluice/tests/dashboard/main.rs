//! `sluice dashboard` and `sluice up --dashboard`: what they print and refuse, and the page in a headless
//! Chromium: at three widths, by keyboard, as a screen reader hears it, and with a rack that dies under it.
//! Without Chromium the tests of the page print so and do nothing.

#[path = "../common/mod.rs"]
mod common;

mod browser;
mod certificates;
mod datacenter;
mod findings;
mod heat;
mod open_for_days;
mod report_page;
mod study;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};

use browser::Browser;
use common::{Running, SMALL, command, hold_to_schema, sluice, stderr};
use serde_json::Value;
use sluice_ports::free_address;

/// The widths of a phone, a tablet and a desk, each with a height.
const WIDTHS: [(u32, u32); 3] = [(360, 740), (800, 1_100), (1_400, 1_000)];

/// Two slices, of which one has two workers.
const PLAN: &str = r#"
name = "page"
[switch]
listen = "127.0.0.1:0"
control = "127.0.0.1:0"
[[slice]]
name = "work"
types = ["hold"]
[[slice]]
name = "spare"
types = []
"#;

/// Starts a process that prints JSON where it listens.
fn listening(folder: &Path, args: &[&str]) -> (Running, Value) {
    let mut child =
        command(folder, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let line = first_line(&mut child);
    let said: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
    hold_to_schema(&said);
    (Running(child), said)
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let out = child.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("it prints");
    line
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("{key}: {value}"))
}

/// A switch at these addresses.
fn start_switch(folder: &Path, listen: &str, control: &str) -> Running {
    fs::write(folder.join("page.toml"), PLAN).expect("written");
    listening(folder, &["switch", "page.toml", "--listen", listen, "--control", control, "--json"]).0
}

fn start_worker(folder: &Path, name: &str, control: &str) -> Running {
    let args = ["worker", "hold", "--slice", "work", "--controller", control, "--name", name, "--quiet"];
    Running(command(folder, &args).stderr(Stdio::null()).spawn().expect("it starts"))
}

fn start_dashboard(folder: &Path, listen: &str, control: &str) -> (Running, String) {
    let args = ["dashboard", "--listen", listen, "--controller", control, "--json", "--quiet"];
    let (running, said) = listening(folder, &args);
    let url = text(&said, "dashboard").to_owned();
    (running, url)
}

/// The address in a URL.
fn address(url: &str) -> &str {
    url.trim_start_matches("http://").trim_end_matches('/')
}

#[test]
fn what_it_cannot_serve_or_ask_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().expect("it is bound").to_string();
    for (args, says) in [
        (&["dashboard", "--listen", &taken][..], "in use"),
        (&["dashboard", "--listen", "0.0.0.0:0"], "without TLS"),
        (&["dashboard", "--listen", "nowhere"], "--listen"),
        (&["dashboard", "--client-ca", "ca.pem"], "--tls"),
        (&["dashboard", "--tls", "no.pem", "no.key"], "no.pem"),
        (&["dashboard", "--controller", "127.0.0.1"], "port"),
        (&["dashboard", "--results", "no.json", "none.json"], "no.json cannot be read"),
        (&["dashboard", "--study", "x", "--controller", "127.0.0.1:1"], "--controller"),
        (&["up", "--dashboard", &taken], "in use"),
        (&["up", "--dashboard", "10.0.0.1:0"], "without TLS"),
    ] {
        let output = sluice(folder.path(), args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(says) && said.trim_end().lines().count() == 1, "{args:?}: {said}");
    }
}

#[test]
fn up_serves_a_page_with_its_load_and_what_it_notes() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("small.toml"), SMALL).expect("written");
    // The port is free until the rack takes it.
    let at = free_address();
    let args = ["up", "small.toml", "--length", "600s", "--dashboard", &at.to_string(), "--quiet"];
    let child = command(folder.path(), &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut running = Running(child.expect("it starts"));
    let state = loop {
        assert!(running.runs(), "it ended");
        if let Some(state) =
            state_of(&at.to_string()).filter(|state| state["load"]["types"][0]["latency_p99_ns"].is_u64())
        {
            break state;
        }
        std::thread::yield_now();
    };
    hold_to_schema(&state);
    assert_eq!((text(&state, "title"), &state["load"]["types"][0]["name"]), ("small", &"hold".into()));
    let events = state["events"].as_array().expect("events");
    assert!(events.iter().any(|event| text(event, "text").contains("2 workers are ready")), "{state:#}");
}

/// The state that a dashboard gives; `None` if nobody answers.
fn state_of(at: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(at).ok()?;
    let asks = format!("GET /state.json HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    stream.write_all(asks.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

/// A rack with two workers, its page, and a browser that shows it; `None` without Chromium.
struct Shown {
    browser: Browser,
    switch: Option<Running>,
    workers: Vec<Running>,
    dashboard: Option<Running>,
    url: String,
    addresses: (String, String),
}

impl Shown {
    fn start(folder: &Path) -> Option<Self> {
        let Some(mut browser) = Browser::start(folder) else {
            eprintln!("skipped: chromium is not installed here");
            return None;
        };
        let addresses = (free_address().to_string(), free_address().to_string());
        let switch = start_switch(folder, &addresses.0, &addresses.1);
        let workers = ["one", "two"].map(|name| start_worker(folder, name, &addresses.1)).into();
        let (dashboard, url) = start_dashboard(folder, &free_address().to_string(), &addresses.1);
        browser.set_size(1_400, 1_000);
        browser.open(&url);
        browser.wait_for("document.querySelectorAll('[aria-label^=\"Move worker\"]').length === 2");
        Some(Self { browser, switch: Some(switch), workers, dashboard: Some(dashboard), url, addresses })
    }
}

#[test]
fn the_page_fits_three_widths_and_is_heard_as_tables_with_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut shown) = Shown::start(folder.path()) else { return };
    let browser = &mut shown.browser;
    browser.wait_for("document.querySelectorAll('figure svg.chart').length === 4");
    // The others may have joined before the dashboard began to hear of events.
    shown.workers.push(start_worker(folder.path(), "three", &shown.addresses.1));
    browser.wait_for("document.querySelectorAll('.events tbody tr').length > 0");
    for (width, height) in WIDTHS {
        browser.set_size(width, height);
        let wide = browser.value("document.documentElement.scrollWidth");
        assert!(wide.as_u64().expect("a number") <= u64::from(width), "{wide} at {width}");
        browser.keep_picture(&format!("rack-{width}"));
        let heard = browser.spoken();
        let has = |role: &str, name: &str| {
            assert!(
                heard.iter().any(|(is, called)| is == role && called.contains(name)),
                "{role} {name} at {width}: {heard:#?}"
            );
        };
        for (role, name) in [
            ("heading", "The rack of 127.0.0.1"),
            ("main", ""),
            ("table", "Slices"),
            ("table", "Workers"),
            ("table", "Types of tasks"),
            ("table", "Events, newest first"),
            ("columnheader", "tasks/s"),
            ("rowheader", "one"),
            ("button", "Move worker one"),
            ("button", "Send type hold elsewhere"),
            ("image", "balance"),
            ("status", ""),
            ("region", "Events"),
        ] {
            has(role, name);
        }
    }
    let inline = browser.value("document.querySelectorAll('script:not([src]), [onclick]').length");
    assert_eq!(inline, 0);
}

#[test]
fn a_worker_is_moved_and_a_type_mapped_by_keyboard() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut shown) = Shown::start(folder.path()) else { return };
    let browser = &mut shown.browser;
    browser.tab_to("Move worker one");
    browser.press("Enter");
    browser.wait_for("document.querySelector('dialog').open && document.activeElement.tagName === 'SELECT'");
    browser.keep_picture("move");
    let heard = browser.spoken();
    let named = |role: &str, name: &str| heard.iter().any(|(is, called)| is == role && called == name);
    assert!(named("dialog", "Move worker one") && named("combobox", "Slice"), "{heard:#?}");
    // The focus outlives the answers that come meanwhile.
    browser.value("window.before = document.activeElement; new Promise((over) => setTimeout(over, 2500))");
    assert_eq!(browser.value("document.activeElement === window.before"), true);
    browser.press("Enter");
    let row = "document.querySelector('[aria-label=\"Move worker one\"]').closest('tr')";
    browser.wait_for(&format!(
        "!document.querySelector('dialog').open && {row}.cells[1].textContent === 'spare'"
    ));
    // The row goes to another place, and the focus with it.
    browser.wait_for("document.activeElement.getAttribute('aria-label') === 'Move worker one'");
    browser.wait_for("document.getElementById('done').textContent === 'worker one serves slice spare'");
    browser.keep_picture("moved");
    browser.tab_to("Send type hold elsewhere");
    browser.press("Enter");
    browser.wait_for("document.querySelector('dialog').open");
    browser.press("Enter");
    browser.wait_for(
        "document.getElementById('done').textContent.startsWith('tasks of type hold go to slice spare')",
    );
    // That no slice takes a type is trouble only where somebody uses the type.
    let refused = "[...document.querySelectorAll('.badge.bad')].map((badge) => badge.textContent)\
                   .filter((text) => text.startsWith('nowhere'))";
    browser.wait_for("document.body.textContent.includes('nowhere: not used here')");
    assert_eq!(browser.value(refused), serde_json::json!([]));
    browser.tab_to("Send type hold elsewhere");
    browser.press("Enter");
    browser.wait_for("document.querySelector('dialog').open");
    browser.press("ArrowDown");
    browser.press("Enter");
    browser.wait_for(&format!("{refused}.join() === 'nowhere: refused'"));
    browser.keep_picture("unmapped");
}

#[test]
fn a_rack_that_dies_is_told_of_and_the_page_goes_on_when_it_returns() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut shown) = Shown::start(folder.path()) else { return };
    let browser = &mut shown.browser;
    drop(shown.switch.take());
    browser.wait_for(
        "document.querySelector('section.stale .lost')?.textContent.startsWith('Nothing is heard of')",
    );
    let told = browser.value("document.querySelector('section.stale .lost').textContent");
    let told = told.as_str().expect("text");
    assert!(told.contains(" since ") && told.contains("no controller answers"), "{told}");
    browser.wait_for("document.getElementById('news').textContent.includes('Nothing is heard')");
    let off =
        "document.querySelector('[aria-label=\"Move worker one\"]').getAttribute('aria-disabled') === 'true'";
    browser.wait_for(off);
    browser.keep_picture("dead");
    let (listen, control) = &shown.addresses;
    shown.switch = Some(start_switch(folder.path(), listen, control));
    browser.wait_for("document.querySelector('section.stale') === null");
    browser.wait_for(
        "document.querySelectorAll('[aria-label^=\"Move worker\"]:not([aria-disabled])').length === 2",
    );
    assert!(shown.workers.iter_mut().all(Running::runs));
    // The same for the dashboard itself.
    drop(shown.dashboard.take());
    browser.wait_for("document.body.classList.contains('stale')");
    browser.wait_for("document.getElementById('lost').textContent.includes('does not answer since')");
    browser.keep_picture("gone");
    shown.dashboard = Some(start_dashboard(folder.path(), address(&shown.url), control).0);
    browser.wait_for("!document.body.classList.contains('stale') && document.getElementById('lost').hidden");
}
