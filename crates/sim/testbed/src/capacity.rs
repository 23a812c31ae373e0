//! How many tasks a rack has room for: in a slice's queue, and in total.

use sluice_switch::registry::Choice;
use sluice_wire::sizes::{self, QUOTA_MAX};

use crate::Testbed;

/// The most replay cells, as many as tasks of plain Rain can wait: what the chip holds (Rain §4).
pub const CELLS_MAX: u64 = 128 * 1024;

/// The room of a policy's slices on a testbed.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    queue: u32,
    depth_max: u8,
    /// How many tasks per worker may wait beyond the queue.
    growth: u8,
    /// The most cells of the task rings of all slices and classes together.
    tasks_max: u32,
}

impl Capacity {
    /// The room under a policy. If depths are found at run time, there is room for them to grow.
    pub fn of(testbed: &Testbed, choice: &Choice) -> Self {
        let is_adaptive = choice.traits().adaptive.is_some_and(|asked| !asked.advises);
        let (depth_max, growth) =
            if is_adaptive { (QUOTA_MAX, QUOTA_MAX - 1) } else { (choice.traits().quota.max(1), 0) };
        Self { queue: testbed.queue, depth_max, growth, tasks_max: choice.traits().tasks_max }
    }

    /// How many tasks may wait in a slice of so many workers (C). If depths are found at run time, there is
    /// extra room: depths grow while tasks wait, and no task would wait if clients had no more outstanding
    /// than workers hold.
    pub fn waiting(self, workers: u32) -> u32 {
        self.queue + workers * u32::from(self.growth)
    }

    /// The most tasks that all clients together may have outstanding in the slice: C + ΣN.
    pub fn outstanding(self, workers: u32) -> u32 {
        self.waiting(workers) + workers * u32::from(self.depth_max)
    }

    /// The longest queue with which all rings of these slices and classes, and the replay cells, fit the
    /// chip.
    pub fn queue_max(self, workers: &[u32], classes: u8, clients: u16) -> u32 {
        let fits = |queue: u32| {
            let room = Self { queue, ..self };
            let rings = workers.len() as u64 * u64::from(classes);
            let replay = u64::from(room.replay_cells(workers.iter().copied(), clients));
            rings * u64::from(room.cells(workers.iter().copied())) <= u64::from(self.tasks_max)
                && replay * u64::from(clients) <= CELLS_MAX
        };
        let (mut fitting, mut too_long) = (0, CELLS_MAX as u32);
        while fitting + 1 < too_long {
            let middle = fitting.midpoint(too_long);
            if fits(middle) { fitting = middle } else { too_long = middle }
        }
        fitting
    }

    /// The replay cells of each client, if slices have so many workers.
    pub fn replay_cells(self, workers: impl Iterator<Item = u32>, clients: u16) -> u32 {
        let share = |workers| sizes::share(self.outstanding(workers), clients.into());
        sizes::replay_cells(workers.map(share).sum())
    }

    /// The cells of each ring of tasks, if slices have so many workers.
    pub fn cells(self, workers: impl Iterator<Item = u32>) -> u32 {
        workers.map(|workers| self.outstanding(workers)).max().unwrap_or(1).next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_queue_fits_and_one_more_does_not() {
        for (policy, workers, clients, most) in [
            ("rain:2", &[32][..], 1, 114_623),
            ("rain:2", &[14, 18], 1, 57_311),
            ("rain:2,classes=4", &[32], 1, 16_320),
            ("rain:2,classes=4", &[14, 18], 1, 8_156),
            ("draconis", &[32], 1, 65_504),
            ("rain:adaptive", &[32], 1, 114_207),
        ] {
            let capacity = Capacity::of(&Testbed::rain(), &Choice::parse(policy).unwrap());
            let classes = Choice::parse(policy).unwrap().traits().classes;
            assert_eq!(capacity.queue_max(workers, classes, clients), most, "{policy} {workers:?}");
            let longest = Capacity { queue: most, ..capacity };
            let rings = workers.len() as u32 * u32::from(classes);
            assert!(longest.cells(workers.iter().copied()) * rings <= capacity.tasks_max, "{policy}");
        }
    }
}
