//! The switch's process: Rain, its life, and what goes round in it.

use sluice_switch::rain::{Arrival, Config, Rain, Verdict};
use sluice_wire::tables::TableOp;
use sluice_wire::{Endpoint, Epoch, Nanos, Packet, Serial};

use super::rack::{Event, Rack};

/// Where all counters start: eight below the wrap.
pub(super) const START: Serial = Serial(u32::MAX - 7);
/// How long a packet takes to go round.
const ROUND: Nanos = Nanos(500);

/// A switch that may be down.
#[derive(Debug)]
pub(super) struct SwitchNode {
    pub(super) rain: Option<Rain>,
    pub(super) life: u32,
    replay_cells: u32,
}

impl SwitchNode {
    pub(super) const PORT: u16 = 1;
    pub(super) const AT: Endpoint = Endpoint { ip: [0; 16], port: Self::PORT };

    pub(super) fn new(replay_cells: u32) -> Self {
        Self { rain: Some(rain(1, replay_cells)), life: 1, replay_cells }
    }

    pub(super) fn stop(&mut self) {
        self.rain = None;
    }

    pub(super) fn start(&mut self) {
        self.life += 1;
        self.rain = Some(rain(self.life, self.replay_cells));
    }

    pub(super) const fn epoch(&self) -> Epoch {
        Epoch(self.life)
    }
}

fn rain(life: u32, replay_cells: u32) -> Rain {
    Rain::new(Config {
        epoch: Epoch(life),
        workers: 16,
        clients: 8,
        slices: 2,
        types: 4,
        tasks_per_slice: 32,
        tokens_per_slice: 128,
        replay_cells,
        counters_start: START,
    })
}

impl Rack<'_> {
    pub(super) fn at_switch(&mut self, from: Endpoint, packet: Packet) {
        let now = self.now;
        if let Some(rain) = &mut self.switch.rain {
            let verdict = rain.pass(now, Arrival::Wire { from, packet, room: true });
            self.leaves_switch(verdict);
        } else {
            self.refused_by_switch(from);
        }
    }

    pub(super) fn round(&mut self, switch: u32, packet: Packet, round: u8, arrived: Nanos) {
        let now = self.now;
        if switch == self.switch.life
            && let Some(rain) = &mut self.switch.rain
        {
            let verdict = rain.pass(now, Arrival::Round { packet, round, arrived });
            self.leaves_switch(verdict);
        }
    }

    pub(super) fn table_op(&mut self, brain: u32, switch: u32, op: TableOp) {
        let now = self.now;
        if switch != self.switch.life {
            return;
        }
        let Some(rain) = &mut self.switch.rain else { return };
        let answer = rain.table(op);
        let swept = if let TableOp::Inject(sweep) = op { Some(rain.inject(now, sweep)) } else { None };
        self.say(|| format!("table {op:?} => {answer:?}"));
        if let Some(verdict) = swept {
            self.leaves_switch(verdict);
        }
        self.answer_brain(brain, answer);
    }

    fn leaves_switch(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Send { to, packet } | Verdict::Swept { to, packet, .. } => {
                self.send(SwitchNode::AT, to, packet);
            }
            Verdict::Again { packet, round, arrived } => {
                let switch = self.switch.life;
                self.after(ROUND, Event::Round { switch, packet, round, arrived });
            }
            Verdict::Parked => {}
            Verdict::Drop(refusal) => self.say(|| format!("switch drops: {}", refusal.name())),
        }
    }
}
