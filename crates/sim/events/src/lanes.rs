//! Lanes by their delay.

use sluice_wire::Nanos;

use crate::engine::{EventEngine, LaneId};

/// The most lanes; a world has other sources too.
const LANES_MAX: usize = 24;

/// Lanes for delays that become known during the run. A world has only a few such delays. If there are more
/// than lanes, a message goes to a lane of another delay: that costs more time but stays exact.
#[derive(Debug, Default)]
pub struct SpanLanes {
    known: Vec<(Nanos, LaneId)>,
}

impl SpanLanes {
    /// The lane for this delay.
    #[inline]
    pub fn of<C, M: Copy>(&mut self, engine: &mut EventEngine<C, M>, span: Nanos) -> LaneId {
        match self.known.iter().find(|(of, _)| *of == span) {
            Some((_, lane)) => *lane,
            None => self.another(engine, span),
        }
    }

    #[cold]
    fn another<C, M: Copy>(&mut self, engine: &mut EventEngine<C, M>, span: Nanos) -> LaneId {
        if self.known.len() == LANES_MAX {
            return self.known[0].1;
        }
        let lane = engine.lane(span);
        self.known.push((span, lane));
        lane
    }
}
