//! Rain's pass, parsing and encoding apart: the four things that happen when nothing goes wrong.

use std::hint::black_box;

use sluice_switch::rain::Rain;
use sluice_switch::{Arrival, Config, Program, Verdict};
use sluice_wire::{Endpoint, Nanos, Packet};

use crate::hosts::{EPOCH, WORKERS, registrations, submit, token};
use crate::scale::on_the_scale;

pub(super) fn token_parks(times: u32) {
    Bench::new().matches(times, Packets::TokenFirst, OnTheScale::First);
}

pub(super) fn submit_matches(times: u32) {
    Bench::new().matches(times, Packets::TokenFirst, OnTheScale::Second);
}

pub(super) fn submit_parks(times: u32) {
    Bench::new().matches(times, Packets::TaskFirst, OnTheScale::First);
}

pub(super) fn token_matches(times: u32) {
    Bench::new().matches(times, Packets::TaskFirst, OnTheScale::Second);
}

#[derive(Clone, Copy)]
enum Packets {
    TokenFirst,
    TaskFirst,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OnTheScale {
    First,
    Second,
}

struct Bench {
    rain: Rain,
    client: Endpoint,
    worker: Endpoint,
}

impl Bench {
    fn new() -> Self {
        let [client, worker] = [1, 2].map(|port| Endpoint { ip: [0; 16], port });
        let mut rain = Rain::new(Config::full(EPOCH));
        for op in registrations(1, client, worker) {
            rain.table(op);
        }
        Self { rain, client, worker }
    }

    fn matches(&mut self, times: u32, order: Packets, counted: OnTheScale) {
        for turn in 0..times {
            let token = token((turn % u32::from(WORKERS)) as u16, turn / u32::from(WORKERS) + 1);
            let token = Arrival::Wire { from: self.worker, packet: Packet::Token(token), room: true };
            let task = Packet::Submit(submit(0, turn));
            let task = Arrival::Wire { from: self.client, packet: task, room: true };
            let (first, second) = match order {
                Packets::TokenFirst => (token, task),
                Packets::TaskFirst => (task, token),
            };
            let parked = self.pass(turn, first, counted == OnTheScale::First);
            assert_eq!(parked, Verdict::Parked);
            let sent = self.pass(turn, second, counted == OnTheScale::Second);
            assert!(matches!(sent, Verdict::Send { packet: Packet::Dispatch(_), .. }), "{sent:?}");
        }
    }

    fn pass(&mut self, turn: u32, arrival: Arrival, counted: bool) -> Verdict {
        let now = Nanos(u64::from(turn));
        let arrival = black_box(&arrival);
        if counted { on_the_scale(|| self.rain.pass(now, *arrival)) } else { self.rain.pass(now, *arrival) }
    }
}
