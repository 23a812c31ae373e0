//! Which figure is wanted, and how.

use super::size::FigureSize;

/// Which figure is wanted, and how.
#[derive(Clone, Debug)]
pub struct FigureRequest<'r> {
    /// One of [`crate::figure_names`].
    pub name: &'r str,
    /// How large it is.
    pub size: FigureSize,
    /// The labels of the series that are shown, as one text with commas; all if it is empty.
    pub only: &'r str,
    /// Texts that stand in the figure for labels of series: each label with its text.
    pub texts: &'r [(String, String)],
    /// Whether the vertical axis of times and slowdowns begins at zero, instead of being logarithmic.
    pub linear: bool,
    /// A latency that must be kept, drawn as a line.
    pub slo_ns: Option<f64>,
}
