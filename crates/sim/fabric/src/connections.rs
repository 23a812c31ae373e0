//! What counts as a flow to those who look at pauses.

use crate::frame::FabricFrame;
use crate::ids::FlowKey;

/// Whose pauses make flowlets: what counts as a flow to the flowlet tables, the pacers and the gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connections {
    /// Each flow has a connection of its own (public set-up).
    #[default]
    EachFlow,
    /// All flows from one host to another have one: also between two of them it pauses. Rates and what is
    /// sent again stay each flow's.
    EachPair,
}

impl Connections {
    /// Whose pauses a switch looks at.
    #[inline]
    pub(crate) const fn key(self, frame: &FabricFrame) -> FlowKey {
        match self {
            Self::EachFlow => frame.flow,
            Self::EachPair => FlowKey { slot: frame.from.0, life: frame.to.0 },
        }
    }
}
