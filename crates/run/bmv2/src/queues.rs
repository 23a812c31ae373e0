//! The queues of the programs in which tasks or tokens wait: Rain's two rings, Draconis' ring.

use sluice_switch::Parked;
use sluice_wire::tables::{RingCounts, SliceState};
use sluice_wire::{Attempt, ClientId, Generation, Serial, SliceId, Submit, TaskId, WorkerId};

use crate::error::Bmv2Error;
use crate::program::{OWN, P4Program};
use crate::registers::of;
use crate::sizes::bits;
use crate::tables::P4Tables;

impl P4Tables {
    /// Sets heads, tails and pointers to their starts. The words have a slice's number below the count.
    pub(crate) fn start_queues(&mut self) -> Result<(), Bmv2Error> {
        let (start, above) = (self.config.counters_start.0, self.slice_bits());
        let starts: &[(&str, &str, u32)] = match self.program {
            P4Program::Rain => &[
                ("queue", "token_head", start),
                ("queue", "token_tail", start),
                ("queue", "task_head", start),
                ("queue", "task_tail", start),
            ],
            P4Program::Draconis => &[
                (OWN, "retrieve_pointer", start.wrapping_add(self.config.polls_ahead)),
                (OWN, "add_pointer", start),
            ],
            P4Program::Pallas | P4Program::RackSched => &[],
        };
        for (part, name, start) in starts {
            for slice in 0..self.config.slices {
                let word = start << above | u32::from(slice);
                self.runtime.fill(&of(part, name), slice.into(), 1, word.into())?;
            }
        }
        if self.program == P4Program::Draconis {
            // No place holds its first ticket yet.
            let never = start.wrapping_sub(1) << above;
            self.runtime.fill(&of(OWN, "ticket"), 0, self.places(), never.into())?;
        }
        Ok(())
    }

    /// What the controller reads of a slice, without its row.
    pub(crate) fn queue_state(&mut self, slice: SliceId) -> Result<SliceState, Bmv2Error> {
        match self.program {
            P4Program::Rain => self.rings(slice),
            P4Program::Draconis => {
                let waiting = self.ticketed(slice)?.len() as u32;
                let out = Serial(self.count(OWN, "retrieve_pointer", slice)?);
                Ok(SliceState {
                    balance: -(waiting as i32),
                    tasks_in: RingCounts::of_one(out.plus(waiting)),
                    tasks_out: RingCounts::of_one(out),
                    ..SliceState::default()
                })
            }
            P4Program::Pallas | P4Program::RackSched => Ok(SliceState::default()),
        }
    }

    fn rings(&mut self, slice: SliceId) -> Result<SliceState, Bmv2Error> {
        let balance = self.word("queue", "balance", slice.0.into())? as i32;
        let mut read = |name| self.count("queue", name, slice).map(|count| RingCounts::of_one(Serial(count)));
        Ok(SliceState {
            balance,
            tokens_in: read("token_tail")?,
            tokens_out: read("token_head")?,
            tasks_in: read("task_tail")?,
            tasks_out: read("task_head")?,
            ..SliceState::default()
        })
    }

    /// The contents of a slice's queue, as the columns hold them.
    pub(crate) fn parked(&mut self, slice: SliceId) -> Result<Parked, Bmv2Error> {
        match self.program {
            P4Program::Rain => {
                let cells = self.cells(("queue", "task_head"), ("queue", "task_tail"), slice)?;
                let len = self.config.tasks_per_slice;
                let tasks = self.tasks(cells.into_iter().map(|word| self.cell(word, len)).collect())?;
                Ok(Parked { tasks, tokens: self.tokens(slice)? })
            }
            P4Program::Draconis => {
                let cells = self.ticketed(slice)?;
                Ok(Parked { tasks: self.tasks(cells)?, ..Parked::default() })
            }
            P4Program::Pallas | P4Program::RackSched => Ok(Parked::default()),
        }
    }

