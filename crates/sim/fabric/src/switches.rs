//! Switches. A switch takes frames, chooses the port of each, and pauses the sender or loses frames if it
//! has no room.

use sluice_events::dice::Dice;

use crate::balance::{Balance, HopContext};
use crate::buffer::{Admission, Buffer, Ingress};
use crate::flowlets::FlowletCounts;
use crate::frame::{FrameId, FrameKind, Parcel};
use crate::ids::{PortId, SwitchId};
use crate::settings::{Ecn, FabricSettings};
use crate::topology::FabricEnd;
use crate::wires::Wires;
use crate::wiring::Wiring;

/// How many full frames a port must be below its pausing threshold before it is resumed (public set-up: 2
/// of the guaranteed ones).
const RESUME_FRAMES: u32 = 2;

/// All switches of a fabric.
#[derive(Debug)]
pub(crate) struct Switches {
    plan: Wiring,
    /// The switch of each port.
    owners: Vec<SwitchId>,
    buffers: Vec<Buffer>,
    ingress: Vec<Ingress>,
    balance: Balance,
    rules: SwitchSettings,
    dice: Dice,
    marked: u64,
}

/// The settings that all switches share.
#[derive(Clone, Copy, Debug)]
struct SwitchSettings {
    ecn: Ecn,
    has_pfc: bool,
    ingress_alpha: f64,
    egress_alpha: f64,
    resume_below: u64,
}

impl Switches {
    pub(crate) fn new(plan: Wiring, settings: &FabricSettings, dice: impl Fn(&str) -> Dice) -> Self {
        let owner = |end: FabricEnd| match end {
            FabricEnd::Switch(switch) => switch,
            FabricEnd::Host(_) => SwitchId(u32::MAX),
        };
        let headroom = |speed| settings.pfc.map_or(0, |pfc| pfc.of(speed, &settings.frames));
        let ingress: Vec<_> = plan.sockets.iter().map(|socket| headroom(socket.speed)).collect();
        let kept = |port: usize| ingress[port] + u64::from(settings.frames.full());
        let shared = |switch| {
            let kept = if settings.pfc.is_some() { plan.ports_of(switch).map(kept).sum() } else { 0 };
            Buffer::new(settings.buffer_bytes - kept)
        };
        Self {
            owners: plan.sockets.iter().map(|socket| owner(socket.owner)).collect(),
            buffers: (0..plan.switches).map(|switch| shared(SwitchId(switch))).collect(),
            balance: Balance::new(settings.balancer, settings.connections, &plan, dice("paths")),
            rules: SwitchSettings {
                ecn: settings.ecn,
                has_pfc: settings.pfc.is_some(),
                ingress_alpha: settings.ingress_alpha,
                egress_alpha: settings.egress_alpha,
                resume_below: u64::from(RESUME_FRAMES * settings.frames.full()),
            },
            ingress: ingress.into_iter().map(Ingress::new).collect(),
            dice: dice("marks"),
            marked: 0,
            plan,
        }
    }

    /// A frame arrives at a switch's port. Returns the parcel that is lost with it, if any.
    #[inline]
    pub(crate) fn on_frame(&mut self, wires: &mut Wires, port: PortId, id: FrameId) -> Option<Parcel> {
        let frame = wires.frames.get_mut(id);
        wires.ports[port.index()].counts.bytes_in += u64::from(frame.bytes);
        match frame.kind {
            FrameKind::Pause => {
                wires.frames.free(id);
                wires.pause(port);
            }
            FrameKind::Resume => {
                wires.frames.free(id);
                wires.resume(port);
                self.offer(wires, port);
            }
            FrameKind::Data | FrameKind::Parcel | FrameKind::Ack | FrameKind::Nack => {
                frame.ingress = port;
                return self.forward(wires, port, id);
            }
        }
        None
    }

    /// The frame that a port sent has left.
    #[inline]
    pub(crate) fn on_sent(&mut self, wires: &mut Wires, port: PortId) {
        wires.ports[port.index()].is_busy = false;
        self.send_next(wires, port);
    }

    /// The counts of the switches' flowlet tables.
    pub(crate) fn flowlets(&self) -> FlowletCounts {
        self.balance.flowlets()
    }

    /// How many frames of data were marked.
    pub(crate) const fn marked(&self) -> u64 {
        self.marked
    }

    /// The most headroom that a port used.
    pub(crate) fn headroom_peak(&self) -> u64 {
        self.ingress.iter().map(|port| port.headroom_peak).max().unwrap_or_default()
    }

