//! The page over real sockets: what it serves, whom it refuses, and that nobody keeps others from it.

mod served;

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use serde_json::Value;
use served::{Heard, answer, asked, request, served};
use sluice_dashboard::{Dashboard, DashboardPort, Watched};
use sluice_rpc::ServerTls;

/// How many connections are served at once, as the manual says.
const CONNECTIONS_MAX: usize = 64;
const JSON: (&str, &str) = ("Content-Type", "application/json");

#[test]
fn the_page_loads_nothing_but_its_own_files_and_each_is_there() {
    let (at, _served) = served(None);
    let (mut wanted, mut seen) = (vec!["/".to_owned()], Vec::new());
    while let Some(path) = wanted.pop() {
        let got = asked(at, &format!("GET {path}"), &[], "");
        assert_eq!(got.status, 200, "{path}: {got:?}");
        for part in ["script-src 'self'", "default-src 'none'", "frame-ancestors 'none'"] {
            assert!(got.head.contains(part), "{path}: {part}: {}", got.head);
        }
        for header in ["x-content-type-options: nosniff", "cache-control: no-store", "x-frame-options: deny"]
        {
            assert!(got.head.contains(header), "{path}: {header}: {}", got.head);
        }
        assert!(!got.body.contains("://") || is_file(&path, &["svg"]), "{path} names another host");
        let named = got.body.split('"').skip(1).step_by(2).filter(|text| !text.contains([' ', '$', '<']));
        let named = named.filter(|text| is_file(text, &["js", "css", "svg"]));
        let named: Vec<String> =
            named.map(|text| format!("/{}", text.trim_start_matches(['.', '/']))).collect();
        seen.push(path);
        wanted.extend(named.into_iter().filter(|path| !seen.contains(path)));
    }
    seen.sort();
    seen.dedup();
    assert!(seen.len() >= 9, "{seen:?}");
    let page = asked(at, "GET /", &[], "").body;
    assert!(!page.contains("<script>") && !page.contains("style=") && !page.contains("onclick"), "{page}");
}

fn is_file(path: &str, endings: &[&str]) -> bool {
    let ending = Path::new(path).extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| endings.contains(&ending))
}

