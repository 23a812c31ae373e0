//! Labels as people write them, in plans of live racks and in testbeds of simulated racks: their names,
//! their bits, and which worker serves which task by them.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sluice_wire::serving::{Labels, Serving, ServingError};
use sluice_wire::tables::KINDS_MAX;

use crate::name::check_name;

/// The character between labels that are written as one word.
const JOIN: char = '+';
/// The word for no labels.
const NONE: &str = "none";

/// All labels that a plan names, sorted; the order gives their bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelNames(Vec<String>);

/// A slice's labels, from which follows which worker serves which task there.
#[derive(Clone, Debug, Default)]
pub struct SliceLabels {
    /// The slice's name in error messages.
    pub called: String,
    /// The labels that each of its types needs.
    pub needs: Vec<Labels>,
    /// The kinds of workers that the plan names; if it names none, those of the known workers count.
    pub named: Vec<Labels>,
    /// The labels of the known workers.
    pub workers: Vec<Labels>,
    /// Whether its tasks only wish for their labels.
    pub wished: bool,
    /// How to give a worker labels, for error messages such as "give a worker these labels".
    pub give: String,
}

impl LabelNames {
    /// The labels of a plan; the same name may come several times.
    pub fn of(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// All labels, in the order of their bits.
    pub fn all(&self) -> &[String] {
        &self.0
    }

    /// The bits of these labels.
    pub fn bits(&self, labels: &[String]) -> Labels {
        let bit = |label: &String| self.0.iter().position(|known| known == label);
        Labels(labels.iter().filter_map(bit).fold(0, |bits, place| bits | 1 << place))
    }

    /// The labels of these bits, as [`read_labels`] reads them.
    pub fn written(&self, labels: Labels) -> String {
        write_labels(&self.of_bits(labels))
    }

    /// The labels of these bits.
    pub fn of_bits(&self, labels: Labels) -> Vec<String> {
        let names = self.0.iter().enumerate().filter(|(bit, _)| labels.have(Labels(1 << bit)));
        names.map(|(_, name)| name.clone()).collect()
    }

    /// Checks that there are bits for all labels.
    ///
    /// # Errors
    /// One line that says what helps.
    pub fn check(&self) -> Result<(), String> {
        let count = self.0.len();
        if count <= Labels::MAX {
            return Ok(());
        }
        Err(format!("{count} labels are more than {}: leave some out", Labels::MAX))
    }

    /// Which worker serves which task in a slice. The workers are those of the named kinds, else the known
    /// ones, else one for each need.
    ///
    /// # Errors
    /// One line, for tasks that no worker serves, or for more kinds than can be told apart.
    pub fn serving(&self, of: &SliceLabels) -> Result<Serving, String> {
        let has = [&of.named, &of.workers, &of.needs].into_iter().find(|sets| !sets.is_empty());
        let mut has = has.cloned().unwrap_or_default();
        // A wish that no worker meets must not refuse its tasks.
        if of.wished {
            has.extend(&of.needs);
        }
        let serving = Serving::of(&of.needs, &has).map_err(|why| self.refused(of, why))?;
        Ok(if of.wished { serving.wished() } else { serving })
    }

    fn refused(&self, of: &SliceLabels, why: ServingError) -> String {
        let SliceLabels { called, give, .. } = of;
        match why {
            ServingError::Nobody => format!("{called} has needs and no types: name its types"),
            ServingError::TooManyClasses => format!(
                "the types of {called} need more than {KINDS_MAX} different sets of labels, and \
                 no more are told apart: let some need the same"
            ),
            ServingError::TooManyKinds => format!(
                "{called} has more than {KINDS_MAX} kinds of workers, and no more are told apart: give \
                 some the same labels"
            ),
            ServingError::Unserved(needs) => format!(
                "{called} has tasks that need {}, and no kind of workers that has it: {give}",
                self.written(needs)
            ),
        }
    }
}

/// Reads `gpu+ssd`, or `none`.
///
/// # Errors
/// One line that says which part is no label.
pub fn read_labels(text: &str) -> Result<Vec<String>, String> {
    if text == NONE {
        return Ok(Vec::new());
    }
    let each = text.split(JOIN).map(|label| {
        check_label(label)?;
        Ok(label.to_owned())
    });
    each.collect()
}

/// Checks that a word can be a label.
///
/// # Errors
/// One line that says why it cannot.
pub fn check_label(label: &str) -> Result<(), String> {
    check_name(label).map_err(|why| format!("a label: {why}"))?;
    match label {
        NONE => Err(format!("`{NONE}` is no label")),
        _ if label.contains(JOIN) => Err(format!("a label: `{label}` holds `{JOIN}`, which joins labels")),
        _ => Ok(()),
    }
}

/// Writes labels as [`read_labels`] reads them.
pub fn write_labels(labels: &[String]) -> String {
    if labels.is_empty() { NONE.to_owned() } else { labels.join(&JOIN.to_string()) }
}

/// Reads `train=gpu+ssd`: a type, and the labels that its tasks need.
///
/// # Errors
/// One line that says which part has another form.
pub fn read_needs(text: &str) -> Result<(&str, Vec<String>), String> {
    let (name, labels) = text
        .rsplit_once('=')
        .ok_or_else(|| format!("`{text}` is not of the form TYPE=LABEL or TYPE=LABEL+LABEL"))?;
    Ok((name, read_labels(labels)?))
}

/// Checks that a policy tells as many `kinds` of workers apart as the slice needs. A policy that gives any
/// task to any worker must not run where some workers do not serve some tasks.
///
/// # Errors
/// One line that says what helps.
pub fn check_told_apart(called: &str, serving: &Serving, kinds: u8, policy: &str) -> Result<(), String> {
    if *serving == Serving::default() || serving.is_wished() || kinds > 1 {
        return Ok(());
    }
    Err(format!(
        "{called} has tasks that not every worker serves, and `{policy}` gives any task to any worker: take \
         `rain:2,labels` or `draconis:labels`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> LabelNames {
        LabelNames::of(all.iter().map(|name| (*name).to_owned()))
    }

    fn slice(needs: &[u8], workers: &[u8]) -> SliceLabels {
        let sets = |bits: &[u8]| bits.iter().map(|bits| Labels(*bits)).collect();
        SliceLabels {
            called: "it".to_owned(),
            needs: sets(needs),
            workers: sets(workers),
            ..SliceLabels::default()
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let known = names(&["ssd", "gpu", "ssd"]);
        assert_eq!(known.all(), ["gpu", "ssd"]);
        for (text, bits) in [("none", 0), ("gpu", 1), ("ssd", 2), ("gpu+ssd", 3)] {
            let labels = read_labels(text).expect("labels");
            assert_eq!((known.bits(&labels), known.written(Labels(bits))), (Labels(bits), text.to_owned()));
            assert_eq!(write_labels(&labels), text);
        }
        assert_eq!(read_needs("a=b=gpu+ssd"), Ok(("a=b", read_labels("gpu+ssd").expect("labels"))));
        for wrong in ["gpu", "a=", "a=gpu+none", "a=g p u"] {
            assert!(read_needs(wrong).is_err_and(|why| !why.contains('\n')), "{wrong}");
        }
    }

    #[test]
    fn kinds_are_the_named_ones_else_the_workers_else_one_for_each_need() {
        let known = names(&["gpu", "ssd"]);
        let kinds = |of: &SliceLabels| known.serving(of).map(|serving| serving.kinds().to_vec());
        assert_eq!(kinds(&slice(&[0, 1], &[])), Ok([0, 1].map(Labels).to_vec()));
        assert_eq!(kinds(&slice(&[0, 1], &[3, 0])), Ok([0, 3].map(Labels).to_vec()));
        let named = SliceLabels { named: [2, 1].map(Labels).to_vec(), ..slice(&[0, 1], &[3, 0]) };
        assert_eq!(kinds(&named), Ok([1, 2].map(Labels).to_vec()));
        assert!(kinds(&slice(&[3], &[1, 2])).is_err_and(|why| why.contains("need gpu+ssd")));
        let wished = SliceLabels { wished: true, ..slice(&[3], &[1, 2]) };
        assert_eq!(kinds(&wished), Ok([1, 2, 3].map(Labels).to_vec()));
    }
}
