//! When to ask the switch for its counters.
//!
//! The worker sends a PROBE after a few round trips of silence, and then after ever longer silences. It
//! also sends one after a long time in which packets came but none proved that all tokens arrived:
//! otherwise traffic could hide a lost TOKEN. Once an answer says that all tokens are parked, the longest
//! interval begins.

use sluice_wire::{Nanos, Nonce, Serial};

use super::types::WorkerSettings;
use crate::rtt::Rtt;

/// After so many PROBEs without an answer, the worker doubts its registration.
const UNANSWERED_MAX: u8 = 3;

/// The schedule of PROBEs, and the round trip measured from their answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probing {
    rtt: Rtt,
    /// When the next PROBE is due if nothing is heard before.
    due: Nanos,
    /// When the next PROBE is due even if packets are heard.
    overdue: Nanos,
    /// When the last TOKEN left.
    token_at: Nanos,
    /// When the timed PROBE left, if `timing`.
    timed_at: Nanos,
    /// The timed PROBE's nonce, and how many tokens were issued before it.
    timed: Nonce,
    timed_issued: Serial,
    /// The newest nonce that was used.
    nonce: Nonce,
    /// The newest nonce whose answer was believed.
    believed: Nonce,
    doublings: u8,
    unanswered: u8,
    /// When the first of the PROBEs without an answer left, as 32 bits tell it: the lowest says whether there
    /// was another, the others count ms.
    unanswered_since: u32,
    timing: bool,
    /// Whether an answer said that all tokens are parked and none was sent since.
    confirmed: bool,
}

impl Probing {
    /// A new generation begins: answers to older PROBEs no longer count, and no token is out.
    pub(super) fn reset(&mut self) {
        self.believed = self.nonce;
        self.doublings = 0;
        self.unanswered = 0;
        self.timing = false;
        self.confirmed = true;
    }

    /// Sets the first nonce.
    pub(super) const fn start(&mut self, nonce: Serial) {
        self.nonce = Nonce(nonce.0);
    }

    pub(super) fn next_nonce(&mut self) -> Nonce {
        self.nonce = Nonce(self.nonce.0.wrapping_add(1));
        self.nonce
    }

    /// Whether an answer belongs to a PROBE of this worker that is newer than the last one believed.
    pub(super) const fn is_news(&self, nonce: Nonce) -> bool {
        let (nonce, believed) = (Serial(nonce.0), Serial(self.believed.0));
        nonce.since(believed) > 0 && Serial(self.nonce.0).since(nonce) >= 0
    }

    /// The smoothed round trip, once one was measured.
    pub(super) fn rtt(&self) -> Option<Nanos> {
        self.rtt.smoothed()
    }

    /// The round trip, as far as it is known. Its variance is left to the multiples in the settings: the
    /// cost of a lost packet must not grow with the variance.
    pub(super) fn round_trip(&self, settings: &WorkerSettings) -> Nanos {
        self.rtt.smoothed().unwrap_or(settings.first_rtt)
    }

    /// A TOKEN left; `first` is false for a repeated one. Its arrival is not confirmed yet.
    #[inline]
    pub(super) fn token_sent(&mut self, now: Nanos, settings: &WorkerSettings, first: bool) {
        if self.confirmed {
            self.overdue = now + self.longest_busy(settings);
        }
        if self.confirmed || first {
            self.doublings = 0;
        }
        self.confirmed = false;
        self.token_at = now;
        self.due = now + self.patience(settings);
    }

    /// A DISPATCH came, so the switch lives.
    #[inline]
    pub(super) fn heard(&mut self, now: Nanos, settings: &WorkerSettings) {
        self.unanswered = 0;
        if self.confirmed {
            self.due = now + settings.probe_longest;
            self.overdue = self.due;
        } else {
            self.doublings = 0;
            self.due = now + self.patience(settings);
        }
    }

    /// Believes an answer. If it belongs to the timed PROBE, returns how many tokens were issued before
    /// that PROBE.
    pub(super) fn believe(&mut self, received: Nanos, nonce: Nonce) -> Option<Serial> {
        self.believed = nonce;
        self.unanswered = 0;
        let is_timed = self.timing && nonce == self.timed;
        if is_timed {
            self.rtt.sample(received.since(self.timed_at));
        }
        // An answer to a later PROBE: the timed one or its answer was lost or overtaken.
        if Serial(nonce.0).since(Serial(self.timed.0)) >= 0 {
            self.timing = false;
        }
        is_timed.then_some(self.timed_issued)
    }

    /// An answer came; `settled` says whether all tokens are parked.
    pub(super) fn answered(&mut self, now: Nanos, settings: &WorkerSettings, settled: bool) {
        self.confirmed = settled;
        let wait = if settled { settings.probe_longest } else { self.patience(settings) };
        self.due = now + wait;
        self.overdue = now + wait.max(self.longest_busy(settings));
    }

    /// Whether a packet received at `received` reflects all TOKENs that left.
    pub(super) fn tells_of_all_tokens(&self, received: Nanos, settings: &WorkerSettings) -> bool {
        received > self.token_at + self.round_trip(settings).times(2)
    }

    /// When the next PROBE is due.
    pub(super) fn deadline(&self) -> Nanos {
        self.due.min(self.overdue)
    }

