//! Findings from statuses of racks that are in order, and of racks that are not. The command's tests bring
//! each about on a live rack.

use std::time::{Duration, UNIX_EPOCH};

use sluice_rpc::v1::{
    CertificateEnd, ClassStatus, ClockStep, Counter, EarlierSlice, EarlierStatus, FolderFault, FolderState,
    HostKind, LeadRole, LinkState, LostHost, ProcessHealth, RecentWork, SliceStatus, StandingResponse,
    StatusResponse, SupersededCaller, SwitchStatus, WorkerPhase, WorkerStatus,
};

use super::{FindingKind, FindingSeverity, RackFinding, findings};

const NOW_S: u64 = 1_790_000_000;
const SECOND: u64 = 1_000_000_000;

fn counters(of: &[(&str, u64)]) -> Vec<Counter> {
    of.iter().map(|(name, value)| Counter { name: (*name).to_owned(), value: *value }).collect()
}

/// A rack under a high load: two workers, and a minute of tasks behind it.
fn busy() -> StatusResponse {
    let worker = |name: &str, tasks| WorkerStatus {
        name: name.to_owned(),
        phase: WorkerPhase::Open.into(),
        quota: 2,
        recent: Some(RecentWork {
            span_ns: 5 * SECOND,
            tasks,
            service_ns: 1_000_000,
            deviation_ns: 1_000_000,
            wait_ns: 30_000,
            ..RecentWork::default()
        }),
        ..WorkerStatus::default()
    };
    let counted = |submits, rejected| {
        counters(&[
            ("received", 3 * submits),
            ("submits", submits),
            ("rejected", rejected),
            ("rejected_queue_full", rejected),
            ("rejected_no_room", 0),
            ("rejected_unknown_type", 0),
            ("wrong_version", 2),
            ("rejected_no_workers", 0),
            ("rejected_unserved", 0),
            ("rejected_busy", 0),
            ("rounds_full", 0),
            ("kernel_dropped", 7),
        ])
    };
    let look = |ago_s: u64, submits| EarlierStatus {
        ago_ns: ago_s * SECOND,
        epoch: 9,
        link: LinkState::Up.into(),
        counters: counted(submits, 0),
        refused: counters(&[("field", 3)]),
        slices: vec![EarlierSlice { slice: 0, open: true, balance: Some(-90) }],
    };
    StatusResponse {
        switch: Some(SwitchStatus {
            epoch: 9,
            link: LinkState::Up.into(),
            at: "127.0.0.1:7401".to_owned(),
            counters: counted(100_000, 400),
        }),
        slices: vec![SliceStatus {
            name: "get".to_owned(),
            open: true,
            limit: 100,
            workers: 2,
            quotas: 4,
            balance: Some(-70),
            ..SliceStatus::default()
        }],
        workers: vec![worker("w-1", 500), worker("w-2", 470)],
        refused: counters(&[("field", 4)]),
        earlier: vec![look(7, 90_000), look(32, 70_000), look(62, 50_000), look(302, 10_000)],
        processes: vec![ProcessHealth {
            process: "switch".to_owned(),
            folder: Some(FolderState { path: "out/state".to_owned(), ..FolderState::default() }),
            ..ProcessHealth::default()
        }],
        ..StatusResponse::default()
    }
}

fn found(status: &StatusResponse) -> Vec<RackFinding> {
    findings(status, UNIX_EPOCH + Duration::from_secs(NOW_S))
}

fn codes(status: &StatusResponse) -> Vec<&'static str> {
    found(status).iter().map(|finding| finding.kind.code()).collect()
}

/// A busy rack with a change.
fn with(change: impl FnOnce(&mut StatusResponse)) -> StatusResponse {
    let mut status = busy();
    change(&mut status);
    status
}

fn switch(status: &mut StatusResponse) -> &mut SwitchStatus {
    status.switch.as_mut().expect("it has one")
}

fn set(counters: &mut Vec<Counter>, name: &str, value: u64) {
    counters.retain(|counter| counter.name != name);
    counters.push(Counter { name: name.to_owned(), value });
}

