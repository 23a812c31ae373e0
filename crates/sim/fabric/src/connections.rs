//! Which frames form one flow, as far as pauses between frames matter.

use crate::frame::FabricFrame;
use crate::ids::FlowKey;

/// Which frames form one flow for the flowlet tables, the pacers and the gaps: pauses in it make flowlets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connections {
    /// Each flow has a connection of its own (public set-up).
    #[default]
    EachFlow,
    /// All flows from one host to another share a connection, which also pauses between two flows. Rates
    /// and retransmissions stay those of each flow.
    EachPair,
}

impl Connections {
    /// The flow of a frame, for a switch that looks at pauses.
    #[inline]
    pub(crate) const fn key(self, frame: &FabricFrame) -> FlowKey {
        match self {
            Self::EachFlow => frame.flow,
            Self::EachPair => FlowKey { slot: frame.from.0, life: frame.to.0 },
        }
    }
}
