//! A NIC and its cores allocate nothing after their construction.

use std::net::{Ipv4Addr, SocketAddr};

use sluice_host::orchestrator::{
    CoreId, CoreScheduler, Nic, NicSettings, Priority, RequestHandle, ServiceId, Trigger,
};
use sluice_wire::Nanos;

const CORES: u16 = 128;

/// Sends a request through the NIC and a core, and reports its end.
fn serve(nic: &mut Nic, cores: &mut [CoreScheduler], address: &SocketAddr, now: Nanos) {
    nic.receive(address, (RequestHandle(now.0), 200), now, |_| {}).unwrap();
    nic.tick(now);
    while let Some(sent) = nic.dispatch(now) {
        let core = &mut cores[sent.core.index()];
        if let Some(hint) = core.deliver(&sent).unwrap() {
            nic.rearm_load_monitor(hint.service).unwrap();
        }
        if core.start(now).is_some() {
            core.yields(now).unwrap();
            let (_, feedback) = core.finish(true).unwrap();
            nic.load_feedback(feedback.service, feedback.core, feedback.count).unwrap();
        }
    }
}

#[test]
fn requests_hints_and_registrations_cost_no_allocation() {
    let mut nic = Nic::new(&NicSettings::paper(CORES.into()).unwrap()).unwrap();
    let mut cores: Vec<_> =
        (0..CORES).map(|core| CoreScheduler::new(CoreId(core), 32, Nanos(5_000))).collect();
    let work = || {
        for number in 0..8 {
            let (service, priority) = (ServiceId::new(number).unwrap(), Priority::new(number as u8).unwrap());
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, number as u16));
            nic.register_service(service, address, priority).unwrap();
            nic.enable_load_monitor(service, Trigger::congestion(Nanos(50)), Nanos(0)).unwrap();
            (0..CORES).for_each(|core| nic.enable_service(service, CoreId(core)).unwrap());
            for at in 0..1_000 {
                serve(&mut nic, &mut cores, &address, Nanos(1_000 * number as u64 + at));
            }
        }
    };
    assert_eq!(allocation_counter::measure(work).count_total, 0);
    assert_eq!((nic.counts().dispatched, nic.counts().refused.total()), (8_000, 0));
    assert!(nic.counts().hints > 0);
}
