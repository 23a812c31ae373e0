//! The two kinds of plan: a rack for `sluice up`, and a study for `sluice reproduce`.

/// What a plan describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// Switch, slices, workers, load.
    Rack,
    /// Cases, and statements about them.
    Study,
}

/// Sections that only racks have.
const OF_RACKS: [&str; 9] = ["slice", "worker", "racks", "switch", "rdma", "rocksdb", "kv", "load", "event"];
const OF_STUDIES: [&str; 5] = ["case", "claim", "cause", "measure", "tolerance"];

impl PlanKind {
    /// The kind of plan in `text`, as far as its sections tell.
    pub fn of(text: &str) -> Option<Self> {
        let plan: toml::Table = toml::from_str(text).ok()?;
        let has = |sections: &[&str]| sections.iter().any(|section| plan.contains_key(*section));
        match (has(&OF_RACKS), has(&OF_STUDIES)) {
            (true, false) => Some(Self::Rack),
            (false, true) => Some(Self::Study),
            _ => None,
        }
    }

    /// Why the plan called `name`, which is of this kind, is not of the other kind, and how to use it.
    pub fn is_no_other(self, name: &str) -> String {
        match self {
            Self::Rack => format!(
                "plan {name} is a rack for `sluice up`, not a study for `sluice reproduce`: run `sluice up {name}`"
            ),
            Self::Study => format!(
                "plan {name} is a study for `sluice reproduce`, not a rack for `sluice up`: run `sluice reproduce {name}`"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_known_by_sections_that_only_its_kind_has() {
        assert_eq!(PlanKind::of("name = \"a\"\n[[slice]]\nname = \"b\""), Some(PlanKind::Rack));
        assert_eq!(PlanKind::of("name = \"a\"\n[[case]]\nid = \"b\""), Some(PlanKind::Study));
        assert_eq!(PlanKind::of("name = \"a\"\n[case]\n[load]"), None);
        assert_eq!(PlanKind::of("name = = 1"), None);
    }
}
