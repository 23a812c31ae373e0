//! Which worker serves which task on a rack, by the labels of its testbed.

use std::ops::Range;

use sluice_control::{LabelNames, SliceLabels};
use sluice_units as text;
use sluice_wire::TaskType;
use sluice_wire::serving::{Labels, Serving};
use sluice_workload::Class;

use crate::Testbed;

/// The labels of a rack's workers and tasks, and the table of kinds and classes in each slice.
#[derive(Clone, Debug)]
pub struct LabelCompatibility {
    pub names: LabelNames,
    /// The labels of each worker, by number.
    pub has: Vec<Labels>,
    /// The labels that tasks of a type need; types without an entry need none.
    pub needs: Vec<(TaskType, Labels)>,
    /// The slices, in order.
    pub slices: Vec<SliceCompatibility>,
}

/// Which worker serves which task in a slice.
#[derive(Clone, Debug)]
pub struct SliceCompatibility {
    /// The slice's name in error messages.
    pub called: String,
    /// Which kinds of workers serve which classes of tasks.
    pub serving: Serving,
    workers: Range<usize>,
}

/// A slice's name, if there are several slices, and how many workers it has.
pub type Sliced<'p> = (Option<&'p str>, u32);

impl LabelCompatibility {
    /// The labels of a testbed whose slices have so many workers and these classes; `None` if it has no
    /// labels.
    pub fn of(
        testbed: &Testbed,
        classes: &[Class],
        slices: &[Sliced<'_>],
        slice_of: impl Fn(&Class) -> usize,
    ) -> Result<Option<Self>, String> {
        let plan = &testbed.labels;
        if plan.is_none() {
            return Ok(None);
        }
        let names = plan.names();
        let mut needs: Vec<(TaskType, Labels)> = Vec::new();
        for need in &plan.needs {
            let class = classes.iter().find(|class| class.name == need.class).ok_or_else(|| {
                let known = classes.iter().map(|class| class.name.as_str());
                format!("labels.needs: {}", text::unknown("class", &need.class, known))
            })?;
            needs.push((class.task_type, names.bits(&need.labels)));
        }
        let has: Vec<Labels> = plan.of_workers(testbed.workers).map(|labels| names.bits(labels)).collect();
        let mut suits = Self { names, has, needs, slices: Vec::new() };
        suits.check_types(testbed, classes)?;
        for (index, (name, count)) in slices.iter().enumerate() {
            let first = suits.slices.last().map_or(0, |slice| slice.workers.end);
            let workers = first..(first + *count as usize).min(suits.has.len());
            let here = classes.iter().filter(|class| slice_of(class) == index);
            let of = suits.slice(testbed, *name, workers, here)?;
            suits.slices.push(of);
        }
        Ok(Some(suits))
    }

    /// The labels that tasks of a type need.
    pub fn needs_of(&self, task_type: TaskType) -> Labels {
        self.needs.iter().find(|(of, _)| *of == task_type).map_or(Labels::NONE, |(_, needs)| *needs)
    }

    /// The highest rate, per second, at which for every set of classes the workers that serve them have
    /// time for all their tasks. `work_ns` is each class's time per task of the whole workload.
    pub fn rate_max_per_s(
        &self,
        classes: &[Class],
        slice_of: impl Fn(&Class) -> usize,
        work_ns: impl Fn(&Class) -> f64,
    ) -> f64 {
        let of_slice = |(index, slice): (usize, &SliceCompatibility)| {
            let mut work = vec![0.0; slice.serving.classes().len()];
            for class in classes.iter().filter(|class| slice_of(class) == index) {
                let place = slice.serving.class_of(self.needs_of(class.task_type)).unwrap_or_default();
                work[usize::from(place)] += work_ns(class);
            }
            let kinds = self.has[slice.workers.clone()].iter().map(|has| slice.serving.kind_of(*has));
            let serves: Vec<u8> =
                kinds.map(|kind| kind.map_or(0, |kind| slice.serving.serves(kind))).collect();
            let sets = 1..1_u8 << work.len();
            let rate = |set: u8| {
                let able = serves.iter().filter(|serves| **serves & set != 0).count();
                let there = work.iter().enumerate().filter(|(place, _)| set >> place & 1 == 1);
                able as f64 * 1e9 / there.map(|(_, work_ns)| work_ns).sum::<f64>()
            };
            sets.map(rate).fold(f64::INFINITY, f64::min)
        };
        self.slices.iter().enumerate().map(of_slice).fold(f64::INFINITY, f64::min)
    }

    /// The switch knows types, not classes, so two classes of one type must need the same labels.
    fn check_types(&self, testbed: &Testbed, classes: &[Class]) -> Result<(), String> {
        let said = |class: &Class| {
            let need = testbed.labels.needs.iter().find(|need| need.class == class.name);
            need.map_or(Labels::NONE, |need| self.names.bits(&need.labels))
        };
        for (at, class) in classes.iter().enumerate() {
            let same = |other: &&Class| other.task_type == class.task_type && said(other) != said(class);
            if let Some(other) = classes[..at].iter().find(same) {
                return Err(format!(
                    "classes `{}` and `{}` are of one type and need different labels: change one's `type`",
                    other.name, class.name
                ));
            }
        }
        Ok(())
    }

    fn slice<'c>(
        &self,
        testbed: &Testbed,
        name: Option<&str>,
        workers: Range<usize>,
        here: impl Iterator<Item = &'c Class>,
    ) -> Result<SliceCompatibility, String> {
        let called = name.map_or_else(|| "the rack".to_owned(), |name| format!("slice `{name}`"));
        let needs: Vec<Labels> = here.map(|class| self.needs_of(class.task_type)).collect();
        let serving = if needs.iter().all(|needs| *needs == Labels::NONE) {
            Serving::default()
        } else {
            self.names.serving(&SliceLabels {
                called: called.clone(),
                needs,
                named: Vec::new(),
                workers: self.has[workers.clone()].to_vec(),
                wished: testbed.labels.wished,
                give: "give some of its [[labels.worker]] these `labels`".to_owned(),
            })?
        };
        Ok(SliceCompatibility { called, serving, workers })
    }
}
