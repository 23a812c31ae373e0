//! What a fabric refuses, and how it fails.

use std::fmt::Display;

use sluice_host::pacer::PacerError;
use thiserror::Error;

/// Why there is no such fabric, or no result of one: one line each.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FabricError {
    #[error("a fat-tree of {k}-port switches: give an even number from 2 to {max}")]
    FatTree {
        k: u32,
        /// The largest.
        max: u32,
    },
    /// A leaf-spine of nothing.
    #[error("{what} of a leaf-spine: give at least 1")]
    LeafSpine {
        /// What there is none of.
        what: &'static str,
    },
    /// A link that carries nothing.
    #[error("link {link} has rate {gbps} Gb/s: give more than 0, at most {max}")]
    Rate {
        /// The link, from 0, as they were listed.
        link: usize,
        gbps: f64,
        max: f64,
    },
    /// A link to nowhere.
    #[error("link {link} leads to {end}, and there are {hosts} hosts and {switches} switches")]
    FabricEnd {
        link: usize,
        /// The end that is not there.
        end: String,
        /// How many hosts there are.
        hosts: u32,
        switches: u32,
    },
    /// Hosts have one link each, to a switch.
    #[error("host {host} has {links} links to switches: give it one")]
    Attached {
        host: u32,
        /// How many it has.
        links: usize,
    },
    /// There are no two hosts.
    #[error("a fabric of {hosts} hosts: give at least 2")]
    Hosts {
        /// How many there are.
        hosts: u32,
    },
    /// Two hosts that cannot reach each other.
    #[error("no path leads from switch {from} to host {host}: add links")]
    Apart {
        from: u32,
        /// A host that it does not reach.
        host: u32,
    },
    /// A setting out of its range.
    #[error("{what} is {given}: give {wanted}")]
    Setting { what: &'static str, given: String, wanted: String },
    /// Headroom that cannot hold what comes after a pause was asked for.
    #[error(
        "headroom of {headroom} bytes loses frames under PFC: over {gbps} Gb/s and {delay_ns} ns give at \
         least {least}"
    )]
    Headroom { headroom: u64, gbps: f64, delay_ns: u64, least: u64 },
    /// A buffer that headroom takes all of.
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
    /// A distribution of sizes that is none.
    #[error("line {line} of the sizes: {why}")]
    Cdf {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// More load than links can carry.
    #[error("load {load} takes {share:.2} of a link between switches: give at most {most:.2}")]
    Load {
        /// The load that was asked for.
        load: f64,
        /// What it takes of the busiest link.
        share: f64,
        /// The load that fills it.
        most: f64,
    },
    #[error(transparent)]
    Pacer(#[from] PacerError),
    /// Flows wait for each other for ever.
    #[error(
        "no frame arrived for {span_ns} ns though {flows} flows are under way and {paused} ports are paused: \
         the paths wait for each other in a circle (a PFC deadlock); give paths that go up and then down"
    )]
    Stuck {
        /// For how long.
        span_ns: u64,
        /// How many flows wait.
        flows: usize,
        /// How many ports are paused.
        paused: usize,
    },
}

/// An error unless it holds.
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
