//! Names and registrations as they come over gRPC: bytes become messages, messages what a host says, and the
//! controller hears it beside a switch. No panic, each call is answered at most once, and nothing that is
//! shown commands a terminal.
//!
//! An input is a sequence of calls: a byte for its kind, one for its length in bytes, and so much of a
//! message.
#![no_main]

extern crate self as sluice_rpc;
extern crate self as tonic;
extern crate self as tracing;

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use prost::Message;
use sluice_control::{
    Action, Answer, CallId, ClientGrant, ClientHello, Controller, Event, Plan, ServerGrant, ServerHello,
    SlicePlan, WorkerGrant, WorkerHello, check_name,
};
use sluice_switch::rain::Selective;
use sluice_switch::{Arrival, Config, Program};
use sluice_wire::registrations::Sizes;
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Endpoint, Epoch, Incarnation, Nanos, TaskType, WorkerId};

use fields::{name, number, present};

// The files themselves: the crate would bring RPC and TLS into an instrumented build.
#[allow(dead_code, reason = "only what hosts send is read")]
#[path = "../../crates/run/rpc/src/fields.rs"]
pub mod fields;
#[allow(dead_code, unreachable_pub, reason = "only what hosts send is read")]
#[path = "../../crates/run/rpc/src/hosts.rs"]
mod hosts;
#[allow(dead_code, reason = "only what hosts send is read")]
#[path = "../../crates/run/rpc/src/ops.rs"]
mod ops;
#[allow(dead_code, reason = "only what hosts send is read")]
#[path = "../../crates/run/rpc/src/servers.rs"]
mod servers;
#[allow(dead_code, unreachable_pub, reason = "only some is shown")]
#[path = "../../crates/run/rpc/src/shown.rs"]
mod shown;

/// The messages of `proto/sluice/v1`.
#[allow(dead_code, reason = "only what hosts send is read")]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/sluice.v1.rs"));
}

pub use fields::Malformed;
pub(crate) use shown::shown;

#[path = "../../crates/run/net/src/agent"]
mod agent {
    #[allow(dead_code, unreachable_pub, reason = "only what agents send is read")]
    pub(crate) mod messages;
    #[allow(dead_code, reason = "only what agents send is read")]
    mod slowdowns;

    /// What an agent's message is made of.
    #[allow(dead_code, reason = "none is made here")]
    pub(crate) struct AgentOptions {
        pub(crate) server: String,
        pub(crate) settings: sluice_host::agent::AgentSettings,
    }

    mod server_agent {
        use sluice_host::agent::Decision;
        use sluice_wire::SliceId;
        use sluice_wire::tallies::SliceTally;

        /// Likewise.
        #[allow(dead_code, reason = "none is made here")]
        pub(crate) struct Interval {
            pub(crate) decisions: Vec<Decision>,
            pub(crate) tallies: Vec<SliceTally>,
            pub(crate) slowdowns: Vec<(SliceId, super::slowdowns::Slowdowns)>,
            pub(crate) unseen: u64,
        }
    }
}

/// Stands for gRPC's own.
pub struct Status(String);

impl Status {
    /// What a caller said makes no sense.
    pub fn invalid_argument(why: String) -> Self {
        Self(why)
    }

    /// A bug of ours.
    pub fn internal(why: &str) -> Self {
        panic!("{why}")
    }
}

/// Stands for the log.
#[macro_export]
macro_rules! error {
    ($($said:tt)*) => { eprintln!($($said)*) };
}

fuzz_target!(|bytes: &[u8]| {
    let mut rack = Rack::up();
    let mut rest = bytes;
    while let [kind, length, tail @ ..] = rest {
        let (message, after) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = after;
        if let Err(Status(why)) = rack.hear(*kind, message) {
            fit_to_be_shown(&why);
        }
        rack.settle();
    }
    rack.look();
});

/// Nothing in it ends a line, commands a terminal, hides or turns the order of letters round.
fn fit_to_be_shown(text: &str) {
    let is_hidden = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    assert!(!text.is_empty() && !text.contains(is_hidden), "{text:?}");
}

/// A controller beside its switch.
struct Rack {
    controller: Controller,
    switch: Selective,
    now: Nanos,
    out: Vec<Action>,
    calls: u64,
    answered: BTreeSet<CallId>,
}

impl Rack {
    fn up() -> Self {
        let size = Config {
            workers: 4,
            clients: 2,
            slices: 2,
            types: 8,
            tasks_per_slice: 32,
            tokens_per_slice: 32,
            replay_cells: 8,
            servers: 2,
            ..Config::full(Epoch(1))
        };
        let slice = |name: &str, task_type| SlicePlan {
            name: name.to_owned(),
            types: vec![TaskType(task_type)],
            sizes: Sizes::new(&[Nanos(3_000), Nanos(14_000)]).unwrap_or_default(),
            serving: Serving::of(&[Labels(1), Labels(3)], &[Labels(1), Labels(3)]).unwrap_or_default(),
            ..SlicePlan::default()
        };
        let plan = Plan {
            labels: vec!["gpu".to_owned(), "ssd".to_owned()],
            needs: vec![(TaskType(1), Labels(3))],
            ..Plan::new(Endpoint::default(), vec![slice("get", 1), slice("scan", 2)])
        };
        let mut rack = Self {
            controller: Controller::new(plan, [7; 32]).expect("a sound plan"),
            switch: Selective::new(size),
            now: Nanos(0),
            out: Vec::new(),
            calls: 0,
            answered: BTreeSet::new(),
        };
        rack.event(Event::SwitchUp(rack.switch.shape()));
        rack.settle();
        rack
    }

