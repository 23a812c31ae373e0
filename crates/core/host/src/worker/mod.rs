//! The worker: it sends tokens up to its quota, runs the tasks that they bring, one at a time, and answers
//! the clients (Rain §3.2.1).
//!
//! The paper does not say how to survive losses; the worker counts. The worker counts the tokens it issued.
//! The switch counts the tokens it granted (`seen`) and the tasks it sent, and reports both in each
//! DISPATCH and ANSWER. So a lost TOKEN is sent again, a lost DISPATCH is written off and its token issued
//! anew, and a packet that comes twice counts once. A task that was held or finished in this life never
//! runs again: the worker answers its repeat with the first reply.
//!
//! The registration says how tasks come. Under schedulers other than Rain, idle workers poll (one TOKEN
//! out, and EMPTY as a possible answer), or the switch pushes tasks. Then the switch's numbers only show
//! which packets are lost or repeated, and no PROBEs are needed. Replies may go through the switch and tell
//! it the worker's load.
//!
//! A task may have a budget: just before it would begin, the worker subtracts its wait here, and answers a
//! task that has nothing left (`late`) instead of running it. Its token comes back as that of a finished one.
//!
//! A reply may be longer than a packet: its REPLY brings the first bytes, and the client asks for the rest
//! as long as the reply is kept. If no task can come twice (see [`WorkerSettings::repeats`]), no reply is
//! kept, so replies must fit into one packet.

mod arrivals;
mod early;
mod estimate;
mod feeding;
mod fetching;
mod finished;
mod lanes;
mod probing;
mod types;
mod window;
mod work;

use alloc::boxed::Box;
use alloc::vec::Vec;

use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::sizes::QUOTA_LIMIT;
use sluice_wire::{
    Epoch, Generation, Handle, Key, Nanos, Packet, Payload, Probe, Rank, ReplyStatus, Serial, SliceId, Token,
    WorkerId,
};

pub use lanes::Lanes;
pub use sluice_wire::sizes::QUOTA_MAX;
pub use types::{Action, EarlySettings, RemainingTime, WorkerSettings, WorkerStats};

use feeding::Feeding;
use probing::Probing;
use window::SentWindow;
use work::{RunEnd, Sender, Work};

use crate::agent::Sample;

/// A deadline that never comes.
const NEVER: Nanos = Nanos(u64::MAX);

/// The state of one worker: under 200 bytes until its first task, however many tokens are parked.
#[derive(Debug)]
pub struct Worker {
    phase: Phase,
    window: SentWindow,
    probing: Probing,
    work: Option<Box<Work>>,
    /// While registered: the earliest time to ask the controller again. After leaving: when the
    /// registration was closed.
    turn_at: Nanos,
    /// Tokens issued in this generation.
    issued: Serial,
    /// The largest number of granted tokens that the switch reported.
    seen: Serial,
    at: Registration,
    /// The first registration of this process. An older DISPATCH was meant for an earlier process of the
    /// same name, which may have run its task.
    joined: (Epoch, Generation),
    /// The newest epoch of the switch that the worker heard of.
    newest: Epoch,
    feeding: Feeding,
    /// The quota in the registration.
    granted: u8,
    quota: u8,
    /// How many tasks waited in the switch when it last dispatched one to this worker; 255 stands for 255
    /// and more.
    waiting: u8,
    written_off: u32,
    dropped: u32,
    probes: u32,
    repeated_tokens: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Never registered.
    New,
    /// Registered, as far as the worker knows.
    Serving,
    /// The switch said that the registration is changing or has changed: no tokens leave until the
    /// controller answers.
    Closed,
    /// The worker sends no more tokens.
    Leaving,
    /// The controller closed the registration. `knows_last`: it also said how many tasks the switch sent.
    Left { knows_last: bool },
    /// No packet for this worker can come any more.
    Gone,
}

#[derive(Clone, Copy, Debug, Default)]
struct Registration {
    key: Key,
    epoch: Epoch,
    generation: Generation,
    worker: WorkerId,
    slice: SliceId,
    below_spines: bool,
}

