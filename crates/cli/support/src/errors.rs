//! What libraries complain of, as ways for a command to end.

use sluice_kernel::KernelError;
use sluice_net::NetError;
use sluice_study::StudyError;
use sluice_switchd::SwitchdError;

use crate::fail::Failure;

impl From<NetError> for Failure {
    fn from(why: NetError) -> Self {
        KernelError::from(why).into()
    }
}

impl From<SwitchdError> for Failure {
    fn from(why: SwitchdError) -> Self {
        KernelError::from(why).into()
    }
}

impl From<KernelError> for Failure {
    fn from(why: KernelError) -> Self {
        if why.is_bad_input() { Self::bad_input(why) } else { Self::broken(why) }
    }
}

impl From<StudyError> for Failure {
    fn from(why: StudyError) -> Self {
        if why.is_bad_input() { Self::bad_input(why) } else { Self::broken(why) }
    }
}
