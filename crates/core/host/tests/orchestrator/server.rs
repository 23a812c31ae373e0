//! A NIC with services, driven by the tests.

use std::net::{Ipv4Addr, SocketAddr};

use sluice_host::orchestrator::{
    Balancing, CoreId, Descriptor, Lambda, Nic, NicSettings, Priority, RequestHandle, ServiceId,
};
use sluice_wire::Nanos;

/// λ = 0.2.
pub(crate) fn jbsrq() -> Balancing {
    Balancing::Jbsrq(Lambda::new(1, 5).unwrap())
}

pub(crate) fn service(number: usize) -> ServiceId {
    ServiceId::new(number).unwrap()
}

pub(crate) fn priority(number: u8) -> Priority {
    Priority::new(number).unwrap()
}

pub(crate) fn address(number: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 9_000 + number as u16))
}

pub(crate) fn settings(cores: usize, depth: u32, balancing: Balancing) -> NicSettings {
    NicSettings { depth, balancing, ..NicSettings::paper(cores).unwrap() }
}

/// A NIC whose nth service has the nth priority and runs on no core.
pub(crate) fn nic(settings: &NicSettings, priorities: &[u8]) -> Nic {
    let mut nic = Nic::new(settings).unwrap();
    for (number, of) in priorities.iter().enumerate() {
        nic.register_service(service(number), address(number), priority(*of)).unwrap();
    }
    nic
}

/// Sends a request of a service: a packet of 64 bytes.
pub(crate) fn send(nic: &mut Nic, number: usize, handle: u64) {
    nic.receive(&address(number), (RequestHandle(handle), 64), Nanos(0), |_| {}).unwrap();
}

pub(crate) fn enable_everywhere(nic: &mut Nic, number: usize) {
    for core in 0..nic.balancer().cores() {
        nic.enable_service(service(number), CoreId(core as u16)).unwrap();
    }
}

/// Puts requests of a service onto a core. Meanwhile the service runs on no other core.
pub(crate) fn fill(nic: &mut Nic, number: usize, core: u16, handles: &[u64]) {
    for other in 0..nic.balancer().cores() {
        nic.disable_service(service(number), CoreId(other as u16)).unwrap();
    }
    nic.enable_service(service(number), CoreId(core)).unwrap();
    for handle in handles {
        send(nic, number, *handle);
        let sent = nic.dispatch(Nanos(0)).expect("there is room");
        assert_eq!((sent.core, sent.request.unwrap().handle), (CoreId(core), RequestHandle(*handle)));
    }
    enable_everywhere(nic, number);
}

/// Where a service's next request goes if it arrives now.
pub(crate) fn next(nic: &mut Nic, number: usize) -> Option<Descriptor> {
    send(nic, number, 99);
    nic.dispatch(Nanos(0))
}
