//! What a seed stands for: how large the rack is, how bad the network, and what fails when.

use sluice_wire::Nanos;

use super::network::Rates;
use crate::dice::Dice;

/// When faults end.
pub(super) const FAULTS_END: Nanos = Nanos::from_millis(30);
/// From here on the rack must have found itself again: every task submitted now is replied to.
pub(super) const SETTLED: Nanos = Nanos::from_millis(50);
/// When clients submit no more.
pub(super) const SUBMIT_END: Nanos = Nanos::from_millis(58);
/// When the last tasks have ended and every worker has had its longest probe interval: all quotas are parked.
pub(super) const REST: Nanos = Nanos::from_millis(63);
/// When the run is over and the books are closed: past every deadline.
pub(super) const END: Nanos = Nanos::from_millis(110);
/// How long a task may take before its client calls it unknown.
pub(super) const DEADLINE: Nanos = Nanos::from_millis(40);
/// The longest that the network holds a packet.
pub(super) const PACKET_LIFETIME: Nanos = Nanos::from_millis(2);
/// How long a registration lives.
pub(super) const LEASE: Nanos = Nanos::from_millis(4);
/// How often it is renewed.
pub(super) const RENEW_EVERY: Nanos = Nanos::from_millis(1);
/// The longest silence of a worker whose tokens are all known to be parked.
pub(super) const PROBE_LONGEST: Nanos = Nanos::from_millis(2);

/// Something that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disaster {
    /// The process is gone, and a new life of it starts after a while.
    WorkerCrash { worker: usize, back_after: Nanos },
    /// The process stands still, and then goes on as if nothing had been.
    WorkerStall { worker: usize, lasts: Nanos },
    /// Nothing comes to the process or from it for a while; it goes on.
    WorkerCut { worker: usize, lasts: Nanos },
    /// The process finishes what it holds and leaves; a new life of it starts after a while.
    WorkerLeave { worker: usize, back_after: Nanos },
    /// The controller moves the worker to another slice.
    SliceMove { worker: usize, slice: usize },
    /// The switch loses its memory.
    SwitchRestart { down_for: Nanos },
    /// The switch and the controller in its process are gone together.
    ProcessRestart { down_for: Nanos },
    /// The client forgets everything and starts anew.
    ClientRestart { client: usize },
    /// The controller forgets everything and reads it back from the switch.
    ControllerRestart { down_for: Nanos },
}

/// One run's settings, all drawn from its seed.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) workers: usize,
    pub(super) clients: usize,
    pub(super) slices: usize,
    pub(super) quotas: Vec<u8>,
    /// Service takes from a floor up to this.
    pub(super) service_max: Nanos,
    /// The mean gap between a client's tasks while faults last; it may be more than the workers can bear.
    pub(super) gap: Nanos,
    /// Tasks that may wait in a slice.
    pub(super) limit: u32,
    /// Tasks that each client may have outstanding: with few, their numbers soon share a cell.
    pub(super) replay_cells: u32,
    /// Of a thousand tasks, those that a client never retries.
    pub(super) no_retry: u64,
    pub(super) rates: Vec<Rates>,
    pub(super) disasters: Vec<(Nanos, Disaster)>,
}

impl Scenario {
    pub(super) fn of(seed: u64) -> Self {
        let dice = &mut Dice::new(seed, 1);
        let workers = dice.between(1, 6) as usize;
        let slices = dice.between(1, 2.min(workers as u64)) as usize;
        let clients = dice.between(1, 2) as usize;
        let mut scenario = Self {
            workers,
            clients,
            slices,
            quotas: (0..workers).map(|_| dice.pick(&[1, 1, 2, 2, 3, 8])).collect(),
            service_max: Nanos::from_micros(dice.pick(&[20, 60, 200])),
            gap: Nanos::from_micros(dice.between(150, 500)),
            limit: dice.pick(&[1, 4, 16, 16]) as u32,
            replay_cells: dice.pick(&[4, 64]) as u32,
            no_retry: dice.pick(&[0, 0, 100]),
            rates: Rates::draw(dice),
            disasters: Vec::new(),
        };
        scenario.disasters = (0..dice.below(6)).map(|_| scenario.disaster(dice)).collect();
        scenario
    }

    /// The mean gap between a client's tasks now: once faults are over, half of what the workers can bear.
    pub(super) fn gap_at(&self, now: Nanos) -> Nanos {
        let workers_per_slice = (self.workers / self.slices) as u64;
        let bearable = Nanos(self.clients as u64 * self.service_max.0 / workers_per_slice);
        if now < FAULTS_END { self.gap } else { self.gap.max(bearable) }
    }

    fn disaster(&self, dice: &mut Dice) -> (Nanos, Disaster) {
        let at = dice.span(Nanos::from_millis(2), Nanos::from_millis(24));
        let short = dice.span(Nanos::from_micros(20), Nanos::from_millis(5));
        let long = dice.span(Nanos::from_micros(50), Nanos::from_millis(8));
        let worker = dice.below(self.workers as u64) as usize;
        let disaster = match dice.below(9) {
            0 => Disaster::WorkerCrash { worker, back_after: short },
            1 => Disaster::WorkerStall { worker, lasts: long },
            7 => Disaster::WorkerCut { worker, lasts: long },
            8 => Disaster::ProcessRestart { down_for: short },
            2 => Disaster::WorkerLeave { worker, back_after: short },
            3 => Disaster::SliceMove { worker, slice: dice.below(self.slices as u64) as usize },
            4 => Disaster::SwitchRestart { down_for: short },
            5 => Disaster::ClientRestart { client: dice.below(self.clients as u64) as usize },
            _ => Disaster::ControllerRestart { down_for: short },
        };
        (at, disaster)
    }
}