impl Registration {
    const fn life(&self) -> (Epoch, Generation) {
        (self.epoch, self.generation)
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self::new()
    }
}

impl Worker {
    /// A worker without a registration.
    pub fn new() -> Self {
        Self {
            phase: Phase::New,
            window: SentWindow::new(Serial(0)),
            probing: Probing::default(),
            work: None,
            turn_at: Nanos(0),
            issued: Serial(0),
            seen: Serial(0),
            at: Registration::default(),
            joined: (Epoch(0), Generation(0)),
            newest: Epoch(0),
            feeding: Feeding::Tokens { ranked: false },
            granted: 0,
            quota: 0,
            waiting: 0,
            written_off: 0,
            dropped: 0,
            probes: 0,
            repeated_tokens: 0,
        }
    }

    /// Takes the controller's grant; the driver passes on unchanged grants too. Counters start anew when
    /// (epoch, generation) is strictly newer; an older grant is ignored.
    pub fn grant(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        grant: WorkerRegistration,
        out: &mut Vec<Action>,
    ) {
        let is_new = self.phase == Phase::New;
        let life = (grant.epoch, grant.generation);
        if self.is_leaving() || (!is_new && life < self.at.life()) {
            return;
        }
        if is_new {
            self.joined = life;
            self.probing.start(settings.counters_start);
        }
        if is_new || life > self.at.life() {
            self.reset(&grant);
        }
        self.granted = grant.quota.min(QUOTA_LIMIT);
        self.quota = self.feeding.quota(self.granted);
        self.phase = Phase::Serving;
        self.send_tokens(now, settings, out);
        self.ask_for_lead(now, settings, out);
    }

    /// Like [`Worker::grant`], for a lane of a server: no token leaves before the room is shared out
    /// ([`Lanes::share_room`]), and never more than the grant allows.
    pub fn grant_lane(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        grant: WorkerRegistration,
        out: &mut Vec<Action>,
    ) {
        self.grant(now, settings, WorkerRegistration { quota: 0, ..grant }, out);
        if self.at.life() == (grant.epoch, grant.generation) {
            self.granted = grant.quota.min(QUOTA_LIMIT);
        }
    }

    /// Takes a packet that the kernel received at `received`. The worker gives back its payload's handle
    /// exactly once. For a DISPATCH whose bytes were written ahead, the driver sets what it copied: `Here`
    /// if the slot held the task (and, for a task of one packet, the bytes that the DISPATCH describes),
    /// else `AtClient`.
    pub fn packet(
        &mut self,
        now: Nanos,
        received: Nanos,
        settings: &WorkerSettings,
        packet: &Packet,
        out: &mut Vec<Action>,
    ) {
        match packet {
            Packet::Dispatch(dispatch) => self.dispatch(now, received, settings, dispatch, out),
            Packet::Answer(answer) => self.answer(now, received, settings, answer, out),
            Packet::Empty(empty) => self.empty(now, received, settings, empty, out),
            Packet::Part(part) => self.part(now, settings, part, out),
            Packet::Need(need) => self.need(need, out),
            other => release(other.payload().map_or(Handle::NONE, |payload| payload.handle), out),
        }
    }

