//! TLS and roles: a certificate says who may send, over each protocol.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::common::{Running, example, stderr};
use super::http::has_curl;
use super::rig::{connect, counted, has, listening, read, text};

/// Who calls, and what the certificate says.
const CALLERS: [(&str, &str); 4] = [
    ("web", "URI:sluice:sender/web"),
    ("host", "URI:sluice:host/host"),
    ("eve", "URI:sluice:reader/eve"),
    ("gate", "IP:127.0.0.1,URI:sluice:host/gate"),
];

/// An authority of the rack, and certificates that it signed.
fn make_certificates(folder: &Path) {
    let mut script = String::from(
        "set -e; openssl req -x509 -newkey rsa:2048 -noenc -days 2 -keyout ca.key -out ca.pem \
         -subj /CN=rack\n",
    );
    for (name, alt) in CALLERS {
        writeln!(
            script,
            "openssl req -x509 -CA ca.pem -CAkey ca.key -newkey rsa:2048 -noenc -days 2 \
             -keyout {name}.key -out {name}.pem -subj /CN={name} -addext basicConstraints=CA:FALSE \
             -addext subjectAltName={alt}"
        )
        .expect("a text takes it");
    }
    let made = Command::new("sh").args(["-c", &script]).current_dir(folder).output().expect("a shell");
    assert!(made.status.success(), "{}", stderr(&made));
}

/// What a line of the shell says.
fn run(folder: &Path, line: &str) -> String {
    let ended = Command::new("sh").args(["-c", line]).current_dir(folder).output().expect("a shell");
    String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned()
}

/// A PING with these certificates.
fn redis_cli(port: &str, shown: &str) -> String {
    format!("redis-cli -p {port} --tls --cacert ca.pem {shown} ping </dev/null")
}

/// A task over HTTP/1.1.
fn curl_http(at: &str, shown: &str) -> String {
    format!("curl --silent --show-error --cacert ca.pem {shown} --data stressed https://{at}/reverse")
}

/// A unary call whose message is in a file.
fn curl_grpc(at: &str, shown: &str) -> String {
    format!(
        "curl --silent --show-error --include --http2 --cacert ca.pem {shown} --data-binary @message \
         --header 'content-type: application/grpc' --header 'te: trailers' https://{at}/words.Words/Reverse"
    )
}

#[test]
fn a_certificate_says_who_may_send() {
    if !has("redis-cli") || !has_curl() || !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    make_certificates(at);
    fs::write(at.join("kv.toml"), super::rig::PLAN).expect("written");
    let anywhere = "127.0.0.1:0";
    let args = ["switch", "kv.toml", "--json", "--listen", anywhere, "--control", anywhere];
    let (_switch, said) = listening(at, &args);
    let controller = text(&said, "control");
    let mut words = Command::new(example("reverse_service"));
    words.args(["--controller", &controller, "--slice", "words", "--quiet"]).stderr(Stdio::null());
    let _words = Running(words.spawn().expect("it starts"));
    let guard = ["--tls", "gate.pem", "gate.key", "--client-ca", "ca.pem"];
    let grpc = ["--grpc", anywhere, "--grpc-map", "/words.Words/Reverse=reverse"];
    let args = [
        &["gateway", "--resp", anywhere, "--http", anywhere, "--metrics", anywhere, "--json"][..],
        &grpc,
        &["--controller", &controller],
        &guard,
    ];
    let (gateway, said) = listening(at, &args.concat());
    let (resp, http, metrics) = (text(&said, "resp"), text(&said, "http"), text(&said, "metrics"));
    let grpc = text(&said, "grpc");
    // A call of gRPC: the message behind its length.
    fs::write(at.join("message"), b"\0\0\0\0\x08stressed").expect("written");
    let port = resp.rsplit(':').next().expect("a port");
    let run = |line: &str| run(at, line);
    let shows = |who: &str| format!("--cert {who}.pem --key {who}.key");
    let cli = |who: &str| run(&redis_cli(port, &shows(who)));
    let curl = |who: &str| run(&curl_http(&http, &shows(who)));
    let call = |who: &str| run(&curl_grpc(&grpc, &shows(who)));
    for who in ["web", "host"] {
        assert_eq!(cli(who), "PONG\n", "{who}");
        assert!(curl(who).starts_with("desserts"), "{who}");
        let called = call(who);
        assert!(called.contains("\0\0\0\0\x08desserts"), "{who}: {called}");
    }
    let refused = "a task takes a certificate with the role sender or host, and the certificate of eve \
                   has the role reader";
    assert!(curl("eve").contains(refused), "{}", curl("eve"));
    assert!(cli("eve").contains("NOPERM"), "{}", cli("eve"));
    let called = call("eve");
    assert!(called.contains("grpc-status: 7") && !called.contains("desserts"), "{called}");
    assert!(called.contains("role%20reader") || called.contains("role reader"), "{called}");
    assert!(!run(&redis_cli(port, "")).contains("PONG"));
    assert!(!run(&curl_http(&http, "")).contains("desserts"));
    assert!(!run(&curl_grpc(&grpc, "")).contains("desserts"));
    // Who speaks without TLS is told.
    let mut plain = connect(&resp);
    plain.write_all(b"PING\r\n").expect("it is taken");
    assert_eq!(read(&mut plain, 8), "-ERR thi");
    assert!(run(&format!("curl --silent --data x http://{http}/reverse")).contains("speaks TLS"));
    let mut garbled = connect(&resp);
    garbled.write_all(b"\x16\x03\x01\x00\x05hello").expect("it is taken");
    let mut told = Vec::new();
    // It may end with what was sent unread.
    garbled.read_to_end(&mut told).ok();
    for reason in ["role", "handshake", "misread"] {
        let count = counted(&metrics, "sluice_gateway_connections_refused_total", &[reason]);
        assert!(count >= 1.0, "{reason}: {count}");
    }
    gateway.ends_well();
}
