//! Hosts. A host sends its flows' frames, one at a time, at the rate that congestion allows. A receiver
//! answers frames, and asks for missing ones: for all from there on (go-back-N), or for those alone
//! (selective repeat).

use sluice_events::TimerId;
use sluice_host::pacer::{PacedFlow, Pacer, PacerCounts, PacerError};
use sluice_wire::Nanos;

use crate::connections::Connections;
use crate::dcqcn::DcqcnSettings;
use crate::flow::{FinishedFlow, Flow, FlowReceiver, FlowSender, FlowSpec};
use crate::frame::{FabricFrame, FrameId, FrameKind, FrameSizes};
use crate::frame_tracker::FrameTracker;
use crate::gaps::Gaps;
use crate::ids::{FlowKey, HostId, PortId, mix};
use crate::ready_flows::ReadyFlows;
use crate::settings::{AckSettings, FabricSettings, Recovery, Retransmission};
use crate::window::{CongestionWindow, WindowSettings};
use crate::wires::{FABRIC, HostEvent, Wires};
use crate::wiring::Wiring;

/// The end of time: no wake-up.
const NEVER: Nanos = Nanos(u64::MAX);

/// The counts of all hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Flows that began.
    pub begun: u64,
    /// Flows whose last frame was acknowledged.
    pub ended: u64,
    /// Frames of data that left, including retransmissions.
    pub data: u64,
    /// Data that arrived before an earlier frame of their flow; go-back-N ignores them.
    pub early: u64,
    /// Data that had arrived before.
    pub again: u64,
    /// NACKs that left.
    pub nacks: u64,
    /// Answers that reported congestion.
    pub cnps: u64,
    /// How often a host sent again because no answer came.
    pub timeouts: u64,
}

/// All hosts of a fabric, and the flows between them.
#[derive(Debug)]
pub(crate) struct Hosts {
    turns: Vec<ReadyFlows>,
    /// The pacer of each host, if hosts make flowlets.
    pacers: Vec<Pacer>,
    /// The rate of each host's link.
    lines_mbps: Vec<f64>,
    /// The timer of the first host.
    timer: TimerId,
    /// When each host's timer expires.
    alarm_at: Vec<Nanos>,
    flows: Vec<Flow>,
    vacant: Vec<u32>,
    /// For each flow, under selective repeat.
    repeats: Vec<FrameTracker>,
    /// For each sender and receiver, if flows share a connection.
    pairs: Vec<Departures>,
    sizes: FrameSizes,
    dcqcn: Option<DcqcnSettings>,
    window: Option<WindowSettings>,
    answers: AckSettings,
    connections: Connections,
    recovery: Recovery,
    counts: HostCounts,
    gaps: Gaps,
    /// When a frame last arrived at any host.
    progress: Nanos,
}

/// The departures of a connection's frames.
#[derive(Clone, Copy, Debug, Default)]
struct Departures {
    last: Option<Nanos>,
    paced: PacedFlow,
}

impl Hosts {
    pub(crate) fn new(
        plan: &Wiring,
        settings: &FabricSettings,
        wires: &mut Wires,
    ) -> Result<Self, PacerError> {
        let hosts = plan.hosts as usize;
        let gbps = || plan.sockets[..hosts].iter().map(|socket| socket.speed.gbps);
        let pacer = |pacer| gbps().map(move |gbps| Pacer::new(pacer, settings.frame_time(gbps)));
        Ok(Self {
            turns: (0..hosts).map(|_| ReadyFlows::default()).collect(),
            pacers: settings.pacer.into_iter().flat_map(pacer).collect::<Result<_, _>>()?,
            lines_mbps: gbps().map(|gbps| gbps * 1_000.0).collect(),
            timer: wires.engine.timers(FABRIC, plan.hosts),
            alarm_at: vec![NEVER; hosts],
            flows: Vec::new(),
            vacant: Vec::new(),
            repeats: Vec::new(),
            pairs: match settings.connections {
                Connections::EachFlow => Vec::new(),
                Connections::EachPair => vec![Departures::default(); hosts * hosts],
            },
            sizes: settings.frames,
            dcqcn: settings.dcqcn,
            window: settings.window,
            answers: settings.answers,
            connections: settings.connections,
            recovery: settings.recovery,
            counts: HostCounts::default(),
            gaps: Gaps::new(),
            progress: Nanos(0),
        })
    }

