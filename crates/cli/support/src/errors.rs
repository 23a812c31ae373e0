//! Converts the errors of libraries into failures of a command.

use sluice_bmv2::Bmv2Error;
use sluice_gateway::GatewayError;
use sluice_kernel::KernelError;
use sluice_net::NetError;
use sluice_net::metrics::MetricsError;
use sluice_netem::FaultRatesError;
use sluice_rpc::RpcError;
use sluice_study::StudyError;
use sluice_switchd::SwitchdError;
use sluice_testrig::TestrigError;

use crate::fail::Failure;

impl From<NetError> for Failure {
    fn from(why: NetError) -> Self {
        KernelError::from(why).into()
    }
}

impl From<RpcError> for Failure {
    fn from(why: RpcError) -> Self {
        NetError::from(why).into()
    }
}

impl From<MetricsError> for Failure {
    fn from(why: MetricsError) -> Self {
        NetError::from(why).into()
    }
}

impl From<TestrigError> for Failure {
    fn from(why: TestrigError) -> Self {
        match why {
            TestrigError::Net(why) => why.into(),
            stopped => Self::broken(stopped),
        }
    }
}

impl From<FaultRatesError> for Failure {
    fn from(why: FaultRatesError) -> Self {
        Self::bad_input(why)
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

impl From<Bmv2Error> for Failure {
    fn from(why: Bmv2Error) -> Self {
        if why.is_bad_input() { Self::bad_input(why) } else { Self::broken(why) }
    }
}

impl From<GatewayError> for Failure {
    fn from(why: GatewayError) -> Self {
        if why.is_bad_input() { Self::bad_input(why) } else { Self::broken(why) }
    }
}

impl From<StudyError> for Failure {
    fn from(why: StudyError) -> Self {
        if why.is_bad_input() { Self::bad_input(why) } else { Self::broken(why) }
    }
}
