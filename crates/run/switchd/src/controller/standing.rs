//! Whether a controller leads, and who else would: written by its thread, read by its services.

use std::sync::{Arc, Mutex, PoisonError};

use sluice_control::{Answer, Waiting};
use sluice_rpc::v1::{LeadRole, StandingResponse};
use sluice_rpc::{LEADER_HEADER, shown};
use tonic::metadata::AsciiMetadataValue;
use tonic::{Response, Status};

/// Clones share the standing.
#[derive(Clone)]
pub(super) struct StandingBoard(Arc<Mutex<StandingResponse>>);

impl StandingBoard {
    /// The standing of a controller of this spine (from 1), or of a rack (0), before it has found its switch.
    pub(super) fn new(spine: usize, waits: bool) -> Self {
        let role = if waits { LeadRole::Standby } else { LeadRole::Leads };
        let spine = u32::try_from(spine).unwrap_or(u32::MAX);
        Self(Arc::new(Mutex::new(StandingResponse {
            role: role.into(),
            spine,
            ..StandingResponse::default()
        })))
    }

    pub(super) fn read(&self) -> StandingResponse {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn write(&self, standing: StandingResponse) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    /// An error that says who leads, if this controller is a standby.
    pub(super) fn check_leads(&self) -> Result<(), Status> {
        let standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if standing.role() != LeadRole::Standby {
            return Ok(());
        }
        let mut status = Status::unavailable(refusal(&standing));
        status.metadata_mut().insert(LEADER_HEADER, header(&standing.leader));
        Err(status)
    }

    /// Marks an answer of a standby, so that a caller with several addresses asks another one next.
    pub(super) fn mark<M>(&self, mut response: Response<M>) -> Response<M> {
        let standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if standing.role() == LeadRole::Standby {
            response.metadata_mut().insert(LEADER_HEADER, header(&standing.leader));
        }
        response
    }

    /// An answer to a host. It has the header of a controller that does not lead if that is what it says.
    pub(super) fn answer<M: TryFrom<Answer, Error = Status>>(
        &self,
        answer: Answer,
    ) -> Result<Response<M>, Status> {
        let is_not_leader =
            matches!(answer, Answer::Wait { why: Waiting::Superseded | Waiting::Standby, .. });
        let mut response = Response::new(answer.try_into()?);
        if is_not_leader {
            response.metadata_mut().insert(LEADER_HEADER, header(&self.read().leader));
        }
        Ok(response)
    }
}

fn refusal(standing: &StandingResponse) -> String {
    if standing.leader.is_empty() {
        let untold = shown(&standing.untold);
        let why = if untold.is_empty() { untold } else { format!(" (the switch does not say: {untold})") };
        return format!(
            "this controller is a standby, and does not know who leads{why}: name the other controllers too, \
             as --controller A,B"
        );
    }
    let leader = shown(&standing.leader);
    format!("this controller is a standby: {leader} leads; call that one, or name both, as --controller A,B")
}

/// A leader's address, if it can be a header's value.
fn header(leader: &str) -> AsciiMetadataValue {
    leader.parse().unwrap_or_else(|_| AsciiMetadataValue::from_static(""))
}
