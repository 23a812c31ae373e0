//! The ids and units of the protocol, each a type of its own, so that none is taken for another.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::{Add, Sub};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id!(/// One life of the switch's registers. Grows with every restart; 0 is none.
    Epoch(u32));
id!(/// A controller's turn at a switch. Each that takes a switch over has a greater number than all before; 0 is none.
    Term(u32));
id!(/// What a registered host shows with each packet, drawn anew at each registration.
    Key(u32));
id!(/// Dense index of a client, from the controller.
    ClientId(u16));
id!(/// Dense index of a worker, from the controller.
    WorkerId(u16));
id!(/// Dense index of a slice: one queue and the workers that it feeds (Rain §3.2.3).
    SliceId(u16));
id!(/// Dense index of a server: its workers share registered memory, into which tasks are written ahead.
    ServerId(u16));
id!(/// Number of an RDMA queue pair: 24 bits; what is above them does not reach the wire.
    Qpn(u32));
id!(/// What lets an RDMA WRITE into a registered region.
    Rkey(u32));
id!(/// Grows whenever a worker joins, moves slice, dies or is re-admitted.
    Generation(u32));
id!(/// 64 random bits per start of a client.
    Incarnation(u64));
id!(/// What kind of work a task is; the controller maps types to slices.
    TaskType(u16));
id!(/// Which try of a task a packet belongs to; the first is 1.
    Attempt(u16));
id!(/// Names a question, so that its answer can be told from an older one.
    Nonce(u32));
id!(/// Tasks before each of a rack's workers, in the mean; the unit is 2⁻¹⁶ of a task (Horus A.2).
    MeanQueue(u32));
id!(/// Where the bytes of a payload lie. Only the driver that made it knows what it means.
    Handle(u32));

/// How many tasks stand before a token at its worker when the token leaves: 0 to [`Rank::MAX`]. A switch
/// that ranks gives a task the parked token of the least rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(u8);

impl Rank {
    /// The last rank: no worker has more tokens, and so more tasks before one.
    pub const MAX: Self = Self(crate::sizes::QUOTA_MAX - 1);

    /// The rank behind so many tasks; the last rank stands for all larger numbers.
    #[inline]
    #[must_use]
    pub const fn behind(tasks: u32) -> Self {
        if tasks < Self::MAX.0 as u32 { Self(tasks as u8) } else { Self::MAX }
    }

    /// The rank behind so many more tasks.
    #[inline]
    #[must_use]
    pub const fn further(self, tasks: u32) -> Self {
        Self::behind((self.0 as u32).saturating_add(tasks))
    }

    /// How many tasks stand before the token.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The rank with this number; `None` beyond [`Rank::MAX`].
    #[inline]
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Incarnation {
    /// The incarnation of these two halves.
    #[inline]
    #[must_use]
    pub const fn of(high: u32, low: u32) -> Self {
        Self((high as u64) << 32 | low as u64)
    }

    /// The upper 32 bits.
    #[inline]
    pub const fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The lower 32 bits.
    #[inline]
    pub const fn low(self) -> u32 {
        self.0 as u32
    }
}

impl Qpn {
    /// The queue pair with this number; `None` beyond 24 bits.
    pub const fn new(number: u32) -> Option<Self> {
        if number >> 24 == 0 { Some(Self(number)) } else { None }
    }

    /// The number, 24 bits.
    pub const fn get(self) -> u32 {
        self.0 & BITS_24
    }
}

impl Handle {
    /// No handle: there are no bytes beside the inline ones.
    pub const NONE: Self = Self(u32::MAX);
}

/// A cumulative counter that wraps: compare with [`Serial::since`] only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Serial(pub u32);

impl Serial {
    /// How far this is past `older`; negative when it is behind.
    pub const fn since(self, older: Self) -> i32 {
        self.0.wrapping_sub(older.0) as i32
    }

    /// The counter `steps` later.
    #[must_use]
    pub const fn plus(self, steps: u32) -> Self {
        Self(self.0.wrapping_add(steps))
    }

