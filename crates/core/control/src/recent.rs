//! A worker's work over the last seconds, which it tells with each renewal; a leaf tells the sum of its
//! pool.

use sluice_wire::Nanos;

/// Tasks that ended over the last seconds, and their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentWork {
    /// The length of these seconds; 0 if nothing is known.
    pub span: Nanos,
    /// How many tasks ended.
    pub tasks: u32,
    /// Mean service time of a task.
    pub service: Nanos,
    /// Standard deviation of the service time.
    pub deviation: Nanos,
    /// Mean wait of a task at the worker, from the arrival of its packet to the start of its service.
    pub wait: Nanos,
    /// How many of the worker's TOKENs were lost on their way to the switch, and sent again.
    pub lost_tokens: u32,
    /// For how long the switch has not answered the worker, in whole seconds; zero while it does.
    pub unanswered: Nanos,
}

impl RecentWork {
    /// The sum of both, over the same seconds.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        let tasks = self.tasks.saturating_add(other.tasks);
        let mean = |of: fn(&Self) -> Nanos| {
            let sum = |work: &Self| u128::from(of(work).0) * u128::from(work.tasks);
            let all = sum(&self) + sum(&other);
            Nanos(u64::try_from(all / u128::from(tasks.max(1))).unwrap_or(u64::MAX))
        };
        Self {
            span: self.span.max(other.span),
            tasks,
            service: mean(|work| work.service),
            deviation: self.deviation.max(other.deviation),
            wait: mean(|work| work.wait),
            lost_tokens: self.lost_tokens.saturating_add(other.lost_tokens),
            // Those of the pool that the switch does answer are a reason to send tasks there.
            unanswered: self.unanswered.min(other.unanswered),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_workers_are_told_as_one_by_how_many_tasks_each_had() {
        let work = |tasks, service_us, wait_us| RecentWork {
            span: Nanos::from_millis(5_000),
            tasks,
            service: Nanos::from_micros(service_us),
            deviation: Nanos::from_micros(service_us / 2),
            wait: Nanos::from_micros(wait_us),
            lost_tokens: 1,
            unanswered: Nanos(0),
        };
        let both = work(300, 10, 4).beside(work(100, 50, 0));
        assert_eq!(
            (both.tasks, both.service, both.wait, both.lost_tokens),
            (400, Nanos::from_micros(20), Nanos::from_micros(3), 2)
        );
        assert_eq!((both.span, both.deviation), (Nanos::from_millis(5_000), Nanos::from_micros(25)));
        assert_eq!(RecentWork::default().beside(work(1, 8, 2)), work(1, 8, 2));
        assert_eq!(RecentWork::default().beside(RecentWork::default()), RecentWork::default());
    }
}
