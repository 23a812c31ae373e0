//! Decides which spine each rack is below, and through which spine each client submits, where one
//! controller stands above several spines (Horus §3.2, A.3).
//!
//! The plan divides racks among spines, as pods. While a spine is down, the first spine that is up stands
//! in for it. When it is up again, its racks and clients return to it. A host that changes its spine stays
//! registered at the old one until the new one has granted it; so a [`PodRoute`] may name two spines.
//!
//! A controller that starts to lead ([`Pods::begin`]) has found no spine yet. It sends no host to another
//! spine before each spine has had the time of a lease to be found, and no client before it knows for each
//! spine that it found whether that has leaves. Where hosts were under the former leader it knows from the
//! spines' tables, and from a store if there is one ([`Pods::take_moves`]).
//!
//! Left out: a spine of more than one pod, and pods that change while the controller runs.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sluice_wire::{Incarnation, Key, Nanos};

use crate::controller::{SOON, wait};
use crate::message::{Answer, ClientHello, Refusal, Waiting, WorkerHello};
use crate::tier::Tier;
use crate::workers::check_tier;

/// The spines, with their racks and clients.
#[derive(Debug)]
pub struct Pods {
    /// For each spine the names of its racks, as their leaves call them.
    racks: Vec<Vec<String>>,
    /// Whether each spine is up; `None` while unknown.
    lives: Vec<Option<bool>>,
    /// Whether each spine has a leaf; `None` until its tables were read.
    serves: Vec<Option<bool>>,
    /// For each spine the clients that stood in its tables when they were read.
    found: Vec<BTreeSet<Incarnation>>,
    lease: Nanos,
    /// Until this time a spine that was not found yet may still be found.
    found_by: Nanos,
    /// The spine at which each host is registered.
    seats: BTreeMap<String, PodSeat>,
    /// Hosts whose place has changed, for the store.
    moved: BTreeSet<String>,
}

/// Where a host is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodPlace {
    /// The spine's place in the plan, from 0.
    pub spine: usize,
    pub key: Key,
}

/// A host's registration at a spine.
#[derive(Clone, Copy, Debug)]
struct PodSeat {
    at: PodPlace,
    renewed: Nanos,
    /// Whether it was granted by a former leader, and the host has not called since.
    is_inherited: bool,
}

/// Where a host registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodRoute {
    /// At this spine.
    pub to: usize,
    /// The spine at which it stays registered until `to` has granted it, if there is one.
    pub from: Option<usize>,
}

impl Pods {
    /// Pods with these racks below each spine, by the names of their leaves.
    pub fn new(racks: Vec<Vec<String>>, lease: Nanos, now: Nanos) -> Self {
        let (lives, serves) = racks.iter().map(|_| (None, None)).unzip();
        let found = racks.iter().map(|_| BTreeSet::new()).collect();
        let (seats, moved) = (BTreeMap::new(), BTreeSet::new());
        Self { racks, lives, serves, found, lease, found_by: now + lease, seats, moved }
    }

    /// This controller begins to lead; hosts are registered where a former leader stored it. Places at spines
    /// that the plan does not have are ignored.
    pub fn begin(&mut self, now: Nanos, stored: impl IntoIterator<Item = (String, PodPlace)>) {
        let mut begun = Self::new(core::mem::take(&mut self.racks), self.lease, now);
        let is_known = |place: &PodPlace| place.spine < begun.lives.len();
        let seat = |(name, at)| (name, PodSeat { at, renewed: now, is_inherited: true });
        begun.seats = stored.into_iter().filter(|(_, at)| is_known(at)).map(seat).collect();
        *self = begun;
    }

    /// The hosts whose place has changed since the last call, with their new places, for a store; `None` for
    /// hosts that are registered nowhere any more.
    pub fn take_moves(&mut self) -> Vec<(String, Option<PodPlace>)> {
        let moved = core::mem::take(&mut self.moved);
        moved.into_iter().map(|name| (name.clone(), self.seats.get(&name).map(|seat| seat.at))).collect()
    }

    /// It is unknown whether this spine is up, since this controller does not lead there.
    pub fn leads_not(&mut self, spine: usize) {
        (self.lives[spine], self.serves[spine]) = (None, None);
    }

    /// A spine was found, or lost.
    pub fn on_spine(&mut self, spine: usize, lives: bool) {
        self.lives[spine] = Some(lives);
    }

