//! Requests that are refused, from clients that still send: what they read, frame by frame and byte by byte.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use sluice_control::{Plan, SlicePlan};
use sluice_gateway::{BoundGateway, Gateway, GatewayMetrics, GatewayOptions, Protocol};
use sluice_net::{Client, ClientOptions, NetError, TaskType};
use sluice_switch::registry::Choice;
use sluice_switchd::controller::{ControllerOptions, SwitchLink, start_controller};
use sluice_switchd::rpc::{Guard, LocalSwitch, RpcServer};
use sluice_switchd::switch::{SwitchConfig, SwitchDriver, SwitchHandle};
use sluice_wire::Epoch;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often a slow client gets another chance to end its message before it is refused.
const TRIES: usize = 50;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// How many bytes HTTP/2 lets a client send before the server says more.
const FIRST_WINDOW: i64 = 65_535;
/// The most bytes of a frame.
const FRAME_MAX: i64 = 16_384;
/// No server that takes tasks takes so many bytes.
const FLOOD_MAX: i64 = 16 << 20;

/// A gateway before a rack without workers: a refusal needs none.
struct RefusingRack {
    switch: SwitchHandle,
    switching: JoinHandle<Result<(), NetError>>,
    _controller: RpcServer,
    _gateway: Gateway,
    http: SocketAddr,
    grpc: SocketAddr,
}

impl RefusingRack {
    fn start() -> Self {
        let program = Choice::default();
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let size = program.traits().full_size(Epoch(1));
        let config = SwitchConfig { at: anywhere, program, ..SwitchConfig::new(size) };
        let driver = SwitchDriver::new(&config).expect("the loopback has free ports");
        let switch = driver.handle();
        let switching = driver.spawn().expect("a thread");
        let at = switch.local().into();
        let slice = SlicePlan { name: "words".to_owned(), types: vec![TaskType(9)], ..SlicePlan::default() };
        let controller = start_controller(ControllerOptions {
            at: anywhere,
            guard: Guard::Loopback,
            plan: Plan::new(at, vec![slice]),
            seed: [7; 32],
            switch: SwitchLink::Here(LocalSwitch::new(switch.clone(), at)),
            standby: false,
            spine: 0,
        });
        let controller = controller.expect("the port is free");
        let bound = BoundGateway::bind(GatewayOptions {
            listen: [
                (Protocol::Resp, None),
                (Protocol::Http, Some(anywhere)),
                (Protocol::Grpc, Some(anywhere)),
            ],
            tls: None,
            deadline: None,
            budget: None,
            methods: vec!["/words.Words/Reverse=9".parse().expect("a method")],
            connections_max: 16,
            metrics: GatewayMetrics::default(),
        });
        let bound = bound.expect("the loopback has free ports");
        let places = bound.local();
        let at = |of| places.iter().find(|(protocol, _)| *protocol == of).expect("it listens").1;
        let (http, grpc) = (at(Protocol::Http), at(Protocol::Grpc));
        let options = ClientOptions::new(&controller.local().to_string()).expect("an address");
        let client = Client::connect(&ClientOptions { patience: PATIENCE, ..options });
        let gateway = bound.serve(client.expect("the rack takes clients").into()).expect("it starts");
        Self { switch, switching, _controller: controller, _gateway: gateway, http, grpc }
    }

    fn end(self) {
        let Self { switch, switching, .. } = self;
        switch.stop();
        switching.join().expect("no panic").expect("no error");
    }
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_nodelay(true).expect("an option");
    stream
}

/// A frame of HTTP/2.
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    bytes: Vec<u8>,
}

impl Frame {
    fn is_ack(&self) -> bool {
        self.flags & ACK != 0
    }

    fn is_end_of_answer(&self) -> bool {
        self.kind == HEADERS && self.flags & END_STREAM != 0
    }
}

/// A client of HTTP/2 that decides when it sends what.
struct Http2 {
    socket: TcpStream,
    next: u32,
    /// How much may be sent in all, and of the stream.
    windows: [i64; 2],
    stream_window: i64,
}

impl Http2 {
    fn connect(at: SocketAddr) -> Self {
        let mut socket = connect(at);
        socket.write_all(PREFACE).expect("it is taken");
        let mut client = Self { socket, next: 1, windows: [FIRST_WINDOW; 2], stream_window: FIRST_WINDOW };
        client.send(SETTINGS, 0, 0, &[]);
        client
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, bytes: &[u8]) {
        let length = (bytes.len() as u32).to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.socket.write_all(&[&head, bytes].concat()).expect("it is taken");
    }

