//! Breakwater's credits (OSDI 2020): a client may send as many requests as it has credits.
//!
//! Once a round trip the server looks at its queue's delay. Below the target the pool of credits grows by a
//! constant; above, it shrinks by a factor that falls with the excess. Each answer tells its client a new
//! number of credits: what the client has at the server and says that it wants, and a share of the free
//! credits on top, since the demand may have grown meanwhile (overcommitment). Clients without credits wait
//! in a list, and get one each when the pool has some. A request that comes while the delay is twice the
//! target is refused. A client gives up a request that has waited too long for a credit.
//!
//! The constants are those of the paper and of its authors' settings. Ours: the delay is the age of the
//! oldest request in the queue; the pool is never below the number of cores; a client's own unused credits
//! count as free for its share; a client tells its demand with each request, and in a message of its own
//! when it begins or ends to have one.

use std::collections::VecDeque;

use sluice_wire::Nanos;

/// What the pool grows by in a round trip, as a share of the number of clients; at least one.
const INCREASE: f64 = 0.001;
/// How strongly the pool shrinks: by this share for each target of excess.
const DECREASE: f64 = 0.02;
/// The pool never shrinks by more than this factor in a round trip.
const SHRINK_MAX: f64 = 0.5;
/// Requests are refused when the delay reaches so many targets.
const REFUSED_FROM: u64 = 2;

/// The server's side: the pool, and an account for each client.
#[derive(Debug)]
pub(super) struct Credits {
    target: Nanos,
    /// How long a request may wait for a credit at its client.
    pub(super) wait: Nanos,
    least: f64,
    pool: f64,
    /// Credits that clients have, with those of their requests here.
    issued: u64,
    accounts: Vec<Account>,
    /// Clients that want credits and have none, in turn; entries that no longer wait are skipped.
    wanting: VecDeque<u32>,
}

/// A client, as the server knows it.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    credits: u64,
    /// Its requests here.
    pending: u64,
    /// Requests that wait for a credit, as it last said.
    demand: u64,
    /// Whether it stands in the list.
    wants: bool,
}

impl Credits {
    pub(super) fn new(cores: u32, clients: usize, (target, wait): (Nanos, Nanos)) -> Self {
        let least = f64::from(cores);
        Self {
            target,
            wait,
            least,
            pool: least,
            issued: 0,
            accounts: vec![Account::default(); clients],
            wanting: VecDeque::new(),
        }
    }

    /// A round trip is over: the pool follows the delay. Clients that get a credit go to `woken`.
    pub(super) fn look(&mut self, delay: Nanos, woken: &mut Vec<u32>) {
        let excess = delay.0 as f64 / self.target.0 as f64 - 1.0;
        self.pool = if excess < 0.0 {
            self.pool + (self.accounts.len() as f64 * INCREASE).max(1.0)
        } else {
            (self.pool * (1.0 - DECREASE * excess).max(SHRINK_MAX)).max(self.least)
        };
        while self.free() > 0
            && let Some(client) = self.wanting.pop_front()
        {
            let account = &mut self.accounts[client as usize];
            if std::mem::take(&mut account.wants) {
                account.credits = 1;
                self.issued += 1;
                woken.push(client);
            }
        }
    }

    /// A request arrives, whose client has so many more; returns whether it is let in.
    pub(super) fn arrives(&mut self, client: u32, demand: u64, delay: Nanos) -> bool {
        let account = &mut self.accounts[client as usize];
        account.pending += 1;
        account.wants = false;
        self.hear(client, demand);
        delay < self.target.times(REFUSED_FROM)
    }

    /// A client begins or ends to have requests without credits. Returns its credits, if it has none of its
    /// requests here and gets some.
    pub(super) fn asks(&mut self, client: u32, demand: u64) -> Option<u64> {
        self.hear(client, demand);
        let account = &mut self.accounts[client as usize];
        account.wants &= demand > 0;
        if account.pending > 0 || demand == 0 || account.wants {
            return None;
        }
        Some(self.grant(client)).filter(|credits| *credits > 0)
    }

    /// A request is answered or refused: returns the client's credits from now on.
    pub(super) fn answered(&mut self, client: u32) -> u64 {
        self.accounts[client as usize].pending -= 1;
        self.grant(client)
    }

