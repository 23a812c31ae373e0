//! The receiving end of `RoCEv2`: it checks each packet as a network adapter does, and says where the
//! packet's bytes go (Rain §3.2.2).
//!
//! An [`Endpoint`] knows regions of memory and queue pairs. [`Endpoint::receive`] takes the transport part
//! of a packet. It returns a [`Placed`] (bytes, and a place inside one region) or a [`RoceRefusal`], which
//! it counts by reason. For reliable connections it also returns the ACK or NAK to send, *after* the bytes
//! were copied. The memory belongs to the driver: this module cannot write at all.
//!
//! A refusal by key, bounds, opcode or length puts a reliable pair into its error state, in which it
//! accepts nothing until it is connected anew. An unreliable pair drops the packet; after a gap or an
//! overtaken packet it continues from the packet that came.
//!
//! Left out: the sending end (the switch numbers its writes itself), messages of more than one packet,
//! access rights and protection domains (every pair that shows the key may write every region), and
//! credits.

mod pair;
mod refusal;
mod region;
mod writer;

use alloc::vec::Vec;

use sluice_wire::RoceError;
use sluice_wire::roce::{Acknowledge, NakCode, Opcode, Path, Psn, Qpn, Transport, View, Write};

use pair::Pair;
pub use pair::{Mtu, NAK_EVERY, PairSpec, PairState};
pub use refusal::{RdmaCounts, RdmaError, RoceRefusal};
use region::Region;
pub use region::{RegionId, RegionSpec};
pub use writer::WriterEnd;

/// The result for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Where the packet's bytes go, or why it was refused.
    pub outcome: Result<Placed<'a>, RoceRefusal>,
    /// The answer to send once the bytes were copied.
    pub answer: Option<Acknowledge>,
    /// The pair that this packet put into its error state.
    pub failed: Option<Qpn>,
}

/// Bytes, and a place for all of them inside a registered region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed<'a> {
    pub region: RegionId,
    /// The offset of the first byte in the region. All bytes fit behind it.
    pub offset: usize,
    pub bytes: &'a [u8],
}

/// The regions and queue pairs of one address.
#[derive(Clone, Debug, Default)]
pub struct Endpoint {
    /// Sorted by number.
    pairs: Vec<Pair>,
    /// Sorted by key.
    regions: Vec<Region>,
    regions_made: u32,
    counts: RdmaCounts,
}

impl Endpoint {
    /// An endpoint without regions and pairs: it refuses every packet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a region: writers that show its key may write into it.
    pub fn register(&mut self, spec: RegionSpec) -> Result<RegionId, RdmaError> {
        let Err(at) = self.region_at(spec) else { return Err(RdmaError::KeyTaken) };
        let region = Region::new(RegionId(self.regions_made), spec)?;
        self.regions.insert(at, region);
        self.regions_made += 1;
        Ok(region.id())
    }

    /// Removes a region. Returns whether there was one.
    pub fn deregister(&mut self, region: RegionId) -> bool {
        let before = self.regions.len();
        self.regions.retain(|known| known.id() != region);
        self.regions.len() < before
    }

    /// Opens a pair, or opens it anew: its earlier state is forgotten, including an error.
    pub fn connect(&mut self, spec: PairSpec) {
        match self.pairs.binary_search_by_key(&spec.number, Pair::number) {
            Ok(at) => self.pairs[at] = Pair::new(spec),
            Err(at) => self.pairs.insert(at, Pair::new(spec)),
        }
    }

    /// Removes a pair. Returns whether there was one.
    pub fn disconnect(&mut self, number: Qpn) -> bool {
        let found = self.pairs.binary_search_by_key(&number, Pair::number);
        found.map(|at| self.pairs.remove(at)).is_ok()
    }

    /// Puts a pair into its error state; a driver whose memory is gone does this. Returns whether there is
    /// such a pair.
    pub fn fail(&mut self, number: Qpn) -> bool {
        let found = self.pairs.binary_search_by_key(&number, Pair::number);
        found.map(|at| self.pairs[at].fail()).is_ok()
    }

