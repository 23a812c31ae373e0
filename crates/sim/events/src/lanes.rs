//! Lanes by how long what they keep takes.

use sluice_wire::Nanos;

use crate::engine::{EventEngine, LaneId};

/// Most lanes; a world has other sources too.
const LANES_MAX: usize = 24;

/// The lanes of whoever learns on the way how long things take. A world has a few such times only: what takes
/// as long as none of them goes with another, and costs more, not less exactly.
#[derive(Debug, Default)]
pub struct SpanLanes {
    known: Vec<(Nanos, LaneId)>,
}

impl SpanLanes {
    /// The lane for what takes so long.
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
