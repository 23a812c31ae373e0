//! A switch in virtual time: what comes to it is a pass of its program, and where each verdict leads
//! stands here.

use sluice_switch::{Arrival, Circulating, Refusal, Verdict, WriteAhead};
use sluice_wire::{Endpoint, Handle, Nanos, Packet};

use super::{Scene, Try};
use crate::world::{Address, Mail, Reused};

/// A rack's switch, and what becomes of what its program says.
pub(crate) trait SwitchSide: Scene {
    /// What is remembered of an arrival until its pass has ended.
    type Brought;

    /// What goes round.
    fn rounds(&mut self) -> &mut Reused<Circulating>;

    /// Something comes in. The switch may keep the bytes that belong to it.
    fn takes_in(&mut self, arrival: &mut Arrival) -> Try<Self, Self::Brought>;

    /// The program's pass; `None` if there is no program any more.
    fn pass(&mut self, arrival: Arrival) -> Try<Self, Option<Verdict>>;

    /// A packet goes out with the bytes that belong to it: says when.
    fn lets_out(&mut self, to: Address, packet: &mut Packet, brought: Self::Brought) -> Try<Self, Nanos>;

    fn goes_round(&mut self, round: &mut Circulating, brought: Self::Brought) -> Try<Self>;

    fn writes_ahead(&mut self, write: &WriteAhead, brought: Self::Brought) -> Try<Self>;

    fn drops(&mut self, why: Refusal, brought: Self::Brought) -> Try<Self>;

    /// A task that waited was refused: its bytes are no longer needed.
    fn forgets(&mut self, _bytes: Handle) -> Try<Self> {
        Ok(())
    }

    /// A packet comes from a host, or something has gone round.
    #[inline]
    fn switch_hears(&mut self, mail: Mail) -> Try<Self> {
        match mail {
            Mail::Packet { from, packet: id } => {
                let arrival =
                    Arrival::Wire { from: from.endpoint(), packet: *self.packets().get(id), room: true };
                self.packets().free(id);
                self.passes(arrival)
            }
            Mail::Round(id) => {
                let round = self.rounds().take(id);
                self.passes(Arrival::Round(round))
            }
        }
    }

    /// Something passes through the program.
    #[inline]
    fn passes(&mut self, mut arrival: Arrival) -> Try<Self> {
        let brought = self.takes_in(&mut arrival)?;
        let Some(mut verdict) = self.pass(arrival)? else { return Ok(()) };
        match &mut verdict {
            Verdict::Send { to, packet } => self.goes_out(to, packet, brought),
            Verdict::Swept { to, packet, payload } => {
                self.forgets(*payload)?;
                self.goes_out(to, packet, brought)
            }
            Verdict::Again(round) => self.goes_round(round, brought),
            Verdict::Ahead(write) => self.writes_ahead(write, brought),
            Verdict::Parked => Ok(()),
            Verdict::Drop(why) => self.drops(*why, brought),
        }
    }

    #[inline]
    fn goes_out(&mut self, to: &Endpoint, packet: &mut Packet, brought: Self::Brought) -> Try<Self> {
        let (from, to) = (self.switch_at(), Address::of(to));
        let leaves = self.lets_out(to, packet, brought)?;
        self.send(from, to, leaves, |place| *place = *packet);
        Ok(())
    }
}