#[test]
fn nothing_is_wrong_with_a_rack_that_is_busy_idle_young_or_old() {
    assert_eq!(codes(&busy()), [""; 0]);
    assert_eq!(codes(&with(|rack| rack.earlier.clear())), [""; 0], "a controller that tells nothing");
    assert_eq!(codes(&StatusResponse::default()), [""; 0]);
    let young = with(|rack| {
        rack.earlier = vec![EarlierStatus { ago_ns: 2 * SECOND, ..EarlierStatus::default() }];
        rack.slices[0].open = false;
        rack.workers.clear();
    });
    assert_eq!(codes(&young), [""; 0]);
    // A switch that was restarted counts from zero.
    assert_eq!(codes(&with(|rack| switch(rack).epoch = 10)), [""; 0]);
    let idle = with(|rack| {
        let counted = switch(rack).counters.clone();
        rack.earlier.iter_mut().for_each(|look| look.counters.clone_from(&counted));
        rack.workers.iter_mut().for_each(|worker| worker.recent.as_mut().expect("known").tasks = 0);
    });
    assert_eq!(codes(&idle), [""; 0]);
}

#[test]
fn a_lost_host_is_told_for_five_minutes() {
    let lost = |kind: HostKind, name: &str, ago_s| {
        with(|rack| {
            let name = name.to_owned();
            rack.lost = vec![LostHost { kind: kind.into(), name, index: 3, ago_ns: ago_s * SECOND }];
        })
    };
    let worker = found(&lost(HostKind::Worker, "w-3", 12));
    assert_eq!(worker[0].subject.to_string(), "worker w-3");
    assert_eq!(worker[0].what, "worker w-3 has stopped, or cannot reach the controller");
    assert!(worker[0].why.contains("its lease ended 12.0 s ago"), "{worker:?}");
    assert_eq!(codes(&lost(HostKind::Worker, "w-3", 301)), [""; 0]);
    assert!(found(&lost(HostKind::Server, "", 12))[0].what.starts_with("server with index 3"));
    assert_eq!(codes(&lost(HostKind::Client, "c", 12)), ["client-stopped"]);
    let dying = with(|rack| rack.workers[1].phase = WorkerPhase::Dying.into());
    assert_eq!(codes(&dying), ["worker-stopped"]);
}

#[test]
fn a_slow_worker_is_told_with_its_peers_figures_unless_its_quota_explains_it() {
    let slow = with(|rack| rack.workers[1].recent.as_mut().expect("known").service_ns = 4_000_000);
    let told = found(&slow);
    assert_eq!((told.len(), told[0].kind), (1, FindingKind::WorkerSlow));
    assert_eq!(told[0].what, "worker w-2 is worse than its 1 peer");
    assert_eq!(told[0].why, "a service takes 4.00 ms against 1.00 ms");
    let few = |quota| {
        with(|rack| {
            rack.workers[1].recent.as_mut().expect("known").tasks = 100;
            rack.workers[1].quota = quota;
        })
    };
    assert_eq!((codes(&few(2)), codes(&few(1))), (vec!["worker-slow"], vec![]));
    let other_types = with(|rack| {
        rack.workers[1].recent.as_mut().expect("known").service_ns = 4_000_000;
        rack.workers[1].slice = 1;
    });
    assert_eq!(codes(&other_types), [""; 0]);
}

