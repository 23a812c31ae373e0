//! A run: its events one after the other, from the start of all processes to the final check. What an event
//! does stands in a file of the machine or failure that it is for.

mod awaits;
mod clients;
mod controller;
mod enlisting;
mod gray_failures;
mod operators;
mod process_failures;
mod session;
mod standbys;
mod store;
mod switch;
mod workers;
mod writes;

use std::mem;

use sluice_events::{Address, Mail, WorldEvent};
use sluice_wire::{Nanos, Packet};

use super::Broken;
use super::event::Event;
use super::hosts::{Host, SWITCH};
use super::kind::RackKind;
use super::limits::{END, FAULTS_END, LEASE, REST, SUBMIT_END};
use super::orders::orders;
use super::rack::{Rack, Trace};
use super::replay_log::{self, Party};
use super::tally::Tally;
use super::workers::WorkerProcess;

/// The time between two checks of the promises that hold at every moment.
const INSPECT_EVERY: Nanos = Nanos::from_micros(20);

/// How long three of four runs continue once the rack rests: three leases, and six of the longest intervals
/// between probes.
const CALM: Nanos = Nanos(3 * LEASE.0);

/// Runs a rack from its seed to the final check.
pub(super) fn run(kind: &RackKind, seed: u64, trace: Trace<'_>) -> Result<Tally, Broken> {
    let mut rack = Rack::new(kind, seed, trace);
    rack.begin();
    rack.play().map_err(|what| Broken { seed, at_ns: rack.world.now.0, what })
}

