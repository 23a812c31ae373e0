//! The kind of a rack in virtual time: its program, and whether its workers have many cores, whether its
//! tasks have budgets, and whether it has standbys, and a store that grants one of them a lease.

use sluice_switch::registry::Choice;
use thiserror::Error;

/// The kind of a rack in fault runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RackKind {
    pub(super) program: Choice,
    pub(super) has_cores: bool,
    pub(super) has_budgets: bool,
    pub(super) has_standbys: bool,
    pub(super) has_store: bool,
}

/// Why a program does not fit servers of many cores.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "servers of many cores send tokens as their cores have room, and `{program}` has {what}: take rain:1"
)]
pub struct NotForServers {
    program: String,
    what: &'static str,
}

impl RackKind {
    /// Workers of one core.
    pub const fn of(program: Choice) -> Self {
        Self { program, has_cores: false, has_budgets: false, has_standbys: false, has_store: false }
    }

    /// Servers of many cores, each as several workers: lanes (`host::worker::Lanes`).
    ///
    /// # Errors
    /// [`NotForServers`]: lanes need a program that leaves depths to hosts. They exclude adaptive depths,
    /// early tokens and patience, because the room of the cores decides when tokens leave.
    pub fn of_servers(program: Choice) -> Result<Self, NotForServers> {
        let pushes =
            (!program.traits().hosts_choose_depth).then_some("other ways of giving tasks to workers");
        match pushes.or_else(|| program.unfit_for_cores()) {
            Some(what) => Err(NotForServers { program: program.to_string(), what }),
            None => Ok(Self { has_cores: true, ..Self::of(program) }),
        }
    }

    /// The same rack, in which some tasks have budgets.
    #[must_use]
    pub const fn with_budgets(self) -> Self {
        Self { has_budgets: true, ..self }
    }

    /// The same rack with two controllers, of which one leads while the switch lets it.
    #[must_use]
    pub const fn with_standbys(self) -> Self {
        Self { has_standbys: true, ..self }
    }

    /// The same, in which the controllers also need a lease from a store, such as etcd.
    #[must_use]
    pub const fn with_store(self) -> Self {
        Self { has_store: true, ..self.with_standbys() }
    }

    /// The switch's program.
    pub const fn program(&self) -> &Choice {
        &self.program
    }
}
