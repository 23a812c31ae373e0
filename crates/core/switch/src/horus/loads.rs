//! How many tasks are before each node (Horus §3.3, Algorithm 2, A.1): the *load* that it told last, and
//! the *drift*, what was sent to it since.
//!
//! Loads and drifts stand in two arrays each, so that one pass can look at two nodes. The pass decides by
//! the loads, and then increments the drift of the node that it chose. If it sees at the drifts that the
//! other node may be the better one, it is behind the loads' stage already, and the task recirculates once.

use crate::pipeline::{Layout, Pass, Register};

/// The stages of the arrays. The drifts have to stand behind the loads, and the second drift behind the
/// first.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadStages {
    pub(super) loads: u8,
    pub(super) drifts: [u8; 2],
}

/// The loads and drifts of all pools by node: in tasks, or in averages in fixed point.
#[derive(Debug)]
pub(super) struct Loads {
    nodes: u16,
    writes: bool,
    told: [Register<u32>; 2],
    drifts: [Register<u32>; 2],
}

/// A node that may get a task, and the amount that the task adds there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) node: u16,
    /// 1 where tasks are counted; the node's share of an average where averages are.
    pub(super) adds: u32,
}

/// The chosen node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Better {
    pub(super) node: u16,
    /// The queue before it, without this task.
    pub(super) queue: u32,
    /// Whether a second pass has to note the task; otherwise this pass did.
    pub(super) goes_round: bool,
}

impl Loads {
    /// All zero. With `writes` the second pass writes the load anew and clears the drift (A.1).
    pub(super) fn new(layout: &mut Layout, at: LoadStages, pools: u16, nodes: u16, writes: bool) -> Self {
        let cells = pools as usize * nodes as usize;
        let mut array = |name, stage| Register::new(layout, name, stage, 32, cells, 0);
        let told = [array("loads 0", at.loads), array("loads 1", at.loads)];
        let drifts = [array("drifts 0", at.drifts[0]), array("drifts 1", at.drifts[1])];
        Self { nodes, writes, told, drifts }
    }

    const fn cell(&self, pool: u16, node: u16) -> usize {
        pool as usize * self.nodes as usize + node as usize
    }

    /// The better of two nodes; of two equal ones the first.
    pub(super) fn choose(&mut self, pass: &mut Pass, pool: u16, nodes: [Candidate; 2]) -> Better {
        let [first, second] = [0, 1].map(|copy| {
            let cell = self.cell(pool, nodes[copy].node);
            (self.told[copy].read(pass, cell), nodes[copy])
        });
        let ((load, Candidate { node, adds }), (other_load, other)) =
            if second.0 < first.0 { (second, first) } else { (first, second) };
        let is_sure = |drift: u32| drift <= other_load - load;
        let more = |drift: u32| drift.saturating_add(adds);
        let cell = self.cell(pool, node);
        let drift = self.drifts[0].branch(pass, cell, is_sure, more, |drift| drift);
        let queue = load.saturating_add(drift);
        if is_sure(drift) {
            self.drifts[1].update(pass, cell, more);
            return Better { node, queue, goes_round: false };
        }
        let other = other.node;
        let other_drift = self.drifts[1].read(pass, self.cell(pool, other));
        let other_queue = other_load.saturating_add(other_drift);
        let (node, queue) = if other_queue < queue { (other, other_queue) } else { (node, queue) };
        Better { node, queue, goes_round: true }
    }

    /// The node that told the smaller load; of two equal ones the first. Nothing is counted.
    pub(super) fn lesser(&mut self, pass: &mut Pass, pool: u16, nodes: [Candidate; 2]) -> Better {
        let [first, second] =
            [0, 1].map(|copy| self.told[copy].read(pass, self.cell(pool, nodes[copy].node)));
        let (queue, Candidate { node, .. }) =
            if second < first { (second, nodes[1]) } else { (first, nodes[0]) };
        Better { node, queue, goes_round: false }
    }

    /// The second pass: notes a task at the chosen node, which had `queue` before it. Returns by how much
    /// the queue known to be before the node grows.
    pub(super) fn note(&mut self, pass: &mut Pass, pool: u16, at: Candidate, queue: u32) -> i64 {
        let Candidate { node, adds } = at;
        let (cell, writes) = (self.cell(pool, node), self.writes);
        let more = |load: u32| (if writes { queue } else { load }).saturating_add(adds);
        let load = update_both(&mut self.told, pass, cell, more);
        let drift = if writes { self.settled(pass, pool, node) } else { 0 };
        i64::from(more(load)) - i64::from(load) - i64::from(drift)
    }

    /// Counts a task that the node got for another reason than its load; returns the queue before it.
    pub(super) fn drift(&mut self, pass: &mut Pass, pool: u16, at: Candidate) -> u32 {
        let cell = self.cell(pool, at.node);
        update_both(&mut self.drifts, pass, cell, |drift| drift.saturating_add(at.adds))
    }

    /// Writes the load that a node told, and returns the load before. [`Loads::settled`] has to follow in
    /// the same pass.
    #[inline]
    pub(super) fn told(&mut self, pass: &mut Pass, pool: u16, node: u16, load: u32) -> u32 {
        let cell = self.cell(pool, node);
        update_both(&mut self.told, pass, cell, |_| load)
    }

    /// Clears the drift of a node, since the load that it told includes it; returns the drift before.
    #[inline]
    pub(super) fn settled(&mut self, pass: &mut Pass, pool: u16, node: u16) -> u32 {
        let cell = self.cell(pool, node);
        update_both(&mut self.drifts, pass, cell, |_| 0)
    }

