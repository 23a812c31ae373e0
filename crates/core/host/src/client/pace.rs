//! The pace of a client in a slice that is busy: how often it may send a task there (ours).
//!
//! A switch with a target refuses in proportion to what is sent, so a client that sends more would get more.
//! Therefore each client keeps to its share of the rate that the slice serves. A REJECT (`busy`) tells how
//! many tasks may wait, from which the number that the slice serves within one target follows, and how many
//! clients there are. For example, 150 tasks are served within a target, and there are two clients: the fair
//! rate is 75 a target. A client sends a multiple of the fair rate, at least one, while other clients send
//! less than theirs. The multiple grows while tasks wait for less than [`AIM`] of the target, and returns
//! towards one while they wait for longer, so that all clients come to the same multiple. What is offered
//! beyond the pace is refused at once, without a packet.
//!
//! Where tasks have classes, a task of the last class leaves only if the pace has come to its turn, and tasks
//! of the classes before it may run ahead of the pace. Their turns are made up by tasks of the last class,
//! which are refused instead. So the client sends as often as without classes, and the last class is refused
//! first, as in the switch.
//!
//! A slice that is not busy has no pace. A pace begins at the client's first refused task, with what the
//! client has outstanding for each target, and ends after a time in which tasks hardly waited.

use sluice_wire::{Nanos, SliceLoad};

/// The wait in the switch, as a part of the target, at which a pace neither grows nor shrinks. The queue
/// must not run empty, and chance must not bring it to its limit.
const AIM: f64 = 0.6;
/// The pace is faster than the multiple by this part if tasks do not wait, and slower if they wait for twice
/// the aim.
const AT_ONCE: f64 = 0.3;
/// How much a multiple grows in one step, in proportion to what the wait lacks of the aim: at half of the aim
/// by half of this part.
const GROWTH: f64 = 0.05;
/// How much a multiple grows in one step while the wait is below [`CALM`]: the queue may run empty.
const GROWTH_WHEN_CALM: f64 = 0.25;
/// Which part of a multiple's excess over one is given back in one step while tasks wait for twice the aim.
const GIVEN_BACK: f64 = 0.3;
/// The largest multiple.
const MULTIPLE_MAX: f64 = 65_536.0;
/// Below this part of the aim tasks hardly wait.
const CALM: f64 = 0.25;
/// After so many steps in which tasks hardly waited the slice is not busy any more.
const CALM_STEPS: u32 = 20;
/// A client that sent nothing for a while may send at once what its pace allows in so many targets, or so
/// many tasks.
const SAVED_TARGETS: f64 = 2.0;
const SAVED_TASKS: f64 = 16.0;

/// One slice's pace.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharePace {
    target_ns: f64,
    /// The time between two tasks at the fair rate.
    fair_gap_ns: f64,
    /// How many times the fair rate the client may send.
    multiple: f64,
    /// The time between two tasks.
    gap_ns: f64,
    /// The latest time that was given.
    latest: Nanos,
    /// When the next task would leave if all had left evenly.
    due: Nanos,
    /// The waits of this step's tasks, and how many there were. A refused task counts as one target.
    waited_ns: f64,
    heard: u32,
    step_ends: Nanos,
    calm: u32,
}

impl SharePace {
    /// The pace of a client that has `outstanding` tasks when the first is refused. `None` if the REJECT
    /// does not tell what clients share.
    pub(super) fn new(now: Nanos, target: Nanos, load: SliceLoad, outstanding: u32) -> Option<Self> {
        let target_ns = target.0 as f64;
        let fair_gap_ns = fair_gap_ns(target_ns, load)?;
        let multiple = (f64::from(outstanding) * fair_gap_ns / target_ns).clamp(1.0, MULTIPLE_MAX);
        let (gap_ns, due, step_ends) = (fair_gap_ns / multiple, now, now + target);
        Some(Self {
            target_ns,
            fair_gap_ns,
            multiple,
            gap_ns,
            latest: now,
            due,
            waited_ns: 0.0,
            heard: 0,
            step_ends,
            calm: 0,
        })
    }

