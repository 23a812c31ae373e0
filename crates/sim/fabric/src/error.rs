//! The errors of a fabric: settings that it refuses, and runs that fail.

use std::fmt::Display;

use sluice_host::pacer::PacerError;
use thiserror::Error;

/// Why a fabric cannot be made, or has no result; one line each.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FabricError {
    #[error("a fat-tree of {k}-port switches: give an even number from 2 to {max}")]
    FatTree {
        k: u32,
        /// The largest possible value.
        max: u32,
    },
    /// A leaf-spine without leaves, spines or hosts.
    #[error("{what} of a leaf-spine: give at least 1")]
    LeafSpine {
        /// The part of which there is none.
        what: &'static str,
    },
    /// A link with a rate of zero or less.
    #[error("link {link} has rate {gbps} Gb/s: give more than 0, at most {max}")]
    Rate {
        /// The link's position in the list, from 0.
        link: usize,
        gbps: f64,
        max: f64,
    },
    /// A link to a node that does not exist.
    #[error("link {link} leads to {end}, and there are {hosts} hosts and {switches} switches")]
    FabricEnd {
        link: usize,
        /// The end that does not exist.
        end: String,
        hosts: u32,
        switches: u32,
    },
    /// A host that does not have exactly one link, to a switch.
    #[error("host {host} has {links} links to switches: give it one")]
    Attached {
        host: u32,
        /// How many links the host has.
        links: usize,
    },
    /// There are fewer than two hosts.
    #[error("a fabric of {hosts} hosts: give at least 2")]
    Hosts { hosts: u32 },
    /// Two hosts without a path between them.
    #[error("no path leads from switch {from} to host {host}: add links")]
    Apart {
        from: u32,
        /// A host that cannot be reached.
        host: u32,
    },
    /// A setting is out of its range.
    #[error("{what} is {given}: give {wanted}")]
    Setting { what: &'static str, given: String, wanted: String },
    /// The headroom is too small for the frames that may arrive after a pause was asked for.
    #[error(
        "headroom of {headroom} bytes loses frames under PFC: over {gbps} Gb/s and {delay_ns} ns give at \
         least {least}"
    )]
    Headroom { headroom: u64, gbps: f64, delay_ns: u64, least: u64 },
    /// The headroom takes the whole buffer.
    #[error(
        "a buffer of {buffer} bytes: headroom and a frame for each of {ports} ports take {reserved}; \
         give more"
    )]
    Buffer {
        buffer: u64,
        /// How many ports the switch has.
        ports: usize,
        reserved: u64,
    },
    /// The text is not a distribution of sizes.
    #[error("line {line} of the sizes: {why}")]
    Cdf {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The load is more than the links can carry.
    #[error("load {load} takes {share:.2} of a link between switches: give at most {most:.2}")]
    Load {
        /// The load that was asked for.
        load: f64,
        /// The share of the busiest link that the load takes.
        share: f64,
        /// The load that fills it.
        most: f64,
    },
    #[error(transparent)]
    Pacer(#[from] PacerError),
    /// No flow makes progress: they wait for each other.
    #[error(
        "no frame arrived for {span_ns} ns though {flows} flows are under way and {paused} ports are paused: \
         the paths wait for each other in a circle (a PFC deadlock); give paths that go up and then down"
    )]
    Stuck {
        /// For how long no frame arrived, in nanoseconds.
        span_ns: u64,
        /// How many flows wait.
        flows: usize,
        /// How many ports are paused.
        paused: usize,
    },
}

/// Returns an error unless the condition holds.
pub(crate) fn require(
    holds: bool,
    what: &'static str,
    given: impl Display,
    wanted: impl Display,
) -> Result<(), FabricError> {
    if holds {
        return Ok(());
    }
    Err(FabricError::Setting { what, given: given.to_string(), wanted: wanted.to_string() })
}
