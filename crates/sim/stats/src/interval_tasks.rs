//! The times of the tasks that ended in one interval of an agent: waits and service, without the ways to
//! and from the rack.

use sluice_wire::Nanos;

/// The tasks that workers ended in an interval.
#[derive(Clone, Debug, Default)]
pub struct IntervalTasks {
    /// Slowdowns, in thousandths.
    slowdowns: Vec<u32>,
    /// Response times, in nanoseconds.
    responses: Vec<u32>,
}

impl IntervalTasks {
    /// Adds a task with its waits in switch and worker. Its response time is waits plus service; its
    /// slowdown is the response time over the service.
    #[inline]
    pub fn take(&mut self, waits: Nanos, service: Nanos) {
        let all = waits + service;
        let slowdown_milli = all.times(1_000).0 / service.0.max(1);
        self.slowdowns.push(u32::try_from(slowdown_milli).unwrap_or(u32::MAX));
        self.responses.push(u32::try_from(all.0).unwrap_or(u32::MAX));
    }

    /// How many tasks there are.
    pub const fn tasks(&self) -> u64 {
        self.slowdowns.len() as u64
    }

    /// The 99th percentile of their slowdowns; 0 if there are none.
    pub fn slowdown_p99(&mut self) -> f64 {
        p99(&mut self.slowdowns) / 1_000.0
    }

    /// The 99th percentile of their response times, in nanoseconds; 0 if there are none.
    pub fn response_p99_ns(&mut self) -> f64 {
        p99(&mut self.responses)
    }
}

fn p99(values: &mut [u32]) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    let (_, p99, _) = values.select_nth_unstable(last * 99 / 100);
    f64::from(*p99)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_waits_and_service_and_a_slowdown_that_over_the_service() {
        let mut ended = IntervalTasks::default();
        for waits in 0..100 {
            ended.take(Nanos(waits * 100), Nanos(100));
        }
        assert_eq!(ended.tasks(), 100);
        assert!((ended.response_p99_ns() - 9_900.0).abs() < 1e-9);
        assert!((ended.slowdown_p99() - 99.0).abs() < 1e-9);
        assert!(IntervalTasks::default().response_p99_ns().abs() < 1e-9);
    }
}
