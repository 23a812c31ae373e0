//! A dashboard over a rack that nobody runs, and what it answers.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;
use sluice_dashboard::{Dashboard, DashboardPort, Watched};
use sluice_ports::free_address;
use sluice_rpc::{Remote, ServerTls};

/// A dashboard, and its address.
pub(crate) fn served(tls: Option<ServerTls>) -> (SocketAddr, Dashboard) {
    let port = DashboardPort::bind("127.0.0.1:0".parse().expect("an address"), tls).expect("a free port");
    let at = port.local();
    // Nobody answers there.
    let controllers = vec![Remote::new(&free_address().to_string(), None).expect("an address")];
    let watched = Watched::Racks { title: "a <b>rack</b>".to_owned(), controllers, board: None };
    (at, Dashboard::start(port, watched).expect("a thread"))
}

/// What is answered to these bytes, until the other end hangs up.
pub(crate) fn answer(at: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).expect("it listens");
    // Who is refused is hung up on while he still writes, and the connection reset behind its answer.
    stream.write_all(request).ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request on a connection that ends behind it.
pub(crate) fn request(line: &str, headers: &[(&str, &str)], body: &str) -> String {
    let all = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<Vec<_>>().concat();
    format!("{line} HTTP/1.1\r\nConnection: close\r\n{all}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// The answer to a request that calls the page `localhost`.
pub(crate) fn asked(at: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> Heard {
    let headers: Vec<(&str, &str)> = [("Host", "localhost")].iter().chain(headers).copied().collect();
    Heard::of(&answer(at, request(line, &headers, body).as_bytes()))
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Heard {
    pub(crate) fn of(answer: &str) -> Self {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {answer:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {head}"));
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("{why}: {}", self.body))
    }

    /// Checks that the answer is one line that holds this.
    pub(crate) fn tells(&self, status: u16, what: &str) {
        assert!(self.status == status && self.body.contains(what), "{status}, {what}: {self:?}");
        assert_eq!(self.body.trim_end().lines().count(), 1, "{self:?}");
    }
}