#[test]
fn a_worker_off_its_way_to_the_switch_is_told_by_what_it_lost() {
    let off = |lost_tokens, unanswered_s: u64| {
        with(|rack| {
            let recent = rack.workers[1].recent.as_mut().expect("known");
            (recent.lost_tokens, recent.unanswered_ns) = (lost_tokens, unanswered_s * SECOND);
        })
    };
    assert_eq!([off(0, 4), off(9, 0), off(4, 4)].map(|rack| codes(&rack)), [[""; 0]; 3]);
    let told = found(&off(30, 0));
    assert_eq!((told[0].kind, told[0].severity), (FindingKind::TokensLost, FindingSeverity::Warning));
    assert_eq!(told[0].why, "30 of about 500 (6 %) over 5.00 s; each was sent again");
    // 10 of 10,000 are no trouble.
    let many = with(|rack| {
        for worker in &mut rack.workers {
            let recent = worker.recent.as_mut().expect("known");
            (recent.lost_tokens, recent.tasks) = (10, 10_000);
        }
    });
    assert_eq!(codes(&many), [""; 0]);
    let told = found(&off(30, 12));
    assert_eq!((told.len(), told[0].kind.code()), (1, "worker-unanswered"), "the worse of both");
    assert!(told[0].why.contains("in vain for 12.0 s"), "{told:?}");
    // Whoever does not renew either has stopped; a leaf's workers are told by their own rack.
    let mut stopped = off(30, 12);
    stopped.workers[1].phase = WorkerPhase::Dying.into();
    assert_eq!(codes(&stopped), ["worker-stopped"]);
    let mut leaf = off(30, 12);
    leaf.workers[1].workers = 4;
    assert_eq!(codes(&leaf), [""; 0]);
}

#[test]
fn a_state_folder_is_told_by_what_keeps_it_from_being_written() {
    for (fault, code) in [
        (FolderFault::Full, "state-folder-full"),
        (FolderFault::ReadOnly, "state-folder-read-only"),
        (FolderFault::Other, "state-folder-unusable"),
    ] {
        let status = with(|rack| {
            let path = "out/state".to_owned();
            let why_not = "it says why".to_owned();
            let folder = FolderState { path, why_not, fault: fault.into(), free_bytes: Some(0) };
            rack.processes[0].folder = Some(folder);
        });
        let told = found(&status);
        assert_eq!(told[0].kind.code(), code);
        assert!(told[0].what.starts_with("the state folder out/state of the switch "), "{told:?}");
        assert!(told[0].why.ends_with("failed: it says why; 0 B of that disk are free"), "{told:?}");
        let mut other = status.clone();
        other.processes[0].folder.as_mut().expect("set").free_bytes = Some(9_000);
        let inodes = found(&other)[0].why.ends_with("are free, so its inodes or a quota are used up");
        assert_eq!(inodes, code == "state-folder-full");
        // Also of a switch that the controller cannot use for that reason.
        let down = StatusResponse { switch: None, ..status };
        assert_eq!(codes(&down), [code]);
    }
}

#[test]
fn a_clock_that_was_set_is_told_with_whose_it_is() {
    let set = |by_ns, ago_s: u64| {
        with(|rack| {
            rack.processes[0].clock_step = Some(ClockStep { by_ns, ago_ns: ago_s * SECOND });
        })
    };
    let told = found(&set(-3_600_000_000_000, 8));
    assert_eq!(told[0].what, "the wall clock of the switch was set back by 3600 s");
    assert!(told[0].why.ends_with("noticed 8.00 s ago"), "{told:?}");
    assert_eq!(codes(&set(2_000_000_000, 301)), [""; 0]);
}

#[test]
fn a_switch_at_a_limit_is_told_by_the_limit() {
    for (counter, code) in [
        ("rejected_queue_full", "queue-full"),
        ("rejected_no_room", "payloads-full"),
        ("rounds_full", "rounds-full"),
        ("rejected_unknown_type", "type-unmapped"),
    ] {
        let status = with(|rack| {
            set(&mut switch(rack).counters, counter, 6_000);
            set(&mut switch(rack).counters, "rejected", 6_000);
        });
        let told = found(&status);
        assert!(told.iter().any(|finding| finding.kind.code() == code), "{counter}: {told:#?}");
        assert!(told[0].why.contains("6000 "), "{told:?}");
    }
    let busy = with(|rack| {
        set(&mut switch(rack).counters, "rejected_busy", 2_000);
        set(&mut switch(rack).counters, "rejected", 2_400);
    });
    assert_eq!(codes(&busy), ["tasks-refused"]);
    assert_eq!(found(&busy)[0].why, "2000 of 50000 tasks (4 %) over the last 62 s: 2000 for busy");
    let in_kernel = with(|rack| {
        switch(rack).counters.retain(|counter| !counter.name.starts_with("rejected_"));
        set(&mut switch(rack).counters, "rejected", 2_400);
    });
    assert_eq!(codes(&in_kernel), ["tasks-refused"], "it does not tell the reasons");
}