    /// The waiting tasks in these cells: who submitted them, and which try it was.
    fn tasks(&mut self, cells: Vec<usize>) -> Result<Vec<Submit>, Bmv2Error> {
        // In a wide entry the attempt is the upper half of a column.
        let (part, attempt, unused_bits) = match self.program {
            P4Program::Draconis => ("wide_entry", "attempt_length", 16),
            P4Program::Rain | P4Program::Pallas | P4Program::RackSched => ("entry", "attempt", 0),
        };
        let names = ["client", attempt, "incarnation_low", "sequence"];
        let [client, attempt, low, sequence] = names.map(|name| self.words(part, name));
        let (client, attempt, low, sequence) = (client?, attempt?, low?, sequence?);
        let task = |cell: usize| Submit {
            client: ClientId(client[cell] as u16),
            task: TaskId {
                incarnation: self.entries.incarnation(ClientId(client[cell] as u16), low[cell]),
                sequence: Serial(sequence[cell]),
            },
            attempt: Attempt((attempt[cell] >> unused_bits) as u16),
            ..Submit::default()
        };
        Ok(cells.into_iter().map(task).collect())
    }

    fn tokens(&mut self, slice: SliceId) -> Result<Vec<(WorkerId, Generation)>, Bmv2Error> {
        let cells = self.cells(("queue", "token_head"), ("queue", "token_tail"), slice)?;
        let worker = self.words("tokens", "token_worker")?;
        let generation = self.words("tokens", "token_generation")?;
        let len = self.config.tokens_per_slice;
        let cells = cells.into_iter().map(|word| self.cell(word, len));
        Ok(cells.map(|cell| (WorkerId(worker[cell] as u16), Generation(generation[cell]))).collect())
    }

    /// The cells of Draconis' queue that hold the task of their ticket, the oldest first. The pointers may be
    /// too far apart or, if polls found nothing, the wrong way round.
    fn ticketed(&mut self, slice: SliceId) -> Result<Vec<usize>, Bmv2Error> {
        let words = self.cells((OWN, "retrieve_pointer"), (OWN, "add_pointer"), slice)?;
        let (tickets, len) = (self.words(OWN, "ticket")?, self.config.tasks_per_slice);
        let cells = words.into_iter().map(|word| (word, self.cell(word, len)));
        Ok(cells.filter(|(word, cell)| tickets[*cell] == *word).map(|(_, cell)| cell).collect())
    }

    /// The words from one pointer of a slice up to another, at most a ring's.
    fn cells(
        &mut self,
        first: (&str, &str),
        end: (&str, &str),
        slice: SliceId,
    ) -> Result<Vec<u32>, Bmv2Error> {
        let at = usize::from(slice.0);
        let (first, end) = (self.word(first.0, first.1, at)?, self.word(end.0, end.1, at)?);
        let between = (end.wrapping_sub(first) as i32).max(0) as u32 >> self.slice_bits();
        let most = self.config.tasks_per_slice.max(self.config.tokens_per_slice);
        Ok((0..between.min(most)).map(|step| first.wrapping_add(step << self.slice_bits())).collect())
    }

    /// The cell of a word among all slices' rings of this length, which interleave.
    fn cell(&self, word: u32, len: u32) -> usize {
        (word % (len << self.slice_bits())) as usize
    }

    /// The count in a slice's word of a register. The word has the count's lower bits; what it counted since
    /// the start is known from these.
    fn count(&mut self, part: &str, name: &str, slice: SliceId) -> Result<u32, Bmv2Error> {
        let (start, above) = (self.config.counters_start.0, self.slice_bits());
        let word = self.word(part, name, slice.0.into())?;
        Ok(start.wrapping_add((word >> above).wrapping_sub(start) & u32::MAX >> above))
    }

    /// How many tasks fit all rings.
    fn places(&self) -> usize {
        (self.config.tasks_per_slice << self.slice_bits()) as usize
    }

    /// How many bits the slice's number takes below a count.
    pub(crate) fn slice_bits(&self) -> u32 {
        bits(self.config.slices.into())
    }
}
