//! What fails besides the disasters: ways that work in one direction only, a switch that stands still and
//! goes on with what it had, hosts that change their address in the same life, and hosts that leave in the
//! middle.
//!
//! Drawn from a stream of their own, so that the disasters of a seed stay what they are. Left out: a
//! connection between controller and switch that works in one direction; theirs is cut as a whole, with
//! operations carried out that nobody hears of.

use sluice_control::Event as Told;
use sluice_wire::{Nanos, Packet, Submit};

use super::hosts::{Host, SWITCH};
use super::rack::{Event, Rack};
use super::scenario::Scenario;
use super::story;
use crate::dice::Dice;
use crate::world::{Address, Mail};

/// The longest that the switch stands still.
const STALL_MAX: Nanos = Nanos::from_millis(8);

/// An end of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Anyone,
    Switch,
    Controller,
    Host(Host),
}

impl End {
    /// Whose end this place is, if anybody's.
    pub(super) fn at(address: Address) -> Option<Self> {
        if address == SWITCH { Some(Self::Switch) } else { Host::at(address).map(Self::Host) }
    }

    fn is_met_by(self, end: Option<Self>) -> bool {
        self == Self::Anyone || end == Some(self)
    }
}

/// Something that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing gets from one end to the other; what goes back does.
    OneWay { from: End, to: End, lasts: Nanos },
    /// The switch's thread stands still. Its memory stays, and what comes meanwhile waits.
    SwitchStall { lasts: Nanos },
    /// The process has another address from now on, in the same life.
    NewAddress(Host),
    /// The client says that it leaves, with tasks outstanding; a new life of it starts at once.
    ClientLeave(usize),
    /// The worker says that it leaves, and is gone before it has ended.
    WorkerQuits { worker: usize, gone_after: Nanos, back_after: Nanos },
    /// The second half of that.
    WorkerGone { worker: usize, back_after: Nanos },
}

impl Trouble {
    /// Up to four, some close behind the one before.
    pub(super) fn draw(dice: &mut Dice, scenario: &Scenario) -> Vec<(Nanos, Self)> {
        let count = dice.pick(&[0, 0, 1, 2, 4]);
        let mut at = Nanos(0);
        let mut next = |dice: &mut Dice| {
            let alone = at == Nanos(0) || dice.chance(600);
            let spread = dice.span(Nanos::from_millis(2), Nanos::from_millis(24));
            let behind = at + dice.span(Nanos(0), Nanos::from_micros(300));
            at = if alone { spread } else { behind };
            (at, Self::one(dice, scenario))
        };
        (0..count).map(|_| next(dice)).collect()
    }

    fn one(dice: &mut Dice, scenario: &Scenario) -> Self {
        let lasts = dice.span(Nanos::from_micros(50), Nanos::from_millis(8));
        let short = dice.span(Nanos::from_micros(20), Nanos::from_millis(3));
        let worker = dice.below(scenario.workers as u64) as usize;
        let client = dice.below(scenario.clients as u64) as usize;
        let host = if dice.chance(500) { Host::Worker(worker) } else { Host::Client(client) };
        match dice.below(8) {
            0..=2 => {
                let (from, to) = one_way(dice, End::Host(host), worker, client);
                Self::OneWay { from, to, lasts }
            }
            3 => Self::SwitchStall { lasts: dice.span(Nanos::from_micros(50), STALL_MAX) },
            4 | 5 => Self::NewAddress(host),
            6 => Self::ClientLeave(client),
            _ => Self::WorkerQuits { worker, gone_after: Nanos(short.0 / 20), back_after: short },
        }
    }
}

fn one_way(dice: &mut Dice, host: End, worker: usize, client: usize) -> (End, End) {
    let (worker, client) = (End::Host(Host::Worker(worker)), End::Host(Host::Client(client)));
    let there =
        dice.pick(&[(host, End::Anyone), (host, End::Switch), (host, End::Controller), (worker, client)]);
    if dice.chance(500) { there } else { (there.1, there.0) }
}

/// The ways that are closed now.
#[derive(Debug, Default)]
pub(super) struct Ways {
    closed: Vec<(End, End, Nanos)>,
}

impl Ways {
    fn close(&mut self, from: End, to: End, until: Nanos) {
        self.closed.push((from, to, until));
    }

    pub(super) fn is_closed(&self, now: Nanos, from: Option<End>, to: Option<End>) -> bool {
        let meets = |(a, b, until): &(End, End, Nanos)| now < *until && a.is_met_by(from) && b.is_met_by(to);
        self.closed.iter().any(meets)
    }
}

impl Rack<'_> {
    pub(super) fn trouble(&mut self, trouble: Trouble) -> Result<(), String> {
        let (who, what) = story::trouble(&trouble);
        self.say(who, || what);
        match trouble {
            Trouble::OneWay { from, to, lasts } => {
                self.world.network.weather.ways.close(from, to, self.world.now + lasts);
            }
            Trouble::SwitchStall { lasts } => {
                self.switch.stalled_until = self.switch.stalled_until.max(self.world.now + lasts);
                self.after(lasts, Event::SwitchGoesOn);
            }
            Trouble::NewAddress(Host::Worker(worker)) => self.workers[worker].change_address(),
            Trouble::NewAddress(Host::Client(client)) => self.clients[client].change_address(),
            // Memory is found at its address.
            Trouble::NewAddress(Host::Server(_)) => {}
            Trouble::ClientLeave(client) => self.client_leaves(client),
            Trouble::WorkerQuits { worker, gone_after, back_after } => {
                if self.workers[worker].lives() && !self.workers[worker].leaving {
                    self.leave(worker)?;
                }
                self.after(gone_after, Event::Trouble(Trouble::WorkerGone { worker, back_after }));
            }
            Trouble::WorkerGone { worker, back_after } => {
                self.workers[worker].stop();
                self.after(back_after, Event::WorkerBack(worker));
            }
        }
        Ok(())
    }

    pub(super) fn calls_get_through(&self, host: Host) -> bool {
        !self.is_closed(End::Host(host), End::Controller)
    }

    pub(super) fn answers_get_through(&self, host: Host) -> bool {
        !self.is_closed(End::Controller, End::Host(host))
    }

    fn is_closed(&self, from: End, to: End) -> bool {
        self.world.network.weather.ways.is_closed(self.world.now, Some(from), Some(to))
    }

    /// What comes to a switch that stands still waits until it goes on.
    pub(super) fn hold_up(&mut self, event: Event) -> Option<Event> {
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

    /// In the order in which it came, unless it stands still for longer than was first thought. A task that
    /// lay in the socket is older for it, as live switches reckon.
    pub(super) fn switch_goes_on(&mut self) -> Result<(), String> {
        if self.world.now < self.switch.stalled_until {
            return Ok(());
        }
        for (came, event) in std::mem::take(&mut self.switch.unread) {
            if let Event::Mail(_, Mail::Packet { packet, .. }) = &event
                && let Packet::Submit(submit) = *self.world.packets.get(*packet)
            {
                let age = submit.age.plus(self.world.now.since(came));
                *self.world.packets.get_mut(*packet) = Packet::Submit(Submit { age, ..submit });
            }
            self.happen(event)?;
        }
        Ok(())
    }

    fn client_leaves(&mut self, client: usize) {
        let incarnation = self.clients[client].incarnation;
        if self.calls_get_through(Host::Client(client)) {
            let call = self.brain.call(Host::Client(client), incarnation.0);
            let name = self.clients[client].name();
            self.call(Told::ClientLeave { call, name, incarnation });
        }
        self.oracle.abandoned(incarnation);
        self.start_client(client);
    }
}
