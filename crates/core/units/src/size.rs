//! Sizes of memory.

use alloc::format;
use alloc::string::{String, ToString};

const UNITS: [(&str, usize); 5] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1), ("", 1)];

/// Reads a size in bytes such as `16MiB`, `64KiB` or `4096`.
///
/// # Errors
/// A sentence that says what is wrong with `text`.
pub fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is not a size: write bytes, or a number with KiB, MiB or GiB");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
    number.parse::<usize>().ok().and_then(|number| number.checked_mul(scale)).ok_or_else(wrong)
}

/// Writes a size as [`size`] reads it, in the largest unit of which it is a whole number.
pub fn show_size(bytes: usize) -> String {
    let whole = UNITS.iter().find(|(_, scale)| bytes > 0 && *scale > 1 && bytes.is_multiple_of(*scale));
    whole.map_or_else(|| bytes.to_string(), |(unit, scale)| format!("{}{unit}", bytes / scale))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_with_binary_units() {
        assert_eq!((size("16MiB"), size("7B"), size("4096")), (Ok(16 << 20), Ok(7), Ok(4096)));
        for wrong in ["", "16MB", "99999999999999999GiB", "-1", "1.5KiB"] {
            assert!(size(wrong).is_err_and(|why| why.contains("is not a size")), "{wrong}");
        }
        assert_eq!(
            [0, 1_000, 3 << 10, 16 << 20, 1 << 30].map(show_size),
            ["0", "1000", "3KiB", "16MiB", "1GiB"]
        );
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(bytes in any::<usize>()) {
            prop_assert_eq!(size(&show_size(bytes)), Ok(bytes));
        }
    }
}
