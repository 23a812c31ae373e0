//! Compares a spine's list with what leaves said last, in all orders of a few words and passes.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::*;

const AT: IdleStages = IdleStages { lock: 1, count: 2, list: 3, index: 4 };
const NODES: u16 = 3;
const POOL: u16 = 1;

#[derive(Clone, Copy, Debug)]
enum Step {
    Idle(u16),
    Busy(u16),
    /// The packet that recirculated first passes next, or the one that recirculated last.
    First,
    Last,
    Forget(u16),
}

fn steps() -> impl Iterator<Item = Step> {
    let each = |step: fn(u16) -> Step| (0..NODES).map(step);
    each(Step::Idle).chain(each(Step::Busy)).chain(each(Step::Forget)).chain([Step::First, Step::Last])
}

/// The list, and beside it the set of racks that are idle by their leaves' last words.
struct Beside {
    racks: IdleRacks,
    idle: BTreeSet<u16>,
    round: Vec<u64>,
}

impl Beside {
    fn new() -> Self {
        let racks = IdleRacks::new(&mut Layout::new("test"), (0, AT), (2, NODES), false);
        Self { racks, idle: BTreeSet::new(), round: Vec::new() }
    }

    /// Takes one step; `None` if the step is not possible now.
    fn step(&mut self, step: Step) -> Option<()> {
        let pass = &mut Pass::begin("test");
        match step {
            Step::Idle(node) => {
                self.idle.insert(node);
                assert_eq!(self.racks.says(pass, POOL, node, true), None);
            }
            Step::Busy(node) => {
                self.idle.remove(&node);
                self.round.extend(self.racks.says(pass, POOL, node, false));
            }
            Step::First | Step::Last => {
                let at = if matches!(step, Step::First) { 0 } else { self.round.len().checked_sub(1)? };
                let memo = (at < self.round.len()).then(|| self.round.remove(at))?;
                self.round.extend(self.racks.goes_on(pass, memo));
            }
            Step::Forget(node) => {
                self.idle.remove(&node);
                self.racks.forget("test", POOL, node);
                assert!(
                    !self.listed().contains(&node) && !self.racks.is_listed(POOL, node),
                    "{node} is known"
                );
            }
        }
        self.check();
        Some(())
    }

    fn listed(&self) -> Vec<u16> {
        let RackList::Exact(list) = &self.racks.0 else { panic!("healed") };
        (0..list.count.peek(POOL.into())).map(|at| list.list.peek(list.cell(POOL, at))).collect()
    }

    fn check(&mut self) {
        let listed = self.listed();
        let set: BTreeSet<u16> = listed.iter().copied().collect();
        assert_eq!(set.len(), listed.len(), "a rack is listed twice: {listed:?}");
        let missing: Vec<u16> = self.idle.difference(&set).copied().collect();
        assert!(missing.len() <= 1, "one at most is carried round: {missing:?}");
        for node in 0..NODES {
            let pass = &mut Pass::begin("test");
            assert_eq!(self.racks.has(pass, POOL, node), self.idle.contains(&node), "{node}");
        }
        if self.round.is_empty() {
            assert_eq!(set, self.idle);
            let entries = (0..NODES).filter(|node| self.racks.is_listed(POOL, *node));
            assert_eq!(entries.collect::<BTreeSet<_>>(), set);
        }
    }

    /// Checks that all recirculating packets come to an end.
    fn ends(mut self) {
        for _ in 0..8 * NODES {
            if self.step(Step::First).is_none() {
                return assert_eq!(self.listed().len(), self.idle.len());
            }
        }
        panic!("{} removals go round for ever", self.round.len());
    }
}

fn all_orders(of: &mut Vec<Step>, length: usize) -> u64 {
    let mut beside = Beside::new();
    if of.iter().any(|step| beside.step(*step).is_none()) {
        return 0;
    }
    beside.ends();
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

/// A removal's number is a few bits of the word that recirculates.
#[test]
fn a_rack_may_become_busy_more_often_than_removals_have_numbers() {
    let mut beside = Beside::new();
    for removal in 0..=2 * NUMBER_MAX {
        for step in [Step::Idle(0), Step::Busy(0), Step::First] {
            beside.step(step).unwrap_or_else(|| panic!("removal {removal}: {step:?}"));
        }
    }
    beside.ends();
}

/// As printed, `index` alone says which racks are listed.
#[test]
fn tasks_and_the_control_software_see_who_is_listed_as_printed_too() {
    let mut racks = IdleRacks::new(&mut Layout::new("test"), (0, AT), (2, NODES), true);
    let listed = |racks: &IdleRacks| (0..NODES).map(|node| racks.is_listed(POOL, node)).collect::<Vec<_>>();
    let newest = |racks: &mut IdleRacks| racks.look(&mut Pass::begin("test"), POOL, |count| count - 1);
    assert_eq!((listed(&racks), newest(&mut racks)), (alloc::vec![false; 3], None));
    assert_eq!(racks.says(&mut Pass::begin("test"), POOL, 2, true), None);
    assert_eq!((listed(&racks), newest(&mut racks)), (alloc::vec![false, false, true], Some(2)));
}

#[test]
fn in_every_order_of_words_and_passes_the_list_has_each_idle_rack_once() {
    assert!(all_orders(&mut Vec::new(), 5) > 50_000);
    let mut full: Vec<Step> = (0..NODES).map(Step::Idle).collect();
    assert!(all_orders(&mut full, usize::from(NODES) + 4) > 5_000);
    let mut between = [&full[..], &[Step::Busy(0), Step::Busy(2)]].concat();
    assert!(all_orders(&mut between, usize::from(NODES) + 6) > 5_000);
}

#[test]
fn one_removal_of_a_rack_goes_round_at_most_however_often_it_is_said() {
    let mut beside = Beside::new();
    (0..NODES).for_each(|node| beside.step(Step::Idle(node)).expect("a word"));
    for _ in 0..100 {
        for node in 0..NODES {
            beside.step(Step::Idle(node)).expect("a word");
            beside.step(Step::Busy(node)).expect("a word");
        }
    }
    assert_eq!(beside.round.len(), usize::from(NODES));
    beside.ends();
}

#[test]
fn a_removal_fits_into_what_a_packet_carries_round() {
    let most = NODES_ROUND_MAX;
    let leaving = RackRemoval { pool: u16::MAX, node: most, number: NUMBER_MAX, going: RemovalStep::Waits };
    assert_eq!(RackRemoval::of(leaving.memo()), leaving);
    let going = RemovalStep::Closes { last: most - 1, held: most };
    let leaving = RackRemoval { pool: 1, node: 7, number: 5, going };
    assert_eq!(RackRemoval::of(leaving.memo()), leaving);
}
