//! The list against a set, in all orders of a few steps; and what is printed, with its holes.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use super::*;

const AT: IdleStages = IdleStages { lock: 1, count: 2, list: 3, index: 4 };
const NODES: u16 = 3;

fn list(as_published: bool) -> IdleList {
    IdleList::new(&mut Layout::new("test"), AT, (2, NODES, NODES), as_published)
}

fn pass() -> Pass {
    Pass::begin("test")
}

/// Steps on pool 1.
impl IdleList {
    fn plus(&mut self, node: u16) {
        self.add(&mut pass(), 1, node);
    }

    fn pop(&mut self) -> Vacancy {
        self.take(&mut pass(), 1).0
    }

    fn first(&mut self, node: u16) -> Option<Removal> {
        self.remove(&mut pass(), 1, node)
    }

    fn second(&mut self, removal: Option<Removal>) {
        self.close_gap(&mut pass(), removal.expect("the lock was free"));
    }

    /// Whom tasks get until nobody is left, newest first; stale entries are passed over.
    fn drained(&mut self) -> Vec<u16> {
        let taken = (0..NODES).map(|_| self.pop()).take_while(|taken| *taken != Vacancy::Nobody);
        taken.filter_map(|taken| if let Vacancy::Node(node) = taken { Some(node) } else { None }).collect()
    }

    /// Nodes whose index points at an entry of theirs, oldest first.
    fn listed(&self) -> BTreeSet<u16> {
        let counts = |place: &u16| self.index.peek(self.cell(1, self.at(*place))) == place + 1;
        (0..self.entries(1)).filter(counts).map(|place| self.at(place)).collect()
    }

    fn at(&self, place: u16) -> u16 {
        self.list.peek(self.cell(1, place))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Add(u16),
    Take,
    First(u16),
    Second,
}

fn steps() -> impl Iterator<Item = Step> {
    let each = |step: fn(u16) -> Step| (0..NODES).map(step);
    each(Step::Add).chain(each(Step::First)).chain([Step::Take, Step::Second])
}

/// The list beside the set of nodes that are idle.
struct Beside {
    list: IdleList,
    idle: BTreeSet<u16>,
    second: Option<Removal>,
    /// Nobody was added who was there, and no gap was left: then there may be no stale entry.
    is_tidy: bool,
}

impl Beside {
    fn new() -> Self {
        Self { list: list(false), idle: BTreeSet::new(), second: None, is_tidy: true }
    }

    /// `None`: the step is not possible here.
    fn step(&mut self, step: Step) -> Option<()> {
        match step {
            Step::Add(node) => {
                let has_room = self.list.entries(1) < NODES;
                self.is_tidy &= self.second.is_none() && !self.idle.contains(&node);
                self.list.plus(node);
                if has_room {
                    self.idle.insert(node);
                } else {
                    assert!(!self.is_tidy || self.idle.contains(&node), "a tidy list has room for all");
                }
            }
            Step::Take => {
                self.is_tidy &= self.second.is_none();
                match self.list.pop() {
                    Vacancy::Node(node) => assert!(self.idle.remove(&node), "{node} was not idle"),
                    Vacancy::Stale => assert!(!self.is_tidy, "an entry of a tidy list counts"),
                    Vacancy::Nobody => assert!(self.idle.is_empty(), "{:?} are lost", self.idle),
                }
            }
            Step::First(node) => {
                let removal = self.list.first(node);
                self.idle.remove(&node);
                assert_eq!(removal.is_none(), self.second.is_some(), "one has the lock");
                self.is_tidy &= removal.is_some();
                self.second = self.second.or(removal);
            }
            Step::Second => self.list.second(Some(self.second.take()?)),
        }
        Some(())
    }