    /// Begins a call, without its message.
    fn call(&mut self, path: &str) -> u32 {
        let stream = self.next;
        self.next += 2;
        self.windows[1] = self.stream_window;
        let mut block = Vec::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "x"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ] {
            // A literal without an index, whose lengths are below 127.
            block.push(0);
            for text in [name, value] {
                block.push(text.len() as u8);
                block.extend_from_slice(text.as_bytes());
            }
        }
        self.send(HEADERS, END_HEADERS, stream, &block);
        stream
    }

    /// The next frame, after what the connection itself has to do with it.
    fn frame(&mut self) -> Frame {
        let mut head = [0; 9];
        self.socket.read_exact(&mut head).expect("a frame");
        let mut bytes = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.socket.read_exact(&mut bytes).expect("a whole frame");
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let frame = Frame { kind: head[3], flags: head[4], stream, bytes };
        match frame.kind {
            SETTINGS if !frame.is_ack() => {
                for setting in frame.bytes.as_chunks::<6>().0 {
                    let [0, 4, window @ ..] = setting else { continue };
                    let window = i64::from(u32::from_be_bytes(*window));
                    self.windows[1] += window - self.stream_window;
                    self.stream_window = window;
                }
                self.send(SETTINGS, ACK, 0, &[]);
            }
            PING if !frame.is_ack() => self.send(PING, ACK, 0, &frame.bytes),
            WINDOW_UPDATE => {
                let more = u32::from_be_bytes(frame.bytes[..4].try_into().expect("a number"));
                self.windows[usize::from(stream > 0)] += i64::from(more);
            }
            _ => {}
        }
        frame
    }

    /// Whether the server sends anything of this stream before it answers a ping of now.
    fn says_anything(&mut self, stream: u32) -> bool {
        self.send(PING, 0, 0, b"just now");
        let mut has_said = false;
        loop {
            let frame = self.frame();
            if frame.kind == PING && frame.is_ack() {
                return has_said;
            }
            has_said |= frame.stream == stream && frame.kind != WINDOW_UPDATE;
        }
    }

    /// The next frame of this stream.
    fn answer(&mut self, stream: u32) -> Frame {
        loop {
            let frame = self.frame();
            if frame.stream == stream && frame.kind != WINDOW_UPDATE {
                return frame;
            }
        }
    }

    /// Sends zeros as far as the server lets it, until it answers; returns how many.
    fn flood(&mut self, stream: u32) -> (Frame, i64) {
        let mut sent = 0;
        loop {
            let may = self.windows.into_iter().min().expect("two").min(FRAME_MAX);
            if may > 0 && sent < FLOOD_MAX {
                self.send(DATA, 0, stream, &vec![0; may as usize]);
                self.windows = self.windows.map(|window| window - may);
                sent += may;
                continue;
            }
            let frame = self.frame();
            if frame.stream == stream && frame.kind != WINDOW_UPDATE {
                return (frame, sent);
            }
        }
    }
}

#[test]
fn a_refused_call_is_answered_behind_its_message_and_its_stream_is_not_reset() {
    let rack = RefusingRack::start();
    let mut client = Http2::connect(rack.grpc);
    let is_answered_behind = (0..TRIES).any(|_| {
        let stream = client.call("/words.Words/Other");
        // On a busy machine the gateway's patience may end before the ping is answered.
        if client.says_anything(stream) {
            return false;
        }
        client.send(DATA, END_STREAM, stream, b"\0\0\0\0\x01x");
        assert!(client.answer(stream).is_end_of_answer());
        !client.says_anything(stream)
    });
    assert!(is_answered_behind, "it is refused before its message came, or reset");
    drop(client);
    rack.end();
}

#[test]
fn a_message_longer_than_the_window_is_answered_and_then_ended_without_an_error() {
    let rack = RefusingRack::start();
    for path in ["/words.Words/Other", "/words.Words/Reverse"] {
        let is_answered_behind = (0..TRIES).any(|_| {
            let mut client = Http2::connect(rack.grpc);
            let stream = client.call(path);
            let (answer, sent) = client.flood(stream);
            assert!(answer.is_end_of_answer(), "{path}");
            let ended = client.answer(stream);
            assert_eq!((ended.kind, &ended.bytes[..]), (RST_STREAM, &[0; 4][..]), "{path}");
            // The connection goes on.
            let next = client.call("/words.Words/Other");
            client.send(DATA, END_STREAM, next, b"\0\0\0\0\0");
            assert!(client.answer(next).is_end_of_answer(), "{path}");
            // On a busy machine the gateway's patience may end before so much was sent.
            sent > FIRST_WINDOW
        });
        assert!(is_answered_behind, "{path}: it is answered before so much was sent");
    }
    rack.end();
}

fn post(path: &str, headers: &str, length: usize) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n");
    [head.into_bytes(), vec![b'x'; length]].concat()
}

/// The statuses in what came.
fn statuses(came: &str) -> Vec<&str> {
    came.match_indices("HTTP/1.1 ").map(|(place, _)| &came[place + 9..place + 12]).collect()
}

#[test]
fn who_posts_and_is_refused_reads_why_though_he_sends_much() {
    let rack = RefusingRack::start();
    // A refusal leaves the connection as it is.
    let long = [("/nothing", "", 500_000), ("/9", "", 500_000), ("/9", "sluice-deadline: 0s\r\n", 60_000)];
    let requests: Vec<u8> =
        long.into_iter().flat_map(|(path, headers, length)| post(path, headers, length)).collect();
    let answers = || {
        let (mut socket, mut came) = (connect(rack.http), String::new());
        socket.write_all(&requests)?;
        socket.shutdown(Shutdown::Write)?;
        socket.read_to_string(&mut came).map(|_| came)
    };
    // On a busy machine the gateway's patience may end before all of a body came, and the connection with it.
    let came = (0..TRIES).find_map(|_| answers().ok().filter(|came| statuses(came).len() == long.len()));
    let came = came.expect("a refusal leaves the connection");
    assert_eq!(statuses(&came), ["404", "413", "400"], "{came}");

    // Behind a body that is too long to be read the connection ends.
    let mut socket = connect(rack.http);
    // The gateway need not take all of it.
    socket.write_all(&post("/nothing", "", 3_000_000)).ok();
    let mut came = Vec::new();
    if let Err(why) = socket.read_to_end(&mut came) {
        assert_eq!(why.kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(statuses(&String::from_utf8_lossy(&came)), ["404"]);

    // A client that asks first is refused before it sends.
    let mut socket = connect(rack.http);
    let asks = post("/nothing", "expect: 100-continue\r\n", 1_000);
    socket.write_all(&asks[..asks.len() - 1_000]).expect("it is taken");
    let mut status = [0; 12];
    socket.read_exact(&mut status).expect("it is answered");
    assert_eq!(&status, b"HTTP/1.1 404");
    rack.end();
}