    /// The later of the two.
    #[must_use]
    pub const fn latest(self, other: Self) -> Self {
        if self.since(other) >= 0 { self } else { other }
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Mask of the 24 bits that RDMA's numbers have.
const BITS_24: u32 = (1 << 24) - 1;

/// The number of an RDMA packet: 24 bits that wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    /// The number, cut to 24 bits.
    pub const fn new(number: u32) -> Self {
        Self(number & BITS_24)
    }

    /// The number, 24 bits.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// How far this is past `older` if they are near each other, −2^23 … 2^23 − 1; negative when it is
    /// behind.
    pub const fn since(self, older: Self) -> i32 {
        (self.0.wrapping_sub(older.0) << 8) as i32 >> 8
    }

    /// How many packets this is past `older`, below 2^24. The numbers alone do not tell which one is older.
    pub const fn past(self, older: Self) -> u32 {
        self.0.wrapping_sub(older.0) & BITS_24
    }

    /// The number `steps` later.
    #[must_use]
    pub const fn plus(self, steps: u32) -> Self {
        Self::new(self.0.wrapping_add(steps))
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A point in time, or a span, in nanoseconds. The driver decides where zero lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// A span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// The span from `earlier` to this point; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// The span times `factor`, saturating.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// The span as the wire carries it: nanoseconds in 32 bits, saturating at 4.29 s.
    pub const fn saturated(self) -> u32 {
        if self.0 > u32::MAX as u64 { u32::MAX } else { self.0 as u32 }
    }
}

/// A long span as the wire carries it, in units of 16,384 ns, rounded up. It saturates after 19 h, and then
/// means "older than anything".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Age(pub u32);

impl Age {
    /// Older than anything.
    pub const MAX: Self = Self(u32::MAX);
    const SHIFT: u32 = 14;

    /// The shortest age that is not below `span`.
    pub const fn of(span: Nanos) -> Self {
        let units = span.0.div_ceil(1 << Self::SHIFT);
        Self(if units > u32::MAX as u64 { u32::MAX } else { units as u32 })
    }

    /// The longest span that this age can mean; `None` if the age is saturated.
    pub const fn span(self) -> Option<Nanos> {
        if self.0 == u32::MAX { None } else { Some(Nanos((self.0 as u64) << Self::SHIFT)) }
    }

    /// This age after a further span.
    #[must_use]
    pub const fn plus(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(Self::of(span).0))
    }
}

/// For how long it is still worth beginning a task, in units of 1,024 ns, rounded down: 0 is no limit, and 1
/// that nothing is left. Time on the network is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget(pub u16);

impl Budget {
    /// The task may begin at any time.
    pub const NONE: Self = Self(0);
    /// The task is not worth beginning any more.
    pub const SPENT: Self = Self(1);
    /// The longest span that a budget can tell.
    pub const LONGEST: Nanos = Nanos((u16::MAX as u64) << Self::SHIFT);
    /// The shortest span that is a budget: a shorter one counts as spent.
    pub const SHORTEST: Nanos = Nanos(2 << Self::SHIFT);
    const SHIFT: u32 = 10;

    /// The largest budget that is not above `span`.
    pub const fn of(span: Nanos) -> Self {
        match span.0 >> Self::SHIFT {
            0 | 1 => Self::SPENT,
            units if units > u16::MAX as u64 => Self(u16::MAX),
            units => Self(units as u16),
        }
    }

    /// The span that is left; `None` without a limit.
    pub const fn span(self) -> Option<Nanos> {
        match self.0 {
            0 => None,
            1 => Some(Nanos(0)),
            units => Some(Nanos((units as u64) << Self::SHIFT)),
        }
    }

    /// Whether the task may begin at any time.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether nothing is left.
    #[inline]
    pub const fn is_spent(self) -> bool {
        self.0 == 1
    }

    /// What is left after a wait; the wait is rounded up.
    #[must_use]
    #[inline]
    pub const fn after(self, wait: Nanos) -> Self {
        if self.0 == 0 { self } else { self.less(wait) }
    }

    /// Kept apart, so that tasks without a budget do not pay for it.
    #[cold]
    #[inline(never)]
    const fn less(self, wait: Nanos) -> Self {
        let units = wait.0.div_ceil(1 << Self::SHIFT);
        match (self.0 as u64).saturating_sub(units) {
            0 | 1 => Self::SPENT,
            left => Self(left as u16),
        }
    }
}

impl Add for Nanos {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

/// The id of a task: the start of the client that submitted it, and its number there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaskId {
    pub incarnation: Incarnation,
    /// The task's number in that start of the client.
    pub sequence: Serial,
}

impl TaskId {
    /// What the switch keeps of the id while the task waits: the lower half of its incarnation, and its
    /// number. A task that waited comes to its worker with another upper half if its client's registration
    /// ended meanwhile.
    #[inline]
    #[must_use]
    pub const fn kept(self) -> (u32, Serial) {
        (self.incarnation.low(), self.sequence)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}/{}", self.incarnation.0, self.sequence)
    }
}

/// An address and port, 16 bytes for either family: IPv4 is carried as IPv4-mapped IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    pub ip: [u8; 16],
    pub port: u16,
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        Self { ip, port: address.port() }
    }
}

