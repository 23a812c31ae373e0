//! Writes a [`Plan`] as TOML: every key that [`read`](super::read) knows, with the value that gives the
//! same plan. Missing values are left out. Values that equal a default are written too, so that a plan
//! keeps its meaning when a default changes.

use std::fmt::{Display, Write as _};
use std::path::Path;
use std::time::Duration;

use sluice_control::write_labels;
use sluice_host::orchestrator::Assignment;
use sluice_services::rocks::RocksArgs;

use super::parts::{
    Arrivals, Event, LoadPlan, Plan, RacksPlan, Request, ServicePlan, SlicePlan, Spread, SwitchPlan,
    WorkerPlan,
};
use super::racks::LEAF_ON_SERVER;
use super::rdma::{RdmaPlan, transport_name};
use super::section::COUNT_MAX;
use super::types::Types;
use crate::units;

/// Writes a whole plan.
pub(super) fn write(plan: &Plan) -> Result<String, String> {
    let Plan { name, policy, seed, dilation, state, out, faults, switch, rdma, .. } = plan;
    let Plan { types, racks, slices, workers, rocksdb, load, events, .. } = plan;
    let mut toml = Toml::default();
    toml.text("name", name);
    toml.text("policy", policy);
    toml.plain("seed", seed);
    toml.plain("dilation", dilation);
    toml.some_text("faults", faults.as_ref());
    toml.path("out", out)?;
    toml.path("state", state)?;
    if let Some(RacksPlan { count, spines, on_servers }) = racks {
        toml.section("[racks]");
        toml.plain("count", count);
        toml.plain("spines", spines);
        toml.some_text("leaf", on_servers.then_some(LEAF_ON_SERVER));
    }
    write_switch(&mut toml, switch);
    write_rdma(&mut toml, rdma)?;
    let mut added = types.added().peekable();
    if added.peek().is_some() {
        toml.section("[types]");
    }
    for (name, number) in added {
        toml.plain(&key(name), number);
    }
    for slice in slices {
        write_slice(&mut toml, slice);
    }
    for (name, count, worker) in alike(workers) {
        write_worker(&mut toml, (name, count), worker)?;
    }
    write_rocksdb(&mut toml, rocksdb)?;
    if let Some(load) = load {
        write_load(&mut toml, load, types)?;
    }
    for event in events {
        write_event(&mut toml, event);
    }
    Ok(toml.0)
}

fn write_switch(toml: &mut Toml, switch: &SwitchPlan) {
    let SwitchPlan { io, listen, control, controller_apart, tasks_per_slice, tokens_per_slice, .. } = switch;
    let SwitchPlan { replay_cells, payload_bytes, waiting, testbed_delays, pin, .. } = switch;
    toml.section("[switch]");
    toml.text("io", io.name());
    toml.some_text("listen", listen.as_ref());
    toml.some_text("control", control.as_ref());
    toml.plain("controller_apart", controller_apart);
    toml.plain("tasks_per_slice", tasks_per_slice);
    toml.plain("tokens_per_slice", tokens_per_slice);
    toml.plain("replay_cells", replay_cells);
    toml.some_text("payload_memory", payload_bytes.map(sluice_units::show_size));
    toml.text("waiting", waiting);
    toml.plain("testbed_delays", testbed_delays);
    toml.some_plain("pin", *pin);
}

fn write_rdma(toml: &mut Toml, rdma: &RdmaPlan) -> Result<(), String> {
    let RdmaPlan { servers, link_mtu, mtu, reliable, icrc, copies, stall_tasks, tiny_slots, pcap } = rdma;
    toml.section("[rdma]");
    toml.plain("servers", servers);
    toml.plain("link_mtu", link_mtu);
    toml.plain("mtu", mtu.bytes());
    toml.text("transport", transport_name(*reliable));
    toml.plain("icrc", icrc);
    toml.plain("copies", copies);
    toml.plain("stall_tasks", stall_tasks);
    toml.some_plain("tiny_slots", *tiny_slots);
    pcap.as_ref().map_or(Ok(()), |pcap| toml.path("pcap", pcap))
}

