//! Reads a [`Plan`] from TOML. Every key of a plan is read here and nowhere else.

use std::path::PathBuf;
use std::time::Duration;

use sluice_control::{check_label, read_labels, read_needs};
use sluice_net::client::deadline_default;
use sluice_services::rocks::{GET_KEYS_MAX, RocksArgs};
use sluice_wire::Nanos;
use sluice_wire::registrations::Sizes;
use sluice_wire::sizes::QUOTA_LIMIT;
use toml::de::DeTable;

use super::parts::{
    Arrivals, Event, FAILED_MAX, LoadPlan, POLICY_DEFAULT, POLICY_OF_CORES, Plan, RacksPlan, Request,
    ServicePlan, SlicePlan, Spread, SwitchPlan, Target, WorkerPlan, state_in,
};
use super::runs_live::{FABRIC_POLICY, live_program};
use super::section::{COUNT_MAX, Section, Source};
use super::types::{Types, check_shown};
use crate::fail::{Failure, Outcome};
use crate::file_name::file_name;
use crate::flags::Io;
use crate::units;

/// How a switch may wait for packets.
const WAITINGS: [&str; 3] = ["adaptive", "spin", "block"];
/// Where packets may be switched.
const IOS: [Io; 2] = [Io::Udp, Io::Xdp];
/// How requests may vary.
const SPREADS: [&str; 2] = ["constant", "exponential"];

/// Reads a whole plan.
pub(super) fn read(source: Source<'_>) -> Outcome<Plan> {
    let parsed = DeTable::parse(source.text).map_err(|why| {
        let at = why.span().map_or(0, |span| span.start);
        source.complain(at, format!("is not TOML: {}", why.message()))
    })?;
    let top = Section::top(source, parsed.get_ref());
    let shown = |name: &str| check_shown(name).map(|()| name.to_owned());
    let name = top.parsed("name", shown)?.unwrap_or_else(|| "rack".to_owned());
    let out = top.text("out")?.map_or_else(|| PathBuf::from("out").join(file_name(&name)), PathBuf::from);
    let rocksdb = rocksdb(top.section("rocksdb")?)?;
    let dilation = dilation(&top)?;
    let mut types = types(top.section("types")?)?;
    let racks = top.section("racks")?.map(racks).transpose()?;
    let workers = workers(top.sections("worker")?)?;
    let plan = Plan {
        policy: policy(&top, racks.is_some(), &workers)?,
        racks,
        seed: top.whole("seed", 0..i64::MAX as u64)?.unwrap_or(1),
        dilation,
        state: top.text("state")?.map_or_else(|| state_in(&out), PathBuf::from),
        faults: faults(&top)?,
        switch: switch(top.section("switch")?)?,
        rdma: super::rdma::read(top.section("rdma")?)?,
        slices: each(top.sections("slice")?, |section| slice(section, &mut types))?,
        workers,
        load: top.section("load")?.map(|section| load(section, dilation, &mut types)).transpose()?,
        events: each(top.sections("event")?, event)?,
        types,
        name,
        out,
        rocksdb,
    };
    top.finish()?;
    Ok(plan)
}

fn each<'p, T>(sections: Vec<Section<'p>>, read: impl FnMut(Section<'p>) -> Outcome<T>) -> Outcome<Vec<T>> {
    sections.into_iter().map(read).collect()
}

fn racks(section: Section<'_>) -> Outcome<RacksPlan> {
    let plan = super::racks::read(&section)?;
    section.finish()?;
    Ok(plan)
}

/// A suitable default for the plan's racks and workers, if it names no policy.
fn policy(top: &Section<'_>, has_racks: bool, workers: &[WorkerPlan]) -> Outcome<String> {
    let read = |text: &str| live_program(text).map(|_| text.to_owned());
    let has_cores = workers.iter().any(|worker| worker.cores.is_some());
    let usual = match (has_racks, has_cores) {
        (true, _) => FABRIC_POLICY,
        (false, true) => POLICY_OF_CORES,
        (false, false) => POLICY_DEFAULT,
    };
    Ok(top.parsed("policy", read)?.unwrap_or_else(|| usual.to_owned()))
}

fn dilation(top: &Section<'_>) -> Outcome<u32> {
    let factor = top.number("dilation", |factor| {
        if (1.0..=1e6).contains(&factor) && factor.fract() == 0.0 {
            Ok(factor)
        } else {
            Err(format!("{factor} is not a whole number from 1 to 1000000; 1 is real time"))
        }
    })?;
    Ok(factor.map_or(1, |factor| factor as u32))
}

