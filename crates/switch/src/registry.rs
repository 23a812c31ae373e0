//! All programs by name, and how one is asked for: `rain:2`, `racksched:2,tracked`, `draconis:poll=1us`.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::tables::Feed;

pub use crate::adaptive::{Adaptive, Rule};
use crate::config::Config;
use crate::early::Early;
use crate::program::Program;
use crate::rain;
use crate::settings::ProgramSettings;
pub use crate::settings::{Published, Software};

/// Makes the list of programs: a line gives its variant's name and the module with its `Settings`.
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

            fn settings(&self) -> &dyn ProgramSettings {
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

/// A program with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice(Chosen);

impl Choice {
    /// Reads a name, and after a colon the arguments, separated by commas.
    ///
    /// # Errors
    /// [`ChoiceError`] if there is no such program, or an argument means nothing to it.
    pub fn parse(text: &str) -> Result<Self, ChoiceError> {
        let (name, arguments) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let mut chosen = Chosen::all()
            .find(|known| known.settings().name() == name)
            .ok_or_else(|| ChoiceError::unknown(name))?;
        for argument in arguments.into_iter().flat_map(|arguments| arguments.split(',')) {
            chosen.settings_mut().take(argument).ok_or_else(|| ChoiceError::Argument {
                program: chosen.settings().name(),
                argument: argument.to_owned(),
                may_be: chosen.settings().arguments(),
            })?;
        }
        Ok(Self(chosen))
    }

    /// The program's name.
    pub fn name(&self) -> &'static str {
        self.0.settings().name()
    }

    /// How many tasks a worker may have granted or held (N); 0 when they are pushed.
    pub fn quota(&self) -> u8 {
        self.0.settings().quota()
    }

    /// The largest quota that its switch believes: all workers' room for tokens is counted so.
    pub fn quota_max(&self) -> u8 {
        self.quota().max(QUOTA_MAX)
    }

    /// How workers get their tasks.
    pub fn feed(&self) -> Feed {
        self.0.settings().feed()
    }

    /// Whether a worker has to fetch a task's bytes beyond the queue entry from its client.
    pub fn fetches(&self) -> bool {
        self.0.settings().fetches()
    }

    /// Whether the bytes of a large task that waits are written ahead into servers' memory, if there are
    /// servers.
    pub fn writes_ahead(&self) -> bool {
        self.0.settings().writes_ahead()
    }

    /// Whether the program in the kernel (XDP) does the same: depths and early tokens are the hosts'
    /// business.
    pub fn runs_in_kernel(&self) -> bool {
        self.0.settings().runs_in_kernel()
    }

    /// How depths are found at run time, beginning with the quota; `None` if they are fixed.
    pub fn adaptive(&self) -> Option<Adaptive> {
        self.0.settings().adaptive()
    }

    /// Whether workers' depths are their hosts' business: they may differ, change while the workers run, and
    /// be one more for a moment (early tokens).
    pub fn hosts_choose_depth(&self) -> bool {
        self.0.settings().hosts_choose_depth()
    }

    /// What of it a server of many cores has no use for, since its cores' room says how many tasks it takes.
    pub fn unfit_for_cores(&self) -> Option<&'static str> {
        let unwanted = [
            ("adaptive depths", self.adaptive().is_some()),
            ("early tokens", self.early().is_some()),
            ("patience", self.patience() > 0),
        ];
        unwanted.into_iter().find_map(|(what, is_wanted)| is_wanted.then_some(what))
    }

    /// How many classes of tasks it tells apart; 1 where all are alike.
    pub fn classes(&self) -> u8 {
        self.0.settings().classes()
    }

    /// The most tasks that it takes in one submission; 1 where each comes alone.
    pub fn jobs(&self) -> u8 {
        self.0.settings().jobs()
    }

    /// How many kinds of workers it tells apart, by what they serve; 1 where any worker takes any task of its
    /// slice. Then classes are told by what tasks need.
    pub fn kinds(&self) -> u8 {
        self.0.settings().kinds()
    }

    /// Whether each class of a slice has room for C tasks, rather than all together.
    pub fn limits_each_class(&self) -> bool {
        self.0.settings().limits_each_class()
    }

    /// Whether a waiting task may be under way with a worker's poll: a newcomer takes its place then, so that
    /// as many more may wait as there are workers.
    pub fn carries_waiting(&self) -> bool {
        self.0.settings().carries_waiting()
    }

    /// How many queues of a slice a poll looks at, one after the other: each further one costs a round, for
    /// which its worker waits.
    pub fn queues_per_poll(&self) -> u8 {
        self.0.settings().queues_per_poll()
    }

    /// How far what is said of tasks' sizes is off, in hundredths: what simulations draw.
    pub fn size_error(&self) -> u8 {
        self.0.settings().size_error()
    }

    /// How many tasks have to wait in the switch before a worker sends more than one token; zero: none.
    pub fn patience(&self) -> u8 {
        self.0.settings().patience()
    }

    /// Whether workers send tokens before their tasks end, and how they know when.
    pub fn early(&self) -> Option<Early> {
        self.0.settings().early()
    }

    /// What it takes of a server's core, if it is a server's program rather than a switch's.
    pub fn software(&self) -> Option<Software> {
        self.0.settings().software()
    }

    /// What its paper says that it takes of a chip, if it does.
    pub fn published(&self) -> Option<Published> {
        self.0.settings().published()
    }

    /// The program with these settings, empty.
    pub fn build(&self, config: Config) -> Box<dyn Program> {
        self.0.settings().build(config)
    }

    /// All programs.
    pub fn all() -> impl Iterator<Item = About> {
        Chosen::all().map(|known| {
            let settings = known.settings();
            About {
                name: settings.name(),
                about: settings.about(),
                arguments: settings.arguments(),
                example: settings.example(),
            }
        })
    }
}

impl Default for Choice {
    /// Rain.
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
    /// What [`Choice::parse`] reads as the same choice; arguments are left out where all have their defaults
    /// and none is a number that people compare by.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.0.settings();
        let arguments = format!("{settings}");
        f.write_str(settings.name())?;
        if arguments.is_empty() { Ok(()) } else { write!(f, ":{arguments}") }
    }
}

/// A policy for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// How it is written.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// What its arguments may be: how each is written, a comma and what it means, with semicolons between
    /// them; empty if it has none.
    pub arguments: &'static str,
    /// How one asks for it, such as `rain:2`.
    pub example: &'static str,
}

/// Why a text names no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// Take one of the known ones; the nearest is named if one is near enough.
    #[error("unknown program `{}`;{} known: {known}", .name.escape_debug(), meant(*.nearest))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
        /// All names.
        known: String,
    },
    /// Take arguments that the program has.
    #[error("`{}` means nothing to {program}; it takes {}", .argument.escape_debug(), written(may_be))]
    Argument {
        /// The program.
        program: &'static str,
        /// What it was given.
        argument: String,
        /// What it takes, and what each means; the error tells how they are written.
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

/// How arguments are written, without what they mean.
fn written(arguments: &str) -> String {
    let forms: Vec<&str> =
        arguments.split("; ").map(|argument| argument.split(", ").next().unwrap_or(argument)).collect();
    format!("{} (`sluice policies` says what each means)", forms.join(", "))
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" did you mean `{name}`?"))
}
