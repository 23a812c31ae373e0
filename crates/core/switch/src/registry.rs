//! All programs by name, and how each is asked for: `rain:2`, `racksched:2,tracked`, `draconis:poll=1us`.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use core::str::FromStr;

use sluice_wire::Epoch;
use sluice_wire::sizes::QUOTA_MAX;

pub use crate::settings::{About, ProgramSettings, ProgramTraits, Published, Software};
use crate::{Config, Program, rain};

/// Makes the list of programs. A line gives the variant's name and the module with its `Settings`.
macro_rules! programs {
    ($($variant:ident: $module:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Chosen {
            $($variant(crate::$module::Settings),)*
        }

        impl Chosen {
            fn all() -> impl Iterator<Item = Self> {
                [$(Self::$variant(crate::$module::Settings::default()),)*].into_iter()
            }

            fn settings(&self) -> &(dyn ProgramSettings + 'static) {
                match self {
                    $(Self::$variant(settings) => settings,)*
                }
            }

            fn settings_mut(&mut self) -> &mut dyn ProgramSettings {
                match self {
                    $(Self::$variant(settings) => settings,)*
                }
            }
        }
    };
}

programs! {
    Rain: rain,
    R2p2: r2p2,
    RackSched: racksched,
    Draconis: draconis,
    Pallas: pallas,
    Horus: horus,
    Server: server,
}

/// Servers whose rings the RDMA engine's tables of a whole chip hold.
const SERVERS: u16 = 64;

/// A program with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice(Chosen);

impl Choice {
    /// Reads a name, and after a colon the arguments, separated by commas.
    ///
    /// # Errors
    /// [`ChoiceError`] if there is no such program, or it does not know an argument.
    pub fn parse(text: &str) -> Result<Self, ChoiceError> {
        let (name, arguments) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let mut chosen = Chosen::all()
            .find(|known| known.settings().name() == name)
            .ok_or_else(|| ChoiceError::unknown(name))?;
        for argument in arguments.into_iter().flat_map(|arguments| arguments.split(',')) {
            chosen.settings_mut().take(argument).ok_or_else(|| ChoiceError::Argument {
                program: chosen.settings().name(),
                argument: argument.to_owned(),
                may_be: chosen.settings().about().arguments,
            })?;
        }
        Ok(Self(chosen))
    }

    /// This choice with one more argument; `None` if the program does not take it.
    #[must_use]
    pub fn with(mut self, argument: &str) -> Option<Self> {
        self.0.settings_mut().take(argument)?;
        Some(self)
    }

    /// The largest quota that the switch accepts. The room for tokens is sized by it for every worker.
    pub fn quota_max(&self) -> u8 {
        self.traits().quota.max(QUOTA_MAX)
    }

    /// The first argument that a server of many cores cannot use, because the room of its cores decides how
    /// many tasks it takes; `None` if there is none.
    pub fn unfit_for_cores(&self) -> Option<&'static str> {
        let unwanted = [
            ("adaptive depths", self.traits().adaptive.is_some()),
            ("early tokens", self.traits().early.is_some()),
            ("patience", self.traits().patience > 0),
        ];
        unwanted.into_iter().find_map(|(what, is_wanted)| is_wanted.then_some(what))
    }

    /// The program at its full size with room for the rings of 64 servers, as its resources are told.
    pub fn on_a_whole_chip(&self) -> Box<dyn Program> {
        self.build(Config { servers: SERVERS, ..self.traits().full_size(Epoch(1)) })
    }

    /// All programs.
    pub fn all() -> impl Iterator<Item = About> {
        Chosen::all().map(|known| known.settings().about())
    }
}

impl Deref for Choice {
    type Target = dyn ProgramSettings;

    fn deref(&self) -> &Self::Target {
        self.0.settings()
    }
}

impl Default for Choice {
    /// Plain Rain.
    fn default() -> Self {
        Self(Chosen::Rain(rain::Settings::default()))
    }
}

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        Self::parse(text)
    }
}

impl fmt::Display for Choice {
    /// Prints text that [`Choice::parse`] reads as the same choice. Arguments are left out if all have
    /// their defaults and none is a number that people compare by.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments = format!("{}", self.0.settings());
        f.write_str(self.name())?;
        if arguments.is_empty() { Ok(()) } else { write!(f, ":{arguments}") }
    }
}

/// Why a text names no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// No program has this name: use one of the known names. The nearest one is named if it is near enough.
    #[error("unknown program `{}`;{} known: {known}", .name.escape_debug(), meant(*.nearest))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The known name that was probably meant.
        nearest: Option<&'static str>,
        known: String,
    },
    /// The program does not know this argument: use one that it knows.
    #[error("`{}` means nothing to {program}{}", .argument.escape_debug(), taken(argument, may_be))]
    Argument {
        program: &'static str,
        /// The argument that it was given.
        argument: String,
        /// The arguments that the program knows, with their meanings. The error prints the meaning of the
        /// one that was meant, which says its range and what it does not go with, and how all are written.
        may_be: &'static str,
    },
}

impl ChoiceError {
    fn unknown(name: &str) -> Self {
        let known: Vec<&'static str> = Choice::all().map(|program| program.name).collect();
        let nearest = sluice_units::nearest(name, known.iter().copied());
        Self::Unknown { name: name.to_owned(), nearest, known: known.join(", ") }
    }
}

/// The meaning of what the program calls by the same name, if there is such a thing, and how all arguments
/// are written.
fn taken(argument: &str, may_be: &str) -> String {
    let is_meant = |known: &&str| before(before(known, ", "), "=") == before(argument, "=");
    let meant: Vec<&str> = may_be.split("; ").filter(is_meant).collect();
    let meant = if meant.is_empty() { String::new() } else { format!(" as it stands: {}", meant.join("; ")) };
    let forms: Vec<&str> = may_be.split("; ").map(|known| before(known, ", ")).collect();
    format!("{meant}; it takes {} (`sluice policies` says what each means)", forms.join(", "))
}

/// The text before the first such mark; all of it if there is none.
fn before<'t>(text: &'t str, mark: &str) -> &'t str {
    text.split_once(mark).map_or(text, |(before, _)| before)
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" did you mean `{name}`?"))
}
