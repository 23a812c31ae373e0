//! Spans and sizes as testbeds and plans of racks write them.

/// Overwrites the values of `table` with those of `by`, table by table.
pub(super) fn overlay(table: &mut toml::Table, by: &toml::Table) {
    for (key, value) in by {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => overlay(under, over),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Spans as `1.3us`.
pub mod span {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use sluice_wire::Nanos;

    use sluice_units as text;

    /// A span as people write it.
    pub fn serialize<S: Serializer>(span: &Nanos, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&text::show_span(*span))
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
        let written = String::deserialize(from)?;
        text::span(&written).map_err(D::Error::custom)
    }
}

/// Sizes as a list of spans.
pub mod sizes {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use sluice_wire::Nanos;
    use sluice_wire::registrations::Sizes;

    use sluice_units as text;

    /// Where each class ends but the last.
    pub fn serialize<S: Serializer>(sizes: &Sizes, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(sizes.ends().iter().map(|end| text::show_span(*end)))
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Sizes, D::Error> {
        let written = Vec::<String>::deserialize(from)?;
        let ends: Vec<Nanos> =
            written.iter().map(|end| text::span(end)).collect::<Result<_, _>>().map_err(D::Error::custom)?;
        Sizes::new(&ends).ok_or_else(|| {
            D::Error::custom("sizes has to be one to three spans, each longer than the one before")
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Testbed;

    fn complaint(text: &str) -> String {
        Testbed::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_nearest_known_one() {
        let said = complaint("name = \"mine\"\n[worker]\nrecieve = \"1us\"\n");
        assert!(said.contains("line 3") && said.contains("did you mean `receive`?"), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }

    #[test]
    fn what_stands_where_something_else_belongs_is_told_without_our_types_names() {
        for (text, line) in [
            ("name = \"mine\"\nworker = \"fast\"\n", "line 2"),
            ("links = 5\n", "line 1"),
            ("[cores]\npcie = 5\n", "line 2"),
            ("workers = \"many\"\n", "line 1"),
            ("[cores]\nbatch = 1\n", "line 2"),
            ("stall = 1\n", "line 1"),
            ("fabric = \"fat\"\n", "line 1"),
            ("labels = true\n", "line 1"),
            ("racks = true\n", "line 1"),
            ("tiers = true\n", "line 1"),
            ("background = true\n", "line 1"),
        ] {
            let said = complaint(text);
            let serdes = ["struct", "invalid type", "u32", "map,", "enum", "variant", "sequence"];
            assert!(said.contains(line), "{said}");
            assert!(!serdes.iter().any(|word| said.contains(word)), "{said}");
        }
    }

    #[test]
    fn a_span_needs_its_unit() {
        let said = complaint("[links]\nclient = \"0.5\"");
        assert!(said.contains("line 2") && said.contains("is not a span"), "{said}");
        assert!(complaint("[links]\nclient = 5").contains("line 2"));
    }
}