    /// A task was refused: takes what the REJECT tells.
    pub(super) fn refused(&mut self, now: Nanos, target: Nanos, load: SliceLoad) {
        let target_ns = target.0 as f64;
        if let Some(fair_gap_ns) = fair_gap_ns(target_ns, load) {
            (self.target_ns, self.fair_gap_ns) = (target_ns, fair_gap_ns);
        }
        self.waited(now, target);
    }

    /// A task waited in the switch for so long. Returns false once the slice is not busy any more.
    pub(super) fn waited(&mut self, now: Nanos, wait: Nanos) -> bool {
        self.keep_clock(now);
        self.waited_ns += wait.0 as f64;
        self.heard += 1;
        if now >= self.step_ends {
            self.step(now);
        }
        self.calm < CALM_STEPS
    }

    /// Takes a new task of one of so many classes into account, if it may be sent now; else says for how long
    /// none of its class may.
    pub(super) fn take(&mut self, now: Nanos, (class, classes): (u8, u8)) -> Result<(), Nanos> {
        self.keep_clock(now);
        let saved_ns = (self.target_ns * SAVED_TARGETS).max(self.gap_ns * SAVED_TASKS);
        // As long as a burst after a pause, and half of it for each further class.
        let is_last = class >= classes.saturating_sub(1);
        let ahead_ns = if is_last { 0.0 } else { saved_ns / f64::from(1_u32 << class) };
        let reached = now + Nanos(ahead_ns as u64);
        if self.due > reached {
            return Err(self.due.since(reached));
        }
        self.due = self.due.max(Nanos(now.0.saturating_sub(saved_ns as u64))) + Nanos(self.gap_ns as u64);
        Ok(())
    }

    /// A clock that went back takes the pace's times back with it; otherwise the client would send nothing
    /// until the clock is where it was. An arrival's stamp may be somewhat older than the time before.
    fn keep_clock(&mut self, now: Nanos) {
        let back = self.latest.since(now);
        if back.0 as f64 > self.target_ns {
            self.due = Nanos(self.due.0.saturating_sub(back.0));
            self.step_ends = Nanos(self.step_ends.0.saturating_sub(back.0));
            self.latest = now;
        }
        self.latest = self.latest.max(now);
    }

    /// One target has passed: the multiple follows the mean wait.
    fn step(&mut self, now: Nanos) {
        let aim_ns = self.target_ns * AIM;
        let mean_ns = self.waited_ns / f64::from(self.heard);
        let off = (mean_ns / aim_ns - 1.0).clamp(-1.0, 1.0);
        let (excess, is_calm) = (self.multiple - 1.0, mean_ns < aim_ns * CALM);
        self.multiple = match off {
            _ if is_calm => self.multiple * (1.0 + GROWTH_WHEN_CALM),
            off if off < 0.0 => self.multiple * (1.0 - off * GROWTH),
            off if excess > 0.0 => 1.0 + excess * (1.0 - off * GIVEN_BACK),
            _ => self.multiple,
        };
        self.multiple = self.multiple.min(MULTIPLE_MAX);
        self.gap_ns = self.fair_gap_ns / (self.multiple * (1.0 - off * AT_ONCE));
        self.calm = if is_calm { self.calm + 1 } else { 0 };
        (self.waited_ns, self.heard) = (0.0, 0);
        self.step_ends = now + Nanos(self.target_ns as u64);
    }
}

