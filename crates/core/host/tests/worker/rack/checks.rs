//! Invariants that are checked after each call.

use std::collections::{BTreeMap, BTreeSet};

use sluice_host::worker::{Action, WorkerSettings, WorkerStats};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{Epoch, Generation, Handle, Nanos, Packet, Reply, ReplyStatus, Serial, TaskId};

/// The oracle's memory.
#[derive(Default)]
pub(super) struct Checks {
    /// Tasks that ran in this life, each with its reply.
    ran: BTreeMap<(u64, u32), Option<Handle>>,
    payloads: BTreeSet<u32>,
    replies: BTreeSet<u32>,
    issued: Option<((Epoch, Generation), Serial)>,
    renewals: u64,
    /// The earliest time for the running task's early token.
    early_from: Option<Nanos>,
}

impl Checks {
    /// The worker process died, and its memory with it.
    pub(super) fn new_life(&mut self) {
        *self = Self::default();
    }

    pub(super) fn payload_made(&mut self, handle: Handle) {
        self.payloads.insert(handle.0);
    }

    pub(super) fn reply_made(&mut self, task: TaskId, handle: Handle) {
        self.ran.insert(key(task), Some(handle));
        self.early_from = None;
        self.replies.insert(handle.0);
    }

    pub(super) fn may_be_early_from(&mut self, from: Nanos) {
        self.early_from = Some(from);
    }

    pub(super) fn took(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        applied: WorkerRegistration,
        out: &[Action],
        stats: &WorkerStats,
    ) {
        for action in out {
            match action {
                Action::Run { task, payload, .. } => {
                    assert!(self.ran.insert(key(*task), None).is_none(), "promise 2: {task} runs twice");
                    assert!(self.payloads.contains(&payload.handle.0), "it runs on bytes given back before");
                }
                Action::Reply { packet, .. } | Action::Report(packet) => self.replied(packet),
                Action::Release(handle) => {
                    assert!(self.payloads.remove(&handle.0), "payload {handle} is released twice");
                }
                Action::Forget(handle) => {
                    assert!(self.replies.remove(&handle.0), "reply {handle} is forgotten twice");
                }
                Action::ToSwitch(Packet::Token(token)) => {
                    let life = (token.epoch, token.generation);
                    let fresh = self.issued != Some((life, token.issued));
                    self.issued = Some((life, token.issued));
                    let promised = stats.tokens_out + stats.held;
                    let is_early = stats.held > 0 && self.early_from.is_some_and(|from| from <= now);
                    let most = u32::from(applied.quota) + u32::from(is_early);
                    assert!(!fresh || promised <= most, "promise 3: {promised} of {most}");
                }
                Action::Need { .. } | Action::Place { .. } | Action::Check { .. } | Action::Parts { .. } => {
                    panic!("every task and reply here comes whole: {action:?}");
                }
                Action::ToSwitch(_) => {}
                Action::Renew => self.renews(now, settings),
            }
        }
        assert_eq!(self.payloads.len(), stats.held as usize, "payloads kept are those of tasks held");
        assert!(stats.held as usize <= settings.held_max + 8, "held is bounded");
        assert!(stats.replies as usize <= settings.replies_max, "replies are bounded");
        assert_eq!(self.replies.len(), stats.replies as usize, "reply bytes kept are those of replies kept");
    }

    pub(super) fn all_handles_came_back(&self, table: u32) {
        assert_eq!((self.payloads.len(), self.replies.len(), table), (0, 0, 0));
    }

    fn replied(&self, reply: &Reply) {
        let gave = self.ran.get(&key(reply.task)).copied().flatten();
        if reply.status == ReplyStatus::Gone {
            assert!(gave.is_some(), "promise 2: gone, but it never ran");
            return;
        }
        assert_eq!(Some(reply.payload.handle), gave, "promise 2: a reply that the task did not give");
        assert!(self.replies.contains(&reply.payload.handle.0), "it replies with bytes forgotten before");
    }

    fn renews(&mut self, now: Nanos, settings: &WorkerSettings) {
        self.renewals += 1;
        assert!(self.renewals <= 4 + 2 * now.0 / settings.probe_max_busy.0, "a storm of renewals");
    }
}

fn key(task: TaskId) -> (u64, u32) {
    (task.incarnation.0, task.sequence.0)
}