    /// The state of a pair; `None` if there is no such pair.
    pub fn state(&self, number: Qpn) -> Option<PairState> {
        let found = self.pairs.binary_search_by_key(&number, Pair::number);
        found.ok().map(|at| self.pairs[at].state())
    }

    /// The sequence number that a pair expects next; `None` if there is no such pair.
    pub fn expected(&self, number: Qpn) -> Option<Psn> {
        let found = self.pairs.binary_search_by_key(&number, Pair::number);
        found.ok().map(|at| self.pairs[at].expected())
    }

    /// Counters since the start.
    pub fn counts(&self) -> &RdmaCounts {
        &self.counts
    }

    /// Takes the bytes of a datagram that came on this path.
    #[inline]
    pub fn receive<'a>(&mut self, bytes: &'a [u8], path: &Path) -> Received<'a> {
        let received = self.check(bytes, path);
        match &received.outcome {
            Ok(placed) => self.counts.place(placed.bytes.len()),
            Err(why) => self.counts.refuse(*why),
        }
        received
    }

    #[inline]
    fn check<'a>(&mut self, bytes: &'a [u8], path: &Path) -> Received<'a> {
        let view = match View::parse(bytes) {
            Ok(view) => view,
            Err(why) => return refused(RoceRefusal::of_form(why)),
        };
        let Ok(at) = self.pairs.binary_search_by_key(&view.destination(), Pair::number) else {
            return refused(RoceRefusal::UnknownPair);
        };
        let pair = &mut self.pairs[at];
        if let Err(why) = pair.admits(&view, path) {
            return refused(why);
        }
        let reliable = pair.transport() == Transport::Rc;
        if reliable && let Err((why, answer)) = pair.in_order(view.psn()) {
            return Received { outcome: Err(why), answer, failed: None };
        }
        match place(&self.regions, pair.mtu(), &view) {
            Ok(placed) => {
                self.counts.resynchronised += u64::from(pair.advance(view.psn()));
                let answer = (reliable && view.ack_request()).then(|| pair.acknowledge());
                let outcome = placed.ok_or(RoceRefusal::Empty);
                Received { outcome, answer, failed: None }
            }
            Err(why) if reliable => {
                pair.fail();
                let answer = Some(pair.refuse(view.psn(), nak_of(why)));
                Received { outcome: Err(why), answer, failed: Some(pair.number()) }
            }
            Err(why) => refused(why),
        }
    }

    fn region_at(&self, spec: RegionSpec) -> Result<usize, usize> {
        self.regions.binary_search_by_key(&spec.rkey.0, Region::key)
    }
}

const fn refused(why: RoceRefusal) -> Received<'static> {
    Received { outcome: Err(why), answer: None, failed: None }
}

/// Where the bytes of an in-order packet go; `None` if it has none. A packet without bytes needs no valid
/// key.
#[inline]
fn place<'a>(regions: &[Region], mtu: Mtu, view: &View<'a>) -> Result<Option<Placed<'a>>, RoceRefusal> {
    if view.opcode() == Opcode::Continued {
        return Err(RoceRefusal::OpcodeSequence);
    }
    let (write, bytes) = view.write().map_err(|why| match why {
        RoceError::Opcode => RoceRefusal::Opcode,
        _ => RoceRefusal::Length,
    })?;
    if bytes.len() > mtu.bytes() {
        return Err(RoceRefusal::Mtu);
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    let Write { address, rkey, .. } = write;
    let found = regions.binary_search_by_key(&rkey.0, Region::key);
    let region = &regions[found.map_err(|_| RoceRefusal::Key)?];
    let offset = region.offset_of(address, bytes.len()).ok_or(RoceRefusal::Bounds)?;
    Ok(Some(Placed { region: region.id(), offset, bytes }))
}

fn nak_of(why: RoceRefusal) -> NakCode {
    match why {
        RoceRefusal::Key | RoceRefusal::Bounds => NakCode::RemoteAccess,
        _ => NakCode::InvalidRequest,
    }
}
