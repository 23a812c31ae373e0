//! Which worker serves which task in a slice whose workers differ: the labels that tasks need, and the
//! labels that workers have.
//!
//! A worker serves the tasks that need no label which it lacks (`gpu`, `ssd`). Tasks that need the same
//! labels are a *class*, workers that have the same labels a *kind*. A switch tells four of each apart.

use crate::sizes::KINDS_MAX;

/// A set of a slice's labels, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(pub u8);

impl Labels {
    /// No label.
    pub const NONE: Self = Self(0);
    /// How many different labels a slice can have.
    pub const MAX: usize = u8::BITS as usize;

    /// Whether all labels of `others` are in this set.
    #[inline]
    pub const fn have(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    /// The union of both sets.
    #[must_use]
    #[inline]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// How many labels are in the set.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }
}

/// Different sets of labels, at most [`KINDS_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sets {
    sets: [Labels; KINDS_MAX],
    count: u8,
}

impl Sets {
    /// `None` if there are more sets than a switch tells apart.
    fn of(sets: &[Labels]) -> Option<Self> {
        let mut own = Self::default();
        for set in sets {
            if !own.all().contains(set) {
                *own.sets.get_mut(usize::from(own.count))? = *set;
                own.count += 1;
            }
        }
        Some(own)
    }

    fn all(&self) -> &[Labels] {
        &self.sets[..usize::from(self.count)]
    }

    fn sorted(mut self, key: impl Fn(Labels) -> (u32, u8)) -> Self {
        self.sets[..usize::from(self.count)].sort_unstable_by_key(|set| key(*set));
        self
    }

    /// A bit for each set for which `fits` holds.
    fn mask(self, fits: impl Fn(Labels) -> bool) -> u8 {
        self.all().iter().enumerate().filter(|(_, set)| fits(**set)).map(|(at, _)| 1 << at).sum()
    }

    const fn every(self) -> u8 {
        (1 << self.count) - 1
    }
}

/// The classes and kinds of a slice. Class 0 needs most, and kind 0 has least. So a worker looks first for
/// tasks that few others can serve, and a task takes a worker that is of least use to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    needs: Sets,
    has: Sets,
    /// The classes whose needs each kind meets, and the kinds that meet each class's needs, one bit each. A
    /// switch looks them up in each pass.
    meets: Masks,
    met_by: Masks,
    wished: bool,
}

/// Four masks of four bits: small, since every pass reads the row that holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Masks(u16);

impl Masks {
    fn of(each: &[Labels], mask: impl Fn(Labels) -> u8) -> Self {
        let masks = each.iter().zip((0..).step_by(KINDS_MAX));
        Self(masks.map(|(of, shift)| u16::from(mask(*of)) << shift).sum())
    }

    /// Zero beyond the last mask.
    #[inline]
    const fn get(self, index: u8) -> u8 {
        let shift = index as u32 * KINDS_MAX as u32;
        if shift < u16::BITS { (self.0 >> shift) as u8 & 0xf } else { 0 }
    }
}

impl Default for Serving {
    /// One kind of workers, and one class that they serve.
    fn default() -> Self {
        let one = Sets { count: 1, ..Sets::default() };
        Self { needs: one, has: one, meets: Masks(1), met_by: Masks(1), wished: false }
    }
}

/// Why classes and kinds cannot be told from needs and labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServingError {
    /// There is no worker, or no task.
    Nobody,
    /// Tasks need more different sets of labels than a switch tells apart.
    TooManyClasses,
    /// Workers have more different sets of labels than a switch tells apart.
    TooManyKinds,
    /// No worker has all labels that these tasks need.
    Unserved(Labels),
}

impl Serving {
    /// The classes and kinds of these needs and labels, in any order; a set may come several times.
    ///
    /// # Errors
    /// [`ServingError`] if there are too many sets, or a class that no kind serves.
    pub fn of(needs: &[Labels], has: &[Labels]) -> Result<Self, ServingError> {
        if needs.is_empty() || has.is_empty() {
            return Err(ServingError::Nobody);
        }
        let needs = Sets::of(needs).ok_or(ServingError::TooManyClasses)?;
        let has = Sets::of(has).ok_or(ServingError::TooManyKinds)?;
        let served = |need: &&Labels| has.all().iter().any(|kind| kind.have(**need));
        if let Some(unserved) = needs.all().iter().find(|need| !served(need)) {
            return Err(ServingError::Unserved(*unserved));
        }
        let needs = needs.sorted(|set| (u32::MAX - set.count(), set.0));
        Ok(Self::told(needs, has.sorted(|set| (set.count(), set.0))))
    }

    /// The table for needs and kinds that are sorted already.
    fn told(needs: Sets, has: Sets) -> Self {
        let meets = Masks::of(has.all(), |kind| needs.mask(|class| kind.have(class)));
        let met_by = Masks::of(needs.all(), |class| has.mask(|kind| kind.have(class)));
        Self { needs, has, meets, met_by, wished: false }
    }

    /// The same table for tasks that only wish for their labels: any worker serves any task, and looks
    /// first for tasks whose wishes it meets (locality).
    #[must_use]
    pub const fn wished(self) -> Self {
        Self { wished: true, ..self }
    }

