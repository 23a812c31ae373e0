//! The costs of orchestrating a server's cores, in hardware and in software.

use serde::{Deserialize, Serialize};
use sluice_wire::Nanos;

use super::toml_text::span;

/// The costs if one server's requests are spread over its cores (`ringleader`, `shinjuku`, `rss`,
/// `stealing`, `caladan`); the default is zero. `experiments/testbeds/ringleader.toml` has the paper's
/// values, with their sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CoreTimes {
    /// How long a core runs a request before it yields, if the policy uses yields; zero means never.
    #[serde(with = "span")]
    pub yields: Nanos,
    /// The time of a core to put another request in place of one that has not ended.
    #[serde(with = "span")]
    pub switch: Nanos,
    /// The delay between a NIC and a core, one way.
    #[serde(with = "span")]
    pub pcie: Nanos,
    /// The time of a core to take a request from its NIC.
    #[serde(with = "span")]
    pub descriptor: Nanos,
    /// The time of a software dispatcher for each request that it hands to a core.
    #[serde(with = "span")]
    pub dispatch: Nanos,
    /// The time of a software allocator for each packet.
    #[serde(with = "span")]
    pub allocate: Nanos,
    /// How long it takes to give a service a core, and the time between two looks at its queues.
    #[serde(with = "span")]
    pub reallocate: Nanos,
    /// The time of a core to take a request from another core's queue.
    #[serde(with = "span")]
    pub steal: Nanos,
    /// Whether a batch service, which always has work, runs where the others leave room (`ringleader`,
    /// `caladan`).
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub batch: bool,
}

impl CoreTimes {
    /// Whether all costs are zero.
    pub(super) fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// All spans with their keys.
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
