//! The rule of the clock: after `tick(now)`, a machine's next deadline is none or later than `now`,
//! whatever came before and however late the tick is. A machine that breaks the rule makes its driver call
//! `tick` for ever. (The controller's own tests hold it to the rule. The end that takes RDMA writes and the
//! switch's programs have no deadlines.)

mod agent;
mod client;
mod worker;

use proptest::prelude::*;
use sluice_wire::Nanos;

/// A span from nanoseconds to minutes; every order of magnitude is equally likely.
fn jump() -> impl Strategy<Value = Nanos> {
    (0..38_u32, any::<u64>()).prop_map(|(bits, word)| Nanos(word & ((1 << bits) - 1)))
}

#[track_caller]
fn assert_later(next: Option<Nanos>, now: Nanos) {
    assert!(next.is_none_or(|next| next > now), "a tick at {} leaves {next:?} due", now.0);
}