    /// Whether tasks only wish for their labels.
    pub const fn is_wished(&self) -> bool {
        self.wished
    }

    /// The labels that each class needs.
    pub fn classes(&self) -> &[Labels] {
        self.needs.all()
    }

    /// The labels that each kind has.
    pub fn kinds(&self) -> &[Labels] {
        self.has.all()
    }

    /// The class of a task: of the classes that need every label that the task needs, the one with the
    /// fewest labels. `None` if there is no such class.
    #[inline]
    pub fn class_of(&self, needs: Labels) -> Option<u8> {
        self.classes().iter().rposition(|class| class.have(needs)).map(|at| at as u8)
    }

    /// The kind of a worker: the one with the most labels among those that the worker has. `None` if every
    /// kind has a label that the worker lacks.
    pub fn kind_of(&self, has: Labels) -> Option<u8> {
        self.kinds().iter().rposition(|kind| has.have(*kind)).map(|at| at as u8)
    }

    /// The classes whose needs, or wishes, a kind meets, one bit each.
    #[inline]
    pub fn meets(&self, kind: u8) -> u8 {
        self.meets.get(kind)
    }

    /// The kinds that meet the needs, or wishes, of a class, one bit each.
    #[inline]
    pub fn met_by(&self, class: u8) -> u8 {
        self.met_by.get(class)
    }

    /// The classes that a kind serves, one bit each.
    #[inline]
    pub fn serves(&self, kind: u8) -> u8 {
        if self.wished { self.needs.every() } else { self.meets(kind) }
    }

    /// The kinds that serve a class, one bit each.
    #[inline]
    pub fn served_by(&self, class: u8) -> u8 {
        if self.wished { self.has.every() } else { self.met_by(class) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Labels = Labels(1);
    const SSD: Labels = Labels(2);
    const BOTH: Labels = Labels(3);

    #[test]
    fn who_needs_most_comes_first_and_who_has_least_is_taken_first() {
        let all = [Labels::NONE, GPU, SSD, BOTH];
        let serving =
            Serving::of(&[GPU, Labels::NONE, BOTH, SSD, GPU], &[BOTH, Labels::NONE, SSD, GPU]).unwrap();
        assert_eq!(serving.classes(), [BOTH, GPU, SSD, Labels::NONE]);
        assert_eq!(serving.kinds(), all);
        assert_eq!(all.map(|needs| serving.class_of(needs)), [3, 1, 2, 0].map(Some));
        assert_eq!(all.map(|has| serving.kind_of(has)), [0, 1, 2, 3].map(Some));
        assert_eq!([0, 1, 2, 3].map(|kind| serving.serves(kind)), [0b1000, 0b1010, 0b1100, 0b1111]);
        assert_eq!([0, 1, 2, 3].map(|class| serving.served_by(class)), [0b1000, 0b1010, 0b1100, 0b1111]);
    }

    #[test]
    fn a_task_joins_the_class_that_needs_least_more_and_a_worker_the_kind_that_has_least_less() {
        let serving = Serving::of(&[BOTH, Labels::NONE], &[Labels::NONE, BOTH]).unwrap();
        assert_eq!([Labels::NONE, GPU, BOTH].map(|needs| serving.class_of(needs)), [1, 0, 0].map(Some));
        assert_eq!([Labels::NONE, GPU, BOTH].map(|has| serving.kind_of(has)), [0, 0, 1].map(Some));
        assert_eq!(serving.class_of(Labels(4)), None, "nobody knows this label");
        let special = Serving::of(&[GPU], &[GPU]).unwrap();
        assert_eq!(special.kind_of(SSD), None);
        assert_eq!((special.serves(1), special.served_by(1)), (0, 0), "there is no second");
    }

    #[test]
    fn whose_wishes_are_not_met_is_served_all_the_same() {
        let serving = Serving::of(&[GPU, SSD], &[GPU, SSD]).unwrap().wished();
        assert_eq!(
            [0, 1].map(|kind| (serving.meets(kind), serving.serves(kind))),
            [(0b01, 0b11), (0b10, 0b11)]
        );
        assert_eq!(
            [0, 1].map(|class| (serving.met_by(class), serving.served_by(class))),
            [(0b01, 0b11), (0b10, 0b11)]
        );
    }

    #[test]
    fn what_nobody_can_serve_or_tell_apart_is_refused() {
        let sets = [0, 1, 2, 3, 4].map(Labels);
        assert_eq!(Serving::of(&[], &[GPU]), Err(ServingError::Nobody));
        assert_eq!(Serving::of(&sets, &[Labels(7)]), Err(ServingError::TooManyClasses));
        assert_eq!(Serving::of(&[GPU], &sets), Err(ServingError::TooManyKinds));
        assert_eq!(Serving::of(&[GPU, BOTH], &[GPU, SSD]), Err(ServingError::Unserved(BOTH)));
    }

    #[test]
    fn without_labels_all_serve_all() {
        let plain = Serving::default();
        assert_eq!(Ok(plain), Serving::of(&[Labels::NONE], &[Labels::NONE]));
        assert_eq!((plain.class_of(Labels::NONE), plain.kind_of(GPU)), (Some(0), Some(0)));
    }
}
