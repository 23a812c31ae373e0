//! The registrar's thread: makes one call after the other, at the right times.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_wire::{Nanos, Serial};
use tokio::time::{Instant, sleep_until, timeout};
use tonic::{Code, Status};

use super::calls::ControllerCalls;
use super::controllers::Controllers;
use super::role::Role;
use super::shared::{RegistrarEvent, RegistrarShared};
use crate::hosts::{Departure, Renewal};
use crate::reason;

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// The shortest pause between two calls, however often the host asks.
const CALLS_APART: Duration = Duration::from_millis(20);
/// The longest pause between two calls, whatever the controller answers, unless its lease is much longer.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The pause after a refusal, even if the host asks for a call at once: a certificate, a plan or a name may
/// be corrected by then.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
const REFUSED_CALLS_APART: Duration = Duration::from_millis(200);
/// How long leaving is tried if no grant has told the length of a lease.
const LEASE_UNKNOWN: Duration = Duration::from_secs(1);

pub(super) struct Session<R: Role> {
    shared: Arc<RegistrarShared<R>>,
    controllers: Controllers,
    calls: ControllerCalls,
    held: Option<R::Held>,
    lease: Duration,
    backoff: Backoff,
    /// Since when the controller has not answered.
    lost: Option<Instant>,
    /// When a host that is away from home next checks whether its home answers.
    home_at: Instant,
    /// Why the controller refused the last call; `None` if it did not.
    refused: Option<String>,
    next: Instant,
    last: Instant,
}

impl<R: Role> Session<R> {
    pub(super) fn new(controllers: Controllers, shared: Arc<RegistrarShared<R>>) -> Self {
        let hello = shared.hello();
        let now = Instant::now();
        Self {
            calls: controllers.line(),
            controllers,
            held: None,
            lease: LEASE_UNKNOWN,
            backoff: Backoff::new(R::identity(&hello).1),
            lost: None,
            home_at: now,
            refused: None,
            next: now,
            last: now.checked_sub(CALLS_APART).unwrap_or(now),
            shared,
        }
    }

    /// Makes calls until told to stop, or until the host has left.
    pub(super) async fn run(mut self) {
        loop {
            self.pause().await;
            if self.shared.is_stopped() {
                return;
            }
            if self.shared.is_leaving() {
                return self.leave().await;
            }
            self.shared.hurry.store(false, Ordering::Relaxed);
            self.last = Instant::now();
            let hello = self.shared.hello();
            let floor = Serial(self.shared.floor.load(Ordering::Relaxed));
            let shared = Arc::clone(&self.shared);
            tokio::select! {
                answer = R::renew(&mut self.calls, hello, self.held, floor) => self.answered(answer),
                () = hung_up(&shared) => {}
            }
            if self.controllers.is_away() && self.home_at <= Instant::now() {
                self.look_home().await;
            }
        }
    }

    /// Moves a host that is away back home, if its home accepts it.
    async fn look_home(&mut self) {
        let (hello, patience) = (self.shared.hello(), self.lease / 2);
        let floor = Serial(self.shared.floor.load(Ordering::Relaxed));
        let shared = Arc::clone(&self.shared);
        let mut home = self.controllers.line_home();
        let asked = timeout(patience, R::renew(&mut home, hello.clone(), None, floor));
        let answer = tokio::select! {
            answer = asked => answer,
            () = hung_up(&shared) => return,
        };
        match answer {
            Ok(Ok(Renewal::Granted(grant))) => {
                let host = self.name();
                sluice_log::log!(ControllerHome, host, "{host}: back at its own controller");
                self.controllers.go_home();
                let mut left = std::mem::replace(&mut self.calls, home);
                self.renewed(Renewal::Granted(grant));
                if R::LEAVES_AT_ONCE {
                    tokio::select! {
                        // If the controller does not answer, the lease ends by itself.
                        _ = timeout(patience, R::leave(&mut left, hello)) => {}
                        () = hung_up(&shared) => {}
                    }
                }
            }
            Ok(Ok(Renewal::Wait { retry_after, .. })) => {
                self.home_at = Instant::now() + span(retry_after).clamp(CALLS_APART, PAUSE_MAX);
            }
            Ok(Ok(Renewal::Refused { why })) => {
                let host = self.name();
                sluice_log::log!(
                    RegistrationRefused,
                    host,
                    why,
                    "{host}: its own controller refuses the registration: {why}"
                );
                self.home_at = Instant::now() + PAUSE_MAX;
            }
            Ok(Err(_)) | Err(_) => self.home_at = Instant::now() + patience,
        }
    }