    /// A spine has leaves now, or has none, or its tables have to be read first (`None`).
    pub fn serves(&mut self, spine: usize, has_leaves: Option<bool>) {
        self.serves[spine] = has_leaves;
    }

    /// Where a leaf registers a pool of its rack.
    ///
    /// # Errors
    /// The answer to the leaf, if it cannot register now.
    pub fn of_leaf(&self, now: Nanos, hello: &WorkerHello) -> Result<PodRoute, Answer> {
        check_tier(Tier::Spine, hello).map_err(|why| Answer::Refused { why })?;
        let name = hello.name.as_str();
        let is_of =
            |rack: &String| name.strip_prefix(rack.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let Some(home) = self.racks.iter().position(|racks| racks.iter().any(is_of)) else {
            let known = self.racks.concat().join(", ");
            return Err(Answer::Refused { why: Refusal::UnknownRack { name: name.to_string(), known } });
        };
        self.route(now, name, home)
    }

    /// A spine's tables were just read, and hold these clients.
    pub fn found(&mut self, spine: usize, clients: Vec<Incarnation>) {
        self.found[spine] = clients.into_iter().collect();
    }

    /// Where a client registers that calls as one of spine `home`. If that spine has no leaf, the client
    /// goes to a spine that has some, and takes its outstanding tasks there. While it is unknown for some
    /// spine whether it has leaves, the client stays where it is.
    ///
    /// A client that has not called yet goes to the spine where it was stored, or in whose tables it was
    /// found: while no spine answered, it also called at the other spines' addresses, and may have been
    /// granted there first.
    ///
    /// # Errors
    /// The answer to the client, if it cannot register now.
    pub fn of_client(&self, now: Nanos, hello: &ClientHello, home: usize) -> Result<PodRoute, Answer> {
        let name = hello.name.as_str();
        let has_leaves = |spine: &usize| self.does_live(*spine) && self.serves[*spine] == Some(true);
        let seat = self.seat(name).filter(|spine| self.does_live(*spine));
        if self.is_finding_out(now) && (seat.is_none() || !has_leaves(&home)) {
            return seat.map(|to| PodRoute { to, from: None }).ok_or(wait(Waiting::ReadingBack, SOON));
        }
        let is_found_at = |spine: &usize| self.found[*spine].contains(&hello.incarnation);
        let found = Some(home).filter(is_found_at).or_else(|| (0..self.lives.len()).find(is_found_at));
        let inherited = self.seats.get(name).filter(|seat| seat.is_inherited).map(|seat| seat.at.spine);
        let home = inherited.or(found.filter(|_| seat.is_none())).unwrap_or(home);
        let serving = Some(home).filter(has_leaves).or_else(|| (0..self.lives.len()).find(has_leaves));
        serving.map_or_else(|| self.route(now, name, home), |to| Ok(self.route_to(name, to)))
    }

    /// The spine that stands in for those that are down.
    pub fn stand_in(&self) -> Option<usize> {
        (0..self.lives.len()).find(|spine| self.does_live(*spine))
    }

    /// A host was granted a registration at a spine.
    pub fn granted(&mut self, now: Nanos, name: &str, spine: usize, key: Key) {
        if !self.seats.contains_key(name) {
            // Forgets names whose leases have ended.
            let lease = self.lease;
            let ended = self.seats.extract_if(.., |_, seat| now.since(seat.renewed) > lease);
            self.moved.extend(ended.map(|(name, _)| name));
        }
        let at = PodPlace { spine, key };
        let seat = PodSeat { at, renewed: now, is_inherited: false };
        let before = self.seats.insert(name.to_string(), seat);
        if before.is_none_or(|before| before.at != at) {
            self.moved.insert(name.to_string());
        }
    }

    /// A client was granted a registration at a spine, as [`Pods::granted`]. Returns the other spines where
    /// it may be registered too, each once: their controllers get [`Event::ClientElsewhere`].
    ///
    /// [`Event::ClientElsewhere`]: crate::Event::ClientElsewhere
    pub fn client_granted(
        &mut self,
        now: Nanos,
        hello: &ClientHello,
        spine: usize,
        key: Key,
    ) -> BTreeSet<usize> {
        let before = self.seat(&hello.name);
        self.granted(now, &hello.name, spine, key);
        let others = self.found.iter_mut().enumerate().filter(|(other, _)| *other != spine);
        let stands = others.filter_map(|(other, found)| found.remove(&hello.incarnation).then_some(other));
        stands.chain(before.filter(|before| *before != spine)).collect()
    }

    /// A host has left.
    pub fn left(&mut self, name: &str) {
        if self.seats.remove(name).is_some() {
            self.moved.insert(name.to_string());
        }
    }

    /// The spine at which a host is registered.
    pub fn seat(&self, name: &str) -> Option<usize> {
        self.seats.get(name).map(|seat| seat.at.spine)
    }

    /// The spine at which the host with this key is registered.
    pub fn seat_of(&self, key: Key) -> Option<usize> {
        self.seats.values().find(|seat| seat.at.key == key).map(|seat| seat.at.spine)
    }

    fn route(&self, now: Nanos, name: &str, home: usize) -> Result<PodRoute, Answer> {
        let to = match self.lives[home] {
            Some(true) => home,
            None if now < self.found_by => return Err(wait(Waiting::ReadingBack, SOON)),
            Some(false) | None => self.stand_in().ok_or(wait(Waiting::SwitchDown, SOON))?,
        };
        Ok(self.route_to(name, to))
    }

    fn route_to(&self, name: &str, to: usize) -> PodRoute {
        let is_kept = |spine: &usize| *spine != to && self.does_live(*spine);
        PodRoute { to, from: self.seat(name).filter(is_kept) }
    }

    fn does_live(&self, spine: usize) -> bool {
        self.lives[spine] == Some(true)
    }

    /// Whether a spine may still be found, or was found and its tables are being read.
    fn is_finding_out(&self, now: Nanos) -> bool {
        let mut spines = self.lives.iter().zip(&self.serves);
        spines.any(|spine| match spine {
            (None, _) => now < self.found_by,
            (Some(lives), serves) => *lives && serves.is_none(),
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use sluice_wire::{Endpoint, Serial};

    use super::*;

    const LEASE: Nanos = Nanos::from_millis(1_000);
    const LATER: Nanos = Nanos::from_millis(5_000);

    fn pods() -> Pods {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Pods::new(vec![names(&["rack-1", "rack-2"]), names(&["rack-3"])], LEASE, Nanos(0))
    }

    fn both() -> Pods {
        let mut pods = pods();
        for spine in [0, 1] {
            pods.on_spine(spine, true);
            pods.serves(spine, Some(false));
        }
        pods
    }

    fn leaf(name: &str) -> WorkerHello {
        WorkerHello { workers: 3, ..worker(name) }
    }

    fn worker(name: &str) -> WorkerHello {
        WorkerHello {
            name: name.to_string(),
            life: 1,
            at: Endpoint::default(),
            slice: String::new(),
            types: Vec::new(),
            labels: Vec::new(),
            quota: 1,
            capacity: 0,
            recent: crate::RecentWork::default(),
            refused_late: 0,
            server: String::new(),
            rejoins: 0,
            workers: 0,
            held: None,
        }
    }

    fn client(name: &str) -> ClientHello {
        let incarnation = Incarnation(name.bytes().map(u64::from).sum());
        ClientHello {
            name: name.to_string(),
            incarnation,
            at: Endpoint::default(),
            floor: Serial(0),
            held: None,
        }
    }

    const fn to(to: usize) -> PodRoute {
        PodRoute { to, from: None }
    }

    #[test]
    fn each_rack_is_below_its_own_spine_and_one_that_the_plan_does_not_have_is_refused_by_name() {
        let pods = both();
        assert_eq!(pods.of_leaf(LATER, &leaf("rack-2/get")), Ok(to(0)));
        assert_eq!(pods.of_leaf(LATER, &leaf("rack-3/get")), Ok(to(1)));
        assert_eq!(pods.of_client(LATER, &client("c"), 1), Ok(to(1)));
        for stranger in ["rack-4/get", "rack-33/get", "rack-3", "x/rack-3/get", ""] {
            let Err(Answer::Refused { why }) = pods.of_leaf(LATER, &leaf(stranger)) else {
                panic!("{stranger}")
            };
            let said = why.to_string();
            assert!(said.contains(stranger) && said.contains("rack-1, rack-2, rack-3"), "{said}");
        }
        let no_leaf = Refusal::NoLeaf { name: "rack-3/get".to_string() };
        assert_eq!(pods.of_leaf(LATER, &worker("rack-3/get")), Err(Answer::Refused { why: no_leaf }));
    }

    #[test]
    fn a_spine_that_dies_has_its_racks_and_clients_at_the_first_that_lives_until_it_is_back() {
        let mut pods = both();
        pods.granted(LATER, "rack-3/get", 1, Key(7));
        pods.on_spine(1, false);
        assert_eq!(
            pods.of_leaf(LATER, &leaf("rack-3/get")),
            Ok(to(0)),
            "nothing is kept where nobody answers"
        );
        assert_eq!(pods.of_client(LATER, &client("c"), 1), Ok(to(0)));
        pods.granted(LATER, "rack-3/get", 0, Key(8));
        assert_eq!((pods.seat_of(Key(8)), pods.seat_of(Key(7))), (Some(0), None));
        pods.on_spine(1, true);
        assert_eq!(pods.of_leaf(LATER, &leaf("rack-3/get")), Ok(PodRoute { to: 1, from: Some(0) }));
        pods.left("rack-3/get");
        assert_eq!(pods.of_leaf(LATER, &leaf("rack-3/get")), Ok(to(1)));
    }

    #[test]
    fn clients_of_a_spine_whose_last_leaf_died_go_where_there_are_some_and_racks_stay() {
        let mut pods = both();
        pods.serves(0, Some(true));
        assert_eq!(pods.of_client(LATER, &client("c"), 1), Ok(to(0)));
        assert_eq!(pods.of_leaf(LATER, &leaf("rack-3/get")), Ok(to(1)));
        pods.serves(1, Some(true));
        assert_eq!(pods.of_client(LATER, &client("c"), 1), Ok(to(1)));
        pods.granted(LATER, "c", 1, Key(1));
        pods.serves(1, Some(false));
        assert_eq!(pods.of_client(LATER, &client("c"), 1), Ok(PodRoute { to: 0, from: Some(1) }));
        pods.on_spine(0, false);
        assert_eq!(pods.of_client(LATER, &client("c"), 1), Ok(to(1)), "there is no other");
    }

    #[test]
    fn nobody_is_sent_elsewhere_before_each_spine_had_time_to_be_found() {
        let mut pods = pods();
        pods.on_spine(0, true);
        let waits = |route| matches!(route, Err(Answer::Wait { why: Waiting::ReadingBack, .. }));
        assert!(waits(pods.of_leaf(Nanos(1), &leaf("rack-3/get"))));
        assert_eq!(pods.of_leaf(Nanos(1), &leaf("rack-1/get")), Ok(to(0)));
        assert_eq!(pods.of_leaf(LEASE, &leaf("rack-3/get")), Ok(to(0)));
    }

    #[test]
    fn no_client_is_sent_elsewhere_before_each_spine_was_read_back() {
        let mut pods = pods();
        pods.on_spine(0, true);
        pods.serves(0, Some(true));
        let waits = |route| matches!(route, Err(Answer::Wait { why: Waiting::ReadingBack, .. }));
        assert!(waits(pods.of_client(Nanos(1), &client("c/2"), 1)), "its spine was not found yet");
        assert!(waits(pods.of_client(Nanos(1), &client("c/2"), 0)), "it may have been at the other");
        pods.on_spine(1, true);
        assert!(waits(pods.of_client(LATER, &client("c/2"), 1)), "its spine is being read");
        pods.serves(1, Some(true));
        assert_eq!(pods.of_client(LATER, &client("c/2"), 1), Ok(to(1)));
    }

    #[test]
    fn a_client_that_calls_elsewhere_first_goes_where_it_was_found() {
        let mut pods = both();
        pods.serves(0, Some(true));
        pods.serves(1, Some(true));
        pods.found(1, vec![client("c/2").incarnation]);
        assert_eq!(pods.of_client(LATER, &client("c/2"), 0), Ok(to(1)));
        assert_eq!(pods.of_client(LATER, &client("new"), 0), Ok(to(0)));
        pods.granted(LATER, "c/2", 1, Key(1));
        assert_eq!(pods.of_client(LATER, &client("c/2"), 1), Ok(to(1)));
        pods.on_spine(1, false);
        assert_eq!(pods.of_client(LATER, &client("c/2"), 1), Ok(to(0)), "nobody is found with the dead");
    }

    #[test]
    fn a_client_that_is_elsewhere_stays_there_while_its_own_spine_is_read_back() {
        let mut pods = both();
        pods.serves(0, Some(true));
        pods.granted(LATER, "c/2", 0, Key(1));
        pods.serves(1, None);
        assert_eq!(pods.of_client(LATER, &client("c/2"), 1), Ok(to(0)));
        pods.serves(1, Some(true));
        assert_eq!(pods.of_client(LATER, &client("c/2"), 1), Ok(PodRoute { to: 1, from: Some(0) }));
    }

    #[test]
    fn where_no_spine_lives_all_wait() {
        let mut pods = both();
        pods.on_spine(0, false);
        pods.on_spine(1, false);
        let route = pods.of_leaf(LATER, &leaf("rack-1/get"));
        assert!(matches!(route, Err(Answer::Wait { why: Waiting::SwitchDown, .. })), "{route:?}");
    }

    #[test]
    fn a_leader_that_begins_knows_where_hosts_were_stored_and_leaves_them_there() {
        let mut pods = both();
        pods.granted(LATER, "own", 1, Key(9));
        let at = |spine, key| PodPlace { spine, key: Key(key) };
        let stored = [("c/1", at(1, 1)), ("rack-3/get", at(0, 2)), ("strange", at(7, 3))];
        pods.begin(LATER, stored.map(|(name, at)| (name.to_string(), at)));
        assert_eq!((pods.seat("own"), pods.seat("strange"), pods.seat_of(Key(2))), (None, None, Some(0)));
        assert_eq!(pods.take_moves(), [], "what was stored is known to the store");
        let waits = |route| matches!(route, Err(Answer::Wait { .. }));
        assert!(waits(pods.of_leaf(LATER, &leaf("rack-3/get"))), "its own spine may be found");
        for spine in [0, 1] {
            pods.on_spine(spine, true);
            pods.serves(spine, Some(true));
        }
        // It calls at the first spine's address because the second one's did not answer.
        assert_eq!(pods.of_client(LATER, &client("c/1"), 0), Ok(to(1)));
        assert_eq!(pods.of_leaf(LATER, &leaf("rack-3/get")), Ok(PodRoute { to: 1, from: Some(0) }));
        pods.granted(LATER, "c/1", 1, Key(1));
        assert_eq!(pods.of_client(LATER, &client("c/1"), 0), Ok(PodRoute { to: 0, from: Some(1) }));
    }

    #[test]
    fn the_store_hears_of_each_change_once() {
        let mut pods = both();
        let place = |spine, key| Some(PodPlace { spine, key: Key(key) });
        pods.granted(Nanos(0), "c", 0, Key(1));
        pods.granted(Nanos(0), "d", 1, Key(2));
        pods.left("c");
        pods.left("nobody");
        assert_eq!(pods.take_moves(), [("c".to_string(), None), ("d".to_string(), place(1, 2))]);
        pods.granted(Nanos(1), "d", 1, Key(2));
        assert_eq!(pods.take_moves(), [], "it was only renewed");
        pods.granted(Nanos(1), "d", 1, Key(3));
        pods.granted(LEASE + Nanos(2), "e", 0, Key(4));
        assert_eq!(pods.take_moves(), [("d".to_string(), None), ("e".to_string(), place(0, 4))]);
    }

    #[test]
    fn a_spine_that_another_controller_has_is_waited_for() {
        let mut pods = both();
        pods.begin(LATER, []);
        pods.on_spine(0, true);
        pods.on_spine(1, true);
        pods.leads_not(1);
        assert!(pods.of_leaf(LATER, &leaf("rack-3/get")).is_err());
        assert_eq!(pods.of_leaf(LATER, &leaf("rack-1/get")), Ok(to(0)));
    }

    #[test]
    fn who_is_not_heard_of_for_a_lease_is_forgotten() {
        let mut pods = both();
        pods.granted(Nanos(0), "old", 0, Key(1));
        pods.granted(LEASE, "c", 0, Key(2));
        assert_eq!(pods.seat("old"), Some(0));
        pods.granted(LEASE + Nanos(1), "new", 0, Key(3));
        assert_eq!((pods.seat("old"), pods.seat("c")), (None, Some(0)));
    }
}