    pub(crate) fn begin(&mut self, wires: &mut Wires, spec: FlowSpec) {
        let frames = self.sizes.count(spec.bytes) as u32;
        let line = self.lines_mbps[spec.from.index()];
        let window = self.window.map(CongestionWindow::new);
        let path = match self.connections {
            Connections::EachFlow => mix(self.counts.begun as u32, spec.from.0),
            Connections::EachPair => mix(spec.from.0, spec.to.0),
        };
        let slot = self.room(&Flow {
            life: 0,
            is_under_way: true,
            spec,
            path,
            sender: FlowSender::new(frames, line, wires.now, window),
            receiver: FlowReceiver::default(),
        });
        self.counts.begun += 1;
        let key = FlowKey { slot, life: self.flows[slot as usize].life };
        let look = wires.now + self.recovery.retransmit_after;
        wires.engine.schedule(look, FABRIC.at(spec.from.0), HostEvent::Unanswered(key));
        self.turns[spec.from.index()].enter(slot, wires.now, wires.now);
        self.offer(wires, spec.from);
    }

    /// A frame arrives at a host. Returns the flow that ends with it.
    #[inline]
    pub(crate) fn on_frame(&mut self, wires: &mut Wires, host: HostId, id: FrameId) -> Option<FinishedFlow> {
        let frame = *wires.frames.get(id);
        let port = PortId(host.0);
        wires.ports[port.index()].counts.bytes_in += u64::from(frame.bytes);
        match frame.kind {
            FrameKind::Data => {
                self.progress = wires.now;
                if self.receive_data(wires, &frame, id) {
                    wires.ports[port.index()].answers.push(&mut wires.frames, id);
                    self.offer(wires, host);
                } else {
                    wires.frames.free(id);
                }
                return None;
            }
            FrameKind::Ack | FrameKind::Nack => {
                self.progress = wires.now;
                wires.frames.free(id);
                return self.answered(wires, &frame);
            }
            FrameKind::Parcel => self.progress = wires.now,
            FrameKind::Pause => wires.pause(port),
            FrameKind::Resume => {
                wires.resume(port);
                self.offer(wires, host);
            }
        }
        wires.frames.free(id);
        None
    }

    /// A frame of another sender, such as a parcel, leaves its host: before flows' frames, and not while
    /// the link is paused.
    pub(crate) fn send_parcel(&mut self, wires: &mut Wires, host: HostId, id: FrameId) {
        wires.ports[host.index()].data.push(&mut wires.frames, id);
        self.offer(wires, host);
    }

    /// The frame that a host sent has left.
    #[inline]
    pub(crate) fn on_sent(&mut self, wires: &mut Wires, host: HostId) {
        wires.ports[host.index()].is_busy = false;
        self.send_next(wires, host);
    }

    /// A host's timer expires: some flow may send.
    pub(crate) fn on_timer(&mut self, wires: &mut Wires, host: HostId) {
        self.offer(wires, host);
        if self.alarm_at[host.index()] <= wires.now {
            self.wake(wires, host, NEVER);
        }
    }

    /// Checks whether a flow's frames were answered, and sends them again if not.
    pub(crate) fn check_answers(&mut self, wires: &mut Wires, key: FlowKey) {
        let (now, after) = (wires.now, self.recovery.retransmit_after);
        let Some(flow) = self.flow(key) else { return };
        let host = flow.spec.from;
        let sender = &mut flow.sender;
        let is_idle = sender.next == sender.acked;
        let is_due = is_idle || sender.heard + after <= now;
        if is_due {
            sender.heard = now;
        }
        let again = sender.heard + after;
        wires.engine.schedule(again, FABRIC.at(host.0), HostEvent::Unanswered(key));
        if is_due && !is_idle {
            if let Some(window) = &mut sender.window {
                window.timed_out();
            }
            let sender = *sender;
            match self.repeats.get_mut(key.slot as usize) {
                Some(repeats) => repeats.unanswered(&sender),
                None => self.flows[key.slot as usize].sender.next = sender.acked,
            }
            self.counts.timeouts += 1;
            self.queue(wires, key);
        }
    }

