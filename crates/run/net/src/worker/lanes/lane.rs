//! A lane's own state beside its state machine: its registration, and the bytes of its tasks.

use sluice_control::WorkerHello;
use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_rpc::registrar::{RegistrarEvent, WorkerRegistrar};
use sluice_wire::{Endpoint, Nanos, payload_bytes_max};

use super::options::LaneServerOptions;
use crate::udp::Outbox;
use crate::worker::draining::{Drained, Draining};
use crate::worker::engine::{Effects, LoggedRegistration, WantedRun, dilated, remember, settings};
use crate::worker::recent::{RecentMeter, WayToSwitch};

pub(super) struct ServerLane {
    /// The index of the service among the server's.
    pub(super) service: usize,
    pub(super) effects: Effects,
    pub(super) registrar: WorkerRegistrar,
    pub(super) hello: WorkerHello,
    pub(super) recent: RecentMeter,
    /// The newest first.
    pub(super) switches: Vec<Endpoint>,
    said: LoggedRegistration,
    leaving: Option<Draining>,
    drain_limit: Nanos,
    dilation: u32,
}

impl ServerLane {
    pub(super) fn new(
        options: &LaneServerOptions,
        hello: WorkerHello,
        registrar: WorkerRegistrar,
        service: usize,
        now: Nanos,
    ) -> Self {
        let worker = &options.worker;
        let packet_max = payload_bytes_max(worker.datagram_max);
        Self {
            service,
            effects: Effects::new(&settings(worker), worker, hello.at, packet_max),
            registrar,
            hello,
            recent: RecentMeter::new(now),
            switches: Vec::new(),
            said: LoggedRegistration::default(),
            leaving: None,
            drain_limit: worker.drain_limit,
            dilation: worker.dilation.max(1),
        }
    }

    /// Takes the controller's answers. Returns the reason if the controller refuses this lane before it was
    /// ever registered.
    pub(super) fn take_registrations(
        &mut self,
        machine: &mut Worker,
        settings: &mut WorkerSettings,
        (now, dilation): (Nanos, u32),
        actions: &mut Vec<Action>,
    ) -> Option<String> {
        while let Some(event) = self.registrar.try_next() {
            match event {
                RegistrarEvent::Granted(grant) => {
                    remember(&mut self.switches, grant.switch);
                    self.said.granted(&self.hello.name, &grant);
                    self.effects.slots.granted(now, grant.slice, grant.ring);
                    self.effects.ranked = false;
                    settings.retry_horizon = grant.retry_horizon;
                    settings.transit = grant.transit;
                    machine.grant_lane(now, settings, dilated(&grant, dilation), actions);
                }
                RegistrarEvent::Wait { why, .. } => self.said.waits(&self.hello.name, &why),
                RegistrarEvent::Refused { why } if self.switches.is_empty() => return Some(why),
                // The registrar's thread logs the refusal and asks again.
                RegistrarEvent::Lost { .. } | RegistrarEvent::Refused { .. } => {}
                RegistrarEvent::Left { final_sent } => {
                    machine.left(now, final_sent);
                    self.leaving.iter_mut().for_each(|leaving| leaving.let_go = true);
                }
            }
        }
        None
    }

    /// Carries out the actions that the state machine requested at `at`; runs go to `runs`.
    pub(super) fn perform(
        &mut self,
        lane: usize,
        at: Nanos,
        actions: &mut Vec<Action>,
        runs: &mut Vec<(usize, WantedRun)>,
        outbox: &mut Outbox,
    ) {
        actions.retain(|action| {
            let Action::Run { slot, task, task_type, payload } = *action else { return true };
            runs.push((lane, WantedRun { slot, task, task_type, payload }));
            false
        });
        self.effects.perform(at, actions, self.switches.first().copied(), outbox);
        if std::mem::take(&mut self.effects.renew) {
            self.registrar.renew_now();
        }
    }

    /// If the server's queue pair failed: stops tokens until the controller has registered this lane anew.
    pub(super) fn rejoin_if_pair_failed(&mut self, machine: &mut Worker) {
        if let Some(failures) = self.effects.slots.new_failure() {
            machine.suspend();
            self.hello.rejoins = failures;
            self.registrar.set_hello(self.hello.clone());
        }
    }

    /// Continues to leave.
    pub(super) fn leave(&mut self, machine: &mut Worker, settings: &WorkerSettings, now: Nanos) -> Drained {
        let Some(leaving) = &mut self.leaving else {
            self.registrar.leave();
            self.leaving = Some(Draining::begin(now, machine, self.drain_limit));
            return Drained::NotYet;
        };
        leaving.turn(now, machine, settings, self.effects.fetched_at, self.dilation)
    }

    /// When the lane has to look again at its leave.
    pub(super) fn leaves_at(&self, now: Nanos) -> Option<Nanos> {
        let leaving = self.leaving.as_ref()?;
        Some(leaving.next_turn(now, self.effects.fetched_at, self.dilation))
    }

    /// Reports the lane's recent work, and how many tasks it refused because their budget was spent, to the
    /// controller when there is something new.
    pub(super) fn report_recent(&mut self, now: Nanos, machine: &Worker) {
        let late = machine.refused_late();
        let Some(recent) = self.recent.turn(now, WayToSwitch::of(machine, now)) else { return };
        if (recent, late) != (self.hello.recent, self.hello.refused_late) {
            (self.hello.recent, self.hello.refused_late) = (recent, late);
            self.registrar.set_hello_later(self.hello.clone());
        }
    }

    /// Reports a new capacity to the controller if it differs much from the last one.
    pub(super) fn report_capacity(&mut self, capacity: u32) {
        if capacity.abs_diff(self.hello.capacity) > self.hello.capacity / 10 {
            self.hello.capacity = capacity.max(1);
            self.registrar.set_hello(self.hello.clone());
        }
    }
}