fn faults(section: &Section<'_>) -> Outcome<Option<String>> {
    section.parsed("faults", |text| {
        let rates = text.parse::<sluice_netem::Rates>();
        rates.map(|_| text.to_owned()).map_err(|why| why.to_string())
    })
}

fn named(section: &Section<'_>, key: &'static str, known: &[&str]) -> Outcome<String> {
    let name = section.parsed(key, |name| {
        if known.contains(&name) { Ok(name.to_owned()) } else { Err(sluice_units::unknown(key, name, known)) }
    })?;
    Ok(name.unwrap_or_else(|| known[0].to_owned()))
}

fn switch(section: Option<Section<'_>>) -> Outcome<SwitchPlan> {
    let mut plan = SwitchPlan {
        io: Io::Udp,
        listen: None,
        control: None,
        controller_apart: false,
        tasks_per_slice: 8_192,
        tokens_per_slice: 4_096,
        replay_cells: 4_096,
        payload_bytes: None,
        waiting: WAITINGS[0].to_owned(),
        testbed_delays: false,
        pin: None,
    };
    let Some(section) = section else { return Ok(plan) };
    plan.io = section.parsed("io", io)?.unwrap_or(plan.io);
    plan.listen = section.parsed("listen", units::address)?;
    plan.control = section.parsed("control", units::address)?;
    plan.controller_apart = section.flag("controller_apart")?.unwrap_or(false);
    plan.tasks_per_slice = section.ring("tasks_per_slice")?.unwrap_or(plan.tasks_per_slice);
    plan.tokens_per_slice = section.ring("tokens_per_slice")?.unwrap_or(plan.tokens_per_slice);
    plan.replay_cells = section.ring("replay_cells")?.unwrap_or(plan.replay_cells);
    plan.payload_bytes = section.parsed("payload_memory", sluice_units::size)?;
    plan.waiting = named(&section, "waiting", &WAITINGS)?;
    plan.testbed_delays = section.flag("testbed_delays")?.unwrap_or(false);
    plan.pin = core(&section)?;
    section.finish()?;
    Ok(plan)
}

fn io(text: &str) -> Result<Io, String> {
    let found = IOS.into_iter().find(|io| io.name() == text);
    found.ok_or_else(|| sluice_units::unknown("io", text, &IOS.map(Io::name)))
}

fn core(section: &Section<'_>) -> Outcome<Option<usize>> {
    Ok(section.whole("pin", 0..1_024)?.map(|core| core as usize))
}

fn types(section: Option<Section<'_>>) -> Outcome<Types> {
    let mut types = Types::ours();
    let Some(section) = section else { return Ok(types) };
    for (name, number) in section.named_numbers(1..65_536)? {
        types.name(name, number as u16).map_err(|why| section.complain_of(name, why))?;
    }
    Ok(types)
}

fn slice(section: Section<'_>, known: &mut Types) -> Outcome<SlicePlan> {
    let name = section.needed_text("name")?.to_owned();
    let mut named = |text| known.called(text).map_err(|why| unknown_type(&section, "types", &why));
    let types = section.texts("types")?.into_iter().map(&mut named).collect::<Outcome<_>>()?;
    let limit = section.whole("limit", 1..(1 << 20) + 1)?.map(|limit| limit as u32);
    let sizes = sizes(&section)?;
    let needs = needs(&section, known)?;
    let kind = |text: &str| read_labels(text).map_err(|why| section.complain_of("kinds", why));
    let kinds = section.texts("kinds")?.into_iter().map(kind).collect::<Outcome<_>>()?;
    let wished = section.flag("wished")?.unwrap_or(false);
    section.finish()?;
    Ok(SlicePlan { name, types, limit, sizes, needs, kinds, wished })
}

/// `["train=gpu+ssd"]`: a type and the labels that its tasks need.
fn needs(section: &Section<'_>, known: &mut Types) -> Outcome<Vec<(String, Vec<String>)>> {
    let need = |text| {
        let (name, labels) = read_needs(text).map_err(|why| section.complain_of("needs", why))?;
        let name = known.called(name).map_err(|why| unknown_type(section, "needs", &why))?;
        Ok((name, labels))
    };
    section.texts("needs")?.into_iter().map(need).collect()
}

fn sizes(section: &Section<'_>) -> Outcome<Sizes> {
    let span = |text: &str| units::span(text).map(|span| Nanos(span.as_nanos() as u64));
    let ends: Result<Vec<Nanos>, _> = section.texts("sizes")?.into_iter().map(span).collect();
    let ends = ends.map_err(|why| section.complain_of("sizes", why))?;
    let wrong = || section.complain_of("sizes", "takes one to three spans, each longer than the one before");
    Sizes::new(&ends).ok_or_else(wrong)
}