impl Rack<'_> {
    pub(super) fn begin(&mut self) {
        let about = replay_log::scenario(&self.scenario);
        self.say(Party::Rack, || about);
        for worker in 0..self.workers.len() {
            self.start_worker(worker);
        }
        for client in 0..self.clients.len() {
            self.start_client(client);
            self.after(Nanos(50_000), Event::Submit(client));
        }
        self.start_servers();
        if self.standbys.is_none() {
            self.connect_controller();
        }
        self.start_standbys();
        for (at, process_failure) in self.scenario.process_failures.clone() {
            self.remind(at, Event::ProcessFailure(process_failure));
        }
        for (at, gray_failure) in self.scenario.gray_failures.clone() {
            self.remind(at, Event::GrayFailure(gray_failure));
        }
        for (at, order) in orders(self.seed, &self.scenario) {
            self.remind(at, Event::Order(order));
        }
        self.remind(FAULTS_END, Event::FaultsEnd);
        self.world.engine.set(self.inspections, INSPECT_EVERY);
        self.remind(REST, Event::Rest);
        self.remind(END, Event::Close);
    }

    fn play(&mut self) -> Result<Tally, String> {
        while let Some((at, what)) = self.world.next() {
            let event = match what {
                WorldEvent::Mail(mail) => Event::Mail(at, mail),
                WorldEvent::Scheduled(event) => event,
                WorldEvent::Clock => Event::Inspect,
                WorldEvent::Timer => continue,
            };
            if matches!(event, Event::Close) {
                self.inspect_at_rest()?;
                return self.close();
            }
            if let Some(event) = self.hold_up(event) {
                self.happen(event)?;
            }
        }
        Err("the run ended before its time".to_owned())
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Mail(to, mail) => self.on_mail(to, mail)?,
            Event::Op { life, switch, by, op } => {
                self.on_line(life, |rack| rack.table_op(life, switch, by, *op)).unwrap_or(Ok(()))?;
            }
            Event::OpDone(life) => {
                self.on_line(life, |rack| rack.table_answered(life));
            }
            Event::Call(call) => self.call_arrives(*call),
            Event::CallAnswered { call, answer } => self.call_answered(call, *answer)?,
            Event::ControllerWakes(life) => {
                self.on_line(life, |rack| rack.on_controller_timer(life)).unwrap_or(Ok(()))?;
            }
            Event::Wake(host) => self.wake(host)?,
            Event::Renew(host, life) => self.renew_if_alive(host, life),
            Event::Finish { worker, life, slot } => self.finish(worker, life, slot)?,
            Event::Early { worker, life } => self.early(worker, life)?,
            Event::Write { server, write } => self.on_write(server, write)?,
            Event::WriteWaited(server) => self.write_is_read(server)?,
            Event::Nak { server, id, expected } => self.nak(server, id, expected)?,
            Event::ServerFailure(server, server_failure) => self.server_failure(server, server_failure)?,
            Event::Submit(client) => self.submit(client)?,
            Event::ProcessFailure(process_failure) => self.process_failure(process_failure)?,
            Event::GrayFailure(gray_failure) => self.gray_failure(gray_failure)?,
            Event::Order(order) => self.order(order),
            Event::Look => self.show_all()?,
            Event::FaultsEnd => self.faults_end(),
            Event::WorkerBack(worker) => self.worker_back(worker),
            Event::WorkerGoesOn(worker) => self.resume_worker(worker)?,
            Event::SwitchBack => self.switch_back(),
            Event::SwitchDrains { back_after, until } => self.switch_drains(back_after, until),
            Event::SwitchGoesOn => self.resume_switch()?,
            Event::ControllerBack => self.restart_controller(),
            Event::LinkBack => self.connect_controller(),
            Event::FormerLooks => self.check_former(),
            Event::Standby(event) => self.on_standby_event(*event),
            Event::Await(call) => self.await_arrives(call),
            Event::Changed { worker, life } => self.changed(worker, life),
            Event::Inspect => self.inspect()?,
            Event::Rest => self.rest()?,
            Event::Close => {}
        }
        Ok(())
    }

    /// What became of all tasks. Where processes were only replaced as planned, none ends unknown.
    fn close(&mut self) -> Result<Tally, String> {
        let tally = self.oracle.close()?;
        if self.scenario.is_planned && tally.unknown > 0 {
            return Err(format!(
                "nothing failed, processes were replaced as planned, and {} tasks ended unknown (1)",
                tally.unknown
            ));
        }
        Ok(tally)
    }

    fn on_mail(&mut self, to: Address, mail: Mail) -> Result<(), String> {
        if to.at(0) == SWITCH {
            return self.at_switch(to, mail);
        }
        let Mail::Packet { packet, .. } = mail else { return Ok(()) };
        match self.host_at(to) {
            Some(Host::Worker(worker)) => self.at_worker(worker, packet),
            Some(Host::Client(client)) => self.at_client(client, mail, packet),
            Some(Host::Server(_)) | None => {
                self.world.packets.free(packet);
                Ok(())
            }
        }
    }

    fn wake(&mut self, host: Host) -> Result<(), String> {
        match host {
            Host::Worker(worker) if self.has_cores() => self.on_lane_timer(worker),
            Host::Worker(worker) => self.on_worker_timer(worker),
            Host::Client(client) => self.wake_or_thaw(client),
            // A server has no timers but its renewals.
            Host::Server(_) => Ok(()),
        }
    }

    /// Keeps a packet back that arrives at a switch which stands still.
    fn hold_up(&mut self, event: Event) -> Option<Event> {
        let waits = match &event {
            Event::Mail(to, _) => to.at(0) == SWITCH,
            Event::Op { .. } | Event::Nak { .. } => true,
            _ => false,
        };
        if !waits || self.world.now >= self.switch.stalled_until {
            return Some(event);
        }
        self.switch.unread.push((self.world.now, event));
        None
    }

    /// The switch goes on, unless a second stall lasts longer. It handles what arrived in that order. A
    /// task that lay in the socket meanwhile is older by that time, and its budget less, as a live switch
    /// counts it.
    fn resume_switch(&mut self) -> Result<(), String> {
        if self.world.now < self.switch.stalled_until {
            return Ok(());
        }
        for (came, event) in mem::take(&mut self.switch.unread) {
            if let Event::Mail(_, Mail::Packet { packet, .. }) = &event {
                let late = self.world.now.since(came);
                match self.world.packets.get_mut(*packet) {
                    Packet::Submit(submit) => *submit = submit.after(late),
                    Packet::Job(job) => *job = job.after(late),
                    _ => {}
                }
            }
            self.happen(event)?;
        }
        Ok(())
    }

    /// Nothing new was submitted for a while. A client may have held tasks back until then, a task may be
    /// sent until its deadline, a sweep may carry a token, and polls may carry a repeat past the worker
    /// that it suits. When all that is over, workers get their longest probe interval once more.
    fn rest(&mut self) -> Result<(), String> {
        let now = self.world.now;
        if self.oracle.has_open() || self.switch.reckoning.has_sweep() || self.carried() > 0 {
            self.rests_from = now + REST.since(SUBMIT_END);
        }
        if now < self.rests_from {
            self.after(Nanos::from_millis(1), Event::Rest);
            return Ok(());
        }
        self.inspect_at_rest()?;
        if !self.seed.is_multiple_of(4) {
            self.after(CALM, Event::Close);
        }
        Ok(())
    }

    /// The periodic check of what must hold at every moment.
    fn inspect(&mut self) -> Result<(), String> {
        let is_unseen = |worker: &WorkerProcess| worker.held_when_seen.is_none();
        if self.leaders() > 1 {
            return Err("11: two controllers lead at once".to_owned());
        }
        let happened = self.switch.is_unseen || self.workers.iter().any(is_unseen);
        if happened {
            (0..self.workers.len()).try_for_each(|worker| self.inspect_worker(worker))?;
            self.inspect_room()?;
        }
        self.inspect_clients()?;
        if mem::take(&mut self.switch.is_unseen) {
            self.inspect_queues()?;
        }
        self.world.engine.set(self.inspections, self.world.now + INSPECT_EVERY);
        Ok(())
    }
}
