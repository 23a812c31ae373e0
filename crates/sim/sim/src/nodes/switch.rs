//! A switch in virtual time: what comes to it is a pass of its program, and where each verdict leads
//! stands here.

use sluice_switch::{Arrival, Circulating, Refusal, Verdict, WriteAhead};
use sluice_wire::{Endpoint, Handle, Nanos, Packet};

use super::{Scene, Try};
use crate::events::{Address, Id, Mail, PacketId, Reused};

/// A rack's switch, and what becomes of what its program says.
pub(crate) trait SwitchSide: Scene {
    /// What is remembered of an arrival until its pass has ended.
    type Brought;

    /// What goes round.
    fn rounds(&mut self) -> &mut Reused<Circulating>;

    /// A packet comes in. The switch may keep the bytes that belong to it: says whether it has room for them.
    fn takes_in(&mut self, from: Address, packet: PacketId) -> Try<Self, (Self::Brought, bool)>;

    /// What went round comes in.
    fn comes_round(&mut self, round: Id<Circulating>) -> Try<Self, Self::Brought>;

    /// The program's pass, if there is a program, and what follows from it.
    fn pass(&mut self, arrival: Arrival, brought: Self::Brought) -> Try<Self>;

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
                let (brought, room) = self.takes_in(from, id)?;
                let arrival = Arrival::Wire { from: from.endpoint(), packet: *self.packets().get(id), room };
                self.packets().free(id);
                self.pass(arrival, brought)
            }
            Mail::Round(id) => {
                let brought = self.comes_round(id)?;
                let round = self.rounds().take(id);
                self.pass(Arrival::Round(round), brought)
            }
        }
    }

    /// Does what the program said, where it says it.
    #[inline]
    fn follows(&mut self, verdict: &mut Verdict, brought: Self::Brought) -> Try<Self> {
        match verdict {
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

    #[expect(clippy::inline_always, reason = "each pass pays for a call that stays one")]
    #[inline(always)]
    fn goes_out(&mut self, to: &Endpoint, packet: &mut Packet, brought: Self::Brought) -> Try<Self> {
        let (from, to) = (self.switch_at(), Address::of(to));
        let leaves = self.lets_out(to, packet, brought)?;
        self.send(from, to, leaves, |place| *place = *packet);
        Ok(())
    }
}