    /// Answers a flow's data, if they were not answered by now.
    pub(crate) fn answer_due(&mut self, wires: &mut Wires, key: FlowKey) {
        let answer = self.sizes.answer;
        let Some(flow) = self.flow(key) else { return };
        let FlowSpec { from, to, .. } = flow.spec;
        let (receiver, path) = (&mut flow.receiver, mix(flow.path, 1));
        receiver.is_answer_due = false;
        if receiver.unanswered == 0 {
            return;
        }
        receiver.unanswered = 0;
        let (sequence, came) = (receiver.expected, receiver.expected);
        let frame = FabricFrame {
            kind: FrameKind::Ack,
            flow: key,
            sequence,
            came,
            bytes: answer,
            from: to,
            to: from,
            path,
            ..FabricFrame::default()
        };
        let id = wires.frames.make(|room| *room = frame);
        wires.ports[to.index()].answers.push(&mut wires.frames, id);
        self.offer(wires, to);
    }

    pub(crate) const fn counts(&self) -> HostCounts {
        self.counts
    }

    /// The pauses of flows.
    pub(crate) const fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// Starts to count the pauses of flows anew.
    pub(crate) fn forget_gaps(&mut self) {
        self.gaps = Gaps::new();
    }

    /// The pacers, if hosts have any.
    pub(crate) fn pacers(&self) -> impl Iterator<Item = &Pacer> {
        self.pacers.iter()
    }

    /// How long no frame has arrived at any host.
    pub(crate) const fn silence(&self, now: Nanos) -> Nanos {
        now.since(self.progress)
    }

    /// Finds a slot for a flow.
    fn room(&mut self, flow: &Flow) -> u32 {
        let is_selective = self.recovery.repeat != Retransmission::GoBackN;
        let Some(slot) = self.vacant.pop() else {
            self.flows.push(*flow);
            self.repeats.extend(is_selective.then_some(FrameTracker::NEW));
            return self.flows.len() as u32 - 1;
        };
        if is_selective {
            self.repeats[slot as usize] = FrameTracker::NEW;
        }
        let room = &mut self.flows[slot as usize];
        *room = Flow { life: room.life.wrapping_add(1), ..*flow };
        slot
    }

    /// A flow that is still under way.
    #[inline]
    fn flow(&mut self, key: FlowKey) -> Option<&mut Flow> {
        let flow = &mut self.flows[key.slot as usize];
        (flow.is_under_way && flow.life == key.life).then_some(flow)
    }

    /// Data arrive. Turns the frame into its answer, if it gets one; returns whether it does.
    #[inline]
    fn receive_data(&mut self, wires: &mut Wires, data: &FabricFrame, id: FrameId) -> bool {
        let (now, recovery, answers) = (wires.now, self.recovery, self.answers);
        let cnp_interval = self.dcqcn.map_or(NEVER, |dcqcn| dcqcn.cnp_interval);
        let Some(flow) = self.flow(data.flow) else { return false };
        let (spec, path, frames) = (flow.spec, mix(flow.path, 1), flow.sender.frames);
        let mut receiver = flow.receiver;
        let expected = receiver.expected;
        let is_early = data.sequence > expected;
        let (mut is_again, mut is_silent) = (data.sequence < expected, false);
        match self.repeats.get_mut(data.flow.slot as usize) {
            Some(repeats) => {
                is_again = repeats.received.has(data.sequence);
                receiver.expected = repeats.received.add(data.sequence);
            }
            None if is_early => {
                let is_asked = |(asked, at)| asked == expected && now.since(at) < recovery.nack_interval;
                is_silent = receiver.asked.is_some_and(is_asked);
                receiver.asked = if is_silent { receiver.asked } else { Some((expected, now)) };
            }
            None => receiver.expected += u32::from(data.sequence == expected),
        }
        let met = data.is_marked || is_early && !is_silent && recovery.nack_is_congestion;
        let may_tell = receiver.told.is_none_or(|told| now.since(told) >= cnp_interval);
        let tells = met && !is_silent && (may_tell || self.window.is_some());
        let is_plain = !is_early && !is_again && !tells && receiver.expected < frames;
        receiver.unanswered += u32::from(is_plain);
        let waits = is_plain && receiver.unanswered < answers.every;
        if waits && !receiver.is_answer_due {
            receiver.is_answer_due = true;
            wires.engine.schedule(now + answers.after, FABRIC.at(spec.to.0), HostEvent::Answer(data.flow));
        } else if !waits && !is_silent {
            receiver.unanswered = 0;
        }
        if tells {
            receiver.told = Some(now);
        }
        self.flows[data.flow.slot as usize].receiver = receiver;
        self.counts.early += u64::from(is_early);
        self.counts.again += u64::from(is_again);
        if waits || is_silent {
            return false;
        }
        let answer = wires.frames.get_mut(id);
        answer.kind = if is_early { FrameKind::Nack } else { FrameKind::Ack };
        (answer.sequence, answer.came, answer.is_marked) = (receiver.expected, data.sequence, tells);
        (answer.bytes, answer.from, answer.to) = (self.sizes.answer, spec.to, spec.from);
        answer.path = path;
        self.counts.nacks += u64::from(is_early);
        self.counts.cnps += u64::from(tells);
        true
    }