    /// Counts a PROBE that leaves now. Returns whether the registration is in doubt.
    pub(super) fn probe_sent(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        nonce: Nonce,
        issued: Serial,
    ) -> bool {
        if !self.timing {
            self.timing = true;
            self.timed = nonce;
            self.timed_at = now;
            self.timed_issued = issued;
        }
        self.doublings = if self.confirmed { 0 } else { self.doublings.saturating_add(1) };
        self.confirmed = false;
        self.due = now + self.patience(settings);
        self.overdue = now + self.longest_busy(settings);
        self.unanswered_since = if self.unanswered > 0 { self.unanswered_since | 1 } else { ms_above(now) };
        let in_doubt = self.unanswered >= UNANSWERED_MAX;
        self.unanswered = if in_doubt { 1 } else { self.unanswered + 1 };
        in_doubt
    }

    /// For how long PROBEs have gone without an answer; zero while it is one at most, which may come yet.
    pub(super) fn unanswered_for(&self, now: Nanos) -> Nanos {
        let is_silent = self.unanswered > 0 && self.unanswered_since & 1 == 1;
        let ms = ms_above(now).wrapping_sub(self.unanswered_since & !1) / 2;
        if is_silent { Nanos::from_millis(ms.into()) } else { Nanos(0) }
    }

    /// How long silence lasts before the next PROBE.
    #[inline]
    fn patience(&self, settings: &WorkerSettings) -> Nanos {
        let round_trip = self.round_trip(settings);
        let doubled = 1_u64.checked_shl(self.doublings.into()).unwrap_or(u64::MAX);
        let patience = round_trip.times(settings.probe_rtts.into()).times(doubled);
        patience.min(settings.probe_max_busy).max(round_trip.times(2)).max(Nanos(1))
    }

    fn longest_busy(&self, settings: &WorkerSettings) -> Nanos {
        settings.probe_max_busy.max(self.round_trip(settings).times(2)).max(Nanos(1))
    }
}

/// A time in milliseconds, above a bit that is free.
const fn ms_above(at: Nanos) -> u32 {
    (at.0 / 1_000_000 * 2) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The silence before the first PROBE, if no round trip was measured.
    const PATIENCE: Nanos = Nanos::from_micros(600);

    /// A worker that sent a PROBE at 1 ms and got no answer: the next silence is twice as long.
    fn unanswered() -> (Probing, WorkerSettings) {
        let (mut probing, settings) = (Probing::default(), WorkerSettings::default());
        let (now, nonce) = (Nanos::from_millis(1), probing.next_nonce());
        probing.token_sent(now, &settings, true);
        assert!(!probing.probe_sent(now, &settings, nonce, Serial(1)));
        assert_eq!(probing.deadline(), now + PATIENCE.times(2));
        (probing, settings)
    }

    #[test]
    fn nonces_go_on_from_where_they_are_told_to_start() {
        let mut probing = Probing::default();
        probing.start(Serial(41));
        assert_eq!(probing.next_nonce(), Nonce(42));
    }

    #[test]
    fn a_token_that_is_sent_again_does_not_shorten_the_silence_and_a_new_one_does() {
        let (mut probing, settings) = unanswered();
        let now = Nanos::from_millis(2);
        probing.token_sent(now, &settings, false);
        assert_eq!(probing.deadline(), now + PATIENCE.times(2));
        probing.token_sent(now, &settings, true);
        assert_eq!(probing.deadline(), now + PATIENCE);
    }

    #[test]
    fn a_token_after_all_were_known_to_be_parked_begins_anew() {
        let (mut probing, settings) = unanswered();
        let now = Nanos::from_millis(2);
        probing.answered(now, &settings, true);
        assert_eq!(probing.deadline(), now + settings.probe_longest);
        probing.token_sent(now, &settings, false);
        assert_eq!(probing.deadline(), now + PATIENCE);
    }

    #[test]
    fn a_task_that_comes_begins_the_silence_anew() {
        let (mut probing, settings) = unanswered();
        let now = Nanos::from_millis(2);
        probing.heard(now, &settings);
        assert_eq!(probing.deadline(), now + PATIENCE);
        // If all tokens are known to be parked, the longest silence begins.
        probing.answered(now, &settings, true);
        let later = Nanos::from_millis(3);
        probing.heard(later, &settings);
        assert_eq!(probing.deadline(), later + settings.probe_longest);
    }

    #[test]
    fn a_registration_is_in_doubt_after_three_silences_and_not_where_something_comes_between() {
        let (mut probing, settings) = unanswered();
        let now = Nanos::from_millis(2);
        let ask = |probing: &mut Probing| {
            let nonce = probing.next_nonce();
            probing.probe_sent(now, &settings, nonce, Serial(1))
        };
        assert_eq!([ask(&mut probing), ask(&mut probing), ask(&mut probing)], [false, false, true]);
        assert!(!ask(&mut probing));
        let later = now + Nanos::from_millis(7_000);
        assert_eq!(probing.unanswered_for(later), Nanos::from_millis(7_001), "since the first of them");
        probing.heard(now, &settings);
        assert_eq!(probing.unanswered_for(later), Nanos(0));
        assert!(!ask(&mut probing));
        assert_eq!(probing.unanswered_for(later), Nanos(0), "the answer may be on its way");
        probing.heard(now, &settings);
        assert_eq!([(); 4].map(|()| ask(&mut probing)), [false, false, false, true]);
    }
}