    /// Notes a demand; credits for which there is none return to the pool.
    fn hear(&mut self, client: u32, demand: u64) {
        let account = &mut self.accounts[client as usize];
        account.demand = demand;
        let most = account.pending + demand;
        self.set(client, self.accounts[client as usize].credits.min(most));
    }

    fn grant(&mut self, client: u32) -> u64 {
        let Account { credits, pending, demand, .. } = self.accounts[client as usize];
        let free = self.free();
        // Its own unused credits are free for it: else the one client of a server, who has all, would lose
        // them to nobody.
        let unused = credits.saturating_sub(pending) as i64;
        let spare = ((free + unused) / self.accounts.len() as i64).max(1) as u64;
        let most = pending + demand + spare;
        let wished = match free {
            1.. => most.min(credits + free as u64),
            0 => credits,
            _ => credits.saturating_sub(1),
        };
        let granted = wished.clamp(pending, most);
        self.set(client, granted);
        let account = &mut self.accounts[client as usize];
        if granted == 0 && demand > 0 && !account.wants {
            account.wants = true;
            self.wanting.push_back(client);
        }
        granted
    }

    fn set(&mut self, client: u32, credits: u64) {
        let account = &mut self.accounts[client as usize];
        self.issued = self.issued - account.credits + credits;
        account.credits = credits;
    }

    /// Credits of the pool that nobody has; negative if clients have more than there are.
    fn free(&self) -> i64 {
        self.pool as i64 - self.issued as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Nanos = Nanos(80_000);

    fn credits(clients: usize) -> Credits {
        Credits::new(32, clients, (TARGET, Nanos(10_000)))
    }

    #[test]
    fn the_pool_grows_by_a_constant_and_shrinks_by_how_far_the_delay_is_above_the_target() {
        let mut of = credits(4_000);
        of.look(Nanos(79_999), &mut Vec::new());
        assert!((of.pool - 36.0).abs() < 1e-9, "a thousandth of the clients more");
        of.pool = 1_000.0;
        of.look(TARGET.times(3), &mut Vec::new());
        assert!((of.pool - 960.0).abs() < 1e-9, "2 % for each target of excess");
        of.look(TARGET.times(1_000), &mut Vec::new());
        assert!((of.pool - 480.0).abs() < 1e-9, "never by more than a half");
        (0..10).for_each(|_| of.look(TARGET.times(1_000), &mut Vec::new()));
        assert!((of.pool - 32.0).abs() < 1e-9, "a credit for each core at least");
    }

    #[test]
    fn a_client_gets_what_it_wants_and_a_share_of_what_is_free() {
        let mut of = credits(4);
        assert_eq!(of.asks(0, 3), Some(11), "three, and a quarter of 32");
        assert!(of.arrives(0, 2, Nanos(0)));
        assert_eq!(of.accounts[0].credits, 3, "one here and two wanted: the others return to the pool");
        assert_eq!(of.answered(0), 10, "two, and a quarter of 29 and its own three");
    }

    #[test]
    fn the_one_client_of_a_server_keeps_its_credits() {
        let mut of = credits(1);
        assert_eq!(of.asks(0, 1), Some(32));
        assert!((0..3).all(|_| of.arrives(0, 0, Nanos(0))));
        assert_eq!([of.answered(0), of.answered(0), of.answered(0)], [32; 3]);
    }

    #[test]
    fn clients_without_credits_wait_in_turn_for_the_pool() {
        let mut of = credits(64);
        for client in 0..64 {
            let got = of.asks(client, 1);
            assert_eq!(got.is_some(), client < 16, "two credits each, while there are some: {client}");
        }
        of.accounts[20].wants = false;
        of.pool = 36.0;
        let mut woken = Vec::new();
        of.look(TARGET.times(2), &mut woken);
        assert_eq!(woken, [16, 17, 18], "35 credits");
        assert_eq!((of.issued, of.free()), (35, 0));
        assert_eq!(of.asks(18, 0), None);
        assert_eq!(of.issued, 34, "nothing is wanted any more");
    }

    #[test]
    fn a_request_is_refused_at_twice_the_target_and_its_credit_is_used() {
        let mut of = credits(1);
        assert!(of.asks(0, 1).is_some());
        assert!(of.arrives(0, 0, TARGET.times(2) - Nanos(1)) && !of.arrives(0, 0, TARGET.times(2)));
        assert_eq!(of.accounts[0].pending, 2);
    }
}