#[test]
fn the_state_fits_its_schema_and_says_since_when_nothing_is_heard() {
    let (at, _served) = served(None);
    let state = loop {
        let state = asked(at, "GET /state.json", &[], "").json();
        if !state["racks"][0]["silence"].is_null() {
            break state;
        }
        std::thread::yield_now();
    };
    let schema: Value =
        serde_json::from_str(include_str!("../../../../schemas/dashboard.v1.json")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> = validator.iter_errors(&state).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!((&state["title"], &state["visitor"]["may_change"]), (&"a <b>rack</b>".into(), &true.into()));
    let why = state["racks"][0]["silence"]["why"].as_str().expect("words");
    assert!(why.contains("no controller answers at http://127.0.0.1:"), "{why}");
    assert_eq!(asked(at, "GET /charts/0.html", &[], "").body.matches("<figure>").count(), 4);
    for none in
        ["/charts/1.html", "/charts/load.html", "/charts/x.html", "/charts/", "/nothing", "//", "/../etc"]
    {
        asked(at, &format!("GET {none}"), &[], "").tells(404, "there is no such page");
    }
}

#[test]
fn a_name_that_somebody_resolves_to_this_machine_is_refused() {
    let (at, _served) = served(None);
    for host in ["evil.example", "10.0.0.1", "localhost.evil.example:80"] {
        let got = answer(at, request("GET /state.json", &[("Host", host)], "").as_bytes());
        Heard::of(&got).tells(421, "call it by localhost");
    }
    let own = at.to_string();
    let got = answer(at, request("GET /state.json", &[("Host", &own)], "").as_bytes());
    assert_eq!(Heard::of(&got).status, 200);
    Heard::of(&answer(at, b"GET / HTTP/1.0\r\n\r\n")).tells(400, "Host");
}

#[test]
fn a_change_comes_from_the_page_and_is_json() {
    let (at, _served) = served(None);
    let body = r#"{"controller":0,"worker":"w","slice":"s"}"#;
    let post = |headers: &[(&str, &str)], body: &str| asked(at, "POST /move", headers, body);
    post(&[JSON, ("Origin", "http://evil.example")], body).tells(403, "comes from another");
    post(&[JSON, ("Sec-Fetch-Site", "cross-site")], body).tells(403, "comes from another");
    post(&[("Content-Type", "text/plain")], body).tells(415, "application/json");
    post(&[JSON], "{").tells(400, "not what is taken here");
    post(&[JSON], r#"{"controller":0,"worker":"w","slice":"s","more":1}"#).tells(400, "more");
    post(&[JSON], &" ".repeat(5_000)).tells(413, "at most 4096 bytes");
    post(&[JSON], r#"{"controller":7,"worker":"w","slice":"s"}"#).tells(409, "there is no controller 7");
    // It gets as far as the controller, which does not answer.
    post(&[JSON, ("Origin", "http://localhost")], body).tells(409, "no controller answers");
    asked(at, "POST /map", &[JSON], r#"{"controller":0,"type":"get","slice":null}"#)
        .tells(409, "no controller");
    for line in ["GET /move", "POST /", "PUT /move", "DELETE /", "OPTIONS /move"] {
        asked(at, line, &[JSON], body).tells(405, "GET or HEAD");
    }
}

#[test]
fn what_is_no_request_or_a_huge_one_ends_its_own_connection_only() {
    let (at, _served) = served(None);
    let huge = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    for garbled in [&b"\0\xff\xfe nothing\r\n\r\n"[..], b"GET", b"\r\n\r\n\r\n\r\n", huge.as_bytes()] {
        let got = answer(at, garbled);
        assert!(got.is_empty() || got.starts_with("HTTP/1.1 4"), "{got}");
        assert_eq!(asked(at, "HEAD /", &[], "").status, 200);
    }
    // The first bytes of TLS.
    assert_eq!(answer(at, &[22, 3, 1, 0, 5, 1, 2, 3, 4, 5]), "");
    assert_eq!(asked(at, "GET /", &[], "").status, 200);
}

#[test]
fn who_keeps_all_places_loses_them() {
    let (at, _served) = served(None);
    // Those who ask nothing for five seconds are sent away: a test that gets no turn for so long tries again.
    let mut tries = (0..5).map(|_| {
        let silent: Vec<_> =
            (0..CONNECTIONS_MAX).map(|_| TcpStream::connect(at).expect("it listens")).collect();
        (silent, answer(at, request("GET /", &[("Host", "localhost")], "").as_bytes()))
    });
    let full = tries.find(|(_, full)| full.starts_with("HTTP/1.1 503") || full.is_empty());
    let (silent, _) = full.expect("the next one is sent away");
    while TcpStream::connect(at).map_or(true, |stream| !is_served(stream)) {
        std::thread::yield_now();
    }
    drop(silent);
}

fn is_served(mut stream: TcpStream) -> bool {
    let asks = request("GET /", &[("Host", "localhost")], "");
    let mut answer = String::new();
    stream.write_all(asks.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

#[test]
fn an_address_that_cannot_be_had_or_must_not_is_refused_in_a_line() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = taken.local_addr().expect("it is bound");
    let says = |at: SocketAddr, tls: Option<ServerTls>| {
        DashboardPort::bind(at, tls).expect_err("it is refused").to_string()
    };
    let said = says(at, None);
    assert!(said.contains(&at.to_string()) && said.contains("in use"), "{said}");
    let all = "0.0.0.0:0".parse().expect("an address");
    assert!(says(all, None).contains("without TLS") && says(all, None).contains("--client-ca"));
    let made = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).expect("a certificate");
    let key = made.signing_key.serialize_pem();
    let tls = ServerTls::new(made.cert.pem().as_bytes(), key.as_bytes());
    assert!(says(all, Some(tls)).contains("show no certificate"));
}

#[test]
fn a_study_may_begin_after_its_page_and_results_are_put_beside_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = |watched| {
        let port =
            DashboardPort::bind("127.0.0.1:0".parse().expect("an address"), None).expect("a free port");
        (port.local(), Dashboard::start(port, watched).expect("a thread"))
    };
    let (at, _served) = start(Watched::Study(folder.path().to_owned()));
    let document = asked(at, "GET /state.json", &[], "").json()["document"].clone();
    assert!(document["why"].as_str().expect("words").contains("study.json yet"), "{document}");
    assert_eq!(asked(at, "GET /document.html", &[], "").body, "");
    std::fs::write(folder.path().join("study.json"), "{\"schema\":").expect("written");
    let document = asked(at, "GET /state.json", &[], "").json()["document"].clone();
    assert!(document["why"].as_str().expect("words").contains("not a study's JSON"), "{document}");
    let result = |name: &str, sent: u64| {
        let path = folder.path().join(name);
        let kind =
            serde_json::json!({ "name": "<b>", "tasks": { "sent": sent }, "latency_ns": { "p99": 2e6 } });
        let json = serde_json::json!({ "schema": "sluice.result.v1", "policy": "rain:2", "types": [kind] });
        std::fs::write(&path, json.to_string()).expect("written");
        path
    };
    let (at, _beside) = start(Watched::Results([result("a.json", 7), result("b.json", 8)]));
    let shown = asked(at, "GET /document.html", &[], "").body;
    for part in ["Tasks of type &lt;b&gt;", ">7<", ">8<", "2.00 ms", "rain:2"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    asked(at, "POST /move", &[JSON], r#"{"controller":0,"worker":"w","slice":"s"}"#)
        .tells(409, "do not change");
}