    /// Reads a message as the service does, and hears it.
    fn hear(&mut self, kind: u8, bytes: &[u8]) -> Result<(), Status> {
        let call = CallId(self.calls);
        let event = match kind % 11 {
            0 => Event::WorkerHello {
                call,
                hello: WorkerHello::try_from(read::<v1::RenewWorkerRequest>(bytes)?)?,
            },
            1 => Event::ClientHello {
                call,
                hello: ClientHello::try_from(read::<v1::RenewClientRequest>(bytes)?)?,
            },
            2 => Event::ServerHello {
                call,
                hello: ServerHello::try_from(read::<v1::RenewServerRequest>(bytes)?)?,
            },
            3 => {
                let v1::LeaveWorkerRequest { name: asked, life } = read(bytes)?;
                Event::WorkerLeave { call, name: name("name", asked)?, life }
            }
            4 => {
                let v1::LeaveClientRequest { name: asked, incarnation } = read(bytes)?;
                Event::ClientLeave { call, name: name("name", asked)?, incarnation: Incarnation(incarnation) }
            }
            5 => {
                let v1::LeaveServerRequest { name: asked, life } = read(bytes)?;
                Event::ServerLeave { call, name: name("name", asked)?, life }
            }
            6 => {
                let v1::MoveWorkerRequest { worker, slice } = read(bytes)?;
                Event::MoveWorker { call, name: name("worker", worker)?, slice: name("slice", slice)? }
            }
            7 => {
                let v1::SetTypeRequest { task_type, slice } = read(bytes)?;
                let task_type = TaskType(number("task_type", task_type)?);
                Event::SetType {
                    call,
                    task_type,
                    slice: slice.map(|slice| name("slice", slice)).transpose()?,
                }
            }
            8 => return self.report(bytes),
            9 => {
                self.now = self.now + Nanos::from_millis(10 * (1 + bytes.len() as u64));
                self.controller.tick(self.now, &mut self.out);
                return Ok(());
            }
            _ => {
                // The controller, or its link, was away for a moment.
                self.event(Event::SwitchUp(self.switch.shape()));
                return Ok(());
            }
        };
        self.calls += 1;
        self.event(event);
        Ok(())
    }

    fn report(&mut self, bytes: &[u8]) -> Result<(), Status> {
        let interval: v1::AgentInterval =
            present("interval", read::<v1::ReportIntervalRequest>(bytes)?.interval)?;
        let server = name("interval.server", interval.server.clone())?;
        let mut tallies = agent::messages::tallies(&interval)?;
        agent::messages::keep_own(&mut tallies, |worker: WorkerId| {
            self.controller.worker_name(worker).is_some()
        });
        for line in agent::messages::lines(&interval, |slice| format!("s{slice}")) {
            fit_to_be_shown(&line);
        }
        self.event(Event::Tallies { server, advises: interval.advises, tallies });
        Ok(())
    }

    fn event(&mut self, event: Event) {
        self.controller.event(self.now, event, &mut self.out);
    }

    /// Until the controller wants nothing more of the switch.
    fn settle(&mut self) {
        while !self.out.is_empty() {
            for action in std::mem::take(&mut self.out) {
                match action {
                    Action::Table(op) => {
                        let answer = self.table(op);
                        self.event(Event::TableAnswered(answer));
                    }
                    Action::Answer { call, answer } => self.answered(call, answer),
                    Action::Note(note) => fit_to_be_shown(&note.to_string()),
                    Action::TellAgent { server, .. } => assert!(check_name(&server).is_ok()),
                    Action::SetDepth { depth, .. } => assert!((1..=8).contains(&depth)),
                }
            }
        }
    }

    /// A sweep makes one pass and is lost: no packets go round here.
    fn table(&mut self, op: TableOp) -> TableAnswer {
        let answer = self.switch.table(op);
        if let (TableOp::Inject(sweep), TableAnswer::Done) = (op, answer) {
            self.switch.pass(self.now, Arrival::Control(sweep));
        }
        answer
    }

    fn answered(&mut self, call: CallId, answer: Answer) {
        assert!(
            call.0 < self.calls && self.answered.insert(call),
            "a call was answered twice, or never made"
        );
        match &answer {
            Answer::Wait { why, .. } => fit_to_be_shown(&why.to_string()),
            Answer::Refused { why } => fit_to_be_shown(&why.to_string()),
            _ => {}
        }
        // As it goes out, and as a host reads it.
        match answer {
            Answer::Worker(grant) => {
                assert!(WorkerGrant::try_from(v1::WorkerGrant::from(&grant)) == Ok(grant));
            }
            Answer::Client(grant) => {
                assert!(ClientGrant::try_from(v1::ClientGrant::from(&*grant)) == Ok(*grant));
            }
            Answer::Server(grant) => {
                assert!(ServerGrant::try_from(v1::ServerGrant::from(&grant)) == Ok(grant));
            }
            _ => {}
        }
    }

    fn look(&mut self) {
        let view = self.controller.view(self.now);
        let names = view.workers.iter().map(|worker| &worker.name);
        let names = names.chain(view.clients.iter().map(|client| &client.name));
        for name in names.chain(view.servers.iter().map(|server| &server.name)) {
            assert!(name.is_empty() || check_name(name).is_ok(), "{name:?}");
        }
    }
}

/// A message, or what gRPC would say of the bytes.
fn read<M: Message + Default>(bytes: &[u8]) -> Result<M, Status> {
    M::decode(bytes).map_err(|_| Status("the bytes are no message".to_owned()))
}
