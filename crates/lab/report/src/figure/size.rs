//! How large a figure is: `3.3in`, `84mm`, `240pt`, or width and height, as `3.3inx2in`.

use std::str::FromStr;

use super::error::FigureError;

const POINTS_IN_INCH: f64 = 72.0;
/// The narrowest figure whose axes can be read, and the widest that a page has, in inches.
pub(super) const WIDE: (f64, f64) = (1.5, 40.0);
pub(super) const HIGH: (f64, f64) = (1.0, 40.0);

/// A figure's size, in points of 1/72 inch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FigureSize {
    pub(super) width: f64,
    /// The height; if it is not given, it follows from the width and the legend.
    pub(super) height: Option<f64>,
}

impl FromStr for FigureSize {
    type Err = FigureError;

    fn from_str(text: &str) -> Result<Self, FigureError> {
        let unreadable = || FigureError::SizeUnreadable { text: text.to_owned() };
        let (width, height) = match text.split_once(['x', '×']) {
            Some((width, height)) => (width, Some(points(height).ok_or_else(unreadable)?)),
            None => (text, None),
        };
        let width = points(width).ok_or_else(unreadable)?;
        let is_within =
            |points: f64, (least, most): (f64, f64)| (least..=most).contains(&(points / POINTS_IN_INCH));
        if is_within(width, WIDE) && height.is_none_or(|height| is_within(height, HIGH)) {
            Ok(Self { width, height })
        } else {
            Err(FigureError::SizeOutOfRange { text: text.to_owned(), wide: WIDE, high: HIGH })
        }
    }
}

impl FigureSize {
    /// These points in inches.
    pub(super) fn inches(points: f64) -> f64 {
        points / POINTS_IN_INCH
    }
}

fn points(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 4] =
        [("in", POINTS_IN_INCH), ("cm", POINTS_IN_INCH / 2.54), ("mm", POINTS_IN_INCH / 25.4), ("pt", 1.0)];
    let (number, one) = UNITS.iter().find_map(|(unit, one)| Some((text.trim().strip_suffix(unit)?, one)))?;
    let number: f64 = number.trim().parse().ok()?;
    number.is_finite().then_some(number * one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_and_suits_a_page() {
        let size = |text: &str| text.parse::<FigureSize>();
        assert_eq!(size("3.3in"), Ok(FigureSize { width: 3.3 * 72.0, height: None }));
        assert!(size("2.54cm x 25.4mm").is_err(), "an inch is too narrow");
        assert_eq!(size("240pt x 72pt"), Ok(FigureSize { width: 240.0, height: Some(72.0) }));
        for text in ["3.3", "in", "", "-3in", "3inx", "NaNin", "infin", "0in", "500in", "3in x 0in"] {
            let said = size(text).expect_err(text).to_string();
            assert!(said.starts_with("--size ") && !said.contains('\n'), "{said}");
        }
    }
}
