//! The receiving end for `sluice write`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::{env, fs, panic};

use serde::Serialize;
use serde_json::json;
use sluice_host::rdma::{PairSpec, RoceRefusal};
use sluice_net::clock::monotonic;
use sluice_net::rdma::{Mtu, Receiver, SharedMemory};
use sluice_net::udp::{SocketOptions, Wait};
use sluice_support::fail::{Failure, Outcome};
use sluice_support::print;
use sluice_support::seed::random_bits;
use sluice_support::stop::Stop;
use sluice_wire::Nanos;
use sluice_wire::roce::{MAX_WRITE_BYTES, Psn, Qpn, Rkey, Transport};

use crate::args::FLOWS_MAX;

/// Default names in WRITEs: the receiver's first queue pair and its key.
pub(super) const FIRST_PAIR: Qpn = Qpn(1);
pub(super) const KEY: Rkey = Rkey(1);
/// How often a stop request is checked.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);

/// What came.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct ReceivedWrites {
    /// WRITEs whose bytes were stored.
    pub(super) placed: u64,
    /// Datagrams that were not valid WRITEs.
    pub(super) refused: u64,
    /// WRITEs with another number than expected: earlier ones were lost, or overtook this one.
    pub(super) resynchronised: u64,
}

/// Receives writes on a thread of its own.
pub(super) struct WriteReceiver {
    local: SocketAddr,
    stop: Stop,
    thread: JoinHandle<Outcome<ReceivedWrites>>,
}

impl WriteReceiver {
    /// Starts to receive.
    pub(super) fn start(at: SocketAddr) -> Outcome<Self> {
        let mut receiver = open(at)?;
        let (local, stop) = (receiver.local(), Stop::default());
        let asked = stop.clone();
        let thread = thread::spawn(move || take(&mut receiver, &asked));
        Ok(Self { local, stop, thread })
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// What came.
    pub(super) fn end(self) -> Outcome<ReceivedWrites> {
        self.stop.ask();
        self.thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
    }
}

/// Receives WRITEs until a signal.
pub(super) fn until_stopped(at: SocketAddr, as_json: bool, stop: &Stop) -> Outcome<()> {
    let mut receiver = open(at)?;
    if as_json {
        print::line(json!({ "schema": "sluice.listening.v1", "roce": receiver.local() }))?;
    } else {
        print::to_stderr(format_args!("taking WRITEs at {}, until Ctrl-C", receiver.local()));
    }
    let taken = take(&mut receiver, stop)?;
    if as_json {
        let mut said = serde_json::to_value(taken).map_err(Failure::broken)?;
        said["schema"] = json!("sluice.taken.v1");
        print::line(said)?;
    } else {
        let ReceivedWrites { placed, refused, resynchronised } = taken;
        print::line(format_args!(
            "{placed} WRITEs placed, {refused} datagrams refused, {resynchronised} gaps in numbers"
        ))?;
    }
    Ok(())
}

/// Memory for one WRITE, and a pair for each possible flow.
fn open(at: SocketAddr) -> Outcome<Receiver> {
    let mut receiver = Receiver::bind(at, &SocketOptions::default())?;
    let path = env::temp_dir().join(format!("sluice-write-{:016x}", random_bits()?));
    let memory = SharedMemory::create(&path, MAX_WRITE_BYTES)?;
    // The file is private, so its name is removed.
    fs::remove_file(&path).ok();
    receiver.register(KEY, 0, Arc::new(memory))?;
    for flow in 0..u32::from(FLOWS_MAX) {
        receiver.connect(PairSpec {
            number: Qpn(FIRST_PAIR.0 + flow),
            peer_number: Qpn(0),
            peer: None,
            transport: Transport::Uc,
            first: Psn::new(0),
            mtu: Mtu::of_bytes(MAX_WRITE_BYTES).expect("the largest is one"),
            icrc: true,
        });
    }
    Ok(receiver)
}

fn take(receiver: &mut Receiver, stop: &Stop) -> Outcome<ReceivedWrites> {
    // WRITEs that were sent before the end are in the socket by then.
    while !stop.is_asked() || receiver.step(Wait::Poll)? > 0 {
        receiver.step(Wait::Until(monotonic() + LOOK_EVERY))?;
    }
    let counts = receiver.counts();
    Ok(ReceivedWrites {
        placed: counts.placed,
        refused: RoceRefusal::ALL.iter().map(|why| counts.refused(*why)).sum(),
        resynchronised: counts.resynchronised,
    })
}
