//! Several tasks in one submission (Draconis' slides name jobs, but not how their tasks enter the queue).
//!
//! Our reading: a pass has one access to each array, so one task is added per pass, the first, and the rest
//! recirculates. Each task enters as if it had come alone, through its own replay cell. A submission that
//! comes twice is recognized by its first task and dropped whole.
//!
//! A pass can send one packet. So a task that finds the retrieve pointer ahead sends the fix together with
//! the rest of the job, and the rest enters after the fix has landed. If a task finds its queue full, or no
//! worker, one REJECT answers it and all tasks behind it: they are alike, and would find the same.

use sluice_wire::Packet;

use super::memory::{CLEAR, Draconis};
use super::rounds::{JobNote, QueueId};
use crate::front::{Entering, EnteringJob};
use crate::pipeline::Pass;
use crate::program::{Cargo, Circulating, Verdict};
use crate::refusal::Refusal;

impl Draconis {
    /// A submission comes, or its rest recirculates.
    pub(super) fn enter(&mut self, pass: &mut Pass, entering: EnteringJob<'_>) -> Verdict {
        let EnteringJob { job, arrived, memo } = entering;
        match memo.map(JobNote::read) {
            None => self.enter_first(pass, entering),
            Some(JobNote::Next) if !self.front.knows_sender(job.first()) => {
                Verdict::Drop(Refusal::UnknownSource)
            }
            Some(JobNote::Next) => self.enter_next(pass, entering),
            Some(JobNote::Fix { queue, ticket }) => {
                self.land_retrieve_fix(pass, queue, ticket);
                JobNote::Next.go(*job, arrived)
            }
            Some(JobNote::Full { queue, ticket }) => {
                self.land_add_fix(pass, queue, ticket);
                with_rest(self.full(job.first()), job.behind())
            }
        }
    }

    fn enter_first(&mut self, pass: &mut Pass, entering: EnteringJob<'_>) -> Verdict {
        let EnteringJob { job, .. } = entering;
        if !self.front.enters_once(pass, job.first()) {
            return Verdict::Drop(Refusal::Replayed);
        }
        if !self.front.rounds.have_room() {
            return with_rest(self.front.no_room(job.first()), job.behind());
        }
        self.add_first(pass, entering)
    }

    /// Adds the first remaining task, or skips it if a newer try of it has come meanwhile.
    fn enter_next(&mut self, pass: &mut Pass, entering: EnteringJob<'_>) -> Verdict {
        if self.front.enters_once(pass, entering.job.first()) {
            return self.add_first(pass, entering);
        }
        match entering.job.rest() {
            None => Verdict::Drop(Refusal::Replayed),
            Some(rest) => {
                self.front.refusals.add(Refusal::Replayed);
                JobNote::Next.go(rest, entering.arrived)
            }
        }
    }

    /// Adds the first task of the job. The verdict covers that task and the rest of the job.
    fn add_first(&mut self, pass: &mut Pass, entering: EnteringJob<'_>) -> Verdict {
        let EnteringJob { job, arrived, .. } = entering;
        let first = Entering { submit: job.first(), arrived, memo: None };
        match (self.task_comes(pass, first), job.rest()) {
            (Verdict::Parked, Some(rest)) => JobNote::Next.go(rest, arrived),
            (Verdict::Again(Circulating { cargo: Cargo::Note, memo, .. }), Some(rest)) => {
                JobNote::read(memo).go(rest, arrived)
            }
            (Verdict::Again(Circulating { cargo: Cargo::Task(_), memo, .. }), Some(_)) => {
                JobNote::of_full(memo).go(*job, arrived)
            }
            (verdict, _) => with_rest(verdict, job.behind()),
        }
    }

    pub(super) fn land_retrieve_fix(&mut self, pass: &mut Pass, queue: QueueId, ticket: u32) {
        let s = self.index(queue);
        self.retrieve.write(pass, s, ticket);
        self.retrieve_fix.write(pass, s, CLEAR);
    }

    pub(super) fn land_add_fix(&mut self, pass: &mut Pass, queue: QueueId, ticket: u32) {
        let s = self.index(queue);
        self.add.write(pass, s, ticket);
        self.add_fix.write(pass, s, CLEAR);
    }
}

/// Makes a REJECT of a task stand for the `behind` tasks after it too.
fn with_rest(mut verdict: Verdict, behind: u8) -> Verdict {
    if let Verdict::Send { packet: Packet::Reject(reject), .. } = &mut verdict {
        reject.behind = behind;
    }
    verdict
}