#[test]
fn packets_that_the_kernel_drops_are_told_while_it_still_does() {
    let still = with(|rack| set(&mut switch(rack).counters, "kernel_dropped", 900));
    assert_eq!(codes(&still), ["packets-dropped"]);
    let once = with(|rack| {
        set(&mut switch(rack).counters, "kernel_dropped", 900);
        set(&mut rack.earlier[0].counters, "kernel_dropped", 900);
    });
    assert_eq!(codes(&once), [""; 0]);
}

#[test]
fn packets_of_another_version_are_told_if_they_are_no_accident() {
    let read = |unread| with(|rack| set(&mut switch(rack).counters, "wrong_version", unread));
    assert_eq!(codes(&read(12)), [""; 0]);
    let told = found(&read(13));
    assert_eq!((told.len(), told[0].kind), (1, FindingKind::PacketsOtherVersion));
    assert!(told[0].why.starts_with("11 of "), "{told:?}");
}

#[test]
fn a_queue_is_long_if_it_was_long_for_a_minute() {
    let long = with(|rack| rack.slices[0].balance = Some(-95));
    assert_eq!(codes(&long), ["queue-full"]);
    let short_between = with(|rack| {
        rack.slices[0].balance = Some(-95);
        rack.earlier[1].slices[0].balance = Some(4);
    });
    assert_eq!(codes(&short_between), [""; 0]);
}

#[test]
fn a_slice_is_closed_if_it_was_closed_for_half_a_minute() {
    let close = |looks: usize| {
        with(|rack| {
            rack.slices[0].open = false;
            rack.earlier.iter_mut().take(looks).for_each(|look| look.slices[0].open = false);
            set(&mut switch(rack).counters, "rejected_no_workers", 40);
            set(&mut switch(rack).counters, "rejected", 440);
        })
    };
    assert_eq!(codes(&close(1)), [""; 0]);
    let told = found(&close(2));
    assert_eq!(told[0].what, "slice get takes no tasks: it has no worker");
    assert!(told[0].why.contains("70 tasks wait in it; 40 tasks were refused for that"), "{told:?}");
}

#[test]
fn labels_that_nobody_has_are_told_if_tasks_need_them() {
    let nobody = |refused| {
        with(|rack| {
            let needs = vec!["gpu".to_owned()];
            rack.slices[0].classes = vec![ClassStatus { needs, refused: true, ..ClassStatus::default() }];
            set(&mut switch(rack).counters, "rejected_unserved", refused);
        })
    };
    assert_eq!(codes(&nobody(0)), [""; 0]);
    assert_eq!(found(&nobody(4))[0].what, "no worker of slice get serves tasks that need gpu");
}

#[test]
fn a_standby_tells_that_the_switch_does_not_answer_it() {
    let waits = |untold: &str| {
        let standing = StandingResponse {
            role: LeadRole::Standby.into(),
            untold: untold.to_owned(),
            ..StandingResponse::default()
        };
        let link = LinkState::Standby.into();
        let switch = Some(SwitchStatus { link, ..SwitchStatus::default() });
        StatusResponse { switch, standing: Some(standing), ..StatusResponse::default() }
    };
    assert_eq!(codes(&waits("")), [""; 0]);
    let told = found(&waits("no answer in time"));
    assert_eq!((told.len(), told[0].kind), (1, FindingKind::SwitchLost));
    assert!(told[0].why.contains("no answer in time"), "{told:?}");
}

