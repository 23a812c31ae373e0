//! What each kind of host says to the controller. The trait is public in a private module, which seals
//! [`Role`](super::Role).

use std::future::Future;

use sluice_wire::{Nanos, Serial};
use tonic::Status;

use crate::RenewedChannel;
use crate::hosts::{Departure, Renewal};
use crate::v1::controller_client::ControllerClient;

/// The controller's callable side.
pub(super) type ControllerCalls = ControllerClient<RenewedChannel>;

/// The calls of one kind of host.
pub trait Calls: Send + Sync + 'static {
    /// What the host states about itself.
    type Hello: Clone + Send + 'static;
    /// The registration that the host is granted.
    type Grant: Clone + Send + 'static;
    /// The part of its last grant that the host sends with its next call.
    type Held: Copy + Send;

    /// The name of the host's thread, which is also its name in the log.
    const THREAD: &'static str;

    /// Whether a host that returns to its home leaves the other controller at once. If not, that
    /// registration stays until its lease ends, for packets that are still under way.
    const LEAVES_AT_ONCE: bool;

    /// The host's name, and bits that no other host shares.
    fn identity(hello: &Self::Hello) -> (&str, u64);
    /// The part of this grant that the host sends with its next call.
    fn held(grant: &Self::Grant) -> Self::Held;
    /// The time between two renewals.
    fn renew_every(grant: &Self::Grant) -> Nanos;
    /// How long the registration lasts.
    fn lease(grant: &Self::Grant) -> Nanos;

    /// Registers or renews.
    fn renew(
        calls: &mut ControllerCalls,
        hello: Self::Hello,
        held: Option<Self::Held>,
        floor: Serial,
    ) -> impl Future<Output = Result<Renewal<Self::Grant>, Status>> + Send;

    /// Completes when the registration differs from `held`; never completes if nothing is held.
    fn changed(calls: ControllerCalls, held: Option<Self::Held>) -> impl Future<Output = ()> + Send {
        drop((calls, held));
        std::future::pending()
    }

    /// Leaves.
    fn leave(
        calls: &mut ControllerCalls,
        hello: Self::Hello,
    ) -> impl Future<Output = Result<Departure, Status>> + Send;
}
