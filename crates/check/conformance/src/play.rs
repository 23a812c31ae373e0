//! Plays a vector on a data plane.

use std::fmt;
use std::net::SocketAddr;

use sluice_wire::tables::TableOp;
use sluice_wire::{Nanos, Sweep};

use crate::VectorError;
use crate::sent::{Sent, StepOutput};
use crate::vector::{FinalState, Step, Vector};

/// What a data plane must offer to be compared with vectors. At the start it has the vector's size and is
/// empty.
pub trait Plane {
    /// The plane's errors.
    type Error: fmt::Display;

    /// Performs one of the controller's steps.
    fn table(&mut self, op: TableOp) -> Result<(), Self::Error>;

    /// Passes a datagram at this time, and returns the packet that leaves.
    fn packet(&mut self, now: Nanos, from: SocketAddr, bytes: &[u8]) -> Result<Option<Sent>, Self::Error>;

    /// The copies of the WRITE that left for the last packet, by their servers' indices.
    fn written(&mut self) -> Result<Vec<Sent>, Self::Error> {
        Ok(Vec::new())
    }

    /// How often the last packet or SWEEP recirculated; `None` if the plane does not count it.
    fn rounds(&self) -> Option<u32> {
        None
    }

    /// Performs a SWEEP to its end, and returns the packet that leaves.
    fn sweep(&mut self, now: Nanos, sweep: Sweep) -> Result<Option<Sent>, Self::Error>;

    /// The state of the plane's tables and queues.
    fn after(&mut self) -> Result<FinalState, Self::Error>;
}

/// Plays all steps of a vector on a plane, and compares the outputs and the final state.
///
/// # Errors
/// The first difference, or the plane's error.
pub fn play<P: Plane>(vector: &Vector, plane: &mut P) -> Result<(), VectorError> {
    for (index, step) in vector.steps.iter().enumerate() {
        let found = take(plane, step, vector.shape.epoch).map_err(|why| VectorError::Plane {
            vector: vector.name.clone(),
            step: index,
            why: why.to_string(),
        })?;
        let is_counted = |rounds: &u32| found.rounds.map(|_| *rounds);
        let expected = match step {
            Step::Packet { out, written, rounds, .. } => {
                StepOutput { sent: out.clone(), written: written.clone(), rounds: is_counted(rounds) }
            }
            Step::Sweep { out, rounds, .. } => {
                StepOutput { sent: out.clone(), written: Vec::new(), rounds: is_counted(rounds) }
            }
            _ => StepOutput::default(),
        };
        if found != expected {
            return Err(VectorError::Differs {
                vector: vector.name.clone(),
                step: index,
                expected: expected.to_string(),
                found: found.to_string(),
            });
        }
    }
    let after = plane.after().map_err(|why| VectorError::Plane {
        vector: vector.name.clone(),
        step: vector.steps.len(),
        why: why.to_string(),
    })?;
    compare(vector, &after)
}

/// The output of a step.
pub(crate) fn take<P: Plane>(plane: &mut P, step: &Step, epoch: u32) -> Result<StepOutput, P::Error> {
    if let Some(op) = step.table() {
        return plane.table(op).map(|()| StepOutput::default());
    }
    if let Some((now, sweep)) = step.sweep(epoch) {
        let sent = plane.sweep(now, sweep)?;
        return Ok(StepOutput { sent, written: Vec::new(), rounds: plane.rounds() });
    }
    let Step::Packet { at_ns, from, r#in, .. } = step else { return Ok(StepOutput::default()) };
    let sent = plane.packet(Nanos(*at_ns), *from, r#in)?;
    Ok(StepOutput { sent, written: plane.written()?, rounds: plane.rounds() })
}

fn compare(vector: &Vector, found: &FinalState) -> Result<(), VectorError> {
    let differs =
        |expected: String, found: String| VectorError::After { vector: vector.name.clone(), expected, found };
    let expected = &vector.after;
    if expected.epoch != found.epoch {
        return Err(differs(expected.epoch.to_string(), found.epoch.to_string()));
    }
    for (index, pair) in expected.slices.iter().zip(&found.slices).enumerate() {
        if pair.0 != pair.1 {
            return Err(differs(format!("slice {index}: {:?}", pair.0), format!("{:?}", pair.1)));
        }
    }
    for (index, pair) in expected.workers.iter().zip(&found.workers).enumerate() {
        if pair.0 != pair.1 {
            return Err(differs(format!("worker {index}: {:?}", pair.0), format!("{:?}", pair.1)));
        }
    }
    if expected.psns != found.psns {
        return Err(differs(format!("PSNs {:?}", expected.psns), format!("{:?}", found.psns)));
    }
    if expected != found {
        return Err(differs(format!("{:?}", expected.counts), format!("{:?}", found.counts)));
    }
    Ok(())
}