    /// Waits until the next call is due or the host asks for one.
    async fn pause(&self) {
        loop {
            let hurried = self.shared.hurry.load(Ordering::Relaxed) && self.lost.is_none();
            let apart = if self.refused.is_some() { REFUSED_CALLS_APART } else { CALLS_APART };
            let next = if hurried { self.last + apart } else { self.next };
            if self.shared.is_stopped() || self.shared.is_leaving() {
                return;
            }
            let held = self.held.filter(|_| self.lost.is_none() && !hurried);
            tokio::select! {
                () = sleep_until(next) => return,
                () = self.shared.bell.notified() => {}
                () = R::changed(self.calls.clone(), held) => self.shared.hurry.store(true, Ordering::Relaxed),
            }
        }
    }

    fn answered(&mut self, answer: Result<Renewal<R::Grant>, Status>) {
        match answer {
            Ok(renewal) => {
                self.on_answer();
                self.renewed(renewal);
            }
            Err(status) if is_refusal(&status) => {
                self.on_answer();
                self.refused(reason(&status));
            }
            Err(status) => {
                let pause = self.failed(&status);
                self.call_in(pause);
            }
        }
    }

    fn renewed(&mut self, renewal: Renewal<R::Grant>) {
        match renewal {
            Renewal::Granted(grant) => {
                if self.refused.take().is_some() {
                    let host = self.name();
                    sluice_log::log!(
                        RegistrationGranted,
                        host,
                        "{host}: the controller grants the registration now"
                    );
                }
                self.held = Some(R::held(&grant));
                self.lease = span(R::lease(&grant));
                self.call_in(span(R::renew_every(&grant)));
                self.shared.push_event(RegistrarEvent::Granted(grant));
            }
            Renewal::Wait { why, retry_after } => {
                self.call_in(span(retry_after));
                let host = self.name();
                sluice_log::log!(RegistrationDeferred, host, why, "{host}: the controller says wait: {why}");
                self.shared.push_event(RegistrarEvent::Wait { why, retry_after });
            }
            Renewal::Refused { why } => self.refused(why),
        }
    }

    fn refused(&mut self, why: String) {
        self.call_in(REFUSED_PAUSE);
        if self.refused.as_ref() != Some(&why) {
            let (host, pause) = (self.name(), REFUSED_PAUSE);
            sluice_log::log!(
                RegistrationRefused,
                host,
                why,
                "{host}: the controller refuses the registration: {why}; asking again every {pause:.0?}"
            );
            self.refused = Some(why.clone());
        }
        self.shared.push_event(RegistrarEvent::Refused { why });
    }

    /// The controller answers.
    fn on_answer(&mut self) {
        self.backoff.reset();
        if self.lost.take().is_some() {
            let (host, url) = (self.name(), self.url());
            sluice_log::log!(
                ControllerBack,
                host,
                controller = url,
                "{host}: the controller at {url} answers again"
            );
        }
    }

    /// Handles a failed call. Returns how long to wait before the next attempt.
    fn failed(&mut self, status: &Status) -> Duration {
        let (why, host) = (reason(status), self.name());
        let since = *self.lost.get_or_insert_with(|| {
            self.shared.push_event(RegistrarEvent::Lost { why: why.clone() });
            Instant::now()
        });
        let left = self.lease.saturating_sub(since.elapsed());
        if left.is_zero() && self.controllers.turn() {
            let url = self.url();
            sluice_log::log!(
                ControllerTurned,
                host,
                controller = url,
                why,
                "{host}: turns to the controller at {url}: {why}"
            );
            (self.calls, self.held, self.lost) = (self.controllers.line(), None, None);
            self.backoff.reset();
            return CALLS_APART;
        }
        let pause = self.backoff.next(self.longest_pause());
        // A host with another controller turns to it when the lease ends, even in the middle of a long
        // pause.
        let pause = if self.controllers.are_several() { pause.min(left) } else { pause };
        let url = self.url();
        sluice_log::log!(
            ControllerLost,
            host,
            controller = url,
            why,
            "{host}: cannot reach the controller at {url}: {why}; trying again in {pause:.0?}"
        );
        pause
    }