#[test]
fn a_controller_that_etcd_does_not_answer_says_so() {
    let lost = |etcd_lost: &str| {
        let standing = StandingResponse { etcd_lost: etcd_lost.to_owned(), ..StandingResponse::default() };
        StatusResponse { standing: Some(standing), ..StatusResponse::default() }
    };
    assert_eq!(codes(&lost("")), [""; 0]);
    let told = found(&lost("no answer in time"));
    assert_eq!((told.len(), told[0].kind), (1, FindingKind::EtcdLost));
    assert!(told[0].why.contains("no answer in time"), "{told:?}");
}

#[test]
fn a_switch_is_lost_after_some_seconds_and_a_superseded_controller_says_nothing_else() {
    let down = |looks: usize| {
        with(|rack| {
            switch(rack).link = LinkState::Down.into();
            rack.earlier.iter_mut().take(looks).for_each(|look| look.link = LinkState::Down.into());
        })
    };
    assert_eq!((codes(&down(0)), codes(&down(1))), (vec![], vec!["switch-lost"]));
    let superseded = with(|rack| {
        switch(rack).link = LinkState::Superseded.into();
        rack.lost = vec![LostHost { kind: HostKind::Worker.into(), ..LostHost::default() }];
        rack.slices[0].balance = Some(-95);
    });
    assert_eq!(codes(&superseded), ["controller-superseded"]);
    let small = with(|rack| switch(rack).link = LinkState::TooSmall.into());
    assert_eq!(codes(&small), ["switch-too-small"]);
}

#[test]
fn a_second_controller_is_told_while_it_calls() {
    let called = |ago_s: u64| {
        with(|rack| {
            let who = "10.0.0.7".to_owned();
            rack.superseded = vec![SupersededCaller { term: 1, who, ago_ns: ago_s * SECOND }];
        })
    };
    let told = found(&called(1));
    assert_eq!(told[0].kind, FindingKind::ControllerSecond);
    assert!(told[0].why.starts_with("controller number 1 called from 10.0.0.7 1.00 s ago"), "{told:?}");
    assert_eq!(codes(&called(30)), [""; 0]);
}

#[test]
fn certificates_and_refused_calls_are_told() {
    let end = |unix_s| {
        with(|rack| {
            rack.ending = vec![CertificateEnd { certificate: "certificate a.pem".to_owned(), unix_s }];
        })
    };
    let told = found(&end(NOW_S + 3 * 86_400));
    assert_eq!(
        (told[0].severity, told[0].what.as_str()),
        (FindingSeverity::Warning, "certificate a.pem ends in 3 days")
    );
    let told = found(&end(NOW_S - 3 * 3_600));
    assert_eq!(
        (told[0].severity, told[0].what.as_str()),
        (FindingSeverity::Wrong, "certificate a.pem ended 3 h ago")
    );
    assert_eq!(told[0].why, "its last good second is 2026-09-21 11:13:20 UTC");
    let refused = with(|rack| set(&mut rack.refused, "field", 14));
    assert_eq!(found(&refused)[0].why, "11 of them over the last 302 s");
}

#[test]
fn what_is_wrong_stands_before_what_is_a_warning_and_all_is_serialised() {
    let status = with(|rack| {
        rack.processes[0].clock_step = Some(ClockStep { by_ns: SECOND as i64, ago_ns: 0 });
        rack.lost = vec![LostHost { kind: HostKind::Worker.into(), ..LostHost::default() }];
    });
    let told = found(&status);
    assert_eq!(
        told.iter().map(|finding| finding.kind.code()).collect::<Vec<_>>(),
        ["worker-stopped", "clock-set"]
    );
    let json = serde_json::to_value(&told).expect("it is data");
    assert_eq!(json[0]["code"], "worker-stopped");
    assert_eq!(json[0]["severity"], "wrong");
    assert_eq!(json[0]["subject"]["kind"], "worker");
}

#[test]
fn codes_are_kebab_case_and_none_comes_twice() {
    let mut codes: Vec<&str> = FindingKind::ALL.iter().map(|kind| kind.code()).collect();
    assert!(codes.iter().all(|code| code.chars().all(|c| c == '-' || c.is_ascii_lowercase())), "{codes:?}");
    let all = codes.len();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), all);
}
