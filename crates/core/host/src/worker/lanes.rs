//! A server of many cores as several workers, called lanes. Each lane has a registration, counters and a
//! generation of its own; all lanes share one socket and one memory of tasks (ours; RingLeader's server
//! under Rain).
//!
//! A worker has at most eight tokens of one slice. A server whose cores hold 64 requests of several
//! services therefore appears as several workers. Each lane runs everything that it holds at once
//! ([`WorkerSettings::at_once`]). To the switch and the controller each lane is a worker like any other.
//!
//! The lanes together promise that no task runs twice in one life: a client's later attempt may meet
//! another lane's token. So a DISPATCH that brings a task to one lane is first checked against all others.
//! A lane that holds or has finished the task answers it, with the bytes that it keeps.
//!
//! The number of tokens of a lane follows the room that the cores have ([`Lanes::share_room`]). Left out:
//! adaptive depths, early tokens and patience, since the cores' room already limits the tokens.

use alloc::vec::Vec;

use sluice_wire::{Dispatch, Nanos, Packet, Payload, ReplyStatus};

use super::types::{Action, WorkerSettings};
use super::window::Arrival;
use super::{QUOTA_MAX, Worker};

/// A server's lanes.
#[derive(Debug)]
pub struct Lanes {
    lanes: Vec<Worker>,
}

impl Lanes {
    /// `lanes` lanes without registrations.
    pub fn new(lanes: usize) -> Self {
        Self { lanes: (0..lanes).map(|_| Worker::new()).collect() }
    }

    /// The number of lanes.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether there is no lane.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// One lane, for calls that concern it alone: registration, ticks, ends of runs, leaving.
    pub fn lane(&mut self, lane: usize) -> &mut Worker {
        &mut self.lanes[lane]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.lanes.iter()
    }

    /// The lane that a packet is for. A packet for no lane goes to the first one, which counts it as
    /// foreign.
    pub fn of(&self, packet: &Packet) -> usize {
        let (worker, life) = match packet {
            Packet::Dispatch(dispatch) => (dispatch.worker, (dispatch.epoch, dispatch.generation)),
            Packet::Answer(answer) => (answer.worker, (answer.epoch, answer.generation)),
            Packet::Empty(empty) => (empty.worker, (empty.epoch, empty.generation)),
            Packet::Part(part) => return self.position(|lane| lane.knows(part.task)).unwrap_or(0),
            Packet::Need(need) => return self.position(|lane| lane.knows(need.task)).unwrap_or(0),
            _ => return 0,
        };
        let exactly = self.position(|lane| lane.is_for(worker, Some(life)));
        exactly.or_else(|| self.position(|lane| lane.is_for(worker, None))).unwrap_or(0)
    }

    /// Hands a packet to its lane ([`Self::of`]), as [`Worker::packet`] does. One thing differs: when a
    /// task has ended elsewhere, no token takes its place before [`Self::share_room`]. If another lane
    /// holds the task, has finished it or may have forgotten it, the call returns that lane, which must
    /// answer ([`Self::answer_repeat`]).
    #[must_use]
    pub fn packet(
        &mut self,
        lane: usize,
        (now, received): (Nanos, Nanos),
        settings: &WorkerSettings,
        packet: &Packet,
        out: &mut Vec<Action>,
    ) -> Option<usize> {
        match packet {
            Packet::Dispatch(dispatch) => self.dispatch(lane, (now, received), settings, dispatch, out),
            other => {
                let lane = &mut self.lanes[lane];
                if let Packet::Part(_) = other {
                    // A PART may end a task whose place was beyond the cores' room.
                    lane.quota = 0;
                }
                lane.packet(now, received, settings, other, out);
                None
            }
        }
    }

    /// Repeats a lane's requests for missing bytes, and gives up tasks whose bytes were asked for too
    /// often. Call this before [`Self::share_room`], which shares out the places that become free:
    /// otherwise the next [`Worker::tick`] would put a token in each place.
    pub fn fetch_due(&mut self, lane: usize, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        self.lanes[lane].fetch_due(now, settings, out);
    }

    /// Lets a lane answer the task of a DISPATCH that came to another lane. The answer uses this lane's
    /// bytes.
    pub fn answer_repeat(
        &mut self,
        lane: usize,
        received: Nanos,
        settings: &WorkerSettings,
        dispatch: &Dispatch,
        out: &mut Vec<Action>,
    ) {
        self.lanes[lane].answer_repeat(received, settings, dispatch, out);
    }

    /// Like [`Worker::finished`], except that no token leaves before the next [`Self::share_room`].
    pub fn finished(
        &mut self,
        lane: usize,
        now: Nanos,
        settings: &WorkerSettings,
        (slot, started): (u64, Nanos),
        (status, reply): (ReplyStatus, Payload),
        out: &mut Vec<Action>,
    ) {
        let lane = &mut self.lanes[lane];
        lane.quota = 0;
        lane.finished(now, settings, slot, started, status, reply, out);
    }

    /// Shares out the room of the cores for one service among its lanes: `room` tasks beside those that
    /// run. First come tasks whose bytes are still missing, then tokens that are out, then lanes whose
    /// registration allows more. New tokens leave with the next [`Worker::tick`].
    pub fn share_room(&mut self, of: &[usize], room: u32) {
        let fetching: u32 = of.iter().map(|lane| self.lanes[*lane].not_running()).sum();
        let room = room.saturating_sub(fetching);
        let out: u32 = of.iter().map(|lane| self.lanes[*lane].tokens_out()).sum();
        let (mut kept, mut more) = (room.min(out), room.saturating_sub(out));
        let take = |left: &mut u32, most: u32| {
            let taken = most.min(*left);
            *left -= taken;
            taken
        };
        for lane in of {
            let lane = &mut self.lanes[*lane];
            let out = take(&mut kept, lane.tokens_out());
            let more = take(&mut more, lane.lane_quota().saturating_sub(lane.held() + out));
            lane.set_room((out + more).min(QUOTA_MAX.into()) as u8);
        }
    }

    fn dispatch(
        &mut self,
        lane: usize,
        (now, received): (Nanos, Nanos),
        settings: &WorkerSettings,
        dispatch: &Dispatch,
        out: &mut Vec<Action>,
    ) -> Option<usize> {
        let arrival = self.lanes[lane].arrive(now, received, settings, dispatch, out);
        let is_new = matches!(arrival, Some(Arrival::Fresh | Arrival::Late)) && settings.repeats;
        let answers = is_new.then(|| self.who_answers(received, settings, dispatch)).flatten();
        let answers = answers.filter(|other| *other != lane);
        if answers.is_some() {
            self.lanes[lane].leave_it(now, settings, dispatch, out);
        } else {
            self.lanes[lane].settle((now, received), settings, dispatch, arrival, out);
        }
        answers
    }

    /// The lane that knows a task; otherwise a lane that may have forgotten it.
    fn who_answers(&self, received: Nanos, settings: &WorkerSettings, dispatch: &Dispatch) -> Option<usize> {
        let knows = self.position(|lane| lane.knows(dispatch.task));
        knows.or_else(|| self.position(|lane| lane.may_have_forgotten(received, settings, dispatch)))
    }

    fn position(&self, is_meant: impl FnMut(&Worker) -> bool) -> Option<usize> {
        self.lanes.iter().position(is_meant)
    }
}
