//! What a gateway counts, for Prometheus. Its one thread counts, and any other reads.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sluice_metrics::{MetricFamily, MetricSample, MetricSource, PublishedSpans, SpanTally};

use crate::outcome::CommandOutcome;
use crate::resp::FrameError;

/// A protocol that the gateway takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// What clients of Redis speak.
    Resp,
    /// HTTP/1.1.
    Http,
    /// gRPC.
    Grpc,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Resp, Self::Http, Self::Grpc];

    /// The name in metrics and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resp => "resp",
            Self::Http => "http",
            Self::Grpc => "grpc",
        }
    }

    /// The name for people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Resp => "RESP",
            Self::Http => "HTTP",
            Self::Grpc => "gRPC",
        }
    }
}

/// Why a connection was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnedAway {
    /// There are as many as the gateway takes.
    Full,
    /// The TLS handshake failed or took too long.
    Handshake,
    /// It speaks TLS where there is none, or none where there is.
    Misread,
    /// Its certificate does not let it send tasks.
    Role,
    /// It did not read what it was sent.
    Unread,
}

impl TurnedAway {
    const ALL: [Self; 5] = [Self::Full, Self::Handshake, Self::Misread, Self::Role, Self::Unread];

    const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Handshake => "handshake",
            Self::Misread => "misread",
            Self::Role => "role",
            Self::Unread => "unread",
        }
    }
}

/// A word with one writer.
#[derive(Debug, Default)]
struct Word(AtomicU64);

impl Word {
    fn add(&self, count: u64) {
        self.set(self.get().wrapping_add(count));
    }

    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct Shared {
    accepted: [Word; 3],
    ended: [Word; 3],
    commands: [[Word; 6]; 3],
    frames: [Word; 8],
    away: [Word; 5],
    unread: Word,
    latency: PublishedSpans,
}

/// What a gateway counts; clones share it.
#[derive(Clone, Debug, Default)]
pub struct GatewayMetrics(Arc<Shared>);

impl GatewayMetrics {
    /// What gives the values when they are scraped.
    pub fn source(&self) -> Arc<dyn MetricSource> {
        let shared = Arc::clone(&self.0);
        Arc::new(move || samples(&shared))
    }

    /// How many commands or requests of a protocol ended so.
    pub fn commands(&self, protocol: Protocol, outcome: CommandOutcome) -> u64 {
        self.0.commands[protocol as usize][outcome as usize].get()
    }

    /// Commands and requests so far.
    pub(crate) fn all_commands(&self, protocol: Protocol) -> u64 {
        self.0.commands[protocol as usize].iter().map(Word::get).sum()
    }

    /// Connections of a protocol now.
    pub(crate) fn connections(&self, protocol: Protocol) -> u64 {
        let at = protocol as usize;
        self.0.accepted[at].get().saturating_sub(self.0.ended[at].get())
    }
}

fn samples(shared: &Shared) -> Vec<MetricSample> {
    let mut samples = Vec::new();
    for protocol in Protocol::ALL {
        let (at, name) = (protocol as usize, protocol.name());
        let (accepted, ended) = (shared.accepted[at].get(), shared.ended[at].get());
        let now = accepted.saturating_sub(ended) as f64;
        samples.push(MetricSample::level(MetricFamily::GatewayConnections, now).with("protocol", name));
        let accepted = MetricSample::count(MetricFamily::GatewayAccepted, accepted);
        samples.push(accepted.with("protocol", name));
        for outcome in CommandOutcome::ALL {
            let count = shared.commands[at][outcome as usize].get();
            let count = MetricSample::count(MetricFamily::GatewayCommands, count);
            samples.push(count.with("protocol", name).with("outcome", outcome.name()));
        }
    }
    for (why, word) in FrameError::ALL.iter().zip(&shared.frames) {
        let count = MetricSample::count(MetricFamily::GatewayFrames, word.get());
        samples.push(count.with("reason", why.name()));
    }
    for why in TurnedAway::ALL {
        let count = MetricSample::count(MetricFamily::GatewayTurnedAway, shared.away[why as usize].get());
        samples.push(count.with("reason", why.name()));
    }
    samples.push(MetricSample::level(MetricFamily::GatewayUnread, shared.unread.get() as f64));
    samples.push(MetricSample::spans(MetricFamily::GatewayLatency, shared.latency.load()));
    samples
}

/// The side of the gateway's thread.
#[derive(Debug)]
pub(crate) struct Counting {
    shared: GatewayMetrics,
    latency: RefCell<SpanTally>,
}

impl Counting {
    pub(crate) fn new(shared: GatewayMetrics) -> Self {
        Self { shared, latency: RefCell::default() }
    }

    pub(crate) const fn metrics(&self) -> &GatewayMetrics {
        &self.shared
    }

    pub(crate) fn accepted(&self, protocol: Protocol) {
        self.shared.0.accepted[protocol as usize].add(1);
    }

    pub(crate) fn ended(&self, protocol: Protocol) {
        self.shared.0.ended[protocol as usize].add(1);
    }

    pub(crate) fn turned_away(&self, why: TurnedAway) {
        self.shared.0.away[why as usize].add(1);
    }

    pub(crate) fn refused_frame(&self, why: FrameError) {
        let place = FrameError::ALL.iter().position(|known| known.name() == why.name());
        self.shared.0.frames[place.unwrap_or_default()].add(1);
    }

    pub(crate) fn unread(&self, bytes: usize) {
        self.shared.0.unread.set(bytes as u64);
    }

    /// Counts a command, and how long it took. [`Self::publish`] shows the latter.
    pub(crate) fn command(&self, protocol: Protocol, outcome: CommandOutcome, took_ns: u64) {
        self.shared.0.commands[protocol as usize][outcome as usize].add(1);
        self.latency.borrow_mut().record(took_ns);
    }

    pub(crate) fn publish(&self) {
        self.latency.borrow_mut().publish(&self.shared.0.latency);
    }
}
