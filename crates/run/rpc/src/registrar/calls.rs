//! What a kind of host says to the controller. Public where nobody outside can name it: that seals
//! [`Role`](super::Role).

use std::future::Future;

use sluice_wire::{Nanos, Serial};
use tonic::Status;

use crate::RenewedChannel;
use crate::hosts::{Departure, Renewal};
use crate::v1::controller_client::ControllerClient;

/// The controller, as it is called.
pub(super) type ControllerCalls = ControllerClient<RenewedChannel>;

/// A kind of host's calls.
pub trait Calls: Send + Sync + 'static {
    /// What it says of itself.
    type Hello: Clone + Send + 'static;
    /// What it is granted.
    type Grant: Clone + Send + 'static;
    /// What it shows of its last grant.
    type Held: Copy + Send;

    /// Its thread's name, and its own in the log.
    const THREAD: &'static str;

    /// Whether a host that goes back to its home leaves where it was at once; else that registration stands
    /// until its lease ends, for what is still under way there.
    const LEAVES_AT_ONCE: bool;

    /// Its name, and bits that other hosts do not share.
    fn identity(hello: &Self::Hello) -> (&str, u64);
    /// What to show of a grant next time.
    fn held(grant: &Self::Grant) -> Self::Held;
    /// When to renew.
    fn renew_every(grant: &Self::Grant) -> Nanos;
    /// How long the registration stands.
    fn lease(grant: &Self::Grant) -> Nanos;

    /// Registers or renews.
    fn renew(
        calls: &mut ControllerCalls,
        hello: Self::Hello,
        held: Option<Self::Held>,
        floor: Serial,
    ) -> impl Future<Output = Result<Renewal<Self::Grant>, Status>> + Send;

    /// Ends when the registration is another than what is held; never if that is not known.
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