/// The time between two tasks of each client, if all send equally what the slice serves. The switch lets as
/// many tasks wait as it serves within one target, less one and a half times the root of that number.
fn fair_gap_ns(target_ns: f64, load: SliceLoad) -> Option<f64> {
    let root = (3.0 + libm::sqrt(9.0 + 16.0 * f64::from(load.room))) / 4.0;
    let served = root * root;
    let is_told = load.room > 0 && load.clients > 0 && target_ns > 0.0;
    is_told.then(|| target_ns * f64::from(load.clients) / served)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Nanos = Nanos::from_micros(50);
    /// The only class.
    const ONE: (u8, u8) = (0, 1);
    /// 150 tasks are served within one target.
    const LOAD: SliceLoad = SliceLoad { room: 133, clients: 2 };

    fn pace(outstanding: u32) -> SharePace {
        SharePace::new(Nanos(0), TARGET, LOAD, outstanding).expect("the REJECT tells all")
    }

    /// How many tasks may leave in so many targets, if one is offered every 100 ns and each waits for so
    /// long.
    fn sent(pace: &mut SharePace, now: &mut Nanos, targets: u64, wait: Nanos) -> u64 {
        let (end, mut sent) = (*now + TARGET.times(targets), 0);
        while *now < end {
            if pace.take(*now, ONE).is_ok() {
                pace.waited(*now, wait);
                sent += 1;
            }
            *now = *now + Nanos(100);
        }
        sent
    }

    #[test]
    fn a_client_sends_its_share_of_what_is_served_while_tasks_wait_as_they_are_meant_to() {
        let aim = Nanos(30_000);
        let (mut pace, mut now) = (pace(0), Nanos(0));
        let sent = sent(&mut pace, &mut now, 100, aim);
        assert!((7_400..7_600).contains(&sent), "{sent}, half of 15,000");
    }

    #[test]
    fn a_client_takes_what_others_leave_and_gives_it_back_when_they_come() {
        let (mut pace, mut now) = (pace(0), Nanos(0));
        sent(&mut pace, &mut now, 20, Nanos(20_000));
        let alone = sent(&mut pace, &mut now, 10, Nanos(30_000));
        assert!(alone > 1_000, "{alone} of 1,500");
        sent(&mut pace, &mut now, 20, Nanos(45_000));
        let beside = sent(&mut pace, &mut now, 10, Nanos(30_000));
        assert!((740..790).contains(&beside), "{beside}, about half of 1,500");
    }

    #[test]
    fn a_pace_begins_at_what_the_client_sent() {
        let sent = sent(&mut pace(300), &mut Nanos(0), 1, Nanos(30_000));
        assert!(sent > 250, "{sent}");
    }

    #[test]
    fn who_is_slower_than_the_pace_is_never_refused_nor_saves_more_than_a_burst() {
        let mut pace = pace(0);
        for at in 0..1_000 {
            assert_eq!(pace.take(Nanos(at * 700), ONE), Ok(()));
        }
        let later = Nanos::from_millis(100);
        let burst = (0..1_000).take_while(|_| pace.take(later, ONE).is_ok()).count();
        assert!((150..153).contains(&burst), "{burst}: two targets of 75 tasks");
        assert!(
            pace.take(later, ONE).is_err_and(|wait| wait < Nanos(667)),
            "and after that one for each gap"
        );
    }

    #[test]
    fn a_pace_ends_when_no_task_waits_any_more() {
        let mut pace = pace(0);
        let lasts = (1..100).find(|step| !pace.waited(TARGET.times(*step), Nanos(0)));
        assert_eq!(lasts, Some(u64::from(CALM_STEPS)));
    }

    /// How many tasks of each of two classes leave in 100 targets: one of the first is offered in each
    /// `first_gap`, and one of the last every 100 ns.
    fn sent_of_two(first_gap: Nanos) -> [u64; 2] {
        let (mut pace, mut sent, mut first_due) = (pace(0), [0; 2], Nanos(0));
        for step in 0..50_000 {
            let now = Nanos(step * 100);
            let class = u8::from(now < first_due);
            if class == 0 {
                first_due = first_due + first_gap;
            }
            if pace.take(now, (class, 2)).is_ok() {
                pace.waited(now, Nanos(30_000));
                sent[usize::from(class)] += 1;
            }
        }
        sent
    }

    #[test]
    fn the_last_class_is_refused_first_and_all_classes_together_send_no_more_than_one() {
        // The client's share is 7,500 tasks; 2,500 and 6,250 tasks of the first class are offered.
        for (first_gap, offered) in [(2_000, 2_500), (800, 6_250)] {
            let [first, last] = sent_of_two(Nanos(first_gap));
            assert_eq!(first, offered, "the first class is within the share");
            assert!((7_400..7_800).contains(&(first + last)), "{first} and {last}");
        }
        let [first, last] = sent_of_two(Nanos(400));
        assert!((7_400..7_950).contains(&first) && last < 10, "{first} of 12,500, and {last}");
    }

    const HOUR: Nanos = Nanos::from_millis(3_600_000);

    /// A pace in force for 100 targets, as tasks wait for the aim.
    fn in_force(now: &mut Nanos) -> SharePace {
        let mut pace = pace(0);
        sent(&mut pace, now, 100, Nanos(30_000));
        pace
    }

    #[test]
    fn a_clock_that_goes_back_or_forward_by_an_hour_leaves_the_pace_as_it_was() {
        for (back, forward) in [(HOUR, Nanos(0)), (Nanos(0), HOUR), (TARGET.times(2), Nanos(0))] {
            let mut now = HOUR.times(2);
            let mut pace = in_force(&mut now);
            now = now.since(back) + forward;
            let after = sent(&mut pace, &mut now, 100, Nanos(30_000));
            // After an hour forward the client may send two targets' tasks at once.
            assert!((7_400..7_800).contains(&after), "{back:?} {forward:?}: {after}");
            let calm = (1..100).find(|step| !pace.waited(now + TARGET.times(*step), Nanos(0)));
            assert!(
                calm.is_some_and(|steps| steps <= u64::from(CALM_STEPS) + 1),
                "{back:?} {forward:?}: {calm:?}"
            );
        }
    }

    #[test]
    fn stamps_that_are_older_than_the_time_before_make_no_pace_faster() {
        let (mut pace, mut now, mut left) = (pace(0), Nanos::from_millis(1), 0);
        for _ in 0..50_000 {
            now = now + Nanos(100);
            if pace.take(now, ONE).is_ok() {
                left += 1;
                pace.waited(now.since(Nanos(20_000)), Nanos(30_000));
            }
        }
        assert!((7_400..7_800).contains(&left), "{left}, half of 15,000 and one burst");
    }

    #[test]
    fn after_an_hour_of_idleness_nobody_is_held_back_for_longer_than_a_few_targets() {
        let mut now = HOUR;
        let mut pace = in_force(&mut now);
        now = now + HOUR;
        // The slice is not busy any more, and the client offers five times its former share.
        let mut refused = 0;
        let ends = (1..100_000).find(|_| {
            now = now + Nanos(133);
            let may_leave = pace.take(now, ONE).is_ok();
            refused += u32::from(!may_leave);
            may_leave && !pace.waited(now, Nanos(0))
        });
        let targets = ends.map_or(u64::MAX, |tasks: u64| tasks * 133 / TARGET.0);
        assert!(targets <= u64::from(CALM_STEPS) + 2, "{targets} targets");
        assert!(refused < 3_000, "{refused} of 7,500");
    }

    #[test]
    fn a_slower_service_makes_the_pace_slower() {
        let mut pace = pace(0);
        let third = SliceLoad { room: 40, clients: 2 };
        let mut now = Nanos(0);
        for _ in 0..3 {
            now = now + TARGET;
            pace.refused(now, TARGET, third);
        }
        sent(&mut pace, &mut now, 4, Nanos(30_000));
        let sent = sent(&mut pace, &mut now, 10, Nanos(30_000));
        assert!((240..270).contains(&sent), "{sent}, half of 510");
    }

    #[test]
    fn a_switch_that_does_not_tell_what_is_shared_sets_no_pace() {
        assert!(SharePace::new(Nanos(0), TARGET, SliceLoad::default(), 9).is_none());
        assert!(SharePace::new(Nanos(0), Nanos(0), LOAD, 9).is_none());
    }
}
