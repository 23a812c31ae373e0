//! What a gateway cannot serve, in one line each.

use std::net::TcpListener;

use super::common::{sluice, stderr};
use super::rig::KvRack;

#[test]
fn what_cannot_be_served_is_refused_in_one_line() {
    let rack = KvRack::without_workers();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().expect("it is bound").to_string();
    let anywhere = "127.0.0.1:0";
    let map = "/a.B/C=reverse";
    for (args, says) in [
        (&[][..], "--resp"),
        (&["--resp", &taken], "in use"),
        (&["--resp", "0.0.0.0:0"], "without TLS"),
        (&["--http", "10.0.0.1:0"], "without TLS"),
        (&["--resp", "nowhere"], "--resp"),
        (&["--grpc", anywhere], "--grpc-map"),
        (&["--resp", anywhere, "--grpc-map", map], "--grpc"),
        (&["--grpc", anywhere, "--grpc-map", "/a.B=reverse"], "is no method with a type"),
        (&["--grpc", anywhere, "--grpc-map", "/a.B/C=nothing"], "has no type `nothing`"),
        (&["--grpc", anywhere, "--grpc-map", map, "--grpc-map", "/a.B/C=3"], "mapped to two types"),
        (&["--resp", anywhere, "--client-ca", "ca.pem"], "--tls"),
        (&["--resp", anywhere, "--tls", "no.pem", "no.key"], "no.pem"),
        (&["--resp", anywhere, "--deadline", "0s"], "--deadline is zero"),
        (&["--resp", anywhere, "--budget", "1s"], "--budget"),
        (&["--resp", anywhere, "--connections", "0"], "--connections"),
        (&["--resp", anywhere, "--metrics", &taken], "in use"),
    ] {
        let args = [&["gateway", "--controller", &rack.controller], args].concat();
        let output = sluice(rack.folder.path(), &args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(says) && said.trim_end().lines().count() == 1, "{args:?}: {said}");
    }
    let nobody = ["gateway", "--resp", anywhere, "--controller", "127.0.0.1:9", "--patience", "200ms"];
    let output = sluice(rack.folder.path(), &nobody);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("not registered with"), "{}", stderr(&output));
}
