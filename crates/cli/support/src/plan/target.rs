//! Who a plan's events kill.

use std::fmt;
use std::str::FromStr;

/// Who can be killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The switch's process; the first spine's, if there are racks below spines.
    Switch,
    /// The spine of this number, from 1 on.
    Spine(u16),
    /// The controller's own process.
    Controller,
    /// The worker of this name.
    Worker(String),
    /// The server of this name.
    Server(String),
    /// The leaf of this rack, from 1 on.
    Leaf(u16),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("switch"),
            Self::Controller => f.write_str("controller"),
            Self::Worker(name) => write!(f, "worker {name}"),
            Self::Server(name) => write!(f, "server {name}"),
            Self::Spine(spine) => write!(f, "spine {spine}"),
            Self::Leaf(rack) => write!(f, "leaf {rack}"),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |number: &str| number.parse::<u16>().ok();
        let target = match text.split_once(' ') {
            None if text == "switch" => Some(Self::Switch),
            None if text == "controller" => Some(Self::Controller),
            Some(("worker", name)) => Some(Self::Worker(name.to_owned())),
            Some(("server", name)) => Some(Self::Server(name.to_owned())),
            Some(("spine", spine)) => number(spine).map(Self::Spine),
            Some(("leaf", rack)) => number(rack).map(Self::Leaf),
            _ => None,
        };
        target.ok_or_else(|| {
            format!(
                "`{text}` cannot be killed; write switch, controller, worker NAME, server NAME, spine NUMBER \
                 or leaf NUMBER"
            )
        })
    }
}
