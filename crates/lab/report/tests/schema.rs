//! The schema of studies lists all gauges and counts of the tables that define them.

use std::collections::BTreeSet;

use serde_json::Value;
use sluice_outcome::study::{Counts, Gauges};

/// The fields of `part` in the schema: all names, and the required ones.
fn listed(part: &str) -> [BTreeSet<String>; 2] {
    let schema: Value =
        serde_json::from_str(include_str!("../../../../schemas/study.v1.json")).expect("the schema is JSON");
    let part = &schema["$defs"][part];
    let required = part["required"].as_array().expect("some are always there");
    let required = required.iter().map(|name| name.as_str().expect("a name").to_owned());
    [names(&part["properties"]), required.collect()]
}

fn names(object: &Value) -> BTreeSet<String> {
    object.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn every_gauge_and_count_stands_in_the_schema_and_no_other() {
    let gauges: BTreeSet<String> = Gauges::ALL.iter().map(|gauge| gauge.name.to_owned()).collect();
    let always = serde_json::to_value(Gauges::default()).expect("gauges have a JSON form");
    assert_eq!(listed("gauges"), [gauges, names(&always)]);
    let counts: BTreeSet<String> = Counts::ALL.iter().map(|count| count.name.to_owned()).collect();
    let always = serde_json::to_value(Counts::default()).expect("counts have a JSON form");
    assert_eq!(listed("counts"), [counts, names(&always)]);
}
