//! Two controllers of which one leads while the switch lets it, in racks that have standbys: what happens to
//! them, which of them each host calls, and the check that nothing is changed in the name of two.
//!
//! All of it is drawn from a stream of its own.

use std::collections::BTreeMap;

use sluice_control::{Contender, LeadAnswer, LeadCall};
use sluice_events::dice::Dice;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Nanos, Term};

use super::hosts::Host;
use super::kind::RackKind;
use super::limits::{FAULTS_END, LEASE};

/// The place of a controller: its address, at which one process after the other runs.
pub(super) type ControllerSeat = usize;

/// How many seats there are.
pub(super) const SEATS: usize = 2;

/// How many of a thousand calls about the lead are lost while faults last.
const LOST: u64 = 30;

/// What happens to one of the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StandbyFailure {
    /// The process is killed, and another one starts there after a while.
    Kill { down_for: Nanos },
    /// The process ends and gives the lead up; another one starts there after a while.
    End { down_for: Nanos },
    /// The process stands still, and then goes on.
    Stall { lasts: Nanos },
    /// The process cannot reach the switch; both go on.
    Cut { lasts: Nanos },
    /// No controller can reach the switch.
    CutAll { lasts: Nanos },
    /// One of the last two happens at the process's next write, whose operations then reach the switch only
    /// when the time is over: they were about to leave, or are sent again by the transport.
    AtNextWrite { stalls: bool, lasts: Nanos },
}

/// What happens to a store that grants one of the controllers a lease (`store`), or to the way there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreFailure {
    /// It answers nobody, and keeps what it granted.
    Down { lasts: Nanos },
    /// One controller does not reach it.
    Cut { lasts: Nanos },
}

/// Who is struck: this seat, or whoever leads then.
pub(super) type Struck = Option<ControllerSeat>;

/// What happens between controllers and switch beside operations on tables.
#[derive(Debug)]
pub(super) enum StandbyEvent {
    Failure(Struck, StandbyFailure),
    /// A controller looks whether its time as the leader is over, and whether to call.
    Looks(ControllerSeat),
    /// A call about the lead reaches the switch.
    Call {
        seat: ControllerSeat,
        process: u32,
        sent: Nanos,
        call: LeadCall,
    },
    Answered {
        seat: ControllerSeat,
        process: u32,
        sent: Nanos,
        answer: LeadAnswer,
    },
    /// Another process starts.
    Back(ControllerSeat),
    LinkBack(ControllerSeat),
    StoreFailure(Struck, StoreFailure),
    /// A controller calls the store.
    AsksStore(ControllerSeat),
    /// A controller's call for the lease, or one that gives it up, reaches the store.
    StoreHears {
        seat: ControllerSeat,
        process: u32,
        sent: Nanos,
        ends: bool,
    },
    StoreSays {
        seat: ControllerSeat,
        process: u32,
        sent: Nanos,
        holds: bool,
    },
}

/// The state of both controllers beside their machines.
#[derive(Debug)]
pub(super) struct Standbys {
    dice: Dice,
    pub(super) contenders: [Contender; SEATS],
    /// When each looks next.
    pub(super) looks_at: [Nanos; SEATS],
    pub(super) claims: Claims,
    /// Whether each stands still (true) or is cut off at its next write, and for how long.
    pub(super) at_next_write: [Option<(bool, Nanos)>; SEATS],
    callers: Vec<Caller>,
}

/// Which controller a host calls.
#[derive(Debug)]
struct Caller {
    host: Host,
    seat: ControllerSeat,
    is_unanswered: bool,
}

impl Standbys {
    pub(super) fn new(kind: &RackKind, seed: u64) -> Option<Self> {
        kind.has_standbys.then(|| Self {
            dice: Dice::named(seed, "standbys", 0),
            contenders: [(); SEATS].map(|()| Contender::new(LEASE)),
            looks_at: [Nanos(0); SEATS],
            claims: Claims::default(),
            at_next_write: [None; SEATS],
            callers: Vec::new(),
        })
    }

    /// The failures of the run, with their times.
    pub(super) fn draw(&mut self) -> Vec<(Nanos, Struck, StandbyFailure)> {
        let dice = &mut self.dice;
        let count = dice.between(1, 6);
        let one = |_| {
            let at = dice.span(Nanos::from_millis(1), Nanos::from_millis(26));
            let struck =
                if dice.chance(600) { None } else { Some(dice.below(SEATS as u64) as ControllerSeat) };
            let left = FAULTS_END - at;
            let lasts = dice.span(Nanos::from_micros(50), LEASE.times(3)).min(left);
            let down_for = lasts;
            let failure = match dice.below(9) {
                0 | 1 => StandbyFailure::Kill { down_for },
                2 => StandbyFailure::End { down_for },
                3 => StandbyFailure::Stall { lasts },
                4 => StandbyFailure::Cut { lasts },
                5..=7 => StandbyFailure::AtNextWrite { stalls: dice.chance(500), lasts },
                _ => StandbyFailure::CutAll { lasts },
            };
            (at, struck, failure)
        };
        (0..count).map(one).collect()
    }