    /// The longest pause between two attempts. A restarted controller gives each registered host one lease,
    /// within which the host must call.
    fn longest_pause(&self) -> Duration {
        let longest = self.held.map_or(BACKOFF_MAX, |_| BACKOFF_MAX.min(self.lease / 2));
        // Each attempt may meet another address.
        longest / self.controllers.here().count() as u32
    }

    fn call_in(&mut self, pause: Duration) {
        self.next = Instant::now() + pause.clamp(CALLS_APART, PAUSE_MAX.max(self.lease / 4));
    }

    /// Leaves. After a lease the registration has ended by itself.
    async fn leave(mut self) {
        let patience = self.lease;
        let final_sent = timeout(patience, self.try_leaving()).await.unwrap_or_else(|_| {
            let (host, url) = (self.name(), self.url());
            sluice_log::log!(
                LeaveUnanswered,
                host,
                controller = url,
                "{host}: left without an answer of the controller at {url}"
            );
            None
        });
        self.shared.push_event(RegistrarEvent::Left { final_sent });
    }

    async fn try_leaving(&mut self) -> Option<Serial> {
        loop {
            let hello = self.shared.hello();
            let shared = Arc::clone(&self.shared);
            let answer = tokio::select! {
                answer = R::leave(&mut self.calls, hello) => answer,
                () = hung_up(&shared) => return None,
            };
            let pause = match answer {
                Ok(Departure::Granted(final_sent)) => return final_sent,
                Ok(Departure::Refused { why }) => {
                    let host = self.name();
                    sluice_log::log!(
                        LeaveRefused,
                        host,
                        why,
                        "{host}: the controller does not know what to end: {why}"
                    );
                    return None;
                }
                Ok(Departure::Wait { retry_after, .. }) => span(retry_after).clamp(CALLS_APART, PAUSE_MAX),
                Err(status) => self.failed(&status),
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = hung_up(&shared) => return None,
            }
        }
    }

    fn url(&self) -> &str {
        self.controllers.here().url()
    }

    fn name(&self) -> String {
        R::identity(&self.shared.hello()).0.to_owned()
    }
}

/// Whether the same call would be refused again, for its contents, its caller, or the caller's version.
fn is_refusal(status: &Status) -> bool {
    let is_no_use = [
        Code::InvalidArgument,
        Code::PermissionDenied,
        Code::Unauthenticated,
        // No version in common.
        Code::FailedPrecondition,
    ];
    is_no_use.contains(&status.code())
}

/// Waits until the host drops its end.
async fn hung_up<R: Role>(shared: &RegistrarShared<R>) {
    while !shared.is_stopped() {
        shared.bell.notified().await;
    }
}

fn span(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos.0)
}

/// Pauses that double, with a random part for each host so that hosts do not return all at once.
#[derive(Debug)]
struct Backoff {
    next: Duration,
    percent: u32,
}

impl Backoff {
    fn new(bits: u64) -> Self {
        Self { next: BACKOFF_MIN, percent: 75 + (bits % 51) as u32 }
    }

    fn next(&mut self, longest: Duration) -> Duration {
        let pause = self.next * self.percent / 100;
        self.next = (self.next * 2).min(BACKOFF_MAX);
        pause.min(longest)
    }

    fn reset(&mut self) {
        self.next = BACKOFF_MIN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second_and_start_anew_after_an_answer() {
        let mut backoff = Backoff::new(25);
        let pauses: Vec<u128> = (0..7).map(|_| backoff.next(BACKOFF_MAX).as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        backoff.reset();
        assert_eq!(backoff.next(BACKOFF_MAX), BACKOFF_MIN);
    }

    #[test]
    fn who_is_registered_calls_twice_within_a_lease_however_long_nobody_answered() {
        let mut backoff = Backoff::new(25);
        let half = Duration::from_millis(150);
        let pauses: Vec<u128> = (0..4).map(|_| backoff.next(half).as_millis()).collect();
        assert_eq!(pauses, [50, 100, 150, 150]);
    }

    #[test]
    fn two_hosts_do_not_pause_alike() {
        let first = |bits| Backoff::new(bits).next(BACKOFF_MAX);
        assert_ne!(first(1), first(2));
    }
}
