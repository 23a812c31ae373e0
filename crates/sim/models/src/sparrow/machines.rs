//! Sparrow: software schedulers that know nothing about workers' queues (Ousterhout et al., 2013). The
//! slides of Draconis compare their switch with it.
//!
//! For a job of m tasks the scheduler reserves places at d · m workers, all at once (*batch sampling*). A
//! reservation waits in its worker's queue like a task. When its turn comes, the worker asks for the task,
//! and the job's first workers to ask get one each (*late binding*). Once the last task was given out, the
//! scheduler takes back the remaining reservations (*proactive cancellation*). A worker that asks too late
//! hears that no task is left.
//!
//! Both ends are here without I/O: [`SparrowScheduler`] and a worker's [`Reservations`]. Left out:
//! placement constraints, fair shares, and faults. Every message arrives, as over the paper's connections,
//! and no process dies.

use std::collections::{BTreeMap, VecDeque};

/// One of a scheduler's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobId(pub(super) u64);

/// A message from a scheduler to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToWorker<T> {
    /// Reserves a place in the worker's queue for a task of this job.
    Reserve(JobId),
    /// The task that the worker asked for.
    Run(T),
    /// The job has no task left.
    Nothing,
    /// Takes a reservation of this job back.
    Cancel(JobId),
}

/// A scheduler: its jobs, and the workers whose places it reserved.
#[derive(Debug)]
pub(super) struct SparrowScheduler<T> {
    workers: u32,
    probes: u8,
    cancels: bool,
    jobs: BTreeMap<JobId, Job<T>>,
    next: u64,
    /// All workers in a random order: each draw of a reservation swaps two, and the next job continues with
    /// this order.
    order: Vec<u32>,
}

#[derive(Debug)]
struct Job<T> {
    tasks: VecDeque<T>,
    /// The workers that hold a reservation.
    reserved: Vec<u32>,
}

impl<T> SparrowScheduler<T> {
    /// A scheduler among `workers` workers that reserves `probes` places for each task, at least one.
    /// `cancels` says whether it takes back reservations that it no longer needs.
    ///
    /// # Panics
    /// If there is no worker.
    pub(super) fn new(workers: u32, probes: u8, cancels: bool) -> Self {
        assert!(workers > 0, "nobody to ask");
        let order = (0..workers).collect();
        Self { workers, probes: probes.max(1), cancels, jobs: BTreeMap::new(), next: 0, order }
    }

    /// Takes a job. `below` draws a random number below its argument. No worker gets a second reservation
    /// of a job before all workers have one.
    pub(super) fn submit(
        &mut self,
        tasks: impl IntoIterator<Item = T>,
        mut below: impl FnMut(u64) -> u64,
        out: &mut Vec<(u32, ToWorker<T>)>,
    ) {
        let tasks: VecDeque<T> = tasks.into_iter().collect();
        if tasks.is_empty() {
            return;
        }
        let id = JobId(self.next);
        self.next += 1;
        let mut reserved = Vec::with_capacity(tasks.len() * usize::from(self.probes));
        for drawn in 0..reserved.capacity() as u32 {
            let place = (drawn % self.workers) as usize;
            let from = place + below(u64::from(self.workers) - place as u64) as usize;
            self.order.swap(place, from);
            reserved.push(self.order[place]);
        }
        out.extend(reserved.iter().map(|worker| (*worker, ToWorker::Reserve(id))));
        self.jobs.insert(id, Job { tasks, reserved });
    }

    /// A worker asks for the task of a reservation whose turn has come.
    pub(super) fn asked(&mut self, id: JobId, worker: u32, out: &mut Vec<(u32, ToWorker<T>)>) {
        let Some(job) = self.jobs.get_mut(&id) else { return out.push((worker, ToWorker::Nothing)) };
        if let Some(at) = job.reserved.iter().position(|reserved| *reserved == worker) {
            job.reserved.swap_remove(at);
        }
        match job.tasks.pop_front() {
            Some(task) => out.push((worker, ToWorker::Run(task))),
            None => out.push((worker, ToWorker::Nothing)),
        }
        if job.tasks.is_empty() {
            let reserved = self.jobs.remove(&id).map_or_else(Vec::new, |job| job.reserved);
            if self.cancels {
                out.extend(reserved.into_iter().map(|worker| (worker, ToWorker::Cancel(id))));
            }
        }
    }

