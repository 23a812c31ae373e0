//! The questions that every program's settings answer.

use alloc::boxed::Box;
use core::fmt;

use crate::config::Config;
use crate::program::Program;
use crate::traits::ProgramTraits;

/// A program's settings. Their `Display` prints arguments that [`ProgramSettings::take`] reads, or nothing.
pub trait ProgramSettings: fmt::Display {
    /// The description of the program for people.
    fn about(&self) -> About;

    /// The program's name.
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Reads one argument; `None` if the program does not know it.
    fn take(&mut self, argument: &str) -> Option<()>;

    /// What the program asks of workers, clients and the switch with these settings.
    fn traits(&self) -> ProgramTraits;

    /// Makes the program with these settings, empty.
    fn build(&self, config: Config) -> Box<dyn Program>;
}

/// The description of a program for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The name, as it is written.
    pub name: &'static str,
    /// One line that says what it does.
    pub about: &'static str,
    /// The arguments, separated by semicolons: for each how it is written, a comma, and its meaning; empty
    /// if there are none.
    pub arguments: &'static str,
    /// An example of how to ask for it, such as `rain:2`.
    pub example: &'static str,
}
