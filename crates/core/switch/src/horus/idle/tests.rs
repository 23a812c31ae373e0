//! Compares the list with a set, in all orders of a few steps; and shows the holes of the printed
//! algorithm.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use super::*;

const AT: IdleStages = IdleStages { lock: 1, count: 2, list: 3, index: 4 };
const OWED_AT: OwedStages = OwedStages { count: 7, list: 8 };
const NODES: u16 = 3;

/// A list with one place for each node, so that stale entries fill it soon.
fn list(as_published: bool) -> IdleList {
    let layout = &mut Layout::new("test");
    if as_published {
        IdleList::as_published(layout, AT, 2, NODES)
    } else {
        IdleList::with_room(layout, AT, OWED_AT, (2, NODES, NODES))
    }
}

fn pass() -> Pass {
    Pass::begin("test")
}

/// Steps on pool 1.
impl IdleList {
    fn plus(&mut self, node: u16) {
        let pass = &mut pass();
        let added = self.add(pass, 1, node);
        if added.is_owed {
            self.owe(pass, 1, node);
        }
    }

    /// The first pass of a task that finds a node that is owed a place.
    fn owed(&mut self) -> Option<u16> {
        self.owes(&mut pass(), 1)
    }

    /// The second pass of that task, which gives the node its place.
    fn gives(&mut self, node: u16) {
        let pass = &mut pass();
        let added = self.give(pass, 1, node);
        if added.is_owed {
            self.owe(pass, 1, node);
        }
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

    /// The nodes that tasks get until the list is empty, newest first; stale entries are skipped.
    fn drained(&mut self) -> Vec<u16> {
        let taken = (0..NODES).map(|_| self.pop()).take_while(|taken| *taken != Vacancy::Nobody);
        taken.filter_map(|taken| if let Vacancy::Node(node) = taken { Some(node) } else { None }).collect()
    }

    /// Nodes whose index points at their entry, oldest first.
    fn listed(&self) -> BTreeSet<u16> {
        let counts = |place: &u16| self.index.peek(self.cell(1, self.at(*place))) == place + 1;
        (0..self.entries(1)).filter(counts).map(|place| self.at(place)).collect()
    }

    /// Nodes that are owed a place.
    fn waiting(&self) -> BTreeSet<u16> {
        (0..NODES).filter(|node| self.index.peek(self.cell(1, *node)) == OWED).collect()
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
    /// A task finds a node that is owed a place, and later gives it the place.
    Owes,
    Gives,
}

fn steps() -> impl Iterator<Item = Step> {
    let each = |step: fn(u16) -> Step| (0..NODES).map(step);
    each(Step::Add).chain(each(Step::First)).chain([Step::Take, Step::Second, Step::Owes, Step::Gives])
}

/// The list, and beside it the set of idle nodes.
struct Beside {
    list: IdleList,
    idle: BTreeSet<u16>,
    second: Option<Removal>,
    /// The node that is owed a place, while its task is between two passes.
    carried: Option<u16>,
    /// No node was added twice and no gap was left, so there must be no stale entry.
    is_tidy: bool,
}

impl Beside {
    fn new() -> Self {
        Self { list: list(false), idle: BTreeSet::new(), second: None, carried: None, is_tidy: true }
    }

    /// Takes one step; `None` if the step is not possible now.
    fn step(&mut self, step: Step) -> Option<()> {
        match step {
            Step::Add(node) => {
                let is_full = self.list.entries(1) == NODES;
                self.is_tidy &= self.second.is_none() && !self.idle.contains(&node);
                self.list.plus(node);
                self.idle.insert(node);
                assert!(!self.is_tidy || !is_full, "a tidy list has room for all");
            }
            Step::Take => {
                self.is_tidy &= self.second.is_none();
                match self.list.pop() {
                    Vacancy::Node(node) => assert!(self.idle.remove(&node), "{node} was not idle"),
                    Vacancy::Stale => assert!(!self.is_tidy, "an entry of a tidy list counts"),
                    Vacancy::Nobody => assert_eq!(self.idle, self.list.waiting(), "the others are lost"),
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
            Step::Owes => {
                if self.carried.is_some() {
                    return None;
                }
                self.carried = Some(self.list.owed()?);
            }
            Step::Gives => {
                self.is_tidy &= self.second.is_none();
                self.list.gives(self.carried.take()?);
            }
        }
        Some(())
    }

    fn check(&self) {
        let (listed, waiting) = (self.list.listed(), self.list.waiting());
        assert!(listed.is_disjoint(&waiting));
        assert_eq!(&listed | &waiting, self.idle);
        let is_between = self.second.is_some();
        assert!(!self.is_tidy || is_between || usize::from(self.list.entries(1)) == self.idle.len());
    }

    /// Tasks that come one behind the other find each idle node once, also those that are owed a place.
    fn ends(mut self) {
        if let Some(carried) = self.carried {
            self.list.gives(carried);
        }
        let mut found = BTreeSet::new();
        for _ in 0..4 * NODES {
            if let Vacancy::Node(node) = self.list.pop() {
                assert!(found.insert(node), "{node} was taken twice");
            }
            if let Some(owed) = self.list.owed() {
                self.list.gives(owed);
            }
        }
        assert_eq!(found, self.idle, "an idle node is forgotten");
    }
}

/// Checks all orders of steps up to a length, each from an empty list; returns how many there are.
fn all_orders(of: &mut Vec<Step>, length: usize) -> u64 {
    let mut beside = Beside::new();
    for step in of.iter() {
        if beside.step(*step).is_none() {
            return 0;
        }
        beside.check();
    }
    if of.len() == length {
        beside.ends();
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
    // The orders also begin with a full list, and with a removal under way.
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

/// The nodes that tasks can get after these steps, as printed and with the holes closed.
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
fn who_finds_the_list_full_of_stale_entries_is_brought_back_by_the_next_task_that_takes() {
    let mut list = list(false);
    (0..NODES).for_each(|_| list.plus(0));
    (0..3).for_each(|_| list.plus(1));
    assert_eq!(list.pop(), Vacancy::Stale);
    assert_eq!(list.owed(), Some(1));
    assert_eq!(list.owed(), None, "it is owed one place, however often it said so");
    list.gives(1);
    assert_eq!(list.drained(), [1, 0]);
}

#[test]
fn who_left_is_owed_nothing() {
    let mut list = list(false);
    (0..NODES).for_each(|_| list.plus(0));
    list.plus(1);
    list.plus(2);
    list.forget("test", 1, 1);
    assert_eq!(list.owed(), Some(2));
    assert_eq!(list.owed(), None);
    list.forget("test", 1, 2);
    list.gives(2);
    assert_eq!(list.drained(), [0], "it left while it was carried round");
}

#[test]
fn who_left_takes_nobody_elses_place_among_those_who_are_owed_one() {
    let mut list = IdleList::with_room(&mut Layout::new("test"), AT, OWED_AT, (2, NODES + 1, NODES));
    (0..NODES).for_each(|_| list.plus(0));
    (1..=NODES).for_each(|node| list.plus(node));
    list.forget("test", 1, 1);
    assert_eq!([list.owed(), list.owed(), list.owed()], [Some(3), Some(2), None]);
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
