//! A switch in virtual time: what comes to it is a pass of its program, and where each verdict leads
//! stands here.

use sluice_switch::{Arrival, Circulating, Refusal, Verdict, WriteAhead};
use sluice_wire::{Endpoint, Handle, Nanos, Packet};

use super::{Scene, Try};
use sluice_events::{Address, Id, Mail, PacketId, Reused};

/// A rack's switch, and what becomes of what its program says.
pub trait SwitchSide: Scene {
    /// What is remembered of an arrival until its pass has ended.
    type ArrivalContext;

    /// What goes round.
    fn rounds(&mut self) -> &mut Reused<Circulating>;

    /// A packet comes in. The switch may keep the bytes that belong to it: says whether it has room for them.
    fn takes_in(&mut self, from: Address, packet: PacketId) -> Try<Self, (Self::ArrivalContext, bool)>;

    /// What went round comes in.
    fn comes_round(&mut self, round: Id<Circulating>) -> Try<Self, Self::ArrivalContext>;

    /// The program's pass, if there is a program, and what follows from it.
    fn pass(&mut self, arrival: Arrival, context: Self::ArrivalContext) -> Try<Self>;

    /// A packet goes out with the bytes that belong to it: says when.
    fn lets_out(
        &mut self,
        to: Address,
        packet: &mut Packet,
        context: Self::ArrivalContext,
    ) -> Try<Self, Nanos>;

    /// A packet is to come in once more.
    fn goes_round(&mut self, round: &mut Circulating, context: Self::ArrivalContext) -> Try<Self>;

    /// A task's bytes are written to the worker's server before its DISPATCH comes.
    fn writes_ahead(&mut self, write: &WriteAhead, context: Self::ArrivalContext) -> Try<Self>;

    /// A packet ends here.
    fn drops(&mut self, why: Refusal, context: Self::ArrivalContext) -> Try<Self>;

    /// A task that waited was refused: its bytes are no longer needed.
    fn forgets(&mut self, _bytes: Handle) -> Try<Self> {
        Ok(())
    }

    /// A packet comes from a host, or something has gone round.
    #[inline]
    fn switch_hears(&mut self, mail: Mail) -> Try<Self> {
        match mail {
            Mail::Packet { from, packet: id } => {
                let (context, room) = self.takes_in(from, id)?;
                let arrival = Arrival::Wire { from: from.endpoint(), packet: *self.packets().get(id), room };
                self.packets().free(id);
                self.pass(arrival, context)
            }
            Mail::Round(id) => {
                let context = self.comes_round(id)?;
                let round = self.rounds().take(id);
                self.pass(Arrival::Round(round), context)
            }
        }
    }

    /// Does what the program said, where it says it.
    #[inline]
    fn follows(&mut self, verdict: &mut Verdict, context: Self::ArrivalContext) -> Try<Self> {
        match verdict {
            Verdict::Send { to, packet } => self.goes_out(to, packet, context),
            Verdict::Swept { to, packet, payload } => {
                self.forgets(*payload)?;
                self.goes_out(to, packet, context)
            }
            Verdict::Again(round) => self.goes_round(round, context),
            Verdict::Ahead(write) => self.writes_ahead(write, context),
            Verdict::Parked => Ok(()),
            Verdict::Drop(why) => self.drops(*why, context),
        }
    }

    /// A packet leaves for where it belongs.
    #[expect(clippy::inline_always, reason = "each pass pays for a call that stays one")]
    #[inline(always)]
    fn goes_out(&mut self, to: &Endpoint, packet: &mut Packet, context: Self::ArrivalContext) -> Try<Self> {
        let (from, to) = (self.switch_at(), Address::of(to));
        let leaves = self.lets_out(to, packet, context)?;
        self.send(from, to, leaves, |place| *place = *packet);
        Ok(())
    }
}