    /// The run `slot` ended with this reply. The reply leaves first, then a token, then the next task
    /// starts. The call forgets no finished task: while this one ran, a repeat of an older task may have
    /// been received.
    #[expect(
        clippy::too_many_arguments,
        reason = "the driver's one call per task; a struct would only rename them"
    )]
    pub fn finished(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        slot: u64,
        started: Nanos,
        status: ReplyStatus,
        reply: Payload,
        out: &mut Vec<Action>,
    ) {
        let sender = self.sender();
        let end = RunEnd { started, status, payload: reply };
        let ended = self.work.as_mut().and_then(|work| work.end(now, settings, slot, sender, end, out));
        let Some(payload) = ended else {
            if reply.handle != Handle::NONE {
                out.push(Action::Forget(reply.handle));
            }
            return;
        };
        self.send_tokens(now, settings, out);
        release(payload, out);
        self.run_next(now, settings, out);
    }

    /// Handles everything that is due (see [`Worker::deadline`]). The driver must first hand over the
    /// packets received meanwhile.
    pub fn tick(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        let patience = self.reorder_time(settings);
        self.written_off += self.window.write_off(now, patience);
        self.evict(now, settings, out);
        self.fetch_due(now, settings, out);
        self.send_tokens(now, settings, out);
        if self.is_watching() && self.probing.deadline() <= now {
            self.probe(now, settings, out);
        }
        if self.nothing_comes_after(settings).is_some_and(|end| end <= now) {
            self.phase = Phase::Gone;
        }
    }

    /// When [`Worker::tick`] has to be called, unless something else happens first.
    pub fn deadline(&self, settings: &WorkerSettings) -> Option<Nanos> {
        let probe = self.is_watching().then(|| self.probing.deadline());
        let evict = self.work.as_ref().and_then(|work| work.finished().deadline(settings));
        let poll = if self.wants_token(settings) { self.feeding.not_before() } else { None };
        let fetch = self.work.as_ref().and_then(|work| work.fetch_deadline());
        let end = self.nothing_comes_after(settings);
        let gap = self.window.gap_since().map(|since| since + self.reorder_time(settings));
        let first = [probe, poll, gap, evict, fetch, end].iter().fold(NEVER, |first, due| {
            let due = due.unwrap_or(NEVER);
            if due < first { due } else { first }
        });
        (first < NEVER).then_some(first)
    }

    /// The switch cannot be reached, or the driver heard of a newer life of it: asks for a new
    /// registration.
    pub fn refused(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        if !self.is_leaving() {
            self.renew(now, settings, out);
        }
    }

    /// Sends no tokens until the next grant. The driver calls this when something that the registration
    /// relies on is gone, such as a server's memory.
    pub fn suspend(&mut self) {
        if self.phase == Phase::Serving {
            self.phase = Phase::Closed;
        }
    }

    /// Sends no more tokens; tasks that are held or still come are run.
    pub fn leave(&mut self) {
        if !self.is_leaving() {
            self.phase = Phase::Leaving;
        }
    }

    /// The controller has closed the registration. `final_sent` is how many tasks the switch had sent, if
    /// the controller knows.
    pub fn left(&mut self, now: Nanos, final_sent: Option<Serial>) {
        if matches!(self.phase, Phase::Left { .. } | Phase::Gone) {
            return;
        }
        let believable = final_sent.filter(|last| self.feeding.is_pushed() || self.issued.since(*last) >= 0);
        if let Some(last) = believable {
            // The switch can be ahead of the worker only if it pushes tasks: then the last ones are still
            // on their way.
            self.issued = self.issued.latest(last);
            self.written_off += self.window.hear(last);
        }
        self.phase = Phase::Left { knows_last: believable.is_some() };
        self.turn_at = now;
    }

    /// Whether the worker holds no task and none can come any more, after [`Worker::left`].
    pub fn is_done(&self, now: Nanos, settings: &WorkerSettings) -> bool {
        let is_over = self.nothing_comes_after(settings).is_some_and(|end| end <= now);
        self.held() == 0 && (self.phase == Phase::Gone || is_over)
    }

    /// Sets how many tasks may be granted or held. A lower quota takes effect as tokens are spent; a higher
    /// one with the next [`Worker::tick`] or end of a task.
    pub fn set_quota(&mut self, quota: u8) {
        self.quota = self.feeding.quota(quota.clamp(1, QUOTA_MAX));
    }

    /// Sets how many tasks may come beside those held, for a worker whose room others determine; zero stops
    /// its tokens.
    pub fn set_room(&mut self, room: u8) {
        let held = self.held().min(QUOTA_MAX.into()) as u8;
        self.quota = self.feeding.quota(held.saturating_add(room).min(QUOTA_MAX));
    }

    /// The waits of the running task, for the agent, if its service ends now.
    pub fn sample(&self, now: Nanos, started: Nanos) -> Option<Sample> {
        self.work.as_ref()?.sample(now, started)
    }

    /// How long the task of run `slot` waited at this worker before its service began.
    pub fn waited(&self, slot: u64, started: Nanos) -> Nanos {
        self.work.as_ref().map_or(Nanos(0), |work| work.waited(slot, started))
    }

    /// The slice to which the worker's tokens go; `None` before it is registered.
    pub fn slice(&self) -> Option<SliceId> {
        (self.phase != Phase::New).then_some(self.at.slice)
    }

    /// How many tasks were refused because their budget was spent before they could begin.
    pub fn refused_late(&self) -> u64 {
        self.work.as_ref().map_or(0, |work| work.counts.over_budget)
    }

    /// How many TOKENs are known to have been lost on their way to the switch. Each was sent again.
    pub const fn repeated_tokens(&self) -> u32 {
        self.repeated_tokens
    }

    /// For how long the switch has not answered; zero while it does, and for a worker that does not ask.
    pub fn unanswered_for(&self, now: Nanos) -> Nanos {
        if self.phase == Phase::Serving { self.probing.unanswered_for(now) } else { Nanos(0) }
    }

    /// The worker's state and counters.
    pub fn stats(&self) -> WorkerStats {
        let counts = self.work.as_ref().map_or_else(Default::default, |work| work.counts);
        let finished = self.work.as_ref().map(|work| work.finished());
        let early = self.work.as_ref().map(|work| &work.early);
        WorkerStats {
            serving: self.phase == Phase::Serving,
            held: self.held(),
            tokens_out: self.tokens_out(),
            table: finished.map_or(0, |finished| finished.len() as u32),
            replies: finished.map_or(0, |finished| finished.replies() as u32),
            finished: counts.finished,
            duplicates: counts.duplicates,
            repeated_tasks: counts.repeated_tasks,
            replies_gone: counts.replies_gone,
            too_old: counts.too_old,
            late: counts.late,
            over_budget: self.refused_late(),
            fetches: counts.fetches,
            fetches_failed: counts.fetches_failed,
            needs: counts.needs,
            dropped: self.dropped,
            written_off: self.written_off,
            probes: self.probes,
            repeated_tokens: self.repeated_tokens,
            early_tokens: early.map_or(0, |early| early.sent),
            lead: early.and_then(|early| early.lead.known()).unwrap_or_default(),
            rtt: self.probing.rtt().unwrap_or_default(),
        }
    }

    fn reset(&mut self, grant: &WorkerRegistration) {
        let WorkerRegistration { worker, key, epoch, generation, slice, below_spines, .. } = *grant;
        self.at = Registration { key, epoch, generation, worker, slice, below_spines };
        self.feeding = Feeding::new(grant.feed);
        self.newest = self.newest.max(epoch);
        self.issued = grant.start;
        self.seen = grant.start;
        self.waiting = 0;
        self.window = SentWindow::new(grant.start);
        self.probing.reset();
        if let Some(work) = &mut self.work {
            work.early.lead.restart();
        }
    }

    #[inline]
    fn send_tokens(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        let mut before = 0;
        while self.wants_token(settings) && self.feeding.not_before().is_none_or(|from| from <= now) {
            self.issue_token(now, settings, self.rank(self.held() + before), out);
            before += 1;
        }
    }

    /// The rank of a token: how many tasks will stand before its task, which are the held tasks and one for
    /// each token sent at the same moment. Tokens sent earlier stood behind more tasks. The switch spends a
    /// worker's tokens from the lowest rank on, so a new token comes before them.
    fn rank(&self, tasks: u32) -> Rank {
        if self.feeding.is_ranked() { Rank::behind(tasks) } else { Rank::default() }
    }

    /// A function of its own, since the loop that calls it usually sends no token.
    #[inline(never)]
    fn issue_token(&mut self, now: Nanos, settings: &WorkerSettings, rank: Rank, out: &mut Vec<Action>) {
        self.issued = self.issued.plus(1);
        self.token(now, settings, rank, true, out);
    }

    #[inline]
    fn wants_token(&self, settings: &WorkerSettings) -> bool {
        self.phase == Phase::Serving && self.has_room_for_token(settings, self.quota_now(settings))
    }

    /// How many tasks may be granted or held now. A patient worker allows one while few tasks wait in the
    /// switch.
    #[inline]
    fn quota_now(&self, settings: &WorkerSettings) -> u32 {
        let is_calm = self.waiting < settings.patience;
        if is_calm { u32::from(self.quota.min(1)) } else { self.quota.into() }
    }

    /// Whether fewer than `quota` tasks are granted or held, and the table of finished tasks has room for
    /// one more.
    #[inline]
    fn has_room_for_token(&self, settings: &WorkerSettings, quota: u32) -> bool {
        let promised = self.tokens_out() + self.held();
        let kept = || self.work.as_ref().map_or(0, |work| work.finished().len());
        promised < quota && kept() + (promised as usize) < settings.finished_max
    }

    fn repeat_tokens(&mut self, now: Nanos, settings: &WorkerSettings, lost: i32, out: &mut Vec<Action>) {
        if self.phase != Phase::Serving {
            return;
        }
        for before in 0..lost.clamp(0, QUOTA_LIMIT.into()) {
            self.repeated_tokens += 1;
            self.token(now, settings, self.rank(self.held() + before as u32), false, out);
        }
    }

    fn token(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        rank: Rank,
        first: bool,
        out: &mut Vec<Action>,
    ) {
        let nonce = self.probing.next_nonce();
        self.probing.token_sent(now, settings, first);
        self.time_token(now, settings, first);
        let Registration { key, epoch, generation, worker, .. } = self.at;
        let token = Token { epoch, key, worker, generation, nonce, issued: self.issued, rank };
        out.push(Action::ToSwitch(Packet::Token(token)));
    }

    fn probe(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        let nonce = self.probing.next_nonce();
        let Registration { key, epoch, generation, worker, .. } = self.at;
        out.push(Action::ToSwitch(Packet::Probe(Probe { epoch, key, worker, generation, nonce })));
        self.probes += 1;
        if self.probing.probe_sent(now, settings, nonce, self.issued) {
            self.turn_at = now;
            self.renew(now, settings, out);
        }
    }

    /// Asks the controller. The pause between two requests is at least that between a busy worker's probes,
    /// so packets from outside cannot make it ask more often.
    fn renew(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        if now >= self.turn_at {
            self.turn_at = now + settings.probe_max_busy;
            out.push(Action::Renew);
        }
    }

    fn evict(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        if let Some(work) = &mut self.work {
            work.evict(now, settings, out);
        }
    }

    #[expect(clippy::inline_always, reason = "each task pays for a call that stays one")]
    #[inline(always)]
    fn run_next(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        let sender = self.sender();
        if let Some(work) = &mut self.work
            && work.run_next(now, settings, sender, out)
        {
            self.send_tokens(now, settings, out);
        }
    }

    /// How long a DISPATCH may be overtaken by later ones. A switch that stood still makes round trips look
    /// long, but does not reorder more. So the time is bounded by the longest interval between probes.
    fn reorder_time(&self, settings: &WorkerSettings) -> Nanos {
        let round_trip = self.probing.round_trip(settings);
        round_trip.times(settings.reorder_rtts.into()).min(settings.probe_max_busy.max(round_trip))
    }

    /// Tokens whose tasks have neither come nor been written off.
    fn tokens_out(&self) -> u32 {
        self.issued.since(self.window.high()) as u32 + self.window.missing()
    }

    /// How many tasks a lane may have granted or held. While it is not registered, or leaves, no more than
    /// it has now.
    fn lane_quota(&self) -> u32 {
        if self.phase == Phase::Serving { self.granted.into() } else { 0 }
    }

    fn held(&self) -> u32 {
        self.work.as_ref().map_or(0, |work| work.held() as u32)
    }

    /// How many held tasks do not run yet.
    fn not_running(&self) -> u32 {
        self.work.as_ref().map_or(0, |work| (work.held() - work.running()) as u32)
    }

    /// After the registration was closed: the time after which no task can come any more.
    fn nothing_comes_after(&self, settings: &WorkerSettings) -> Option<Nanos> {
        match self.phase {
            Phase::Left { knows_last: true } if self.window.missing() == 0 => Some(self.turn_at),
            Phase::Left { .. } => Some(self.turn_at + self.reorder_time(settings)),
            _ => None,
        }
    }

    const fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Leaving | Phase::Left { .. } | Phase::Gone)
    }

    /// Whether the worker must probe the switch from time to time.
    fn is_watching(&self) -> bool {
        let asks = self.tokens_out() > 0 && !self.feeding.is_pushed();
        self.phase == Phase::Closed || (self.phase == Phase::Serving && asks)
    }

    const fn sender(&self) -> Sender {
        let reports = self.feeding.reports();
        let epoch = if self.at.below_spines && !reports { Epoch(0) } else { self.newest };
        Sender { worker: self.at.worker, epoch, reports }
    }
}

