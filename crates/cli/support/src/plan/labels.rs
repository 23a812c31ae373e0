//! Labels of tasks and workers, and which workers can serve which tasks.

use sluice_control::{LabelNames, SliceLabels, check_told_apart, write_labels};
use sluice_testbed::LabelNeed;
use sluice_wire::serving::{Labels, Serving};

use super::parts::{Plan, SlicePlan};

impl Plan {
    /// All labels that the plan names.
    pub fn label_names(&self) -> LabelNames {
        let needed = self.slices.iter().flat_map(|slice| &slice.needs).flat_map(|need| &need.labels);
        let kinds = self.slices.iter().flat_map(|slice| &slice.kinds).flatten();
        let had = self.workers.iter().flat_map(|worker| &worker.labels);
        LabelNames::of(needed.chain(kinds).chain(had).cloned())
    }

    /// Which workers can serve which tasks in a slice.
    ///
    /// # Errors
    /// A task that no worker can serve, or more kinds than the switch can distinguish.
    pub fn serving(&self, slice: &SlicePlan) -> Result<Serving, String> {
        if slice.needs.is_empty() {
            return Ok(Serving::default());
        }
        let names = self.label_names();
        let needed = |name: &String| slice.needs.iter().find(|of| of.class == *name).map(|of| &of.labels[..]);
        let workers = self.workers.iter().filter(|worker| worker.slice == slice.name);
        let bits = |labels: &[String]| -> Labels { names.bits(labels) };
        names.serving(&SliceLabels {
            called: called(slice),
            needs: slice.types.iter().map(|name| bits(needed(name).unwrap_or_default())).collect(),
            named: slice.kinds.iter().map(|kind| bits(kind)).collect(),
            workers: workers.map(|worker| bits(&worker.labels)).collect(),
            wished: slice.wished,
            give: "give a [[worker]] of it these `labels`".to_owned(),
        })
    }
}

/// A slice's name in error messages.
fn called(slice: &SlicePlan) -> String {
    format!("slice `{}`", slice.name)
}

/// Checks that the labels fit the switch, exist, and are used only with a policy that supports them.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    let names = plan.label_names();
    names.check()?;
    for slice in &plan.slices {
        for LabelNeed { class: name, .. } in &slice.needs {
            if !slice.types.contains(name) {
                let known: Vec<&str> = slice.types.iter().map(String::as_str).collect();
                let why = sluice_units::unknown("type", name, &known);
                return Err(format!("needs of slice `{}`: {why}", slice.name));
            }
        }
        let serving = plan.serving(slice)?;
        check_told_apart(&called(slice), &serving, plan.program().traits().kinds, &plan.policy)?;
        for worker in plan.workers.iter().filter(|worker| worker.is_of(&slice.name)) {
            if serving.kind_of(names.bits(&worker.labels)).is_none() {
                let kinds: Vec<String> = slice.kinds.iter().map(|kind| write_labels(kind)).collect();
                return Err(format!(
                    "worker `{}` has labels {}, and slice `{}` names the kinds {}: name its kind, too",
                    worker.name,
                    write_labels(&worker.labels),
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
            (plan.label_names().all().to_vec(), serving.kinds().iter().map(|kind| kind.0).collect::<Vec<_>>())
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
