//! The controller's sweep: it looks at one entry a pass, and a live token takes a second pass to park
//! again.
//!
//! A sweep for tokens visits one rank after the other, each from its oldest token on, and no more tokens
//! than the rank had when the sweep began. The sweep subtracts a token from the balance before it can see
//! whether its rank has one. If the rank has none, the sweep gets a token of another rank, parks it again
//! under its own, and goes on with the next rank.

use sluice_wire::tables::SliceRow;
use sluice_wire::{Generation, Nanos, Rank, Sweep, SweepOf, WorkerId};

use super::notes::Round;
use super::selective::Taken;
use super::tokens::ParkedToken;
use super::{Rain, Selective};
use crate::front::{Granted, Scheduler};
use crate::pipeline::Pass;
use crate::program::{Cargo, Circulating, Verdict};
use crate::refusal::Refusal;

/// The state of a sweep for tokens; the memo for its next pass. A new sweep has all zero.
#[derive(Clone, Copy, Debug, Default)]
struct SweepState {
    /// How many entries of each rank the sweep may visit.
    each: u16,
    /// The rank that the sweep visits.
    rank: u8,
    /// Whether the sweep has visited that rank.
    begun: bool,
    /// The rank of the token that the sweep carries.
    carries: Rank,
}

impl SweepState {
    const fn read(memo: u64) -> Self {
        Self {
            each: memo as u16,
            rank: (memo >> 16) as u8,
            carries: Rank::behind((memo >> 24) as u8 as u32),
            begun: memo >> 32 & 1 == 1,
        }
    }

    const fn memo(self) -> u64 {
        let carries = self.carries.get() as u64;
        self.each as u64 | (self.rank as u64) << 16 | carries << 24 | (self.begun as u64) << 32
    }
}

impl Rain {
    pub(super) fn sweep(&mut self, pass: &mut Pass, now: Nanos, sweep: Sweep, memo: u64) -> Verdict {
        let stand = SweepState::read(memo);
        if let Some((worker, generation)) = sweep.carried
            && self.front.is_admitted(worker, generation)
        {
            let granted = Granted { worker, generation, seen: None };
            let verdict = self.token(pass, now, sweep.slice, granted, stand.carries);
            return if verdict == Verdict::Parked { go_on(sweep, None, stand) } else { verdict };
        }
        match sweep.of {
            _ if sweep.left == 0 => Verdict::Drop(Refusal::SweepDone),
            SweepOf::Tokens => self.sweep_token(pass, sweep, stand),
            SweepOf::Tasks => self.sweep_task(pass, sweep),
        }
    }

    fn sweep_token(&mut self, pass: &mut Pass, sweep: Sweep, mut stand: SweepState) -> Verdict {
        let s = sweep.slice.0 as usize;
        if self.memory.balance.branch(pass, s, |b| b > 0, |b| b - 1, |b| b) <= 0 {
            return Verdict::Drop(Refusal::SweepDone);
        }
        let (token, found) = self.memory.tokens.take_from(pass, sweep.slice, stand.rank);
        let mut left = sweep.left;
        if !stand.begun {
            (stand.each, stand.begun) = (left, true);
            left = left.min(u16::try_from(found.of).unwrap_or(u16::MAX));
        }
        // The token is of another rank: the visited rank has none left.
        left = if found.ring == stand.rank { left - 1 } else { 0 };
        if left == 0 && stand.rank < self.memory.tokens.last() {
            (stand.rank, stand.begun, left) = (stand.rank + 1, false, stand.each);
        }
        let ParkedToken { worker, generation } = token;
        let live = self.front.is_live(pass, worker, generation).then_some((worker, generation));
        stand.carries = Rank::behind(found.ring.into());
        go_on(Sweep { left, ..sweep }, live, stand)
    }

    /// Only the tasks of a closed slice are swept: those of an open slice have workers to wait for.
    fn sweep_task(&mut self, pass: &mut Pass, sweep: Sweep) -> Verdict {
        let s = sweep.slice.0 as usize;
        let closed = !self.front.tables.slices[s].open;
        let takes = |balance: i32| closed && balance < 0;
        if !takes(self.memory.balance.branch(pass, s, takes, |b| b + 1, |b| b)) {
            return Verdict::Drop(Refusal::SweepDone);
        }
        let tasks = &mut self.memory.tasks;
        let (task, _) = if tasks.are_classed() {
            tasks.take::<true>(pass, sweep.slice, 0)
        } else {
            tasks.take::<false>(pass, sweep.slice, 0)
        };
        self.front.sweep_out(&self.front.whole(&task))
    }
}

impl Selective {
    /// Visits one kind of tokens after the other, as with ranks. A token that would park while a task that
    /// it serves waits recirculates as a note, and the sweep ends with that.
    pub(super) fn sweep(&mut self, pass: &mut Pass, sweep: Sweep, memo: u64) -> Verdict {
        let stand = SweepState::read(memo);
        if let Some((worker, generation)) = sweep.carried
            && self.front.is_admitted(worker, generation)
        {
            let granted = Granted { worker, generation, seen: None };
            let kind = self.kind_of(worker);
            return if self.park(pass, sweep.slice, granted, kind) {
                Round::Recall { slice: sweep.slice, kind }.go()
            } else {
                go_on(sweep, None, stand)
            };
        }
        match sweep.of {
            _ if sweep.left == 0 => Verdict::Drop(Refusal::SweepDone),
            SweepOf::Tokens => self.sweep_token(pass, sweep, stand),
            SweepOf::Tasks => self.sweep_task(pass, sweep),
        }
    }

    fn sweep_token(&mut self, pass: &mut Pass, sweep: Sweep, mut stand: SweepState) -> Verdict {
        if !stand.begun {
            (stand.each, stand.begun) = (sweep.left, true);
        }
        let (live, mut left) = match self.take(pass, sweep.slice, 1 << stand.rank) {
            Taken::Nothing { .. } => (None, 0),
            Taken::Stale => (None, sweep.left - 1),
            Taken::Live(token) => (Some((token.worker, token.generation)), sweep.left - 1),
        };
        if left == 0 && stand.rank < self.tokens.each() - 1 {
            (stand.rank, left) = (stand.rank + 1, stand.each);
        }
        go_on(Sweep { left, ..sweep }, live, stand)
    }

    /// Sweeps the tasks of a closed slice, or of the classes that have no worker.
    fn sweep_task(&mut self, pass: &mut Pass, sweep: Sweep) -> Verdict {
        let SliceRow { open, closed, .. } = self.front.tables.slices[sweep.slice.0 as usize];
        let classes = if open { closed } else { u8::MAX };
        let (Some(class), _) = self.waiting.take(pass, sweep.slice, classes) else {
            return Verdict::Drop(Refusal::SweepDone);
        };
        let (task, _) = self.tasks.pop(pass, self.tasks.of(sweep.slice, class));
        self.front.sweep_out(&self.front.whole(&task))
    }
}

fn go_on(sweep: Sweep, carried: Option<(WorkerId, Generation)>, stand: SweepState) -> Verdict {
    let cargo = Cargo::Sweep(Sweep { carried, ..sweep });
    Verdict::Again(Circulating { cargo, arrived: Nanos::default(), memo: stand.memo() })
}