    /// An answer arrives. Returns the flow that ends with it.
    #[inline]
    fn answered(&mut self, wires: &mut Wires, answer: &FabricFrame) -> Option<FinishedFlow> {
        let (now, dcqcn) = (wires.now, self.dcqcn);
        let (is_nack, is_selective) = (answer.kind == FrameKind::Nack, !self.repeats.is_empty());
        let flow = self.flow(answer.flow)?;
        let sender = &mut flow.sender;
        sender.heard = now;
        let more = answer.sequence.saturating_sub(sender.acked);
        sender.acked += more;
        sender.next = sender.next.max(sender.acked);
        if sender.acked == sender.frames {
            return Some(self.end(answer.flow, now));
        }
        if let Some(dcqcn) = dcqcn.filter(|_| answer.is_marked) {
            sender.rate.congested(now, &dcqcn);
        }
        if let Some(window) = &mut sender.window {
            window.grow(more);
            if answer.is_marked || is_nack {
                window.congested(sender.acked, sender.next);
            }
        }
        if is_nack && !is_selective {
            sender.next = sender.acked;
        }
        if is_selective {
            self.repeats[answer.flow.slot as usize].answered(answer.sequence, answer.came);
        }
        if (is_nack || is_selective || self.window.is_some()) && self.next_frame(answer.flow.slot).is_some() {
            self.queue(wires, answer.flow);
        }
        None
    }

    /// The number of the frame that a flow may send next, if there is one.
    #[inline]
    fn next_frame(&self, slot: u32) -> Option<u32> {
        let sender = &self.flows[slot as usize].sender;
        let repeats = self.repeats.get(slot as usize);
        if let Some(missing) = repeats.and_then(|repeats| repeats.missing(sender)) {
            return Some(missing);
        }
        let most = match self.recovery.repeat {
            Retransmission::Selective { under_way } => under_way,
            Retransmission::GoBackN => u32::MAX,
        };
        let most = sender.window.map_or(most, |window| most.min(window.frames()));
        (sender.next < sender.frames && sender.next - sender.acked < most).then_some(sender.next)
    }

    /// Ends a flow, whose last frame was acknowledged.
    fn end(&mut self, key: FlowKey, now: Nanos) -> FinishedFlow {
        let flow = &mut self.flows[key.slot as usize];
        flow.is_under_way = false;
        let finished = FinishedFlow { flow: flow.spec, took: now.since(flow.spec.at) };
        if !flow.sender.is_queued {
            self.vacant.push(key.slot);
        }
        self.counts.ended += 1;
        finished
    }

    /// Queues a flow that has frames to send again.
    fn queue(&mut self, wires: &mut Wires, key: FlowKey) {
        let flow = &mut self.flows[key.slot as usize];
        let host = flow.spec.from;
        if !flow.sender.is_queued {
            flow.sender.is_queued = true;
            let at = Nanos(flow.sender.next_ps.div_ceil(1_000));
            self.turns[host.index()].enter(key.slot, at, wires.now);
        }
        self.offer(wires, host);
    }

    #[inline]
    fn offer(&mut self, wires: &mut Wires, host: HostId) {
        if !wires.ports[host.index()].is_busy {
            self.send_next(wires, host);
        }
    }

    /// Sends answers before data. If there is neither, the host sleeps until a flow may send.
    #[inline]
    fn send_next(&mut self, wires: &mut Wires, host: HostId) {
        let port = PortId(host.0);
        if let Some(id) = wires.next(port) {
            wires.start(port, id);
        } else if wires.ports[port.index()].is_paused() {
            self.wake(wires, host, NEVER);
        } else if !self.send_data(wires, host) {
            let next = self.turns[host.index()].next();
            self.wake(wires, host, next);
        }
    }