    fn forward(&mut self, wires: &mut Wires, port: PortId, id: FrameId) -> Option<Parcel> {
        let switch = self.owners[port.index()];
        let frame = wires.frames.get_mut(id);
        let ways = self.plan.ways(switch, frame.to);
        let is_first = (self.plan.sockets[port.index()].peer.0) < self.plan.hosts;
        let at = HopContext { switch, is_first, ways, now: wires.now };
        let out = self.balance.choose(at, frame, &self.plan, &wires.ports);
        if !frame.kind.is_data() {
            wires.ports[out.index()].answers.push(&mut wires.frames, id);
        } else if self.admit(wires, switch, port, out, id) {
            wires.ports[out.index()].data.push(&mut wires.frames, id);
        } else {
            let parcel = wires.frames.get(id).parcel();
            wires.frames.free(id);
            return parcel;
        }
        self.offer(wires, out);
        None
    }

    /// Whether there is room for data.
    fn admit(&mut self, wires: &mut Wires, switch: SwitchId, port: PortId, out: PortId, id: FrameId) -> bool {
        let bytes = u64::from(wires.frames.get(id).bytes);
        let buffer = &mut self.buffers[switch.index()];
        let admission = if self.rules.has_pfc {
            buffer.admit(&mut self.ingress[port.index()], bytes, self.rules.ingress_alpha)
        } else if buffer.admit_queued(wires.ports[out.index()].data.bytes(), bytes, self.rules.egress_alpha) {
            Admission::Taken
        } else {
            Admission::Lost
        };
        match admission {
            Admission::Taken => {}
            Admission::Pause => {
                wires.ports[port.index()].counts.pauses += 1;
                wires.ask(port, FrameKind::Pause);
            }
            Admission::Lost => {
                let counts = &mut wires.ports[port.index()].counts;
                counts.frames_lost += 1;
                counts.bytes_lost += bytes;
            }
        }
        admission != Admission::Lost
    }

    #[inline]
    fn offer(&mut self, wires: &mut Wires, port: PortId) {
        if !wires.ports[port.index()].is_busy {
            self.send_next(wires, port);
        }
    }

    #[inline]
    fn send_next(&mut self, wires: &mut Wires, port: PortId) {
        let Some(id) = wires.next(port) else { return };
        if wires.frames.get(id).kind.is_data() {
            self.release_data(wires, port, id);
        }
        wires.start(port, id);
    }

    /// Data leave the switch's memory, and are marked if many bytes wait behind them.
    #[inline]
    fn release_data(&mut self, wires: &mut Wires, port: PortId, id: FrameId) {
        let is_marked = marks(self.rules.ecn, wires.ports[port.index()].data.bytes(), &mut self.dice);
        let frame = wires.frames.get_mut(id);
        frame.is_marked |= is_marked;
        self.balance.on_departure(port, frame, wires.now);
        self.marked += u64::from(is_marked);
        let (ingress, bytes) = (frame.ingress, u64::from(frame.bytes));
        let buffer = &mut self.buffers[self.owners[port.index()].index()];
        let SwitchSettings { ingress_alpha, resume_below, has_pfc, .. } = self.rules;
        if !has_pfc {
            buffer.release_queued(bytes);
        } else if buffer.release(&mut self.ingress[ingress.index()], bytes, ingress_alpha, resume_below) {
            wires.ask(ingress, FrameKind::Resume);
        }
    }
}

/// Whether data are marked that leave `queued` bytes behind them.
#[inline]
fn marks(Ecn { k_min, k_max, p_max }: Ecn, queued: u64, dice: &mut Dice) -> bool {
    if queued <= k_min {
        return false;
    }
    let share = (queued - k_min) as f64 / (k_max - k_min).max(1) as f64;
    queued > k_max || dice.unit() < share * p_max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_marked_up_to_the_lower_bound_all_above_the_upper_one_and_a_rising_share_between() {
        let mut dice = Dice::new(1, 1);
        let ecn = Ecn { k_min: 100_000, k_max: 400_000, p_max: 0.2 };
        let mut share = |queued| {
            let marked = (0..20_000).filter(|_| marks(ecn, queued, &mut dice)).count();
            marked as f64 / 20_000.0
        };
        for (queued, expected) in
            [(100_000, 0.0), (175_000, 0.05), (250_000, 0.1), (400_000, 0.2), (400_001, 1.0)]
        {
            let found = share(queued);
            assert!((found - expected).abs() < 0.01, "{queued} bytes: {found}, and not {expected}");
        }
    }
}
