//! Where a live rack's packets travel: through a switch on a loopback socket, or through a switch in the
//! kernel, on links between network namespaces.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::thread::JoinHandle;

use sluice_kernel::KernelError;
use sluice_kernel::spaces::{BPF_FOLDER, RackSpaces, mounts_of_its_own};
use sluice_kernel::xdp::{self, XdpDriver, XdpOptions};
use sluice_support::fail::Outcome;
use sluice_support::flags::Io;
use sluice_switchd::rpc::Guard;
use sluice_switchd::switch::{SwitchConfig, SwitchDriver, SwitchHandle};

pub(super) enum RackNetwork {
    Loopback,
    Links(RackSpaces),
}

pub(super) struct RunningSwitch {
    pub(super) handle: SwitchHandle,
    pub(super) thread: JoinHandle<Result<(), KernelError>>,
}

impl RackNetwork {
    /// Sets up the place. If it has links, one leads to all workers and one to the client.
    pub(super) fn new(io: Io) -> Outcome<Self> {
        if io == Io::Udp {
            return Ok(Self::Loopback);
        }
        mounts_of_its_own()?;
        Ok(Self::Links(RackSpaces::new(2)?))
    }

    /// Starts the switch in its place.
    pub(super) fn start_switch(&self, config: &SwitchConfig) -> Outcome<RunningSwitch> {
        self.at_switch(|| match self {
            Self::Loopback => {
                let driver = SwitchDriver::new(config)?;
                Ok(RunningSwitch { handle: driver.handle(), thread: driver.spawn()? })
            }
            Self::Links(spaces) => {
                let options = XdpOptions {
                    size: config.size,
                    at: self.switch_at(),
                    generic: false,
                    interfaces: spaces.links().map(str::to_owned).collect(),
                    pins: pins(),
                };
                let driver = XdpDriver::new(&options, || Ok(config.size.epoch))?;
                Ok(RunningSwitch { handle: driver.handle(), thread: driver.spawn()? })
            }
        })?
    }

    /// Runs `work` in the switch's namespace; threads that it starts stay there.
    pub(super) fn at_switch<T>(&self, work: impl FnOnce() -> T) -> Outcome<T> {
        Ok(match self {
            Self::Loopback => work(),
            Self::Links(spaces) => spaces.switch().within(work)?,
        })
    }

    /// Runs `work` in the workers' namespace.
    pub(super) fn at_workers<T>(&self, work: impl FnOnce() -> T) -> Outcome<T> {
        self.at_host(0, work)
    }

    /// Runs `work` in the client's namespace.
    pub(super) fn at_client<T>(&self, work: impl FnOnce() -> T) -> Outcome<T> {
        self.at_host(1, work)
    }

    /// The address at which the switch and its controller listen; the kernel chooses ports.
    pub(super) fn switch_at(&self) -> SocketAddr {
        (self.of_links(RackSpaces::switch_addresses), 0).into()
    }

    /// Where workers listen.
    pub(super) fn workers_at(&self) -> SocketAddr {
        (self.of_links(|spaces| spaces.hosts()[0].addresses()), 0).into()
    }

    /// The address at which the client listens.
    pub(super) fn client_at(&self) -> SocketAddr {
        (self.of_links(|spaces| spaces.hosts()[1].addresses()), 0).into()
    }

    /// How the controller is protected from strangers.
    pub(super) const fn guard(&self) -> Guard {
        match self {
            Self::Loopback => Guard::Loopback,
            Self::Links(_) => Guard::OwnNetwork,
        }
    }

    /// Detaches the switch from its links, once its thread has ended.
    pub(super) fn clear(&self) -> Outcome<()> {
        if let Self::Links(_) = self {
            xdp::detach(&pins())?;
        }
        Ok(())
    }

    fn at_host<T>(&self, place: usize, work: impl FnOnce() -> T) -> Outcome<T> {
        Ok(match self {
            Self::Loopback => work(),
            Self::Links(spaces) => spaces.hosts()[place].space.within(work)?,
        })
    }

    /// The IPv4 address among these.
    fn of_links(&self, addresses: impl FnOnce(&RackSpaces) -> Vec<IpAddr>) -> IpAddr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST.into(),
            Self::Links(spaces) => addresses(spaces)[0],
        }
    }
}

/// The folder of pins. In mounts of our own, no other switch exists.
fn pins() -> PathBuf {
    [BPF_FOLDER, "sluice"].iter().collect()
}
