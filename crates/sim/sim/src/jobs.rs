//! Runs many jobs on a few threads; results come in the order of the jobs, whichever thread ends first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Runs `run` on each of `jobs`, on so many threads (at least one), and passes each result to `done`, in
/// the order of the jobs. After `stop` is set no further job begins; results before the first job that did
/// not run are still passed on.
///
/// Returns how many results were passed on.
pub fn run_jobs<J, R>(
    jobs: &[J],
    threads: usize,
    stop: &AtomicBool,
    run: impl Fn(&J) -> R + Sync,
    mut done: impl FnMut(usize, R),
) -> usize
where
    J: Sync,
    R: Send,
{
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    let (next, run) = (&next, &run);
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            let send = send.clone();
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    if send.send((index, run(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        in_order(&receive, &mut done)
    })
}

/// Passes results on in order; a result that comes early waits for those before it.
fn in_order<R>(results: &mpsc::Receiver<(usize, R)>, done: &mut impl FnMut(usize, R)) -> usize {
    let mut early = BTreeMap::new();
    let mut handed = 0;
    for (index, result) in results {
        early.insert(index, result);
        while let Some(result) = early.remove(&handed) {
            done(handed, result);
            handed += 1;
        }
    }
    handed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs_on_any_number_of_threads() {
        let jobs: Vec<u64> = (0..200).collect();
        for threads in [0, 1, 2, 7] {
            let mut seen = Vec::new();
            let run = |job: &u64| (0..(job % 7) * 1_000).fold(*job, |sum, n| sum ^ n ^ n);
            let handed = run_jobs(&jobs, threads, &AtomicBool::new(false), run, |index, result| {
                seen.push((index as u64, result));
            });
            assert_eq!(handed, 200);
            assert!(seen.into_iter().eq(jobs.iter().map(|job| (*job, *job))), "{threads} threads");
        }
    }

    #[test]
    fn after_a_stop_no_job_begins_and_what_was_done_before_is_kept() {
        let stop = AtomicBool::new(false);
        let jobs: Vec<u64> = (0..1_000).collect();
        let mut seen = Vec::new();
        let run = |job: &u64| {
            if *job == 10 {
                stop.store(true, Ordering::Relaxed);
            }
            *job
        };
        let handed = run_jobs(&jobs, 2, &stop, run, |_, job| seen.push(job));
        assert!((10..=12).contains(&handed), "{handed}");
        assert!(seen.iter().copied().eq(0..handed as u64));
    }
}
