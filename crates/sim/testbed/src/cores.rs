//! What it costs to orchestrate a server's cores, in hardware and in software.

use serde::{Deserialize, Serialize};
use sluice_wire::Nanos;

use super::toml_text::span;

/// What things take where one server's requests are spread over its cores (`ringleader`, `shinjuku`, `rss`,
/// `stealing`, `caladan`); nothing unless it is stated. `experiments/testbeds/ringleader.toml` has the
/// paper's, with their sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CoreTimes {
    /// A core gives way after running a request for so long, where the policy has it do so; never if it is
    /// zero.
    #[serde(with = "span")]
    pub yields: Nanos,
    /// What a core spends to put another request in the place of one that has not ended.
    #[serde(with = "span")]
    pub switch: Nanos,
    /// One way between a NIC and a core.
    #[serde(with = "span")]
    pub pcie: Nanos,
    /// What a core spends to take a request from its NIC.
    #[serde(with = "span")]
    pub descriptor: Nanos,
    /// What a dispatcher in software spends on each request that it hands to a core.
    #[serde(with = "span")]
    pub dispatch: Nanos,
    /// What an allocator in software spends on each packet.
    #[serde(with = "span")]
    pub allocate: Nanos,
    /// How long it takes to give a service a core, and the time between two looks at its queues.
    #[serde(with = "span")]
    pub reallocate: Nanos,
    /// What a core spends to take a request from another's queue.
    #[serde(with = "span")]
    pub steal: Nanos,
    /// Whether a batch service, which is always ready, runs where the others leave room (`ringleader`,
    /// `caladan`).
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub batch: bool,
}

impl CoreTimes {
    /// Whether nothing is stated.
    pub(super) fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// All of them by their keys.
    pub(super) const fn spans(&self) -> [(&'static str, Nanos); 8] {
        [
            ("cores.yields", self.yields),
            ("cores.switch", self.switch),
            ("cores.pcie", self.pcie),
            ("cores.descriptor", self.descriptor),
            ("cores.dispatch", self.dispatch),
            ("cores.allocate", self.allocate),
            ("cores.reallocate", self.reallocate),
            ("cores.steal", self.steal),
        ]
    }
}
