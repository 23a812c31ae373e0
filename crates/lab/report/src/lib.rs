//! Shows the results of runs and studies as tables and text, as CSV, and as pages with charts. Everything
//! follows from the outcome alone. So a result saved as JSON can be shown again, and simulated and measured
//! studies look alike.
#![forbid(unsafe_code)]

mod beside;
mod chart;
mod csv;
mod decided;
mod depths;
mod figure;
mod followed;
mod heat;
mod html;
mod markdown;
mod page;
mod panel;
mod pass_costs;
pub mod run;
mod run_page;
mod series_style;
mod show;
mod standings;
pub mod table;
mod tables;
mod text;
mod timeline;
mod verdicts;

use sluice_outcome::study::StudyOutcome;

pub use beside::{beside, beside_loads};
pub use chart::{RunningChart, RunningLine};
pub use csv::{csv, points_csv};
pub use decided::decided;
pub use figure::{Figure, FigureError, FigureRequest, FigureSize, Typeface, figure, figure_names};
pub use followed::{Compared, LiveAndSimulated, Section, Strip, followed};
pub use markdown::markdown;
pub use page::{page, page_body, page_of};
pub use run_page::run_page;
pub use show::{quantity, share};
pub use standings::standings;
pub use text::summary;
pub use verdicts::verdicts;

/// The style sheet of all pages.
pub const STYLE: &str = include_str!("style.css");

/// The study as JSON, in one line.
pub fn json(study: &StudyOutcome) -> String {
    serde_json::to_string(study).expect("every key is a string and every number is finite or null")
}