    /// Called by the control software: the queue known to be before this node.
    pub(super) fn queue(&self, pool: u16, node: u16) -> u32 {
        let cell = self.cell(pool, node);
        self.told[0].peek(cell).saturating_add(self.drifts[0].peek(cell))
    }

    /// Called by the control software: sets the queue before this node to zero.
    pub(super) fn clear(&mut self, pool: u16, node: u16) {
        let cell = self.cell(pool, node);
        self.told.iter_mut().chain(&mut self.drifts).for_each(|array| array.poke(cell, 0));
    }
}

/// Writes a word in both of its arrays; returns the word before.
#[inline]
fn update_both(
    arrays: &mut [Register<u32>; 2],
    pass: &mut Pass,
    cell: usize,
    with: impl Fn(u32) -> u32,
) -> u32 {
    let [first, second] = arrays;
    let before = first.update(pass, cell, &with);
    second.update(pass, cell, with);
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: LoadStages = LoadStages { loads: 2, drifts: [5, 6] };

    /// Four nodes of one pool with these loads and drifts.
    fn loads(writes: bool, of: [(u32, u32); 4]) -> Loads {
        let mut loads = Loads::new(&mut Layout::new("test"), AT, 1, 4, writes);
        for (node, (load, drift)) in of.into_iter().enumerate() {
            loads.told.iter_mut().for_each(|array| array.poke(node, load));
            loads.drifts.iter_mut().for_each(|array| array.poke(node, drift));
        }
        loads
    }

    fn of(loads: &Loads, node: usize) -> (u32, u32) {
        let [load, drift] =
            [&loads.told, &loads.drifts].map(|arrays| [0, 1].map(|copy| arrays[copy].peek(node)));
        assert_eq!((load[0], drift[0]), (load[1], drift[1]), "both copies are the same");
        (load[0], drift[0])
    }

    fn choose(loads: &mut Loads, nodes: [u16; 2]) -> Better {
        loads.choose(&mut Pass::begin("test"), 0, nodes.map(one))
    }

    fn note(loads: &mut Loads, pick: Better) {
        loads.note(&mut Pass::begin("test"), 0, one(pick.node), pick.queue);
    }

    const fn one(node: u16) -> Candidate {
        Candidate { node, adds: 1 }
    }

    /// The example of A.1: node 0 told 3 and was sent 3 since, node 2 told 4 and was sent 1 since.
    const EXAMPLE: [(u32, u32); 4] = [(3, 3), (9, 9), (4, 1), (9, 9)];

    #[test]
    fn the_papers_example_goes_round_and_takes_the_other_node() {
        for (writes, node_2) in [(false, (5, 1)), (true, (6, 0))] {
            let mut loads = loads(writes, EXAMPLE);
            let pick = choose(&mut loads, [0, 2]);
            assert_eq!(pick, Better { node: 2, queue: 5, goes_round: true }, "6 tasks against 5");
            assert_eq!(
                [0, 2].map(|node| of(&loads, node)),
                [(3, 3), (4, 1)],
                "the first pass changes nothing"
            );
            note(&mut loads, pick);
            assert_eq!([0, 2].map(|node| of(&loads, node)), [(3, 3), node_2], "A.1 writes: {writes}");
        }
    }

    #[test]
    fn a_drift_up_to_the_difference_is_counted_up_and_nothing_goes_round() {
        let mut loads = loads(false, [(3, 0), (5, 0), (0, 0), (0, 0)]);
        for sent in 0..3 {
            let pick = choose(&mut loads, [1, 0]);
            assert_eq!(pick, Better { node: 0, queue: 3 + sent, goes_round: false });
        }
        assert_eq!((of(&loads, 0), of(&loads, 1)), ((3, 3), (5, 0)));
        assert_eq!(choose(&mut loads, [1, 0]), Better { node: 1, queue: 5, goes_round: true });
    }

    #[test]
    fn who_is_compared_with_itself_gets_the_task() {
        let mut loads = loads(false, [(3, 1), (0, 0), (0, 0), (0, 0)]);
        let pick = choose(&mut loads, [0, 0]);
        assert_eq!(pick, Better { node: 0, queue: 4, goes_round: true });
        note(&mut loads, pick);
        assert_eq!(of(&loads, 0), (4, 1));
    }

    #[test]
    fn what_a_node_tells_takes_the_place_of_what_was_counted() {
        let mut loads = loads(false, EXAMPLE);
        let pass = &mut Pass::begin("test");
        loads.told(pass, 0, 0, 2);
        loads.settled(pass, 0, 0);
        assert_eq!(of(&loads, 0), (2, 0));
        assert_eq!(loads.drift(&mut Pass::begin("test"), 0, one(2)), 1);
        assert_eq!(of(&loads, 2), (4, 2));
        loads.clear(0, 2);
        assert_eq!(of(&loads, 2), (0, 0));
    }

    /// Only in the reading of A.1: the second pass writes what the first one saw, and so undoes what came
    /// between.
    #[test]
    fn a_load_that_is_written_anew_forgets_what_came_between_the_passes() {
        for (writes, node_2) in [(false, (1, 0)), (true, (6, 0))] {
            let mut loads = loads(writes, EXAMPLE);
            let pick = choose(&mut loads, [0, 2]);
            let pass = &mut Pass::begin("test");
            loads.told(pass, 0, 2, 0);
            loads.settled(pass, 0, 2);
            note(&mut loads, pick);
            assert_eq!(of(&loads, 2), node_2, "A.1 writes: {writes}");
        }
    }
}