    /// How long a call about the lead is on its way; `None` if it is lost.
    pub(super) fn way(&mut self, now: Nanos) -> Option<Nanos> {
        let is_lost = now < FAULTS_END && self.dice.chance(LOST);
        let way = self.dice.span(Nanos(500), Nanos(30_000));
        (!is_lost).then_some(way)
    }

    pub(super) fn any_seat(&mut self) -> ControllerSeat {
        self.dice.below(SEATS as u64) as ControllerSeat
    }

    /// The controller that a host calls.
    pub(super) fn called_by(&mut self, host: Host) -> ControllerSeat {
        self.caller(host).seat
    }

    /// A host calls again. If its last call was not answered, it turns to the other controller.
    pub(super) fn calls(&mut self, host: Host) {
        let caller = self.caller(host);
        if caller.is_unanswered {
            caller.seat = 1 - caller.seat;
        }
        caller.is_unanswered = true;
    }

    /// A host was answered, by a controller that leads or not.
    pub(super) fn is_answered(&mut self, host: Host, by_leader: bool) {
        let caller = self.caller(host);
        caller.is_unanswered = false;
        if !by_leader {
            caller.seat = 1 - caller.seat;
        }
    }

    fn caller(&mut self, host: Host) -> &mut Caller {
        let known = self.callers.iter().position(|caller| caller.host == host);
        let index = known.unwrap_or_else(|| {
            self.callers.push(Caller { host, seat: 0, is_unanswered: false });
            self.callers.len() - 1
        });
        &mut self.callers[index]
    }
}

/// Which process was granted which term, counted beside machines and switch.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// The process at the end of each connection.
    processes: BTreeMap<u32, u32>,
    granted: BTreeMap<Term, u32>,
}

impl Claims {
    /// A connection was made by this process.
    pub(super) fn connected(&mut self, line: u32, process: u32) {
        self.processes.insert(line, process);
    }

    /// The process at the end of this connection, as far as it got one.
    pub(super) fn process_of(&self, line: u32) -> Option<u32> {
        self.processes.get(&line).copied()
    }

    /// The switch answered an operation that came over this connection in the name of this term.
    pub(super) fn check(
        &mut self,
        line: u32,
        by: Term,
        op: &TableOp,
        answer: &TableAnswer,
    ) -> Result<(), String> {
        if matches!(answer, TableAnswer::Superseded(_)) {
            return Ok(());
        }
        let process = self.process_of(line);
        if let (TableOp::Claim(term), TableAnswer::Done, Some(process)) = (op, answer, process) {
            let twice = self.granted.insert(*term, process);
            return twice.map_or(Ok(()), |_| Err(format!("11: term {term:?} was granted twice")));
        }
        if !changes(op) {
            return Ok(());
        }
        match self.granted.last_key_value() {
            Some((term, leader)) if *term == by && Some(*leader) == process => Ok(()),
            present => Err(format!(
                "11: process {process:?} writes {op:?} in the name of {by:?}, and {present:?} leads"
            )),
        }
    }
}

/// Whether an operation changes something in the switch beside whom it obeys. Said here again, since the
/// check trusts nothing that the switch is asked.
pub(super) const fn changes(op: &TableOp) -> bool {
    match op {
        TableOp::SetType(..)
        | TableOp::SetNeeds(..)
        | TableOp::SetSlice(..)
        | TableOp::SetWorker(..)
        | TableOp::RaiseGeneration(..)
        | TableOp::ResetCounters(..)
        | TableOp::SetClient(..)
        | TableOp::SetServer(..)
        | TableOp::SetRing(..)
        | TableOp::SetCopies(..)
        | TableOp::SetSpine(..)
        | TableOp::Inject(_) => true,
        TableOp::ReadShape
        | TableOp::ReadType(_)
        | TableOp::ReadSlice(_)
        | TableOp::ReadWorker(_)
        | TableOp::ReadClient(_)
        | TableOp::ReadServer(_)
        | TableOp::ReadRing(..)
        | TableOp::Claim(_)
        | TableOp::Drain => false,
    }
}
