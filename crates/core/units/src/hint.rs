//! Finds the known name that was most likely meant by an unknown one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The known name with the smallest edit distance, if that is at most half of its length.
pub fn nearest<'k>(unknown: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let unknown = unknown.to_lowercase();
    let known = known.into_iter().map(|name| (slips(&unknown, name), name));
    known.min().filter(|(slips, name)| *slips <= name.len().max(unknown.len()) / 2).map(|(_, name)| name)
}

/// ``did you mean `NEAR`? `` with the blank behind it; empty if no known name is near.
pub fn did_you_mean<'k>(unknown: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(unknown, known).map_or_else(String::new, |near| format!("did you mean `{near}`? "))
}

/// ``unknown WHAT `NAME` `` with the nearest known name, and all known names.
pub fn unknown(what: &str, name: &str, known: impl IntoIterator<Item: AsRef<str>>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    let meant = did_you_mean(name, known.iter().copied());
    format!("unknown {what} `{}`; {meant}known: {}", name.escape_debug(), known.join(", "))
}

/// The edit distance of two words: letters put in, taken out, changed, or swapped with the next.
fn slips(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    // The rows of the distance table for the letter before the last, for the last, and for this one.
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for i in 0..from.len() {
        let mut row = Vec::with_capacity(to.len() + 1);
        row.push(i + 1);
        for j in 0..to.len() {
            let changed = last[j] + usize::from(from[i] != to[j]);
            let fewest = changed.min(last[j + 1] + 1).min(row[j] + 1);
            let is_swap = i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j];
            row.push(if is_swap { fewest.min(before_swap(&before, j) + 1) } else { fewest });
        }
        before = core::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

fn before_swap(before: &[usize], j: usize) -> usize {
    before.get(j - 1).copied().unwrap_or(usize::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_what_was_meant_and_nonsense_finds_nothing() {
        let known = ["policy", "quota", "warm_up"];
        for (slip, meant) in
            [("polciy", "policy"), ("warmup", "warm_up"), ("QUOTA", "quota"), ("qouta", "quota")]
        {
            assert_eq!(nearest(slip, known), Some(meant), "{slip}");
        }
        assert_eq!(nearest("zzzzzzzzzzzz", known), None);
        assert_eq!(nearest("a", []), None);
    }

    #[test]
    fn a_swap_of_two_letters_is_one_slip() {
        for (from, to, count) in
            [("", "", 0), ("", "ab", 2), ("ab", "ba", 1), ("abc", "acb", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!((slips(from, to), slips(to, from)), (count, count), "{from} {to}");
        }
    }

    #[test]
    fn an_unknown_name_brings_the_nearest_known_one_and_all() {
        assert_eq!(
            unknown("type", "gte", ["get", "scan"]),
            "unknown type `gte`; did you mean `get`? known: get, scan"
        );
        assert_eq!(unknown("type", "zzzzzzzz", ["get"]), "unknown type `zzzzzzzz`; known: get");
        assert!(unknown("type", "a\nb", ["get"]).starts_with("unknown type `a\\nb`; "));
    }
}