fn write_slice(toml: &mut Toml, slice: &SlicePlan) {
    let SlicePlan { name, types, limit, sizes, needs, kinds, wished } = slice;
    toml.section("[[slice]]");
    toml.text("name", name);
    toml.texts("types", types);
    toml.some_plain("limit", *limit);
    let ends = sizes.ends().iter().map(|end| units::span_text(Duration::from_nanos(end.0)));
    if !sizes.is_none() {
        toml.texts("sizes", &ends.collect::<Vec<_>>());
    }
    if !needs.is_empty() {
        let need = |(name, labels): &(String, Vec<String>)| format!("{name}={}", write_labels(labels));
        toml.texts("needs", &needs.iter().map(need).collect::<Vec<_>>());
        toml.plain("wished", wished);
    }
    if !kinds.is_empty() {
        toml.texts("kinds", &kinds.iter().map(|kind| write_labels(kind)).collect::<Vec<_>>());
    }
}

fn write_worker(
    toml: &mut Toml,
    (name, count): (&str, Option<usize>),
    worker: &WorkerPlan,
) -> Result<(), String> {
    let WorkerPlan { name: _, slice, rack, labels, service, quota, cores, pin, faults } = worker;
    toml.section("[[worker]]");
    toml.text("name", name);
    toml.some_plain("count", count);
    match cores {
        None => toml.text("slice", slice),
        Some(of) => {
            toml.plain("cores", of.cores);
            toml.texts("serves", &of.serves.iter().map(ToString::to_string).collect::<Vec<_>>());
            toml.plain("depth", of.depth);
            toml.text("lambda", of.lambda.to_string());
            if of.assignment != Assignment::CompleteShare {
                toml.text("assignment", of.assignment.to_string());
            }
            if of.pool {
                toml.plain("pool", true);
            }
            if of.batch {
                toml.plain("batch", true);
            }
        }
    }
    toml.some_plain("rack", *rack);
    if !labels.is_empty() {
        toml.texts("labels", labels);
    }
    match service {
        ServicePlan::Ours(service) => toml.text("service", service),
        ServicePlan::Program { exec, args } => {
            toml.path("exec", exec)?;
            toml.texts("args", args);
        }
    }
    toml.some_plain("quota", *quota);
    toml.some_plain("pin", *pin);
    toml.some_text("faults", faults.as_ref());
    Ok(())
}

/// Groups workers that one section can describe: NAME-1, NAME-2 and so on, equal in all but the name.
fn alike(workers: &[WorkerPlan]) -> Vec<(&str, Option<usize>, &WorkerPlan)> {
    let mut sections = Vec::new();
    let mut left = workers;
    while let Some(first) = left.first() {
        let base = first.name.strip_suffix("-1").unwrap_or_default();
        let is_nth = |(place, worker): &(usize, &WorkerPlan)| {
            let name = format!("{base}-{}", place + 1);
            worker.name == name && **worker == WorkerPlan { name, ..first.clone() }
        };
        let together = left.iter().enumerate().take(COUNT_MAX).take_while(is_nth).count();
        let is_one = base.is_empty() || together < 2;
        sections.push(if is_one { (&*first.name, None, first) } else { (base, Some(together), first) });
        left = &left[if is_one { 1 } else { together }..];
    }
    sections
}

fn write_rocksdb(toml: &mut Toml, rocksdb: &RocksArgs) -> Result<(), String> {
    let RocksArgs { db, keys, item_bytes, cache_mib } = rocksdb;
    toml.section("[rocksdb]");
    toml.path("path", db)?;
    toml.plain("keys", keys);
    toml.plain("item_bytes", item_bytes);
    toml.plain("cache_mib", cache_mib);
    Ok(())
}

