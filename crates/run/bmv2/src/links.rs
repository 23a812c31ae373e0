//! The switch's links: network interfaces of the calling thread's namespace, each a port of BMv2.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use sluice_kernel::NextHop;
use sluice_kernel::xdp::machine::Interface;
use sluice_wire::Endpoint;

use crate::entries::{Way, Ways};
use crate::error::Bmv2Error;

/// The port of the control link, above those of hosts. BMv2 drops what leaves by port 511.
pub(crate) const CONTROL_PORT: u16 = 510;
/// The port of the first link. What recirculates passes through egress as if it left by port 0.
const FIRST: u16 = 1;

/// The links of hosts.
#[derive(Debug)]
pub(crate) struct LinkPorts {
    names: Vec<String>,
    /// The ports by the interfaces' numbers.
    ports: BTreeMap<u32, u16>,
}

impl LinkPorts {
    /// These interfaces, of which each must exist.
    pub(crate) fn new(names: &[String]) -> Result<Self, Bmv2Error> {
        let most = CONTROL_PORT - FIRST;
        if names.len() > usize::from(most) {
            return Err(Bmv2Error::Links { count: names.len(), most });
        }
        let found = names.iter().map(|name| Interface::named(name)).collect::<Result<Vec<_>, _>>()?;
        let ports = found.iter().map(|interface| interface.index).zip(FIRST..).collect();
        Ok(Self { names: names.to_vec(), ports })
    }

    /// The links as BMv2's arguments take them, with a control link of this name.
    pub(crate) fn arguments(&self, control: Option<&str>) -> Vec<String> {
        let all = (FIRST..).zip(&self.names).map(|(port, name)| format!("{port}@{name}"));
        let control = control.map(|name| format!("{CONTROL_PORT}@{name}"));
        all.chain(control).flat_map(|link| ["-i".to_owned(), link]).collect()
    }

    /// Checks that a switch has opened each link, with its port.
    pub(crate) fn are_opened(&self, opened: &[(u16, String)]) -> Result<(), Bmv2Error> {
        for (port, name) in (FIRST..).zip(&self.names) {
            if !opened.iter().any(|link| *link == (port, name.clone())) {
                return Err(Bmv2Error::OtherPorts { port, name: name.clone() });
            }
        }
        Ok(())
    }

    /// How many links there are, without a control link.
    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }
}

impl Ways for LinkPorts {
    fn to(&self, at: &Endpoint) -> Option<Way> {
        let at = SocketAddr::from(*at);
        let hop = match NextHop::towards(at.ip()) {
            Ok(hop) => hop,
            Err(why) => {
                sluice_log::log!(HostUnreachable, %at, %why, "{at} gets no packets: {why}");
                return None;
            }
        };
        let link = self.ports.get(&hop.link).copied();
        if link.is_none() {
            sluice_log::log!(HostUnreachable, %at, "{at} gets no packets: no link of the switch leads there");
        }
        link.map(|link| Way { link, macs: [hop.mac, hop.own_mac] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_has_a_port_and_the_control_link_the_highest() {
        let links = LinkPorts::new(&["lo".to_owned()]).expect("always there");
        assert_eq!(links.arguments(Some("sweeps1")), ["-i", "1@lo", "-i", "510@sweeps1"]);
        assert_eq!(links.arguments(None), ["-i", "1@lo"]);
        assert!(links.are_opened(&[(2, "eth1".to_owned()), (1, "lo".to_owned())]).is_ok());
        let other = links.are_opened(&[(2, "lo".to_owned())]).expect_err("another port").to_string();
        assert!(other.contains("no port 1 on lo"), "{other}");
        let missing = LinkPorts::new(&["nowhere0".to_owned()]).expect_err("nobody made it").to_string();
        assert!(missing.contains("no network interface nowhere0"), "{missing}");
        let many = vec!["lo".to_owned(); 600];
        assert!(LinkPorts::new(&many).expect_err("too many").to_string().contains("at most 509"));
    }
}
