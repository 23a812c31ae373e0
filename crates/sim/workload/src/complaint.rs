//! Messages for errors of the TOML reader.

/// The line of an error in a text, if it is known, and the error in one line; for an unknown key with the
/// nearest known one.
pub fn toml_complaint(text: &str, why: &toml::de::Error) -> (Option<usize>, String) {
    let line = why.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    (line, in_words(why.message().lines().next().unwrap_or_default()))
}

/// Serde's message, without the names of our types.
fn in_words(message: &str) -> String {
    // Serde's form: ``unknown field `x`, expected one of `a`, `b` ``.
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        return quoted.next().map_or_else(String::new, |key| sluice_units::unknown("key", key, quoted));
    }
    if message.starts_with("unknown variant") {
        return quoted.next().map_or_else(String::new, |word| sluice_units::unknown("word", word, quoted));
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    // Serde's form: ``invalid type: integer `5`, expected struct Worker``.
    let told = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match told.and_then(|told| told.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("{} stands where {} belongs", noun(found), noun(expected)),
        None if message.starts_with("data did not match any variant") => {
            "is neither of what may stand there".to_owned()
        }
        None => message.to_owned(),
    }
}

/// The words for a type of serde's, with its value if there is one.
fn noun(of: &str) -> String {
    let (kind, value) = match of.find(['`', '"']) {
        Some(at) => (of[..at].trim_end(), &of[at..]),
        None => (of, ""),
    };
    let word = match kind {
        "map" | "a map" | "table" => "a table",
        _ if kind.starts_with("struct ") || kind.starts_with("enum ") => "a table",
        "sequence" | "a sequence" | "array" => "a list",
        "integer" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" => {
            "a whole number"
        }
        "floating point" | "f32" | "f64" => "a number",
        "boolean" | "a boolean" => "true or false",
        "string" | "a string" | "str" => "a text in quotes",
        "nonzero u8" | "nonzero u16" | "nonzero u32" | "nonzero u64" | "a nonzero u32" => {
            "a whole number from 1 on"
        }
        other => other,
    };
    if value.is_empty() { word.to_owned() } else { format!("{word}, {value},") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serdes_words_become_the_readers() {
        for (serdes, ours) in [
            (
                "invalid type: string \"fast\", expected struct WorkerTimes",
                "a text in quotes, \"fast\", stands where a table belongs",
            ),
            (
                "invalid type: floating point `2.5`, expected u32",
                "a number, `2.5`, stands where a whole number belongs",
            ),
            ("invalid type: map, expected a string", "a table stands where a text in quotes belongs"),
            (
                "invalid value: integer `-1`, expected u32",
                "a whole number, `-1`, stands where a whole number belongs",
            ),
            ("missing field `at`", "the key `at` is missing"),
            (
                "invalid type: boolean `true`, expected a sequence",
                "true or false, `true`, stands where a list belongs",
            ),
        ] {
            assert_eq!(in_words(serdes), ours);
        }
        let meant = in_words("unknown variant `stedy`, expected one of `steady`, `burst`");
        assert!(meant.contains("did you mean `steady`?"), "{meant}");
        assert_eq!(in_words("a span needs its unit"), "a span needs its unit");
    }
}