fn write_load(toml: &mut Toml, load: &LoadPlan, types: &Types) -> Result<(), String> {
    let LoadPlan { arrivals, mix, requests, warm_up, length, deadline, retry, behind_max, failed_max } = load;
    toml.section("[load]");
    match arrivals {
        Arrivals::Poisson(rate) => {
            toml.float("rate", *rate);
            toml.text("arrivals", "poisson");
        }
        Arrivals::Constant(rate) => {
            toml.float("rate", *rate);
            toml.text("arrivals", "constant");
        }
        Arrivals::Trace(path) => toml.path("trace", path)?,
    }
    let share = |(name, share): &(String, f64)| format!("{}={share}", in_mix(name, types));
    let shares: Vec<String> = mix.iter().map(share).collect();
    toml.text("mix", shares.join(","));
    toml.span("warm_up", *warm_up);
    toml.span("length", *length);
    toml.span("deadline", *deadline);
    toml.text("retry", units::retry_text(*retry));
    toml.span("behind_max", *behind_max);
    toml.float("failed_max", *failed_max);
    for (name, request) in requests {
        toml.section(&format!("[load.request.{}]", key(name)));
        write_request(toml, request);
    }
    Ok(())
}

/// A type's name; its number if the name would be ambiguous in a mix.
fn in_mix(name: &str, types: &Types) -> String {
    let number = types.number(name).filter(|_| name.contains([',', '=']) || name.trim() != name);
    let Some(number) = number else { return name.to_owned() };
    let mut text = number.to_string();
    // Another type may have this number as its name; a leading zero makes it a number again.
    while types.number(&text).is_some_and(|other| other != number) {
        text.insert(0, '0');
    }
    text
}

fn write_request(toml: &mut Toml, request: &Request) {
    let spread = match request {
        Request::Get { keys, spread, each } => {
            toml.plain("keys", keys);
            toml.some_span("each", *each);
            *spread
        }
        Request::Scan { rows, spread, each } => {
            toml.plain("rows", rows);
            toml.some_span("each", *each);
            *spread
        }
        Request::Busy { span, spread } => {
            toml.span("busy", *span);
            *spread
        }
        Request::Text(text) => {
            toml.text("text", text);
            Spread::Constant
        }
    };
    if spread == Spread::Exponential {
        toml.text("spread", "exponential");
    }
}

fn write_event(toml: &mut Toml, Event { at, kill, return_after }: &Event) {
    toml.section("[[event]]");
    toml.span("at", *at);
    toml.text("kill", kill);
    if let Some(after) = return_after {
        toml.span("return_after", *after);
    }
}

/// Builds TOML, line by line.
#[derive(Default)]
struct Toml(String);

impl Toml {
    fn section(&mut self, header: &str) {
        self.0 += "\n";
        self.0 += header;
        self.0 += "\n";
    }

    /// Writes a number, `true` or `false`.
    fn plain(&mut self, key: &str, value: impl Display) {
        writeln!(self.0, "{key} = {value}").expect("a string takes it");
    }

    fn some_plain(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.plain(key, value);
        }
    }

    /// Writes a whole number without decimals, as people write it.
    fn float(&mut self, key: &str, value: f64) {
        let is_whole = value.fract() == 0.0 && value.abs() < 1e15;
        if is_whole { self.plain(key, value as i64) } else { self.plain(key, format!("{value:?}")) }
    }

    fn text(&mut self, key: &str, text: impl Display) {
        self.plain(key, quoted(&text.to_string()));
    }

    fn some_text(&mut self, key: &str, text: Option<impl Display>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    fn texts(&mut self, key: &str, texts: &[String]) {
        let all: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
        self.plain(key, format!("[{}]", all.join(", ")));
    }

    fn path(&mut self, key: &str, path: &Path) -> Result<(), String> {
        let text = path.to_str();
        let shown = path.display();
        self.text(key, text.ok_or_else(|| format!("{key} {shown} is no text: no plan can hold it"))?);
        Ok(())
    }

    fn some_span(&mut self, key: &str, span: Option<Duration>) {
        if let Some(span) = span {
            self.span(key, span);
        }
    }

    fn span(&mut self, key: &str, span: Duration) {
        self.text(key, units::span_text(span));
    }
}

/// A key, in quotes if necessary.
fn key(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if !name.is_empty() && name.chars().all(is_plain) { name.to_owned() } else { quoted(name) }
}

/// A TOML string on one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            _ if letter.is_control() => {
                write!(quoted, "\\u{:04X}", u32::from(letter)).expect("a string takes it");
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