    /// How many tasks no worker has asked for yet.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.jobs.values().map(|job| job.tasks.len()).sum()
    }
}

/// A worker's queue of reservations, first come, first served. `S` names a scheduler.
#[derive(Clone, Debug)]
pub(super) struct Reservations<S> {
    pub(super) queue: VecDeque<(S, JobId)>,
}

impl<S> Default for Reservations<S> {
    fn default() -> Self {
        Self { queue: VecDeque::new() }
    }
}

impl<S: Copy + PartialEq> Reservations<S> {
    /// Appends a reservation.
    pub(super) fn reserve(&mut self, scheduler: S, job: JobId) {
        self.queue.push_back((scheduler, job));
    }

    /// Removes a reservation of this job, unless the worker already asked for its task.
    pub(super) fn cancel(&mut self, scheduler: S, job: JobId) {
        if let Some(at) = self.queue.iter().position(|reserved| *reserved == (scheduler, job)) {
            self.queue.remove(at);
        }
    }

    /// Takes the reservation whose turn it is; the worker then asks its scheduler.
    pub(super) fn next_turn(&mut self) -> Option<(S, JobId)> {
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type WorkerMessages = Vec<(u32, ToWorker<char>)>;

    fn reserved(said: &WorkerMessages) -> Vec<u32> {
        said.iter().filter(|(_, what)| matches!(what, ToWorker::Reserve(_))).map(|(at, _)| *at).collect()
    }

    #[test]
    fn a_job_reserves_d_places_a_task_and_none_twice_before_all_have_one() {
        let mut scheduler = SparrowScheduler::new(5, 2, true);
        let mut said = WorkerMessages::new();
        scheduler.submit(['a', 'b', 'c'], |bound| bound / 2, &mut said);
        let mut first = reserved(&said)[..5].to_vec();
        first.sort_unstable();
        assert_eq!((reserved(&said).len(), first), (6, (0..5).collect()));
        assert_eq!(scheduler.waiting(), 3);
    }

    #[test]
    fn the_first_who_ask_get_the_tasks_and_the_others_are_taken_back() {
        let mut scheduler = SparrowScheduler::new(4, 2, true);
        let mut said = WorkerMessages::new();
        scheduler.submit(['a', 'b'], |_| 0, &mut said);
        let job = JobId(0);
        said.clear();
        scheduler.asked(job, 3, &mut said);
        scheduler.asked(job, 1, &mut said);
        let mut taken_back = said.split_off(2);
        taken_back.sort_by_key(|(worker, _)| *worker);
        assert_eq!(said, [(3, ToWorker::Run('a')), (1, ToWorker::Run('b'))]);
        assert_eq!(taken_back, [(0, ToWorker::Cancel(job)), (2, ToWorker::Cancel(job))]);
        said.clear();
        scheduler.asked(job, 0, &mut said);
        assert_eq!(said, [(0, ToWorker::Nothing)], "it had asked before it heard");
    }

    #[test]
    fn without_cancellation_every_reservation_is_asked_for() {
        let mut scheduler = SparrowScheduler::new(2, 2, false);
        let mut said = WorkerMessages::new();
        scheduler.submit(['a'], |_| 0, &mut said);
        said.clear();
        scheduler.asked(JobId(0), 1, &mut said);
        scheduler.asked(JobId(0), 0, &mut said);
        assert_eq!(said, [(1, ToWorker::Run('a')), (0, ToWorker::Nothing)]);
    }

    #[test]
    fn a_worker_asks_in_the_order_of_its_reservations_without_those_taken_back() {
        let mut queue = Reservations::default();
        for job in 0..4 {
            queue.reserve('s', JobId(job));
        }
        queue.cancel('s', JobId(1));
        queue.cancel('t', JobId(2));
        let turns: Vec<u64> = core::iter::from_fn(|| queue.next_turn()).map(|(_, job)| job.0).collect();
        assert_eq!(turns, [0, 2, 3]);
        assert!(queue.queue.is_empty());
    }
}