fn release(handle: Handle, out: &mut Vec<Action>) {
    if handle != Handle::NONE {
        out.push(Action::Release(handle));
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::{Answer, Counters, Dispatch};

    use super::*;

    #[test]
    fn an_idle_registered_worker_with_all_tokens_parked_stays_under_200_bytes() {
        let settings = WorkerSettings { counters_start: Serial(u32::MAX - 7), ..WorkerSettings::default() };
        let (mut worker, mut out) = (Worker::new(), Vec::new());
        let (epoch, generation, start) = (Epoch(9), Generation(3), Serial(u32::MAX - 7));
        worker.grant(
            Nanos(5),
            &settings,
            WorkerRegistration { epoch, generation, quota: 8, start, ..WorkerRegistration::default() },
            &mut out,
        );
        let probing_at = worker.deadline(&settings).expect("tokens are out");
        out.clear();
        worker.tick(probing_at, &settings, &mut out);
        let [Action::ToSwitch(Packet::Probe(probe))] = out[..] else {
            panic!("expected a probe, got {out:?}")
        };
        let counters = Some(Counters { seen: start.plus(8), sent: start });
        let answer = Answer { epoch, generation, nonce: probe.nonce, counters, ..Answer::default() };
        let later = probing_at + Nanos(9);
        worker.packet(later, later, &settings, &Packet::Answer(answer), &mut out);
        assert_eq!(worker.deadline(&settings), Some(later + settings.probe_longest));
        assert_eq!((worker.stats().tokens_out, worker.stats().rtt), (8, Nanos(9)));
        assert!(worker.work.is_none(), "the only field that owns memory");
        assert!(size_of::<Worker>() < 200, "it takes {} bytes", size_of::<Worker>());
    }

    #[test]
    fn where_nothing_comes_twice_nothing_is_kept_of_finished_tasks() {
        let settings = WorkerSettings { repeats: false, ..WorkerSettings::default() };
        let (mut worker, mut out) = (Worker::new(), Vec::new());
        let (epoch, generation) = (Epoch(1), Generation(1));
        worker.grant(
            Nanos(5),
            &settings,
            WorkerRegistration { epoch, generation, quota: 1, ..WorkerRegistration::default() },
            &mut out,
        );
        let reply = Payload { len: 100, handle: Handle(7), ..Payload::EMPTY };
        for task in 1..=3 {
            let (sent, seen) = (Serial(task), Serial(task));
            let dispatch = Dispatch { epoch, generation, sent, seen, ..Dispatch::default() };
            worker.packet(Nanos(10), Nanos(10), &settings, &Packet::Dispatch(dispatch), &mut out);
            out.clear();
            let (slot, now) = (u64::from(task), Nanos(20));
            worker.finished(now, &settings, slot, Nanos(10), ReplyStatus::Done, reply, &mut out);
            assert!(out.contains(&Action::Forget(reply.handle)), "a driver's bytes are given back at once");
        }
        assert_eq!((worker.stats().finished, worker.stats().table), (3, 0));
    }
}
