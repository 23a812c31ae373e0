//! The state of a rack as text.

use std::collections::BTreeMap;
use std::time::SystemTime;

use sluice_control::write_labels;
use sluice_report::table::{NOTHING, Table, digits, time};
use sluice_rpc::PeerVersion;
use sluice_rpc::v1::{Counter, LeadRole, ProcessBuild, SliceStatus, StatusResponse};
use sluice_support::controller_caller::{link, phase, types_of};
use sluice_support::findings::findings;
use sluice_support::peers;
use sluice_support::status_json::{slice_name, transport};

use super::wrong;

/// The whole state as text.
pub(super) fn text(controller: &str, status: &StatusResponse) -> String {
    let switch = status.switch.clone().unwrap_or_default();
    let (at, link, epoch) = (&switch.at, link(switch.link()), switch.epoch);
    let head = format!("controller {controller}; switch {at} {link}, epoch {epoch}");
    let counters = counted("the switch counted", &switch.counters);
    let refused = status.refused.iter().any(|counter| counter.value > 0);
    let refused = refused.then(|| counted("calls refused for", &status.refused));
    let is_labelled = status.slices.iter().any(|slice| !slice.classes.is_empty());
    let classes = is_labelled.then(|| classes(status));
    let limits = status.slices.iter().any(is_limited).then(|| limits(status));
    let [slices, workers] = [slices(status), workers(status)];
    let others = [workers, servers(status), clients(status), counters];
    let tables = [&slices].into_iter().chain(&limits).chain(&classes).chain(&others).chain(&refused);
    let tables: Vec<String> = tables.map(Table::to_string).collect();
    let builds = builds(status);
    let wrong = wrong::text(&findings(status, SystemTime::now()));
    format!("{head}{}\n{builds}{wrong}\n{}", standing(status), tables.join("\n"))
}

/// The builds of the rack's processes in one line: which processes are of each.
fn builds(status: &StatusResponse) -> String {
    let mut of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for process in &status.builds {
        let ProcessBuild { kind, name, build, oldest, newest } = process;
        let said = PeerVersion { build: build.clone(), oldest: *oldest, newest: *newest };
        let who = if name.is_empty() { kind.clone() } else { format!("{kind} {name}") };
        of.entry(said.to_string()).or_default().push(who);
    }
    let mut of = of.into_iter();
    match (of.next(), of.len()) {
        (None, _) => String::new(),
        (Some((build, _)), 0) => format!("all processes are {build}\n"),
        (Some(first), _) => {
            let line = |(build, who): (String, Vec<String>)| format!("{build}: {}\n", who.join(", "));
            [first].into_iter().chain(of).map(line).collect()
        }
    }
}

/// Whether a controller leads its rack.
pub(super) fn leads(status: &StatusResponse) -> bool {
    status.standing.as_ref().is_some_and(|standing| standing.role() == LeadRole::Leads)
}

/// A controller's part in the choice of a leader, in words.
pub(super) fn role(status: &StatusResponse) -> String {
    let standing = status.standing.clone().unwrap_or_default();
    let of = match (standing.leader.as_str(), standing.untold.as_str()) {
        ("", "") => "who leads is not known".to_owned(),
        ("", why) => format!("the switch does not say who leads: {why}"),
        (leader, _) => format!("{leader} leads"),
    };
    match standing.role() {
        LeadRole::Unspecified | LeadRole::Leads => "leads".to_owned(),
        LeadRole::Superseded => "superseded: another controller has taken the switch over".to_owned(),
        LeadRole::Standby if standing.other_plan => {
            format!("standby, {of}; it has another plan than the leader and will not lead")
        }
        LeadRole::Standby => format!("standby, {of}"),
    }
}

/// What the head of a state says of leader and standbys; empty if there are no standbys.
fn standing(status: &StatusResponse) -> String {
    let Some(standing) = &status.standing else { return String::new() };
    match (standing.role(), &standing.standbys[..]) {
        (LeadRole::Standby, _) => format!("; {}", role(status)),
        (LeadRole::Leads, standbys @ [_, ..]) => format!("; standbys {}", standbys.join(", ")),
        _ => String::new(),
    }
}

