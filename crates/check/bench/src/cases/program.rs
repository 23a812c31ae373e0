//! Rain's passes without parsing and encoding, in the four cases without errors: plain; with ranks or
//! classes where they cost something; with labels, where a token that parks recirculates once; and with a
//! target.

use std::hint::black_box;

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Program, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::{Endpoint, Nanos, Packet, Rank, Submit};

use crate::hosts::{EPOCH, GPU, WORKERS, registrations, served, submit, token};
use crate::scale::on_the_scale;

pub(super) fn named(times: u32, policy: &str, order: PacketOrder, counted: CountedPart) {
    Bench::of(policy, Serving::default()).matches(times, order, counted);
}

pub(super) fn classed(times: u32, order: PacketOrder, counted: CountedPart) {
    Bench::of("rain:2,classes=4", Serving::default()).matches(times, order, counted);
}

pub(super) fn labelled(times: u32, order: PacketOrder, counted: CountedPart) {
    let kinds = [Labels::NONE, GPU];
    let serving = Serving::of(&kinds, &kinds).expect("two are told apart");
    Bench::of("rain:2,labels", serving).matches(times, order, counted);
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

/// A program behind its name, as drivers hold it.
struct Bench {
    rain: Box<dyn Program>,
    client: Endpoint,
    worker: Endpoint,
}

/// How many ranks `rain:2,ranked` tells apart, and how many classes `rain:2,classes=4`.
const RANKS: u32 = 2;
const CLASSES: u8 = 4;

impl Bench {
    fn of(policy: &str, serving: Serving) -> Self {
        let choice = Choice::parse(policy).expect("a policy");
        let config = choice.traits().full_size(EPOCH);
        let mut rain = choice.build(config);
        let [client, worker] = [1, 2].map(|port| Endpoint { ip: [0; 16], port });
        for op in served(registrations(&config, 1, client, worker), &serving) {
            rain.table(op);
        }
        Self { rain, client, worker }
    }

    fn matches(&mut self, times: u32, order: PacketOrder, counted: CountedPart) {
        for turn in 0..times {
            let mut token = token((turn % u32::from(WORKERS)) as u16, turn / u32::from(WORKERS) + 1);
            token.rank = Rank::behind(turn % RANKS);
            let token = Arrival::Wire { from: self.worker, packet: Packet::Token(token), room: true };
            let constraints = if turn % 4 == 1 { GPU.0 } else { Labels::NONE.0 };
            let priority = (turn % u32::from(CLASSES)) as u8;
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
