//! What a process tells the service manager that started it (systemd): that it is ready, and that it ends.
//! Without one it tells nobody.

use sd_notify::{NotifyState, notify};

/// A process that said it was ready; dropping this says that it ends.
#[derive(Debug)]
pub struct ReadyService(());

impl ReadyService {
    /// Says that this process is ready: it listens on all its addresses.
    pub fn tell() -> Self {
        // A manager that cannot be told ends the process when its patience is over; nothing can be done here.
        notify(&[NotifyState::Ready]).ok();
        Self(())
    }
}

impl Drop for ReadyService {
    fn drop(&mut self) {
        notify(&[NotifyState::Stopping]).ok();
    }
}
