//! The switch of a curve: what its passes and ports take. What happens to it is in `side`.

mod side;

use sluice_switch::Program;
use sluice_wire::Nanos;
use sluice_wire::tables::{TableAnswer, TableOp};

use super::setup::RackSetup;
use super::software::ServerCore;
use crate::events::{LaneId, Port};
use crate::suits::Suits;
use crate::testbed::SwitchTimes;

/// The switch, and the port for what goes round.
#[derive(Debug)]
pub(super) struct SwitchNode {
    program: Box<dyn Program>,
    times: SwitchTimes,
    port: Port,
    /// Where what goes round is on its way.
    lane: LaneId,
    /// Of the server that schedules behind it, if one does.
    pub(super) core: Option<ServerCore>,
    /// Whether each task that a worker gets answers a poll.
    is_polled: bool,
    /// Who has what tasks need, where something is said of labels.
    suits: Option<Suits>,
}

impl SwitchNode {
    /// What goes round takes the lane for a pass and a recirculation.
    pub(super) fn new(
        program: Box<dyn Program>,
        times: SwitchTimes,
        lane: LaneId,
        core: Option<ServerCore>,
        plan: &RackSetup,
    ) -> Self {
        let (port, suits) = (Port::new(times.recirculation_gbps), plan.suits.clone());
        Self { program, times, port, lane, core, is_polled: plan.is_polled(), suits }
    }

    /// One step of the controller.
    pub(super) fn table(&mut self, op: TableOp) -> TableAnswer {
        self.program.table(op)
    }

    pub(super) fn program(&mut self) -> &mut dyn Program {
        &mut *self.program
    }

    /// Tasks that wait in the program's memory.
    pub(super) fn waiting(&self) -> u32 {
        self.program.waiting()
    }

    /// When what comes now leaves.
    pub(super) fn leaves(&self, now: Nanos) -> Nanos {
        now + self.times.pass + self.core.as_ref().map_or(Nanos(0), ServerCore::way_back)
    }
}
