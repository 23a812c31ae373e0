//! A collector for tests: takes OTLP over HTTP, and decodes it with OpenTelemetry's own crate.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

/// What a request brought.
pub(crate) struct TakenRequest {
    pub(crate) head: String,
    pub(crate) request: ExportTraceServiceRequest,
}

/// Takes requests and answers each with the next of these answers, the last one for ever.
pub(crate) fn receiver(answers: &[&'static str]) -> (SocketAddr, Receiver<TakenRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("bound");
    (at, receive(listener, answers))
}

/// The same at a port that is open already.
pub(crate) fn receive(listener: TcpListener, answers: &[&'static str]) -> Receiver<TakenRequest> {
    let (send, received) = mpsc::channel();
    let mut answers = answers.to_vec();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0] };
            let Some((taken, mut stream)) = take(stream) else { continue };
            // Before the answer: whoever got it finds here what was sent.
            if send.send(taken).is_err() {
                return;
            }
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    received
}

fn take(stream: TcpStream) -> Option<(TakenRequest, TcpStream)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    let request = ExportTraceServiceRequest::decode(&body[..]).expect("what OTLP says");
    Some((TakenRequest { head, request }, reader.into_inner()))
}

/// An answer that takes all.
pub(crate) const TAKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
