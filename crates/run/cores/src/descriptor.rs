//! A request's descriptor as a word of a ring.

use sluice_host::orchestrator::{Priority, RequestHandle, ScheduledRequest, ServiceId};
use sluice_wire::Nanos;

/// How many places a word can name.
pub(crate) const PLACES_MAX: usize = 1 << PLACE_BITS;

const PLACE_BITS: u32 = 20;
const SERVICE_BITS: u32 = 6;
const PRIORITY_BITS: u32 = 3;
const TIME_BITS: u32 = u64::BITS - PLACE_BITS - SERVICE_BITS - PRIORITY_BITS;
const MICRO: u64 = 1_000;

/// The word for a request that is given to a core at `now`.
#[inline]
pub(crate) fn word(request: &ScheduledRequest, now: Nanos) -> u64 {
    let mut word = now.0 / MICRO;
    word = word << PRIORITY_BITS | request.priority.index() as u64;
    word = word << SERVICE_BITS | request.service.index() as u64;
    word << PLACE_BITS | request.handle.0
}

/// The request of a word; `None` if the word is not a valid one.
#[inline]
pub(crate) fn request(word: u64) -> Option<ScheduledRequest> {
    let low = |bits: u32, from: u32| (word >> from) & ((1 << bits) - 1);
    Some(ScheduledRequest {
        handle: RequestHandle(low(PLACE_BITS, 0)),
        service: ServiceId::new(low(SERVICE_BITS, PLACE_BITS) as usize)?,
        priority: Priority::new(low(PRIORITY_BITS, PLACE_BITS + SERVICE_BITS) as u8).ok()?,
    })
}

/// When a word that is read at `now` was written: exact to the microsecond, and only if that was within the
/// last day.
pub(crate) fn given_at(word: u64, now: Nanos) -> Nanos {
    let given = word >> (u64::BITS - TIME_BITS);
    let ago = (now.0 / MICRO).wrapping_sub(given) & ((1 << TIME_BITS) - 1);
    Nanos(now.0 / MICRO * MICRO) - Nanos(ago * MICRO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_which_request_and_when_it_was_given() {
        let of = |place, service, priority| ScheduledRequest {
            handle: RequestHandle(place),
            service: ServiceId::new(service).unwrap(),
            priority: Priority::new(priority).unwrap(),
        };
        for (said, at) in [(of(0, 0, 0), 0), (of((1 << 20) - 1, 63, 7), 1 << 62), (of(77, 5, 3), 123_456_789)]
        {
            let word = word(&said, Nanos(at));
            assert_eq!(request(word), Some(said));
            let seen = Nanos(at + 5_000_000_000);
            let given = given_at(word, seen);
            assert!(given.0.abs_diff(at) < 1_000, "{given:?} for {at}");
        }
    }
}
