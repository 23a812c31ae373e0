//! Words of a command line for people to copy, and for scripts.

/// A word as a shell reads it: quoted, unless it means itself.
pub fn word(of: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-:.,=/+@%".contains(c);
    if !of.is_empty() && of.chars().all(is_plain) {
        of.to_owned()
    } else {
        format!("'{}'", of.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_unless_it_means_itself() {
        for plain in ["rain:2", "get=14,scan=18", "/tmp/a-b_c.toml", "50%@x+y"] {
            assert_eq!(word(plain), plain);
        }
        for (odd, quoted) in [("", "''"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("p99<1us", "'p99<1us'")]
        {
            assert_eq!(word(odd), quoted);
        }
        assert_eq!(word("$(rm x)\n"), "'$(rm x)\n'");
    }
}