    fn check(&self) {
        assert_eq!(self.list.listed(), self.idle);
        let is_between = self.second.is_some();
        assert!(!self.is_tidy || is_between || usize::from(self.list.entries(1)) == self.idle.len());
    }
}

/// All orders of steps up to a length, each from its beginning. Gives how many there are.
fn all_orders(of: &mut Vec<Step>, length: usize) -> u64 {
    let mut beside = Beside::new();
    for step in of.iter() {
        if beside.step(*step).is_none() {
            return 0;
        }
        beside.check();
    }
    if of.len() == length {
        return 1;
    }
    let mut orders = 0;
    for step in steps() {
        of.push(step);
        orders += all_orders(of, length);
        of.pop();
    }
    orders
}

#[test]
fn in_every_order_of_steps_no_node_is_listed_twice_none_is_lost_and_none_is_there_that_left() {
    // Full or empty, and with a removal under way, at the beginning.
    let mut full: Vec<Step> = (0..NODES).map(Step::Add).collect();
    assert!(all_orders(&mut full, NODES as usize + 5) > 20_000);
    let mut between = [&full[..], &[Step::First(0)]].concat();
    assert!(all_orders(&mut between, NODES as usize + 5) > 3_000);
    assert!(all_orders(&mut Vec::new(), 6) > 150_000);
}

#[test]
fn the_newest_is_taken_first_and_each_pool_has_its_own() {
    for as_published in [false, true] {
        let mut list = list(as_published);
        list.add(&mut pass(), 0, 2);
        (0..NODES).for_each(|node| list.plus(node));
        assert_eq!(list.drained(), [2, 1, 0]);
        assert_eq!(list.take(&mut pass(), 0).0, Vacancy::Node(2));
    }
}

#[test]
fn a_removal_closes_the_gap_with_the_last() {
    for as_published in [false, true] {
        let mut list = list(as_published);
        (0..NODES).for_each(|node| list.plus(node));
        let removal = list.first(0);
        list.second(removal);
        assert_eq!((list.at(0), list.entries(1)), (2, 2));
        assert_eq!(list.listed(), BTreeSet::from([1, 2]));
        let removal = list.first(1);
        list.second(removal);
        assert_eq!(list.drained(), [2], "who is last himself leaves no gap");
    }
}

#[test]
fn one_removal_at_a_time_has_the_lock() {
    for (as_published, left) in [(true, vec![1, 2]), (false, vec![2])] {
        let mut list = list(as_published);
        (0..NODES).for_each(|node| list.plus(node));
        let first = list.first(0);
        assert_eq!(list.first(1), None);
        list.second(first);
        assert_eq!(
            list.drained(),
            left,
            "a removal without the lock: dropped, or its node is out all the same"
        );
    }
}

/// What is left for tasks after these steps, as printed and healed.
fn both(steps: impl Fn(&mut IdleList)) -> [Vec<u16>; 2] {
    [true, false].map(|as_published| {
        let mut list = list(as_published);
        steps(&mut list);
        list.drained()
    })
}

#[test]
fn an_add_while_the_last_entry_is_removed_is_overwritten_as_printed() {
    let left = both(|list| {
        (0..2).for_each(|node| list.plus(node));
        let removal = list.first(1);
        list.plus(2);
        list.second(removal);
    });
    assert_eq!(left, [vec![1, 0], vec![2, 0]], "2 is lost and 1 is back");
}

#[test]
fn a_removal_of_a_node_that_is_not_listed_takes_another_one_with_it_as_printed() {
    let left = both(|list| {
        (0..2).for_each(|node| list.plus(node));
        let removal = list.first(2);
        list.second(removal);
    });
    assert_eq!(left, [vec![1], vec![1, 0]]);
}

#[test]
fn a_node_that_is_added_twice_is_there_twice_as_printed() {
    let left = both(|list| {
        list.plus(0);
        list.plus(1);
        list.plus(0);
    });
    assert_eq!(left, [vec![0, 1, 0], vec![1, 0]]);
}

#[test]
fn a_take_between_the_passes_gets_the_removed_node_and_loses_the_last_as_printed() {
    let left = both(|list| {
        (0..NODES).for_each(|node| list.plus(node));
        let removal = list.first(1);
        let taken = list.pop();
        assert_ne!(taken, Vacancy::Nobody);
        list.second(removal);
        assert_eq!(taken == Vacancy::Node(1), list.as_published);
    });
    assert_eq!(left, [vec![0], vec![0]], "healed, 2 was taken; as printed, 2 is lost");
}

#[test]
fn a_count_that_is_the_same_again_is_not_taken_for_an_untouched_list() {
    let mut list = list(false);
    (0..NODES).for_each(|node| list.plus(node));
    let removal = list.first(0);
    assert_eq!(list.pop(), Vacancy::Node(2));
    list.plus(0);
    list.second(removal);
    assert_eq!(list.drained(), [0, 1]);
}

#[test]
fn a_list_full_of_stale_entries_takes_in_again_who_comes_when_they_are_worn_off() {
    let mut list = list(false);
    (0..NODES).for_each(|_| list.plus(0));
    list.plus(1);
    assert_eq!(list.pop(), Vacancy::Stale);
    list.plus(1);
    assert_eq!(list.drained(), [1, 0]);
}

/// A spine's list beside the set of racks that are idle: tasks look and take nobody off.
struct Watched {
    list: IdleList,
    idle: BTreeSet<u16>,
    second: Option<Removal>,
    worn: Option<Worn>,
}

#[derive(Clone, Copy, Debug)]
enum Word {
    Idle(u16),
    Busy(u16),
    /// The second pass of a removal.
    Second,
    /// A task looks, with what an earlier one found worn if that is still on its way.
    Look,
    /// One looks at the oldest.
    LookAtOldest,
}

impl Watched {
    fn new() -> Self {
        Self { list: list(false), idle: BTreeSet::new(), second: None, worn: None }
    }