    /// Sends the next data of a host, if any may leave; returns whether it did.
    #[inline]
    fn send_data(&mut self, wires: &mut Wires, host: HostId) -> bool {
        let now = wires.now;
        while let Some(slot) = self.turns[host.index()].take(now) {
            let is_under_way = self.flows[slot as usize].is_under_way;
            let Some(sequence) = self.next_frame(slot).filter(|_| is_under_way) else {
                self.flows[slot as usize].sender.is_queued = false;
                if !is_under_way {
                    self.vacant.push(slot);
                }
                continue;
            };
            let until = self.ready(host, slot, now);
            if until > now {
                self.turns[host.index()].enter(slot, until, now);
                continue;
            }
            self.send(wires, host, slot, sequence);
            return true;
        }
        false
    }

    /// When a flow's next frame may leave, if the host has a pacer.
    #[inline]
    fn ready(&mut self, host: HostId, slot: u32, now: Nanos) -> Nanos {
        let Some(pacer) = self.pacers.get(host.index()) else { return now };
        let flow = &mut self.flows[slot as usize];
        let pair = host.index() * self.turns.len() + flow.spec.to.index();
        let paced = self.pairs.get_mut(pair).map_or(&mut flow.sender.paced, |pair| &mut pair.paced);
        pacer.ready(paced, now)
    }

    /// A flow's frame leaves.
    #[inline]
    fn send(&mut self, wires: &mut Wires, host: HostId, slot: u32, sequence: u32) {
        let (now, dcqcn) = (wires.now, &self.dcqcn);
        let flow = &mut self.flows[slot as usize];
        let sender = &mut flow.sender;
        let is_last = sequence + 1 == sender.frames;
        let frame = FabricFrame {
            flow: FlowKey { slot, life: flow.life },
            sequence,
            bytes: if is_last { self.sizes.last(flow.spec.bytes) } else { self.sizes.full() },
            from: host,
            to: flow.spec.to,
            path: flow.path,
            ..FabricFrame::default()
        };
        let id = wires.frames.make(|room| *room = frame);
        let begins = wires.start(PortId(host.0), id);
        let mbps = match dcqcn {
            Some(dcqcn) => sender.rate.at(now, dcqcn),
            None => self.lines_mbps[host.index()],
        };
        sender.next_ps = begins + (f64::from(frame.bytes) * 8e6 / mbps) as u64;
        if sequence < sender.next {
            self.repeats[slot as usize].sent_again(sequence);
        } else {
            sender.next += 1;
        }
        sender.heard = now;
        let at = Nanos(sender.next_ps.div_ceil(1_000));
        let has_more = self.next_frame(slot).is_some();
        self.flows[slot as usize].sender.is_queued = has_more;
        if has_more {
            self.turns[host.index()].enter(slot, at, now);
        }
        self.departs(host, slot, now);
        self.counts.data += 1;
    }

    /// Notes that a flow's frame left, and the gap since the frame before.
    #[inline]
    fn departs(&mut self, host: HostId, slot: u32, now: Nanos) {
        let flow = &mut self.flows[slot as usize];
        let pair = host.index() * self.turns.len() + flow.spec.to.index();
        let (left, paced) = match self.pairs.get_mut(pair) {
            Some(pair) => (&mut pair.last, &mut pair.paced),
            None => (&mut flow.sender.left, &mut flow.sender.paced),
        };
        if let Some(last) = left.replace(now) {
            self.gaps.record(now.since(last));
        }
        if let Some(pacer) = self.pacers.get_mut(host.index()) {
            pacer.left(paced, now);
        }
    }

    fn wake(&mut self, wires: &mut Wires, host: HostId, at: Nanos) {
        if self.alarm_at[host.index()] != at {
            self.alarm_at[host.index()] = at;
            wires.engine.timer(self.timer.of_place(host.0), at);
        }
    }
}

/// The sum of several pacers' counts.
pub(crate) fn sum<'a>(pacers: impl Iterator<Item = &'a Pacer>) -> PacerCounts {
    pacers.map(Pacer::counts).fold(PacerCounts::default(), PacerCounts::plus)
}
