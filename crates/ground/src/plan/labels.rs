//! What tasks need and workers have: labels, and who serves whom by them.

use std::collections::BTreeSet;

use sluice_wire::serving::{Labels, Serving, ServingError};
use sluice_wire::tables::KINDS_MAX;

use super::parts::{Plan, SlicePlan};

/// How several labels are written as one word.
const JOIN: char = '+';
/// What is written where there is no label.
const NONE: &str = "none";

/// Reads `gpu+ssd`, or `none`.
pub(super) fn set(text: &str) -> Result<Vec<String>, String> {
    if text == NONE {
        return Ok(Vec::new());
    }
    let each = text.split(JOIN).map(|label| {
        sluice_control::check_name(label).map_err(|why| format!("a label: {why}"))?;
        if label == NONE { Err(format!("`{NONE}` is no label")) } else { Ok(label.to_owned()) }
    });
    each.collect()
}

/// Writes what [`set`] reads.
pub(super) fn set_text(labels: &[String]) -> String {
    if labels.is_empty() { NONE.to_owned() } else { labels.join(&JOIN.to_string()) }
}

impl Plan {
    /// All labels that it names, in their order.
    pub fn labels(&self) -> Vec<String> {
        let needed = self.slices.iter().flat_map(|slice| &slice.needs).flat_map(|(_, labels)| labels);
        let kinds = self.slices.iter().flat_map(|slice| &slice.kinds).flatten();
        let had = self.workers.iter().flat_map(|worker| &worker.labels);
        needed.chain(kinds).chain(had).cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The bits of these labels.
    pub fn label_bits(&self, labels: &[String]) -> Labels {
        let all = self.labels();
        let bit = |label: &String| all.iter().position(|known| known == label).map_or(0, |place| 1 << place);
        Labels(labels.iter().fold(0, |bits, label| bits | bit(label)))
    }

    /// Who serves whom in a slice: workers of the kinds that it names, else of those that the plan has there,
    /// else of one for each need.
    ///
    /// # Errors
    /// What nobody serves, or more than can be told apart.
    pub fn serving(&self, slice: &SlicePlan) -> Result<Serving, String> {
        if slice.needs.is_empty() {
            return Ok(Serving::default());
        }
        let needed =
            |name: &String| slice.needs.iter().find(|(of, _)| of == name).map(|(_, labels)| &labels[..]);
        let needs: Vec<Labels> =
            slice.types.iter().map(|name| self.label_bits(needed(name).unwrap_or_default())).collect();
        let workers = self.workers.iter().filter(|worker| worker.slice == slice.name);
        let own: Vec<Labels> = workers.map(|worker| self.label_bits(&worker.labels)).collect();
        let named: Vec<Labels> = slice.kinds.iter().map(|kind| self.label_bits(kind)).collect();
        let has = [named, own, needs.clone()].into_iter().find(|sets| !sets.is_empty());
        // A wish that nobody meets is none that has to be met.
        let has = [has.unwrap_or_default(), if slice.wished { needs.clone() } else { Vec::new() }].concat();
        let serving = Serving::of(&needs, &has).map_err(|why| self.serving_refused(slice, why))?;
        Ok(if slice.wished { serving.wished() } else { serving })
    }

    fn serving_refused(&self, slice: &SlicePlan, why: ServingError) -> String {
        let name = &slice.name;
        match why {
            ServingError::Nobody => format!("slice `{name}` has needs and no types: name its types"),
            ServingError::TooManyClasses => format!(
                "the types of slice `{name}` need more than {KINDS_MAX} different sets of labels, and \
                 no more are told apart: let some need the same"
            ),
            ServingError::TooManyKinds => format!(
                "slice `{name}` has more than {KINDS_MAX} kinds of workers, and no more are told apart: give \
                 some the same labels"
            ),
            ServingError::Unserved(needs) => {
                let all = self.labels();
                let lacks = all.into_iter().enumerate().filter(|(bit, _)| needs.have(Labels(1 << bit)));
                let lacks: Vec<String> = lacks.map(|(_, label)| label).collect();
                format!(
                    "slice `{name}` has tasks that need {}, and no kind of workers that has it: give a \
                     [[worker]] of it these `labels`",
                    set_text(&lacks)
                )
            }
        }
    }
}

/// Labels fit the switch, name what is there, and are asked for where a policy looks at them.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    let labels = plan.labels();
    if labels.len() > Labels::MAX {
        return Err(format!("{} labels are more than {}: leave some out", labels.len(), Labels::MAX));
    }
    for slice in &plan.slices {
        for (name, _) in &slice.needs {
            if !slice.types.contains(name) {
                let known: Vec<&str> = slice.types.iter().map(String::as_str).collect();
                let why = sluice_units::unknown("type", name, &known);
                return Err(format!("needs of slice `{}`: {why}", slice.name));
            }
        }
        let serving = plan.serving(slice)?;
        if serving != Serving::default() && !serving.is_wished() && plan.program().kinds() == 1 {
            return Err(format!(
                "slice `{}` has tasks that not every worker serves, and `{}` gives any task to any worker: \
                 take `rain:2,labels`",
                slice.name, plan.policy
            ));
        }
        for worker in plan.workers.iter().filter(|worker| worker.slice == slice.name) {
            if serving.kind_of(plan.label_bits(&worker.labels)).is_none() {
                let kinds: Vec<String> = slice.kinds.iter().map(|kind| set_text(kind)).collect();
                return Err(format!(
                    "worker `{}` has labels {}, and slice `{}` names the kinds {}: name its kind, too",
                    worker.name,
                    set_text(&worker.labels),
                    slice.name,
                    kinds.join(", ")
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "policy = \"rain:1,labels\"\n[[slice]]\nname = \"main\"\ntypes = [\"get\", \"scan\"]\n\
        needs = [\"scan=gpu\"]\n";
    const WORKERS: &str = "[[worker]]\nname = \"fast\"\nslice = \"main\"\nservice = \"hold\"\n\
        labels = [\"gpu\", \"ssd\"]\n[[worker]]\nname = \"w\"\nslice = \"main\"\nservice = \"hold\"\n";

    fn plan(text: &str) -> Plan {
        Plan::from_text("here", text).unwrap_or_else(|why| panic!("{why}"))
    }

    fn refused(text: &str) -> String {
        Plan::from_text("here", text).expect_err("it makes no sense").to_string()
    }

    #[test]
    fn kinds_are_those_of_the_plans_workers_those_that_are_named_or_one_for_each_need() {
        let kinds = |text: &str| {
            let plan = plan(text);
            let serving = plan.serving(&plan.slices[0]).expect("all are served");
            (plan.labels(), serving.kinds().iter().map(|kind| kind.0).collect::<Vec<_>>())
        };
        let labels = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(kinds(&(PLAN.to_owned() + WORKERS)), (labels(&["gpu", "ssd"]), vec![0, 3]));
        assert_eq!(kinds(PLAN), (labels(&["gpu"]), vec![0, 1]));
        let named = PLAN.to_owned() + "kinds = [\"gpu+tpu\", \"none\", \"tpu\"]\n";
        assert_eq!(kinds(&named), (labels(&["gpu", "tpu"]), vec![0, 2, 3]));
    }

    #[test]
    fn what_nobody_can_serve_or_asks_for_is_refused_with_what_would_help() {
        let worker = WORKERS.replace(", \"ssd\"", "").replace("gpu", "ssd");
        let why = refused(&(PLAN.to_owned() + &worker));
        assert!(why.contains("slice `main` has tasks that need gpu") && why.contains("[[worker]]"), "{why}");
        let why = refused(&PLAN.replace(",labels", ""));
        assert!(why.contains("`rain:1` gives any task to any worker: take `rain:2,labels`"), "{why}");
        let why = refused(&PLAN.replace("scan=gpu", "scam=gpu"));
        assert!(why.contains("did you mean `scan`"), "{why}");
        let why = refused(&(PLAN.to_owned() + "kinds = [\"gpu\"]\n" + WORKERS));
        assert!(why.contains("worker `w` has labels none, and slice `main` names the kinds gpu"), "{why}");
        let many = PLAN.replace("scan=gpu", "scan=a+b+c+d+e+f+g+h+i");
        assert!(refused(&many).contains("9 labels are more than 8"));
        assert!(refused(&PLAN.replace("scan=gpu", "scan=")).contains("a label"));
        assert!(refused(&PLAN.replace("scan=gpu", "scan")).contains("TYPE=LABEL"));
    }

    #[test]
    fn wishes_bind_nobody_and_run_under_any_policy() {
        let wished = PLAN.replace("rain:1,labels", "rain:1") + "wished = true\n";
        let plan = plan(&wished);
        assert!(plan.serving(&plan.slices[0]).expect("all are served").is_wished());
    }
}
