//! The progress of a client's first registration.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::NetError;

/// A change in the progress of a client's registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joining {
    /// The client is registered.
    Joined,
    /// The client is not registered yet, for this reason.
    Waiting(String),
    /// The registration was refused, for this reason.
    Refused(String),
}

/// Waits until the client is registered with this controller.
///
/// # Errors
/// [`NetError::NotRegistered`] if it takes longer than `patience`; [`NetError::Refused`].
pub fn wait_until_joined(
    joining: &Receiver<Joining>,
    controller: &str,
    patience: Duration,
) -> Result<(), NetError> {
    let until = Instant::now() + patience;
    let mut why = "no answer".to_owned();
    loop {
        match joining.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Joining::Joined) => return Ok(()),
            Ok(Joining::Waiting(reason)) => why = reason,
            Ok(Joining::Refused(why)) => return Err(NetError::Refused { why }),
            Err(_) => {
                return Err(NetError::NotRegistered {
                    controller: controller.to_owned(),
                    waited: patience,
                    why,
                });
            }
        }
    }
}
