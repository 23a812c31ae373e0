//! Which service a packet is for (RingLeader §3.2: the match-action table before all other stages).
//!
//! Addresses are sorted, so a look-up takes a few comparisons. Left out: matching on anything beyond
//! address and port.

use alloc::vec::Vec;
use core::net::SocketAddr;

use super::error::OrchestratorError;
use super::ids::{SERVICES_MAX, ServiceId};

#[derive(Clone, Debug)]
pub(super) struct Classifier {
    rules: Vec<(SocketAddr, ServiceId)>,
}

impl Classifier {
    pub(super) fn new() -> Self {
        Self { rules: Vec::with_capacity(SERVICES_MAX) }
    }

    /// From now on packets to `address` are for `service`.
    pub(super) fn install(
        &mut self,
        address: SocketAddr,
        service: ServiceId,
    ) -> Result<(), OrchestratorError> {
        match self.find(&address) {
            Ok(_) => Err(OrchestratorError::AddressTaken(address)),
            Err(place) => {
                self.rules.insert(place, (address, service));
                Ok(())
            }
        }
    }

    pub(super) fn service(&self, address: &SocketAddr) -> Result<ServiceId, OrchestratorError> {
        let place = self.find(address).map_err(|_| OrchestratorError::UnknownDestination(*address))?;
        Ok(self.rules[place].1)
    }

    fn find(&self, address: &SocketAddr) -> Result<usize, usize> {
        self.rules.binary_search_by_key(address, |rule| rule.0)
    }
}
