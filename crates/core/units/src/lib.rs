//! Reads what people write into flags, plans, policies and files, in one way everywhere: spans (`1.5ms`),
//! sizes (`16MiB`), rates and counts (`2000k`, `1_000_000`), shares (`0.5`, `1/3`), lists and ranges of
//! them (`0.1..0.9/0.1`), and settings of agents (`adaptive,theta=0.1`). It also names the known name that
//! an unknown one probably means, and makes foreign text fit for messages.
//!
//! An error is a whole sentence or the rest of one, as each function says, with what to write instead.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod adaptive;
mod hint;
mod number;
mod share;
mod shown;
mod size;
mod span;

pub use adaptive::{Adaptive, AdaptiveRule};
pub use hint::{did_you_mean, nearest, unknown};
pub use number::{count, load, number, rate, several};
pub use share::{add_up, share};
pub use shown::shown;
pub use size::{show_size, size};
pub use span::{LONGEST, WholeSpan, cut_span, micros, show_micros, show_span, span, span_ns};
