//! One controller: asked once a second, with its last answer and since when it is silent.

use std::cell::{Ref, RefCell};
use std::rc::Rc;
use std::time::SystemTime;

use sluice_rpc::Remote;
use sluice_rpc::v1::StatusResponse;
use sluice_rpc::v1::controller_client::ControllerClient;
use sluice_support::controller_caller::look;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::limits::ASK_EVERY;
use super::samples::Samples;

/// A controller, and what is known of its rack.
pub(crate) struct RackWatch {
    remote: Remote,
    seen: RefCell<RackSeen>,
}

/// What is known of a rack.
#[derive(Default)]
pub(crate) struct RackSeen {
    /// The last answer, and when it came.
    pub(crate) status: Option<(StatusResponse, Instant)>,
    /// Why there is no newer answer, and since when.
    pub(crate) silence: Option<Silence>,
    pub(crate) samples: Samples,
}

/// That a controller does not answer.
#[derive(Clone, Debug)]
pub(crate) struct Silence {
    pub(crate) why: String,
    pub(crate) since: Instant,
    pub(crate) since_clock: SystemTime,
}

impl RackWatch {
    pub(crate) fn new(remote: Remote) -> Self {
        Self { remote, seen: RefCell::default() }
    }

    pub(crate) const fn remote(&self) -> &Remote {
        &self.remote
    }

    pub(crate) fn seen(&self) -> Ref<'_, RackSeen> {
        self.seen.borrow()
    }

    /// Asks again and again.
    pub(crate) async fn ask(self: Rc<Self>) {
        let mut calls = ControllerClient::new(self.remote.connect());
        let mut ticks = interval(ASK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let said = look(&self.remote, &mut calls).await;
            let (now, mut seen) = (Instant::now(), self.seen.borrow_mut());
            match said {
                Ok(status) => {
                    seen.samples.add(now, Some(&status));
                    seen.status = Some((status, now));
                    seen.silence = None;
                }
                Err(why) => {
                    seen.samples.add(now, None);
                    let before = seen.silence.take();
                    let (since, since_clock) = before
                        .map_or_else(|| (now, SystemTime::now()), |known| (known.since, known.since_clock));
                    seen.silence = Some(Silence { why: why.to_string(), since, since_clock });
                }
            }
        }
    }
}