    /// `None`: the step is not possible here.
    fn step(&mut self, word: Word) -> Option<()> {
        match word {
            Word::Idle(node) => {
                let has_room = self.list.entries(1) < NODES;
                self.list.plus(node);
                if has_room {
                    self.idle.insert(node);
                }
            }
            Word::Busy(node) => {
                // Round and back, as a packet carries it.
                let removal = self.list.first(node).map(|removal| Removal::of(removal.memo()));
                self.idle.remove(&node);
                self.second = self.second.or(removal);
            }
            Word::Second => self.list.second(Some(self.second.take()?)),
            Word::Look => self.looks(|entries| entries - 1),
            Word::LookAtOldest => self.looks(|_| 0),
        }
        assert_eq!(self.list.listed(), self.idle);
        Some(())
    }

    fn looks(&mut self, place: fn(u16) -> u16) {
        match self.list.look(&mut pass(), 1, self.worn.take(), place) {
            Looked::Node(node) => assert!(self.idle.contains(&node), "{node} is not idle"),
            Looked::Stale(worn) => self.worn = worn,
            Looked::Nobody => assert!(self.idle.is_empty(), "{:?} are lost", self.idle),
        }
    }

    /// A task that goes round as often as there are entries has found a rack, or that there is none.
    fn ends(mut self) {
        let mut worn = self.worn;
        for _ in 0..=NODES {
            match self.list.look(&mut pass(), 1, worn, |entries| entries - 1) {
                Looked::Stale(found) => worn = found,
                Looked::Node(node) => return assert!(self.idle.contains(&node)),
                Looked::Nobody => return assert!(self.idle.is_empty()),
            }
        }
        panic!("a task goes round for ever");
    }
}

fn all_words(of: &mut Vec<Word>, length: usize) -> u64 {
    let mut watched = Watched::new();
    for word in of.iter() {
        if watched.step(*word).is_none() {
            return 0;
        }
    }
    watched.ends();
    if of.len() == length {
        return 1;
    }
    let each = |word: fn(u16) -> Word| (0..NODES).map(word);
    let words =
        each(Word::Idle).chain(each(Word::Busy)).chain([Word::Second, Word::Look, Word::LookAtOldest]);
    let mut orders = 0;
    for word in words {
        of.push(word);
        orders += all_words(of, length);
        of.pop();
    }
    orders
}

#[test]
fn in_every_order_of_words_a_task_looks_at_an_idle_rack_if_there_is_one_and_ends() {
    let mut full: Vec<Word> = (0..NODES).map(Word::Idle).collect();
    assert!(all_words(&mut full, NODES as usize + 4) > 4_000);
    let mut between = [&full[..], &[Word::Busy(0)]].concat();
    assert!(all_words(&mut between, NODES as usize + 5) > 4_000);
    assert!(all_words(&mut Vec::new(), 5) > 30_000);
}

#[test]
fn what_was_worn_is_left_alone_once_somebody_came() {
    let mut list = list(false);
    list.plus(0);
    list.plus(1);
    list.plus(0);
    let found = list.look(&mut pass(), 1, None, |entries| entries - 1);
    let Looked::Stale(Some(worn)) = found else { panic!("{found:?}") };
    let removal = list.first(1);
    list.second(removal);
    list.plus(2);
    assert_eq!(list.look(&mut pass(), 1, Some(worn), |entries| entries - 1), Looked::Node(2));
    assert_eq!(list.drained(), [2, 0]);
}

#[test]
fn a_removal_fits_into_what_a_packet_carries_round() {
    let most = NODES_ROUND_MAX;
    let count = u32::from(most) << 16 | u32::from(most);
    let removal = Removal { pool: u16::MAX, held: most, last: most - 1, count };
    assert_eq!(Removal::of(removal.memo()), removal);
    let other = Removal { pool: 1, held: 2, last: 3, count: 4 << 16 | 5 };
    assert_eq!(Removal::of(other.memo()), other);
}
