//! gRPC with tonic's client, which reads no messages either.

use std::time::Duration;

use prost::bytes::Bytes;
use sluice_gateway::OpaqueCodec;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::rig::{KvRack, text};

async fn call(channel: &Channel, path: &str, request: Request<Bytes>) -> Result<Bytes, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.map_err(|why| Status::unknown(why.to_string()))?;
    let path = path.parse().expect("a path");
    grpc.unary(request, path, OpaqueCodec).await.map(tonic::Response::into_inner)
}

fn message(text: &str) -> Request<Bytes> {
    Request::new(Bytes::copy_from_slice(text.as_bytes()))
}

#[tokio::test]
async fn a_unary_call_is_a_task_whose_message_nobody_reads() {
    let rack = KvRack::start();
    let maps = ["/words.Words/Reverse=reverse", "/words.Words/Spin=3", "/words.Words/Get=kv-get"];
    let maps: Vec<&str> = maps.into_iter().flat_map(|map| ["--grpc-map", map]).collect();
    let (gateway, said) = rack.gateway(&[&["--grpc", "127.0.0.1:0"], &maps[..]].concat());
    let at = text(&said, "grpc");
    let channel = Endpoint::from_shared(format!("http://{at}")).expect("an address").connect().await;
    let channel = channel.expect("it listens");
    let reply = call(&channel, "/words.Words/Reverse", message("stressed")).await.expect("a reply");
    assert_eq!(&reply[..], b"desserts");
    let empty = call(&channel, "/words.Words/Reverse", message("")).await.expect("a reply");
    assert!(empty.is_empty());
    let calls = (0..200).map(|number| {
        let channel = channel.clone();
        tokio::spawn(async move {
            let text = format!("{number:04}");
            let reply = call(&channel, "/words.Words/Reverse", message(&text)).await.expect("a reply");
            assert_eq!(reply, text.bytes().rev().collect::<Bytes>());
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("it ends");
    }
    for (path, code, words) in [
        ("/words.Words/Other", Code::Unimplemented, "is mapped to no type"),
        ("/words.Words/Spin", Code::Unimplemented, "it did not run: no slice takes type 3"),
        ("/words.Words/Get", Code::Internal, "the message of 1 bytes ends within"),
    ] {
        let status = call(&channel, path, message("x")).await.expect_err(path);
        assert_eq!(status.code(), code, "{path}: {status}");
        assert!(status.message().contains(words), "{path}: {status}");
    }
    // Two are longer than HTTP/2 lets a client send before the server has read.
    let window = 4 << 20;
    for (path, bytes, code, words) in [
        ("/words.Words/Reverse", 65_537, Code::InvalidArgument, "it did not run: "),
        ("/words.Words/Reverse", window, Code::InvalidArgument, "it did not run: "),
        ("/words.Words/Other", 60_000, Code::Unimplemented, "is mapped to no type"),
        ("/words.Words/Other", window, Code::Unimplemented, "is mapped to no type"),
    ] {
        let status = call(&channel, path, message(&"x".repeat(bytes))).await.expect_err(path);
        assert_eq!(status.code(), code, "{path} {bytes}: {status}");
        assert!(status.message().contains(words), "{path} {bytes}: {status}");
    }
    let longest = call(&channel, "/words.Words/Reverse", message(&"x".repeat(65_536))).await;
    assert_eq!(longest.expect("a reply").len(), 65_536);
    gateway.ends_well();
}

#[tokio::test]
async fn a_deadline_is_the_callers_and_what_did_not_run_is_unavailable() {
    let rack = KvRack::without_workers();
    let map = "/words.Words/Reverse=reverse";
    let flags = ["--grpc", "127.0.0.1:0", "--grpc-map", map, "--deadline", "2s"];
    let (_gateway, said) = rack.gateway(&flags);
    let endpoint = Endpoint::from_shared(format!("http://{}", text(&said, "grpc"))).expect("an address");
    let channel = endpoint.connect().await.expect("it listens");
    let within = |ms| {
        let mut request = message("x");
        request.metadata_mut().insert("grpc-timeout", format!("{ms}m").parse().expect("a value"));
        request
    };
    let status = call(&channel, "/words.Words/Reverse", within(60_000)).await.expect_err("no worker");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert_eq!(status.metadata().get("sluice-why").expect("a word"), "no-workers");
    for (key, value) in [("grpc-timeout", "soon"), ("sluice-budget", "soon"), ("sluice-budget", "0s")] {
        let mut wrong = message("x");
        wrong.metadata_mut().insert(key, value.parse().expect("a value"));
        let status = call(&channel, "/words.Words/Reverse", wrong).await.expect_err("no span");
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().starts_with(key), "{status}");
    }

    let mut worker = std::process::Command::new(super::common::example("reverse_service"));
    worker.args(["--controller", &rack.controller, "--slice", "words", "--quiet"]);
    let worker = super::common::Running(worker.stderr(std::process::Stdio::null()).spawn().expect("starts"));
    rack.wait_for_workers(1);
    let pid = rustix::process::Pid::from_child(&worker.0);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it lives");
    // With a deadline of its own, this client would not wait for the answer.
    let called = call(&channel, "/words.Words/Reverse", message("x"));
    let status = tokio::time::timeout(Duration::from_mins(2), called).await;
    let status = status.expect("it is answered").expect_err("nobody serves it");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it lives");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
}
