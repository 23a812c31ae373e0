//! The schedulers that are written in P4.

/// In place of a part's name: what stands with the scheduler itself.
pub(crate) const OWN: &str = "";

/// A scheduler's program in `targets/p4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum P4Program {
    Rain,
    Draconis,
    Pallas,
    RackSched,
}

impl P4Program {
    /// All programs.
    pub const ALL: [Self; 4] = [Self::Rain, Self::Draconis, Self::Pallas, Self::RackSched];

    /// The name of the program's files, and of the model's program.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rain => "rain",
            Self::Draconis => "draconis",
            Self::Pallas => "pallas",
            Self::RackSched => "racksched",
        }
    }

    /// The program that does what a policy such as `rain:2` does, if there is one.
    pub fn of(policy: &str) -> Option<Self> {
        let name = policy.split(':').next();
        Self::ALL.into_iter().find(|program| name == Some(program.name()))
    }

    /// Whether tasks may be written ahead to servers.
    pub(crate) const fn has_servers(self) -> bool {
        matches!(self, Self::Rain)
    }

    /// Whether a slice's workers have seats, from which tasks are pushed to them.
    pub(crate) const fn has_seats(self) -> bool {
        matches!(self, Self::Pallas | Self::RackSched)
    }

    /// The part that counts what each worker was sent.
    pub(crate) const fn numbers(self) -> &'static str {
        match self {
            Self::Rain => "tokens",
            Self::Draconis | Self::Pallas | Self::RackSched => "numbers",
        }
    }

    /// The part with the links of clients, if the program looks for them.
    pub(crate) const fn client_links(self) -> Option<&'static str> {
        match self {
            Self::Rain => Some("tokens"),
            Self::Draconis => Some(OWN),
            Self::RackSched => Some("client_link"),
            Self::Pallas => None,
        }
    }
}
