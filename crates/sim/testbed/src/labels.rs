//! The labels of a testbed's workers and the labels that tasks need, in the words of a live plan.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sluice_control::{LabelNames, check_label, read_needs, write_labels};

/// The labels that tasks need, or wish for, and that workers have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LabelPlan {
    /// The labels that tasks of a class need of their worker: `scan=gpu`, `scan=gpu+ssd`.
    pub needs: Vec<LabelNeed>,
    /// Whether tasks only prefer workers with their labels.
    pub wished: bool,
    /// Workers with their labels, in the order of the workers' numbers; later workers have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worker: Vec<LabelledWorkers>,
}

/// A class of tasks, and the labels that they need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelNeed {
    pub class: String,
    pub labels: Vec<String>,
}

/// So many workers with the same labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelledWorkers {
    #[serde(default = "one")]
    pub count: u32,
    #[serde(default)]
    pub labels: Vec<String>,
}

const fn one() -> u32 {
    1
}

impl LabelPlan {
    /// Whether there are no labels.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// All labels that the plan names.
    pub fn names(&self) -> LabelNames {
        let needed = self.needs.iter().flat_map(|need| &need.labels);
        let had = self.worker.iter().flat_map(|workers| &workers.labels);
        LabelNames::of(needed.chain(had).cloned())
    }

    /// The labels of each worker, by its number.
    pub fn of_workers(&self, workers: u32) -> impl Iterator<Item = &[String]> {
        let named = self.worker.iter();
        let named = named.flat_map(|same| std::iter::repeat_n(&same.labels[..], same.count as usize));
        named.chain(std::iter::repeat(&[][..])).take(workers as usize)
    }

    /// What is impossible on a rack of so many workers; `None` if nothing is.
    pub(super) fn complaint(&self, workers: u32) -> Option<String> {
        let counted: u64 = self.worker.iter().map(|same| u64::from(same.count)).sum();
        if counted > workers.into() {
            return Some(format!(
                "labels.worker counts {counted} workers, the testbed {workers}: lower a count"
            ));
        }
        if self.worker.iter().any(|same| same.count == 0) {
            return Some("labels.worker has count = 0: give 1 at least, or leave it out".to_owned());
        }
        let had: Vec<&String> = self.worker.iter().flat_map(|same| &same.labels).collect();
        if let Some(why) = had.iter().find_map(|label| check_label(label).err()) {
            return Some(format!("labels.worker: {why}"));
        }
        let needed = self.needs.iter().flat_map(|need| &need.labels);
        if let Some(label) = needed.into_iter().find(|label| !had.contains(label)) {
            return Some(format!(
                "labels.needs names `{label}`, and no worker has it: give it to some in [[labels.worker]]"
            ));
        }
        for (at, LabelNeed { class, .. }) in self.needs.iter().enumerate() {
            if self.needs[..at].iter().any(|other| other.class == *class) {
                return Some(format!("labels.needs names `{class}` twice: write TYPE=LABEL+LABEL once"));
            }
        }
        self.names().check().err()
    }
}

impl Serialize for LabelNeed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{}={}", self.class, write_labels(&self.labels)))
    }
}

impl<'de> Deserialize<'de> for LabelNeed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let (class, labels) = read_needs(&text).map_err(|why| D::Error::custom(format!("needs: {why}")))?;
        Ok(Self { class: class.to_owned(), labels })
    }
}

#[cfg(test)]
mod tests {
    use crate::Testbed;

    const TEXT: &str = "workers = 4\n[labels]\nneeds = [\"scan=gpu\"]\nwished = true\n[[labels.worker]]\n\
        count = 2\n[[labels.worker]]\nlabels = [\"gpu\", \"ssd\"]\n";

    #[test]
    fn workers_have_their_labels_in_the_order_of_their_numbers() {
        let testbed = Testbed::parse(TEXT).unwrap();
        let has: Vec<usize> = testbed.labels.of_workers(testbed.workers).map(<[String]>::len).collect();
        assert_eq!(has, [0, 0, 2, 0]);
        assert_eq!(testbed.labels.names().all(), ["gpu", "ssd"]);
        assert_eq!(Testbed::parse(&testbed.to_toml()).unwrap(), testbed);
    }

    #[test]
    fn a_testbed_without_labels_says_nothing_of_them() {
        assert!(!Testbed::rain().to_toml().contains("label"));
    }

    #[test]
    fn labels_that_cannot_be_are_refused_in_one_line_that_helps() {
        for (from, to, key) in [
            ("scan=gpu", "scan=tpu", "`tpu`, and no worker has it: give it to some in [[labels.worker]]"),
            ("scan=gpu", "scan", "TYPE=LABEL"),
            ("scan=gpu", "scan=g u", "the name `g u` holds"),
            ("\"scan=gpu\"", "\"scan=gpu\", \"scan=ssd\"", "names `scan` twice"),
            ("\"ssd\"", "\"gpu+ssd\"", "holds `+`"),
            ("\"ssd\"", "\"none\"", "`none` is no label"),
            ("count = 2", "count = 4", "counts 5 workers, the testbed 4"),
            ("count = 2", "count = 0", "count = 0"),
            ("count = 2", "cuont = 2", "did you mean `count`"),
            ("\"ssd\"", "\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\"", "9 labels are more than 8"),
        ] {
            let said = Testbed::parse(&TEXT.replace(from, to)).unwrap_err().to_string();
            assert!(said.contains(key) && !said.contains('\n'), "{from} → {to}: {said}");
        }
    }
}