/// The state of the rack in one line.
pub(super) fn line(status: &StatusResponse) -> String {
    if status.standing.as_ref().is_some_and(|standing| standing.role() == LeadRole::Standby) {
        return role(status);
    }
    let switch = status.switch.clone().unwrap_or_default();
    let slices = status.slices.iter().map(|slice| {
        let balance = slice.balance.map_or_else(
            || "balance ?".to_owned(),
            |balance| match balance {
                0.. => format!("{balance} tokens parked"),
                waiting => format!("{} tasks wait", waiting.unsigned_abs()),
            },
        );
        format!(
            "; {} {}, {} worker{}, {balance}",
            slice.name,
            if slice.open { "open" } else { "closed" },
            slice.workers,
            if slice.workers == 1 { "" } else { "s" }
        ) + &target(slice)
            + &late(slice)
            + &refused(slice)
    });
    let slices: String = slices.collect();
    let wrong = wrong::line(&findings(status, SystemTime::now()));
    let clients = status.clients.len();
    let clients = if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
    format!("switch {}, epoch {}{slices}; {clients}{wrong}", link(switch.link()), switch.epoch)
}

/// A slice's target, and what came of it; empty if it has none.
fn target(slice: &SliceStatus) -> String {
    if slice.target_ns == 0 {
        return String::new();
    }
    let may = slice.measured_limit.map_or_else(|| "?".to_owned(), |limit| limit.to_string());
    let target = time(slice.target_ns as f64);
    format!(", target {target}: {may} may wait, {} refused busy", slice.refused_busy)
}

/// How many tasks of a slice were refused because their budget was spent; empty if none was.
fn late(slice: &SliceStatus) -> String {
    let (in_switch, at_worker) = (slice.late_in_switch, slice.late_at_worker);
    let all = in_switch.saturating_add(at_worker);
    if all == 0 { String::new() } else { format!(", {all} refused late ({at_worker} at workers)") }
}

/// Whether tasks of a slice are refused, or were, because they would wait for too long.
const fn is_limited(slice: &SliceStatus) -> bool {
    slice.target_ns > 0 || slice.late_in_switch > 0 || slice.late_at_worker > 0
}

/// Which tasks of a slice are refused since no worker can serve them; empty if there are none.
fn refused(slice: &SliceStatus) -> String {
    let refused = slice.classes.iter().filter(|class| class.refused);
    let needs: Vec<String> = refused.map(|class| write_labels(&class.needs)).collect();
    if needs.is_empty() { String::new() } else { format!(", nobody for {}", needs.join(", ")) }
}

fn slices(status: &StatusResponse) -> Table {
    let mut table =
        Table::new(["slice", "types", "takes tasks", "workers", "quotas", "may wait", "balance", "stale"]);
    let known = types_of(status);
    for slice in &status.slices {
        let types: Vec<String> = slice.types.iter().map(|number| known.shown(*number)).collect();
        table.row([
            slice.name.clone(),
            types.join(", "),
            if slice.open { "yes" } else { "no" }.to_owned(),
            slice.workers.to_string(),
            slice.quotas.to_string(),
            slice.limit.to_string(),
            slice.balance.map_or_else(|| "?".to_owned(), |balance| format!("{balance:+}")),
            slice.stale_tokens.to_string(),
        ]);
    }
    table
}

/// The targets of slices, and how many tasks were refused because of them and because of their budgets.
fn limits(status: &StatusResponse) -> Table {
    let mut table = Table::new([
        "slice",
        "target",
        "may wait, as measured",
        "refused busy",
        "late in the switch",
        "late at workers",
    ]);
    for slice in status.slices.iter().filter(|slice| is_limited(slice)) {
        let has_target = slice.target_ns > 0;
        let may = slice.measured_limit.map_or_else(|| "?".to_owned(), |limit| limit.to_string());
        table.row([
            slice.name.clone(),
            if has_target { time(slice.target_ns as f64) } else { NOTHING.to_owned() },
            if has_target { may } else { NOTHING.to_owned() },
            slice.refused_busy.to_string(),
            slice.late_in_switch.to_string(),
            slice.late_at_worker.to_string(),
        ]);
    }
    table
}