impl From<Endpoint> for SocketAddr {
    fn from(endpoint: Endpoint) -> Self {
        let v6 = Ipv6Addr::from(endpoint.ip);
        let ip = v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), |v4: Ipv4Addr| IpAddr::V4(v4));
        Self::new(ip, endpoint.port)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&SocketAddr::from(*self), f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn packet_numbers_wrap_after_24_bits() {
        let last = Psn::new(u32::MAX);
        assert_eq!(last.get(), 0xff_ffff);
        assert_eq!(last.plus(3), Psn::new(2));
        assert_eq!((Psn::new(2).past(last), last.past(Psn::new(2))), (3, 0xff_fffd));
        assert_eq!(Qpn(0xab00_0007).get(), 7);
    }

    #[test]
    fn of_two_counts_the_latest_is_the_one_that_is_ahead_also_past_a_wrap() {
        let (before, behind) = (Serial(u32::MAX - 1), Serial(3));
        assert_eq!((behind.since(before), before.since(behind)), (5, -5));
        assert_eq!([before.latest(behind), behind.latest(before)], [behind; 2]);
    }

    #[test]
    fn the_last_rank_stands_for_all_further() {
        assert_eq!([0, 6, 7, 8, u32::MAX].map(|tasks| Rank::behind(tasks).get()), [0, 6, 7, 7, 7]);
        assert_eq!(Rank::behind(5).further(u32::MAX), Rank::MAX);
    }

    #[test]
    fn spans_that_are_too_long_for_the_wire_saturate_there() {
        let longest = u64::from(u32::MAX);
        let spans = [7, longest - 1, longest + 1].map(|span| Nanos(span).saturated());
        assert_eq!(spans, [7, u32::MAX - 1, u32::MAX]);
        assert_eq!(
            (Nanos(5) + Nanos(7), Nanos(7) - Nanos(5), Nanos(5) - Nanos(7)),
            (Nanos(12), Nanos(2), Nanos(0))
        );
    }

    #[test]
    fn an_age_is_rounded_up_and_the_oldest_says_no_more_than_that() {
        assert_eq!([0, 1, 16_384, 16_385].map(|span| Age::of(Nanos(span))), [0, 1, 1, 2].map(Age));
        assert_eq!(Age(3).span(), Some(Nanos(3 * 16_384)));
        assert_eq!(Age(3).plus(Nanos(1)), Age(4));
        let oldest_told = Age(u32::MAX - 1);
        assert_eq!(Age::of(oldest_told.span().unwrap()), oldest_told);
        assert_eq!((Age::of(Nanos(u64::MAX)), Age::MAX.span()), (Age::MAX, None));
    }

    #[test]
    fn a_budget_is_rounded_down_and_a_spent_one_is_no_unlimited_one() {
        let of = [0, 2_047, 2_048, 3_071, 3_072, 67_107_840, u64::MAX].map(|span| Budget::of(Nanos(span)));
        assert_eq!(of, [1, 1, 2, 2, 3, u16::MAX, u16::MAX].map(Budget));
        assert_eq!((Budget::NONE.span(), Budget::SPENT.span()), (None, Some(Nanos(0))));
        assert_eq!(
            [Budget::of(Budget::LONGEST), Budget::of(Budget::SHORTEST)],
            [Budget(u16::MAX), Budget(2)]
        );
        for budget in [0, 1, 2, 3, 200, u16::MAX].map(Budget) {
            for wait in [0, 1, 1_024, 1_025, 204_800, u64::MAX].map(Nanos) {
                let left = budget.after(wait);
                assert_eq!(left.is_none(), budget.is_none(), "{budget:?} after {wait:?}");
                let (Some(before), Some(span)) = (budget.span(), left.span()) else { continue };
                assert!(span + wait <= before || span == Nanos(0), "{budget:?} after {wait:?}: {left:?}");
                assert!(left.is_spent() || before - (span + wait) < Nanos(1_024), "{left:?} is too little");
            }
        }
    }

    #[test]
    fn people_read_numbers_and_addresses_as_they_are() {
        let task = TaskId { incarnation: Incarnation(0xabc), sequence: Serial(7) };
        assert_eq!(format!("{task} {} {}", Rank::behind(3), Psn::new(9)), "0000000000000abc/7 3 9");
        for address in ["10.0.0.1:4791", "[fd00::1]:5"] {
            assert_eq!(Endpoint::from(address.parse::<SocketAddr>().unwrap()).to_string(), address);
        }
    }
}
