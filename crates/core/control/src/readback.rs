//! Reads the tables back: a controller that starts, or finds its switch again, reads all of the switch's
//! tables before it answers any host.
//!
//! Rows keep their index, key, generation and life. What the switch does not hold (names, quotas) is learnt
//! from the first renewal. A change of generation that was cut short is not resumed: its worker is removed
//! as if it had died, and its host registers anew.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sluice_wire::tables::{ClientRow, Shape, SliceRow, TableAnswer, TableOp, WorkerRow, WorkerState};
use sluice_wire::{ClientId, Generation, Nanos, SliceId, TaskType, WorkerId};

use crate::client::Client;
use crate::controller::{Controller, Link, planned_types};
use crate::ledger::Expect;
use crate::message::Action;
use crate::note::Note;
use crate::reading::ReadBack;
use crate::registration::{Fate, Registry};
use crate::slice::Slice;
use crate::worker::Worker;

/// How many questions are open at once.
const WINDOW: usize = 256;

impl Controller {
    /// A switch can be reached: forgets what another life of the switch held, then reads its tables.
    pub(crate) fn switch_up(&mut self, now: Nanos, shape: Shape, out: &mut Vec<Action>) {
        let before = self.shape.replace(shape).map(|before| before.epoch);
        if before == Some(shape.epoch) {
            out.push(Action::Note(Note::SwitchUp { epoch: shape.epoch }));
        } else {
            out.push(Action::Note(before.map_or(Note::SwitchUp { epoch: shape.epoch }, |before| {
                Note::SwitchRestarted { before, epoch: shape.epoch }
            })));
            self.forget_all(shape);
        }
        if !self.fits(shape) {
            out.push(Action::Note(Note::SwitchTooSmall));
            self.link = Link::TooSmall;
            return;
        }
        self.take_turn(now, shape, out);
    }

    /// The switch obeys this controller: begins to read all of its tables.
    pub(crate) fn begin_reading(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let Some(shape) = self.shape else { return };
        let counts = [shape.types, shape.workers, shape.clients].map(u32::from);
        let slices = self.slices.len() as u32;
        let questions = counts.iter().sum::<u32>() + slices + (1 + slices) * u32::from(shape.servers);
        self.link = Link::Reading(ReadBack { questions, ..ReadBack::default() });
        self.read_on(now, out);
    }

    pub(crate) fn read_back_answered(&mut self, now: Nanos, answer: TableAnswer, out: &mut Vec<Action>) {
        let (Link::Reading(reading), Some(shape)) = (&mut self.link, self.shape) else { return };
        if reading.take(answer, &shape, self.slices.len() as u32) {
            self.read_on(now, out);
        } else {
            self.confused(now, out);
        }
    }

    fn fits(&self, shape: Shape) -> bool {
        let highest = self.types.keys().next_back().map_or(0, |t| u32::from(t.0) + 1);
        let tells_kinds = shape.kinds > 1 || !self.plan.tells_kinds();
        tells_kinds && self.slices.len() <= usize::from(shape.slices) && highest <= u32::from(shape.types)
    }

    fn forget_all(&mut self, shape: Shape) {
        self.workers = Registry::new(shape.workers);
        self.generations = alloc::vec![Generation(0); usize::from(shape.workers)];
        self.departed.clear();
        self.clients = Registry::new(shape.clients);
        self.forget_servers(shape.servers);
        self.slices = self.plan.slices.iter().map(Slice::new).collect();
    }

    /// Asks further questions, up to the window. When all are answered, goes on from what was read.
    fn read_on(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let (Link::Reading(reading), Some(shape)) = (&mut self.link, self.shape) else { return };
        let slices = self.slices.len() as u32;
        while reading.asked < reading.questions && (reading.asked as usize) < reading.answers() + WINDOW {
            let question = ReadBack::question(reading.asked, &shape, slices);
            self.ledger.ask(question, Expect::ReadBack, out);
            reading.asked += 1;
        }
        if reading.answers() < reading.questions as usize {
            return;
        }
        let Link::Reading(reading) = core::mem::replace(&mut self.link, Link::Up) else { return };
        self.gathers_until = now + self.plan.gather_for;
        self.go_on(now, &reading, out);
    }