/// The labels that tasks of each slice need, and the workers that have them.
fn classes(status: &StatusResponse) -> Table {
    let mut table = Table::new(["slice", "needs", "types", "workers with it"]);
    let known = types_of(status);
    for slice in &status.slices {
        for class in &slice.classes {
            let types: Vec<String> = class.types.iter().map(|number| known.shown(*number)).collect();
            let wish = if slice.wished && !class.needs.is_empty() { " (a wish)" } else { "" };
            let refused = if class.refused { ": its tasks are refused" } else { "" };
            table.row([
                slice.name.clone(),
                format!("{}{wish}", write_labels(&class.needs)),
                types.join(", "),
                format!("{}{refused}", class.workers),
            ]);
        }
    }
    table
}

fn workers(status: &StatusResponse) -> Table {
    let is_labelled = status.workers.iter().any(|worker| !worker.labels.is_empty());
    let is_spine = status.workers.iter().any(|worker| worker.workers > 0);
    let cells = |[labels, stands_for]: [String; 2], others: [String; 12]| {
        let [name, slice, phase, others @ ..] = others;
        let more = is_labelled.then_some(labels).into_iter().chain(is_spine.then_some(stands_for));
        [name, slice, phase].into_iter().chain(more).chain(others)
    };
    // A narrow terminal cuts off the last columns.
    let who = if is_spine { "leaf" } else { "worker" };
    let headings = [
        who,
        "slice",
        "phase",
        "quota",
        "tasks/s",
        "service",
        "waits",
        "could serve/s",
        "at",
        "renewed ago",
        "index",
        "generation",
    ];
    let mut table = Table::new(cells(["labels", "workers"].map(str::to_owned), headings.map(str::to_owned)));
    let mut workers: Vec<_> = status.workers.iter().zip(peers::apart(status)).collect();
    workers.sort_by_key(|(worker, _)| &worker.name);
    for (worker, apart) in workers {
        let recent = worker.recent.unwrap_or_default();
        let mean = |ns: u64| if recent.tasks > 0 { time(ns as f64) } else { "-".to_owned() };
        let others = [
            format!("{}{}", or_unknown(&worker.name), if apart.is_some() { " !" } else { "" }),
            slice_name(status, worker.slice),
            phase(worker.phase()).to_owned(),
            worker.quota.to_string(),
            peers::rate(&recent).map_or_else(|| "?".to_owned(), digits),
            mean(recent.service_ns),
            mean(recent.wait_ns),
            known_or(worker.tasks_per_second),
            worker.at.clone(),
            time(worker.renewed_ago_ns as f64),
            worker.worker.to_string(),
            worker.generation.to_string(),
        ];
        table.row(cells([write_labels(&worker.labels), worker.workers.to_string()], others));
    }
    table
}

fn servers(status: &StatusResponse) -> Table {
    let mut table =
        Table::new(["server", "at", "renewed ago", "memory", "rings", "RDMA MTU", "pair", "index"]);
    let mut servers: Vec<_> = status.servers.iter().collect();
    servers.sort_by_key(|server| &server.name);
    for server in servers {
        let rows = || server.rings.iter().filter_map(|ring| ring.row);
        let bytes: u64 = rows().map(|row| u64::from(row.slots) * u64::from(row.slot_bytes)).sum();
        table.row([
            or_unknown(&server.name),
            server.at.clone(),
            time(server.renewed_ago_ns as f64),
            format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
            rows().map(|row| row.slots.to_string()).collect::<Vec<_>>().join(" + "),
            format!("{} B", server.mtu),
            format!("{}{}", transport(server.reliable), if server.icrc { "" } else { ", no iCRC" }),
            server.server.to_string(),
        ]);
    }
    table
}

fn clients(status: &StatusResponse) -> Table {
    let mut table = Table::new(["client", "at", "renewed ago", "index"]);
    for client in &status.clients {
        let ago = time(client.renewed_ago_ns as f64);
        table.row([or_unknown(&client.name), client.at.clone(), ago, client.client.to_string()]);
    }
    table
}

fn counted(what: &str, counters: &[Counter]) -> Table {
    let mut table = Table::new([what, ""]);
    for counter in counters.iter().filter(|counter| counter.value > 0) {
        table.row([counter.name.clone(), counter.value.to_string()]);
    }
    table
}

fn known_or(number: u32) -> String {
    if number == 0 { "?".to_owned() } else { number.to_string() }
}

