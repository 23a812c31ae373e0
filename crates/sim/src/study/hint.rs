//! The nearest known name to one that is not.

/// `unknown WHAT `NAME`` with the nearest known one, or all of them.
pub(crate) fn unknown<'k>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> String {
    let all = known.clone().into_iter().collect::<Vec<_>>().join(", ");
    let near = known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(&name.to_lowercase(), known), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len().max(name.len()) / 2);
    match near {
        Some((_, near)) => format!("unknown {what} `{name}`; did you mean `{near}`? known: {all}"),
        None => format!("unknown {what} `{name}`; known: {all}"),
    }
}
