//! Patterns of SCAN's MATCH: `*`, `?`, `[abc]`, `[^a-z]`, and `\` before a letter that means itself.
//!
//! A pattern of n bytes and a key of m take at most n·m steps, without recursion: a stranger's pattern costs
//! no more than its length.

/// Whether the key matches the pattern.
pub(super) fn matches(pattern: &[u8], key: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    // Behind the last star, and the first byte of the key that it has not taken.
    let mut star = None;
    while seen < key.len() {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, seen));
        } else if let Some(next) = one(pattern, at, key[seen]) {
            at = next;
            seen += 1;
        } else if let Some((behind, taken)) = &mut star {
            *taken += 1;
            (at, seen) = (*behind, *taken);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// Where the pattern goes on if its part at `at` takes this byte.
fn one(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match pattern[at..] {
        [] => None,
        [b'?', ..] => Some(at + 1),
        [b'[', ..] => {
            let (takes, next) = set(pattern, at + 1, byte);
            takes.then_some(next)
        }
        [b'\\', escaped, ..] => (escaped == byte).then_some(at + 2),
        [plain, ..] => (plain == byte).then_some(at + 1),
    }
}

/// Whether the set whose inside begins at `at` has this byte, and where the pattern goes on behind it. A set
/// that does not end goes on to the pattern's end.
fn set(pattern: &[u8], mut at: usize, byte: u8) -> (bool, usize) {
    let is_other = pattern.get(at) == Some(&b'^');
    at += usize::from(is_other);
    let mut has = false;
    loop {
        match pattern[at..] {
            [] => return (has != is_other, at),
            [b']', ..] => return (has != is_other, at + 1),
            [b'\\', escaped, ..] => {
                has |= escaped == byte;
                at += 2;
            }
            [first, b'-', last, ..] if last != b']' => {
                has |= (first.min(last)..=first.max(last)).contains(&byte);
                at += 3;
            }
            [plain, ..] => {
                has |= plain == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_as_redis_says() {
        for (pattern, key, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "abc", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hbllo", true),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("user:*:name", "user:17:name", true),
            ("user:*:name", "user:17:names", false),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("[a-]", "-", true),
            ("[", "a", false),
            ("a*", "a", true),
            ("a**b", "ab", true),
            ("\\", "\\", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), key.as_bytes()), expected, "{pattern} {key}");
        }
    }

    #[test]
    fn a_pattern_of_stars_ends() {
        let pattern = b"a*".repeat(128);
        let key = [b'a'; 512];
        assert!(!matches(&[&pattern[..], b"b"].concat(), &key));
        assert!(matches(&pattern, &key));
    }

    proptest! {
        #[test]
        fn no_pattern_breaks_it_and_plain_ones_match_themselves(
            pattern in proptest::collection::vec(any::<u8>(), 0..20),
            key in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            matches(&pattern, &key);
            let escaped: Vec<u8> = key.iter().flat_map(|byte| [b'\\', *byte]).collect();
            prop_assert!(matches(&escaped, &key));
        }
    }
}
