//! What the TOML reader complains of, as people are told it.

/// Where a text is wrong, as far as that is known, and in one line how: of an unknown key with the nearest
/// known one.
pub fn toml_complaint(text: &str, why: &toml::de::Error) -> (Option<usize>, String) {
    let line = why.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message = why.message().lines().next().unwrap_or_default();
    // Serde says ``unknown field `x`, expected one of `a`, `b` ``.
    let mut quoted = message.split('`').skip(1).step_by(2);
    let why = match (message.starts_with("unknown field"), quoted.next()) {
        (true, Some(unknown)) => sluice_units::unknown("key", unknown, quoted),
        _ => message.to_owned(),
    };
    (line, why)
}