fn or_unknown(name: &str) -> String {
    if name.is_empty() { "?".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use sluice_rpc::v1::{CertificateEnd, ClassStatus, LinkState, SwitchStatus};
    use sluice_support::status_json::to_json;

    use super::*;

    #[test]
    fn a_certificate_that_ends_soon_is_told_of_before_the_tables() {
        let ending = vec![CertificateEnd { certificate: "certificate switch.pem".to_owned(), unix_s: 0 }];
        let told = text("here", &StatusResponse { ending, ..StatusResponse::default() });
        let lines: Vec<&str> = told.lines().take(3).collect();
        assert!(lines[2].starts_with("wrong: certificate switch.pem ended "), "{told}");
    }

    #[test]
    fn a_line_says_which_slices_are_open_and_what_waits_in_them() {
        let slice = |name: &str, open, balance| SliceStatus {
            name: name.to_owned(),
            open,
            workers: 4,
            balance,
            ..SliceStatus::default()
        };
        let status = StatusResponse {
            switch: Some(SwitchStatus { epoch: 7, link: LinkState::Up.into(), ..SwitchStatus::default() }),
            slices: vec![
                slice("get", true, Some(5)),
                slice("scan", false, Some(-40)),
                slice("other", true, None),
            ],
            ..StatusResponse::default()
        };
        assert_eq!(
            line(&status),
            "switch up, epoch 7; get open, 4 workers, 5 tokens parked; scan closed, 4 workers, 40 tasks wait; other open, 4 \
             workers, balance ?; 0 clients; nothing wrong found"
        );
    }

    #[test]
    fn a_slices_target_is_told_with_what_came_of_it() {
        let none = SliceStatus { name: "scan".to_owned(), ..SliceStatus::default() };
        let slice = SliceStatus {
            name: "get".to_owned(),
            target_ns: 50_000,
            measured_limit: Some(131),
            refused_busy: 7,
            ..SliceStatus::default()
        };
        let unmeasured = SliceStatus { measured_limit: None, refused_busy: 0, ..slice.clone() };
        assert_eq!(target(&none), "");
        assert_eq!(target(&slice), ", target 50.0 us: 131 may wait, 7 refused busy");
        assert_eq!(target(&unmeasured), ", target 50.0 us: ? may wait, 0 refused busy");
        let only = |slices: &[&SliceStatus]| StatusResponse {
            slices: slices.iter().map(|slice| (*slice).clone()).collect(),
            ..StatusResponse::default()
        };
        assert!(text("here", &only(&[&none, &slice])).contains("refused busy"));
        assert!(!text("here", &only(&[&none])).contains("refused busy"));
    }

    #[test]
    fn tasks_that_were_refused_late_are_told_by_where_with_a_target_or_without() {
        let on_time = SliceStatus { name: "scan".to_owned(), ..SliceStatus::default() };
        let slice = SliceStatus {
            name: "get".to_owned(),
            late_in_switch: 30,
            late_at_worker: 9,
            ..SliceStatus::default()
        };
        assert_eq!((late(&on_time), target(&slice)), (String::new(), String::new()));
        assert_eq!(late(&slice), ", 39 refused late (9 at workers)");
        let status = StatusResponse { slices: vec![on_time, slice], ..StatusResponse::default() };
        let told = text("here", &status);
        let rows: Vec<&str> = told.lines().skip_while(|row| !row.contains("late in the switch")).collect();
        let cells = |row: &str| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(cells(rows[1]), ["get", NOTHING, NOTHING, "0", "30", "9"], "{told}");
        assert!(!rows[2].contains("scan"), "{told}");
        let json = to_json(&status);
        let counts = ["late_in_switch", "late_at_worker"].map(|key| json["slices"][1][key].as_u64());
        assert_eq!(counts, [Some(30), Some(9)]);
    }

    #[test]
    fn a_line_says_which_tasks_of_a_slice_nobody_serves() {
        let class = |needs: &[&str], refused| ClassStatus {
            needs: needs.iter().map(|label| (*label).to_owned()).collect(),
            refused,
            ..ClassStatus::default()
        };
        let slice = SliceStatus {
            classes: vec![class(&["gpu", "ssd"], true), class(&["gpu"], false), class(&[], true)],
            ..SliceStatus::default()
        };
        assert_eq!(refused(&slice), ", nobody for gpu+ssd, none");
        assert_eq!(refused(&SliceStatus::default()), "");
    }
}