fn unknown_type(section: &Section<'_>, key: &str, why: &str) -> Failure {
    section.complain_of(key, format!("{why}; new names go into [types]"))
}

fn workers(sections: Vec<Section<'_>>) -> Outcome<Vec<WorkerPlan>> {
    let mut workers = Vec::new();
    for section in sections {
        let name = section.needed_text("name")?;
        let count = section.whole("count", 0..COUNT_MAX as u64 + 1)?;
        let one = worker(&section, name)?;
        section.finish()?;
        match count {
            None => workers.push(one),
            Some(count) => {
                workers
                    .extend((1..=count).map(|i| WorkerPlan { name: format!("{name}-{i}"), ..one.clone() }));
            }
        }
    }
    Ok(workers)
}

fn worker(section: &Section<'_>, name: &str) -> Outcome<WorkerPlan> {
    let legal = |quota: u64| {
        u8::try_from(quota).ok().filter(|quota| (1..=QUOTA_LIMIT).contains(quota)).ok_or_else(|| {
            let why = format!("{quota} is outside 1 to {QUOTA_LIMIT}; 1 or 2 suit most services");
            section.complain_of("quota", why)
        })
    };
    let quota = section.whole("quota", 0..i64::MAX as u64)?.map(legal).transpose()?;
    let (slice, cores) = super::cores::read(section)?;
    Ok(WorkerPlan {
        name: name.to_owned(),
        slice,
        rack: section.whole("rack", 1..u64::from(u16::MAX))?.map(|rack| rack as u16),
        cores,
        labels: worker_labels(section)?,
        service: service(section)?,
        quota,
        pin: core(section)?,
        faults: faults(section)?,
    })
}

fn worker_labels(section: &Section<'_>) -> Outcome<Vec<String>> {
    let label = |text: &str| {
        let checked = check_label(text).map(|()| text.to_owned());
        checked.map_err(|why| section.complain_of("labels", why))
    };
    section.texts("labels")?.into_iter().map(label).collect()
}

fn service(section: &Section<'_>) -> Outcome<ServicePlan> {
    let (ours, exec, args) = (section.text("service")?, section.text("exec")?, section.texts("args")?);
    match (ours, exec) {
        (Some(name), None) if !args.is_empty() => {
            Err(section.complain_of("args", format!("belong to `exec`; `{name}` takes none")))
        }
        (Some(name), None) if sluice_services::SERVICES.contains(&name) => {
            Ok(ServicePlan::Ours(name.to_owned()))
        }
        (Some(name), None) => Err(section
            .complain_of("service", sluice_units::unknown("service", name, &sluice_services::SERVICES))),
        (None, Some(exec)) => {
            let args = args.into_iter().map(str::to_owned).collect();
            Ok(ServicePlan::Program { exec: exec.into(), args })
        }
        _ => Err(section.complain("needs either `service` (one of ours) or `exec` (your program)")),
    }
}

fn rocksdb(section: Option<Section<'_>>) -> Outcome<RocksArgs> {
    let mut plan = RocksArgs::default();
    let Some(section) = section else { return Ok(plan) };
    plan.db = section.text("path")?.map_or(plan.db, PathBuf::from);
    plan.keys = section.whole("keys", 1..1_000_000_001)?.unwrap_or(plan.keys);
    plan.item_bytes = section.whole("item_bytes", 1..(1 << 20) + 1)?.map_or(plan.item_bytes, |n| n as u32);
    plan.cache_mib = section.whole("cache_mib", 0..(1 << 20) + 1)?.map_or(plan.cache_mib, |n| n as u32);
    section.finish()?;
    Ok(plan)
}

fn load(section: Section<'_>, dilation: u32, known: &mut Types) -> Outcome<LoadPlan> {
    let plan = LoadPlan {
        arrivals: arrivals(&section)?,
        mix: mix(&section, known)?,
        requests: section.section("request")?.map_or(Ok(Vec::new()), |section| requests(&section, known))?,
        warm_up: section.span("warm_up")?.unwrap_or(Duration::from_secs(1)),
        length: section.span("length")?.unwrap_or(Duration::from_secs(10)),
        deadline: section.span("deadline")?.unwrap_or_else(|| deadline_default(dilation)),
        retry: section.parsed("retry", units::retry)?.unwrap_or(true),
        behind_max: section.span("behind_max")?.unwrap_or(Duration::from_millis(10)),
        failed_max: section.number("failed_max", share)?.unwrap_or(FAILED_MAX),
    };
    if plan.length.is_zero() {
        return Err(section.complain_of("length", "is zero; measure for a second at least"));
    }
    if plan.deadline.is_zero() {
        return Err(section.complain_of("deadline", "is zero; give tasks some time"));
    }
    section.finish()?;
    Ok(plan)
}

