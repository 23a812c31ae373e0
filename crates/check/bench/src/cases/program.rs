//! Rain's passes without parsing and encoding, in the four cases without errors: plain; with ranks or
//! classes where they cost something; with labels, where a token that parks recirculates once; and with a
//! target.

use std::hint::black_box;

use sluice_switch::rain::{Kinds, Rain, Selective};
use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Config, Program, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::KINDS_MAX;
use sluice_wire::{Endpoint, Nanos, Packet, Rank, Submit};

use crate::hosts::{EPOCH, GPU, WORKERS, registrations, served, submit, token};
use crate::scale::on_the_scale;

pub(super) fn plain(times: u32, order: PacketOrder, counted: CountedPart) {
    Bench::of_kinds(Kinds::ONE).matches(times, order, counted);
}

pub(super) fn ranked(times: u32, order: PacketOrder, counted: CountedPart) {
    Bench::of_kinds(RANKED).matches(times, order, counted);
}

pub(super) fn classed(times: u32, order: PacketOrder, counted: CountedPart) {
    Bench::of_kinds(CLASSED).matches(times, order, counted);
}

pub(super) fn labelled(times: u32, order: PacketOrder, counted: CountedPart) {
    Bench::labelled().matches(times, order, counted);
}

pub(super) fn targeted(times: u32, order: PacketOrder, counted: CountedPart) {
    Bench::targeted().matches(times, order, counted);
}

#[derive(Clone, Copy)]
pub(super) enum PacketOrder {
    TokenFirst,
    TaskFirst,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedPart {
    First,
    Second,
}

struct Bench<P: ?Sized> {
    rain: Box<P>,
    client: Endpoint,
    worker: Endpoint,
}

/// The kinds of `rain:2,ranked`.
const RANKED: Kinds = Kinds { ranks: 2, classes: 1 };
/// The kinds of `rain:2,classes=4`.
const CLASSED: Kinds = Kinds { ranks: 1, classes: 4 };

impl Bench<Rain> {
    fn of_kinds(kinds: Kinds) -> Self {
        let config = Config::full_of(EPOCH, kinds.classes, 1);
        Self::of(Box::new(Rain::of_kinds(config, kinds)), config, Serving::default())
    }
}

impl Bench<Selective> {
    fn labelled() -> Self {
        let (kinds, all) = ([Labels::NONE, GPU], KINDS_MAX as u8);
        let serving = Serving::of(&kinds, &kinds).expect("two are told apart");
        let config = Config::full_of(EPOCH, all, all);
        Self::of(Box::new(Selective::new(config)), config, serving)
    }
}

impl Bench<dyn Program> {
    /// By its name, which costs a pass a few instructions for the call.
    fn targeted() -> Self {
        let choice = Choice::parse("rain:2,target=50us").expect("a policy");
        let config = Config::full(EPOCH);
        Self::of(choice.build(config), config, Serving::default())
    }
}

impl<P: Program + ?Sized> Bench<P> {
    fn of(mut rain: Box<P>, config: Config, serving: Serving) -> Self {
        let [client, worker] = [1, 2].map(|port| Endpoint { ip: [0; 16], port });
        for op in served(registrations(1, client, worker), &serving, config.tasks_per_slice) {
            rain.table(op);
        }
        Self { rain, client, worker }
    }

    fn matches(&mut self, times: u32, order: PacketOrder, counted: CountedPart) {
        for turn in 0..times {
            let mut token = token((turn % u32::from(WORKERS)) as u16, turn / u32::from(WORKERS) + 1);
            token.rank = Rank::behind(turn % u32::from(RANKED.ranks));
            let token = Arrival::Wire { from: self.worker, packet: Packet::Token(token), room: true };
            let constraints = if turn % 4 == 1 { GPU.0 } else { Labels::NONE.0 };
            let priority = (turn % u32::from(CLASSED.classes)) as u8;
            let task = Packet::Submit(Submit { priority, constraints, ..submit(0, turn) });
            let task = Arrival::Wire { from: self.client, packet: task, room: true };
            let (first, second) = match order {
                PacketOrder::TokenFirst => (token, task),
                PacketOrder::TaskFirst => (task, token),
            };
            let parked = self.pass(turn, first, counted == CountedPart::First);
            assert_eq!(parked, Verdict::Parked);
            let sent = self.pass(turn, second, counted == CountedPart::Second);
            assert!(matches!(sent, Verdict::Send { packet: Packet::Dispatch(_), .. }), "{sent:?}");
        }
    }

    /// Runs a packet's pass and all its recirculations; returns the last verdict.
    fn pass(&mut self, turn: u32, arrival: Arrival, counted: bool) -> Verdict {
        let mut arrival = arrival;
        loop {
            match self.one_pass(turn, &arrival, counted) {
                Verdict::Again(circulating) => arrival = Arrival::Round(circulating),
                settled => return settled,
            }
        }
    }

    fn one_pass(&mut self, turn: u32, arrival: &Arrival, counted: bool) -> Verdict {
        let now = Nanos(u64::from(turn));
        let arrival = black_box(arrival);
        if counted { on_the_scale(|| self.rain.pass(now, *arrival)) } else { self.rain.pass(now, *arrival) }
    }
}
