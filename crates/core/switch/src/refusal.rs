//! The reasons for which the switch refuses packets.

/// Why a packet changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No such client or worker is registered.
    UnknownSource,
    /// The packet shows another key than the registered one.
    WrongKey,
    /// The registered host has another address.
    WrongAddress,
    /// The packet names another epoch of the switch; it is answered.
    WrongEpoch,
    /// The packet names another generation of the worker; it is answered.
    WrongGeneration,
    /// The worker's generation is changing; the packet is answered.
    Closed,
    /// This try of the task came before.
    Replayed,
    /// All tokens that the TOKEN counts were granted before; it is answered.
    RepeatedToken,
    /// The TOKEN counts further ahead than any worker may; it is answered.
    ImpossibleCounter,
    /// A kind of packet that this program or port does not take.
    Unexpected,
    /// More tokens are parked than were ever admitted: a bug.
    TokenRingFull,
    /// A queue is full, and the program as published does not tell the client.
    QueueFull,
    /// The SWEEP has finished.
    SweepDone,
    /// A note that the program sent to itself has finished.
    FixDone,
    /// A server's NAK names a packet before its last NAK's, or one that was not sent.
    OldNak,
    /// A worker says that it holds more tasks than an average can hold; its reply goes on.
    ImpossibleLoad,
    /// The controller's sweep came while another was under way in its slice, and found nothing in its one
    /// pass.
    SweepUnderWay,
    /// As many packets recirculate as may; the task is rejected.
    RoundsFull,
    /// The note of a target's window has come round, and a slice's limit was measured anew.
    LimitMeasured,
}

impl Refusal {
    /// All reasons, in the order of [`Refusals`].
    pub const ALL: [Self; 19] = [
        Self::UnknownSource,
        Self::WrongKey,
        Self::WrongAddress,
        Self::WrongEpoch,
        Self::WrongGeneration,
        Self::Closed,
        Self::Replayed,
        Self::RepeatedToken,
        Self::ImpossibleCounter,
        Self::Unexpected,
        Self::TokenRingFull,
        Self::QueueFull,
        Self::SweepDone,
        Self::FixDone,
        Self::OldNak,
        Self::ImpossibleLoad,
        Self::SweepUnderWay,
        Self::RoundsFull,
        Self::LimitMeasured,
    ];

    /// The reason as counters and status pages write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownSource => "unknown_source",
            Self::WrongKey => "wrong_key",
            Self::WrongAddress => "wrong_address",
            Self::WrongEpoch => "wrong_epoch",
            Self::WrongGeneration => "wrong_generation",
            Self::Closed => "closed",
            Self::Replayed => "replayed",
            Self::RepeatedToken => "repeated_token",
            Self::ImpossibleCounter => "impossible_counter",
            Self::Unexpected => "unexpected_kind",
            Self::TokenRingFull => "token_ring_full",
            Self::QueueFull => "queue_full",
            Self::SweepDone => "sweep_done",
            Self::FixDone => "fix_done",
            Self::OldNak => "old_nak",
            Self::ImpossibleLoad => "impossible_load",
            Self::SweepUnderWay => "sweep_under_way",
            Self::RoundsFull => "rounds_full",
            Self::LimitMeasured => "limit_measured",
        }
    }
}

/// Counts of refused packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    counts: [u64; Refusal::ALL.len()],
}

impl Refusals {
    pub(crate) const fn add(&mut self, refusal: Refusal) {
        self.counts[refusal as usize] += 1;
    }

    /// How many packets were refused for this reason.
    pub const fn of(&self, refusal: Refusal) -> u64 {
        self.counts[refusal as usize]
    }

    /// Each reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        Refusal::ALL.iter().map(|refusal| (*refusal, self.of(*refusal)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_is_counted_under_a_name_of_its_own() {
        for (at, refusal) in Refusal::ALL.iter().enumerate() {
            assert_eq!(*refusal as usize, at);
            let earlier = &Refusal::ALL[..at];
            assert!(!earlier.iter().any(|earlier| earlier.name() == refusal.name()), "{refusal:?}");
        }
    }
}