fn share(number: f64) -> Result<f64, String> {
    let why = || format!("{number} is not between 0 and 1; 0.01 is one in a hundred");
    (0.0..=1.0).contains(&number).then_some(number).ok_or_else(why)
}

fn mix(section: &Section<'_>, known: &mut Types) -> Outcome<Vec<(String, f64)>> {
    let mix = section
        .parsed("mix", units::mix)?
        .ok_or_else(|| section.complain("`mix` is missing; add one, such as \"get=0.9,scan=0.1\""))?;
    let mix = known.named_mix(mix);
    mix.map_err(|why| unknown_type(section, "mix", &why))
}

fn arrivals(section: &Section<'_>) -> Outcome<Arrivals> {
    let rate = section.number("rate", units::check_rate)?;
    let trace = section.text("trace")?;
    let kind = named(section, "arrivals", &["poisson", "constant"])?;
    match (rate, trace) {
        (Some(rate), None) if kind == "constant" => Ok(Arrivals::Constant(rate)),
        (Some(rate), None) => Ok(Arrivals::Poisson(rate)),
        (None, Some(path)) => Ok(Arrivals::Trace(path.into())),
        _ => Err(section.complain("needs either `rate` (tasks per second) or `trace` (a file)")),
    }
}

fn requests(section: &Section<'_>, known: &mut Types) -> Outcome<Vec<(String, Request)>> {
    let mut named = |name: &str| known.called(name).map_err(|why| unknown_type(section, name, &why));
    let each = section.named_sections()?.into_iter();
    each.map(|(name, section)| Ok((named(name)?, request(section)?))).collect()
}

fn request(section: Section<'_>) -> Outcome<Request> {
    let keys = section.whole("keys", 1..u64::from(GET_KEYS_MAX) + 1)?.map(|keys| keys as u32);
    let rows = section.whole("rows", 1..100_001)?.map(|rows| rows as u32);
    let span = section.span("busy")?;
    let text = section.text("text")?;
    let each = section.span("each")?;
    if each.is_some() && keys.is_none() && rows.is_none() {
        return Err(
            section.complain_of("each", "says what a key or row is expected to take: give `keys` or `rows`")
        );
    }
    let spread = if named(&section, "spread", &SPREADS)? == "exponential" {
        Spread::Exponential
    } else {
        Spread::Constant
    };
    let request = match (keys, rows, span, text) {
        (Some(keys), None, None, None) => Request::Get { keys, spread, each },
        (None, Some(rows), None, None) => Request::Scan { rows, spread, each },
        (None, None, Some(span), None) => Request::Busy { span, spread },
        (None, None, None, Some(text)) => Request::Text(text.to_owned()),
        _ => return Err(section.complain("needs exactly one of keys, rows, busy, text")),
    };
    section.finish()?;
    Ok(request)
}

fn event(section: Section<'_>) -> Outcome<Event> {
    let event = Event {
        at: section
            .span("at")?
            .ok_or_else(|| section.complain("`at` is missing; say when, such as \"5s\""))?,
        kill: target(&section)?,
        return_after: section.span("return_after")?,
    };
    section.finish()?;
    Ok(event)
}

fn target(section: &Section<'_>) -> Outcome<Target> {
    let text = section.needed_text("kill")?;
    match text.split_once(' ') {
        None if text == "switch" => Ok(Target::Switch),
        None if text == "controller" => Ok(Target::Controller),
        Some(("worker", name)) => Ok(Target::Worker(name.to_owned())),
        Some(("server", name)) => Ok(Target::Server(name.to_owned())),
        Some(("spine", spine)) if spine.parse::<u16>().is_ok() => {
            Ok(Target::Spine(spine.parse().unwrap_or_default()))
        }
        Some(("leaf", rack)) if rack.parse::<u16>().is_ok() => {
            Ok(Target::Leaf(rack.parse().unwrap_or_default()))
        }
        _ => {
            let why = format!(
                "`{text}` cannot be killed; write switch, controller, worker NAME, server NAME, spine NUMBER \
                 or leaf NUMBER"
            );
            Err::<_, Failure>(section.complain_of("kill", why))
        }
    }
}
