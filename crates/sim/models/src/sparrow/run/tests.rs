//! Random small racks that are checked after each event: Sparrow's rules hold in any order of events.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::*;

/// A rack and its jobs: for each the gap to the job before, and the service times of its tasks.
#[derive(Clone, Debug)]
struct Small {
    sparrow: Sparrow,
    workers: u32,
    queue: u32,
    jobs: Vec<(u64, Vec<u64>)>,
    seed: u64,
}

impl Small {
    /// The tasks in order of time. No two have the same service time, so the service time identifies a
    /// task.
    fn requests(&self) -> Vec<Request> {
        let mut requests = Vec::new();
        let mut at = 0;
        for (gap_ns, services_us) in &self.jobs {
            at += gap_ns;
            for service_us in services_us {
                let service = Nanos(service_us * 1_000 + requests.len() as u64);
                let task_type = sluice_wire::TaskType(0);
                requests.push(Request { at: Nanos(at), class: 0, task_type, service, large: false });
            }
        }
        requests
    }
}

fn small() -> impl Strategy<Value = Small> {
    let sparrow = (1_u8..=4, 1_u8..=3, 0_u64..4_000, any::<bool>()).prop_map(
        |(probes, schedulers, message_ns, cancels)| Sparrow {
            probes,
            schedulers,
            message: Nanos(message_ns),
            cancels,
        },
    );
    let jobs = prop::collection::vec((1_u64..60_000, prop::collection::vec(0_u64..80, 1..7)), 1..30);
    (sparrow, 1_u32..=6, 1_u32..=40, jobs, any::<u64>())
        .prop_map(|(sparrow, workers, queue, jobs, seed)| Small { sparrow, workers, queue, jobs, seed })
}

#[derive(Default)]
struct Ended {
    done: Vec<Replied>,
    failed: u32,
}

impl Observer for Ended {
    fn sent(&mut self, _at: Nanos) -> Mark {
        Mark::None
    }

    fn done(&mut self, task: &Replied) {
        self.done.push(*task);
    }

    fn failed(&mut self, _intended: Nanos, _outcome: Outcome) {
        self.failed += 1;
    }

    fn is_complete(&self) -> bool {
        false
    }
}

/// The messages that workers got so far.
#[derive(Default)]
struct ReceivedMessages {
    places: usize,
    tasks: usize,
    nothings: usize,
    cancels: usize,
}

impl ReceivedMessages {
    /// Counts the messages since the event before; at most one scheduler sent some.
    fn check_messages<O>(&mut self, run: &SparrowRun<'_, O>, since: u64) -> TestCaseResult {
        let mut places = vec![0_usize; run.workers.len()];
        for Reverse(due) in run.event_queue.iter().filter(|Reverse(due)| due.entered >= since) {
            match &due.event {
                Event::Hears(worker, _, ToWorker::Reserve(_)) => places[*worker as usize] += 1,
                Event::Hears(_, _, ToWorker::Run(_)) => self.tasks += 1,
                Event::Hears(_, _, ToWorker::Nothing) => self.nothings += 1,
                Event::Hears(_, _, ToWorker::Cancel(_)) => self.cancels += 1,
                _ => {}
            }
        }
        self.places += places.iter().sum::<usize>();
        let (least, most) = (places.iter().min(), places.iter().max());
        prop_assert!(
            most <= least.map(|least| least + 1).as_ref(),
            "a second place before all have one: {places:?}"
        );
        Ok(())
    }
}

/// Questions of a worker that are under way, and answers to it.
fn under_way<O>(run: &SparrowRun<'_, O>, worker: u32) -> usize {
    let is_its = |Reverse(due): &&Reverse<QueuedEvent<Event>>| match &due.event {
        Event::Comes(_, ToScheduler::Asks { worker: who, .. })
        | Event::Decided(_, ToScheduler::Asks { worker: who, .. })
        | Event::Hears(who, _, ToWorker::Run(_) | ToWorker::Nothing) => *who == worker,
        _ => false,
    };
    run.event_queue.iter().filter(is_its).count()
}

fn no_worker_stands_idle_or_asks_for_two<O>(run: &SparrowRun<'_, O>) -> TestCaseResult {
    for (worker, node) in (0..).zip(&run.workers) {
        let asks = under_way(run, worker);
        prop_assert_eq!(asks, usize::from(node.asks), "worker {} has so many questions under way", worker);
        prop_assert!(!node.asks || node.running.is_none(), "worker {worker} asks while it serves");
        let idle = node.running.is_none() && !node.asks;
        let waits = node.reservations.queue.len() + node.mail.len();
        prop_assert!(!idle || waits == 0, "worker {worker} is idle beside {waits} reservations and letters");
    }
    Ok(())
}

fn nothing_is_left<O>(run: &SparrowRun<'_, O>) -> TestCaseResult {
    for node in &run.workers {
        prop_assert!(node.running.is_none() && !node.asks && node.mail.is_empty());
        prop_assert!(node.reservations.queue.is_empty(), "a reservation stands, and nobody will ask for it");
    }
    let waiting: usize = run.schedulers.iter().map(|node| node.machine.waiting()).sum();
    prop_assert_eq!((waiting, run.held_tasks, run.waiting.now(), run.serving.now()), (0, 0, 0, 0));
    Ok(())
}

proptest! {
    #[test]
    fn whatever_comes_when_each_task_runs_once_no_sampled_worker_idles_and_nothing_is_left(small in small()) {
        let testbed = Testbed { workers: small.workers, queue: small.queue, ..Testbed::rain() };
        let requests = small.requests();
        let (mut ended, mut told) = (Ended::default(), ReceivedMessages::default());
        let dice = Dice::named(small.seed, "small", 0);
        let mut run = SparrowRun::new(small.sparrow, &testbed, dice, &mut ended);
        let mut coming = requests.iter().copied().peekable();
        let mut since = 0;
        while run.turn(&mut coming).is_continue() {
            told.check_messages(&run, since)?;
            since = run.entered;
            no_worker_stands_idle_or_asks_for_two(&run)?;
        }
        nothing_is_left(&run)?;

        let tasks = requests.len();
        prop_assert_eq!(told.places, tasks * usize::from(small.sparrow.probes));
        prop_assert_eq!(told.tasks, tasks);
        // Each reservation ends in one of three ways: with its task, cancelled, or asked for without a task
        // left. A worker that asked before the cancellation arrived gets both messages.
        if small.sparrow.cancels {
            prop_assert_eq!(told.places, told.tasks + told.cancels);
            prop_assert!(told.nothings <= told.cancels);
        } else {
            prop_assert_eq!((told.places, told.cancels), (told.tasks + told.nothings, 0));
        }
        let mut services: Vec<Nanos> = ended.done.iter().map(|task| task.service).collect();
        services.sort_unstable();
        let mut expected: Vec<Nanos> = requests.iter().map(|task| task.service).collect();
        expected.sort_unstable();
        prop_assert_eq!(services, expected, "each task ends once");
        prop_assert_eq!(ended.failed, 0);
        prop_assert!(ended.done.iter().all(|task| task.served == task.service.max(Nanos(1))));
    }
}
