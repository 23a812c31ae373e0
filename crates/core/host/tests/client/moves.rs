//! A client whose registration moves to another switch: another spine, when its own is gone (Horus §4.3).

use sluice_host::client::{Action, Client, ClientSettings, Outcome, Submission};
use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{
    Attempt, ClientId, Endpoint, Epoch, Incarnation, Key, Nanos, Packet, Reply, Serial, SliceId, Submit,
    TaskType,
};

const SECOND: Nanos = Nanos::from_millis(1_000);

fn grant(switch: u16, epoch: u32) -> ClientRegistration {
    let at = std::net::SocketAddr::from(([127, 0, 0, 1], switch));
    ClientRegistration {
        client: ClientId(switch),
        key: Key(epoch),
        epoch: Epoch(epoch),
        switch: at.into(),
        replay_cells: 16,
        slices: vec![(TaskType(0), SliceId(0))],
        shares: vec![(SliceId(0), 8)],
        classes: 1,
        jobs: 1,
        sizes: Vec::new(),
        retry_for: SECOND,
    }
}

fn sent(out: &mut Vec<Action>) -> Vec<Submit> {
    let submits = |action| if let Action::ToSwitch(submit) = action { Some(submit) } else { None };
    out.drain(..).filter_map(submits).collect()
}

#[test]
fn what_is_outstanding_goes_to_the_other_switch_under_its_own_name_whatever_epoch_that_is_in() {
    let (settings, mut out) = (ClientSettings::default(), Vec::new());
    let mut client = Client::new(Incarnation(1), Serial(0));
    client.grant(Nanos(0), &settings, grant(1, 9), &mut out);
    let submission = Submission { deadline: SECOND, retry: true, ..Submission::default() };
    let task = client.submit(Nanos(1), &settings, submission, &mut out).expect("there is room");
    assert_eq!(sent(&mut out).len(), 1);
    // Each switch counts its own epochs, so an equal number at another switch is a new epoch.
    for (attempt, (switch, epoch)) in (2..).zip([(2, 4), (1, 9), (2, 9)]) {
        client.grant(Nanos(2), &settings, grant(switch, epoch), &mut out);
        assert_eq!(
            client.switch(),
            Some(Endpoint::from(std::net::SocketAddr::from(([127, 0, 0, 1], switch))))
        );
        let again = sent(&mut out);
        let named = again.iter().map(|submit| (submit.task, submit.attempt, submit.epoch, submit.client));
        let expected = (task, Attempt(attempt), Epoch(epoch), ClientId(switch));
        assert_eq!(named.collect::<Vec<_>>(), [expected]);
    }
    client.grant(Nanos(3), &settings, grant(2, 8), &mut out);
    assert!(sent(&mut out).is_empty(), "an older life of the same switch is none");
    let reply = Reply { task, attempt: Attempt(1), epoch: Epoch(0), ..Reply::default() };
    client.packet(Nanos(4), &settings, &Packet::Reply(reply), &mut out);
    let ends = |action: &Action| matches!(action, Action::Done { outcome: Outcome::Reply(_), .. });
    assert!(out.iter().any(ends), "the first switch's worker may still answer");
}
