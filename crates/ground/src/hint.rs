//! The nearest known name to one that is not.

/// The known name that was most likely meant, when one is near enough.
pub fn nearest<'k>(unknown: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&unknown.to_lowercase(), name), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len().max(unknown.len()) / 2)
        .map(|(_, name)| name)
}

/// `unknown WHAT `NAME`` with the nearest known one, or all of them.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown {what} `{name}`; did you mean `{near}`? known: {}", known.join(", ")),
        None => format!("unknown {what} `{name}`; known: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_what_was_meant_and_nonsense_finds_nothing() {
        let known = ["policy", "quota", "warm_up"];
        assert_eq!(nearest("polciy", known), Some("policy"));
        assert_eq!(nearest("warmup", known), Some("warm_up"));
        assert_eq!(nearest("zzzzzzzzzzzz", known), None);
    }
}