    fn go_on(&mut self, now: Nanos, reading: &ReadBack, out: &mut Vec<Action>) {
        for (slice, state) in self.slices.iter_mut().zip(&reading.slices) {
            slice.restore(now, *state);
        }
        let is_first = !core::mem::replace(&mut self.has_read, true);
        self.restore_types(is_first, reading, out);
        self.doubt_types(now);
        self.write_needs(out);
        let found = now + self.grace();
        for (index, state) in reading.workers.iter().enumerate() {
            self.restore_worker(found, index as u16, state, out);
        }
        for (index, row) in reading.clients.iter().enumerate() {
            self.restore_client(found, index as u16, *row);
        }
        self.restore_servers(found, &reading.servers, &reading.rings, out);
        let (workers, clients) = (self.workers.iter().count(), self.clients.iter().count());
        out.push(Action::Note(Note::ReadBack { workers, clients }));
        for slice in 0..self.slices.len() {
            self.refresh_slice(now, SliceId(slice as u16), out);
        }
        let going: Vec<_> = self.workers.iter().filter(|(_, w)| w.fate != Fate::Stays).collect();
        let going: Vec<_> = going.into_iter().map(|(i, _)| WorkerId(i)).collect();
        for worker in going {
            self.settle_worker(now, worker, out);
        }
        let clients: Vec<_> = self.clients.iter().map(|(i, _)| ClientId(i)).collect();
        for client in clients {
            self.settle_client(client, out);
        }
        self.lease_started(now);
    }

    /// Restores the map of types. A controller that starts keeps the map that it finds, even types that are
    /// mapped to nothing: operators may have changed the map at run time, and workers may have joined that
    /// serve nothing else. Only a new switch gets the plan's map. A controller that knew the map before
    /// writes its own map again.
    fn restore_types(&mut self, fresh: bool, reading: &ReadBack, out: &mut Vec<Action>) {
        let is_new = reading.slices.iter().all(|state| state.row == SliceRow::default());
        let found = reading.types.iter().enumerate().map(|(index, slice)| (TaskType(index as u16), *slice));
        let wanted: BTreeMap<TaskType, SliceId> = match (fresh, is_new) {
            (true, true) => planned_types(&self.plan),
            (true, false) => {
                let known = |slice: &SliceId| self.slice_exists(*slice);
                found
                    .clone()
                    .filter_map(|(task_type, slice)| Some((task_type, slice.filter(known)?)))
                    .collect()
            }
            (false, _) => self.types.clone(),
        };
        for (task_type, found) in found {
            let slice = wanted.get(&task_type).copied();
            if slice != found {
                self.ledger.ask(TableOp::SetType(task_type, slice), Expect::Done, out);
            }
        }
        self.types = wanted;
    }

    /// The switch does not tell where types were mapped before. So for every known type, tasks may wait in
    /// every slice. A type is known if the plan names it or it is mapped now.
    fn doubt_types(&mut self, now: Nanos) {
        let known: BTreeSet<TaskType> =
            self.types.keys().copied().chain(planned_types(&self.plan).into_keys()).collect();
        for index in 0..self.slices.len() {
            if !self.slices[index].was_never_open() {
                self.slices[index].types_left(known.iter().copied());
                self.sweep_soon(now, SliceId(index as u16));
            }
        }
    }

    fn restore_worker(&mut self, now: Nanos, index: u16, state: &WorkerState, out: &mut Vec<Action>) {
        let newest = &mut self.generations[usize::from(index)];
        let of_row = state.row.map_or(Generation(0), |row| row.generation);
        *newest = (*newest).max(state.generation_out).max(of_row);
        let known = self.workers.remove(index);
        let Some(row) = state.row else {
            if let Some(gone) = known.filter(|w| w.in_switch) {
                self.note_departure(WorkerId(index), &gone, out);
            }
            return;
        };
        let same = |w: &Worker| w.row.key == row.key && w.registration.life == row.life;
        let mut worker = known.filter(same).unwrap_or_else(|| Worker::read_back(now, row));
        self.restore_row(&mut worker, row, state);
        self.workers.seat(index, worker);
    }

    fn restore_row(&self, worker: &mut Worker, row: WorkerRow, state: &WorkerState) {
        let fits = self.slice_exists(row.slice) && !self.is_of_other_hands(row.slice);
        let whole = row.open && row.generation == state.generation_out && fits;
        worker.row = row;
        worker.in_switch = true;
        worker.counted = row.generation == state.generation_out;
        worker.step = None;
        worker.slice = row.slice;
        worker.serves = whole.then_some(row.slice);
        if !whole && worker.fate == Fate::Stays {
            worker.fate = Fate::Dies;
        }
    }

    fn restore_client(&mut self, now: Nanos, index: u16, row: Option<ClientRow>) {
        let known = self.clients.remove(index);
        let Some(row) = row else { return };
        let same = |c: &Client| c.row.incarnation == row.incarnation;
        let mut client = known.filter(same).unwrap_or_else(|| Client::read_back(now, row));
        client.restore(row);
        self.clients.seat(index, client);
    }
}
