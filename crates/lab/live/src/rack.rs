//! A live rack in this process: real sockets and packets, with threads instead of processes.
//!
//! One thread is the switch. Another one is all hosts: workers that only hold their tasks, and the client
//! that sends a trace. Each spins on a core of its own if there are two. So the machine's lateness is a few
//! microseconds, which is small compared with a dilated rack's times; the result includes it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sluice_control::{Plan, SlicePlan};
use sluice_host::agent::AgentSettings;
use sluice_net::ClientOptions;
use sluice_net::agent::{AgentOptions, LINES_FILE, Lines, RunningAgent, start_agent};
use sluice_net::pin::{cores, pin_thread};
use sluice_net::udp::{Lateness, Waiting};
use sluice_net::worker::WorkerOptions;
use sluice_rpc::Remote;
use sluice_services::hold::Hold;
use sluice_support::adaptation;
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::flags::Io;
use sluice_support::load::nanos;
use sluice_support::seed::random_bits;
use sluice_support::shared_memory::{HeldMemory, IN_MEMORY, live_folder_name};
use sluice_support::stop::Stop;
use sluice_switch::Config;
use sluice_switchd::switch::{Count, SwitchConfig};
use sluice_testbed::agents;
use sluice_testbed::compatibility::LabelCompatibility;
use sluice_testbed::control_plan::control_plan as testbed_plan;
use sluice_testrig::host_group::{HostGroup, Player, RunningHostGroup};
use sluice_testrig::schedule::{PlayedTask, Playing};
use sluice_wire::sizes::{QUOTA_MAX, replay_cells, token_cells};
use sluice_wire::{Endpoint, Epoch, Nanos, Serial, TaskType};
use sluice_workload::{Trace, TracedTask};

use super::live_sweep::{LivePolicy, LiveSweep};
use super::rack_labels::{RackLabels, labels_of, worker_name};
use super::rack_network::RackNetwork;
use super::servers::{self, LiveServer};
use super::switches::LiveSwitches;
use super::trace::planned;

/// How long registration may take.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// The shortest time until the outcome of a task counts as unknown, in real time.
const DEADLINE: Nanos = Nanos::from_millis(5_000);
/// The shortest time until the outcome of a task counts as unknown, in the emulated rack.
const DEADLINE_STOOD_FOR: Nanos = Nanos::from_millis(50);
/// The longest time that a packet may be under way.
const PACKET_LIFETIME: Nanos = Nanos::from_millis(1_000);
/// A long lease, so that hosts rarely renew: registrations are not measured, and no host dies here.
const LEASE: Nanos = Nanos::from_millis(60_000);
const RENEW_EVERY: Nanos = Nanos::from_millis(10_000);
/// The name of the slice that all classes share.
const ALL: &str = "all";
/// How often the rack checks for a signal.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A running rack under one policy.
pub(crate) struct LiveRack {
    place: RackNetwork,
    switches: LiveSwitches,
    hosts: RunningHostGroup,
    player: Player,
    types: Vec<TaskType>,
    /// Which workers have which labels, if the workload or testbed uses labels.
    suited: Option<RackLabels>,
    /// The agent's setup and the file that workers write, if depths are found at run time.
    agent_setup: Option<AgentSetup>,
    agent: Option<RunningAgent>,
    /// The servers of many cores whose cores are the workers, if there are any.
    servers: Vec<LiveServer>,
}

/// The result of one run of a trace.
pub(crate) struct TraceResult {
    /// The outcomes of its tasks, in order.
    pub(crate) played: Vec<PlayedTask>,
    /// The switch's counters during the run.
    pub(crate) counted: SwitchCounts,
    /// The share of tasks with labels, needed or wished for, whose worker has them.
    pub(crate) labels_met: Option<f64>,
    /// How late packets left the switch.
    pub(crate) switch_late: Lateness,
    /// How late packets left the workers.
    pub(crate) hosts_late: Lateness,
}

/// Counted events at the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwitchCounts {
    pub(crate) submits: u64,
    pub(crate) tokens: u64,
    pub(crate) recirculated: u64,
    /// Packets received and sent.
    pub(crate) packets: u64,
    pub(crate) passes: u64,
    /// Packets that this machine lost: dropped or not sent by the kernel, or refused by a full delay queue.
    pub(crate) lost: u64,
}

impl LiveRack {
    /// Starts all parts, and waits until every host is registered.
    pub(crate) fn start(sweep: &LiveSweep, who: &LivePolicy, epoch: Epoch) -> Outcome<Self> {
        let (layout, place) = (ThreadLayout::of(sweep.io), RackNetwork::new(sweep.io)?);
        let suits = sweep.suits(who)?;
        let config = switch_config(sweep, who, epoch, &layout);
        let plan = |local| control_plan(sweep, who, suits.as_ref(), local);
        let switches = LiveSwitches::start(&place, sweep.below(who).as_ref(), &config, plan)?;
        let mut hosts = HostGroup::new(layout.waiting, layout.hosts_core)?;
        let types: Vec<TaskType> = sweep.workload.classes.iter().map(|class| class.task_type).collect();
        let agent_setup = AgentSetup::of(sweep, who)?;
        let controller = switches.controller_of(0);
        let servers = servers(sweep, who, &controller, &types)?;
        let alone = if servers.is_empty() { sweep.testbed.workers } else { 0 };
        for number in 0..alone {
            let controller = switches.controller_of(number);
            let mut options = worker_options(sweep, who, &controller, number)?;
            let costs = Some(sweep.costs(number, hosts.schedule_start()));
            options.listen = place.workers_at();
            options.agent = agent_setup.as_ref().map(AgentSetup::file);
            options.labels = suits.as_ref().map_or_else(Vec::new, |suits| labels_of(suits, number));
            place.at_workers(|| hosts.worker(&options, costs, Box::new(Hold::of(types.clone()))))??;
        }
        let client = ClientOptions {
            name: "sweep".into(),
            listen: place.client_at(),
            dilation: sweep.dilation,
            ..ClientOptions::of(switches.controller()?)
        };
        let player = place.at_client(|| hosts.player(&client))??;
        let hosts = hosts.spawn()?;
        let mut rack =
            Self { place, switches, hosts, player, types, suited: None, agent_setup, agent: None, servers };
        rack.wait_until_ready(alone)?;
        rack.suited = suits.map(|suits| RackLabels::ask(suits, rack.controller()?)).transpose()?;
        Ok(rack)
    }

    /// Starts the agent if depths are found at run time; its first interval begins at `begins`.
    pub(crate) fn adapt(&mut self, begins: Option<Nanos>) -> Outcome<()> {
        let Some(agent_setup) = &self.agent_setup else { return Ok(()) };
        let options = AgentOptions {
            controller: self.controller()?,
            server: "all".to_owned(),
            lines: agent_setup.lines.clone(),
            settings: agent_setup.settings,
            begins,
        };
        self.agent = Some(self.place.at_workers(|| start_agent(options))??);
        Ok(())
    }

    /// The address of the controller.
    pub(crate) fn controller(&self) -> Outcome<Remote> {
        self.switches.controller()
    }

    /// Sends a trace, dilated, and waits for all of its tasks.
    pub(crate) fn play(&self, trace: &Trace, dilation: u32, stop: &Stop) -> Outcome<TraceResult> {
        self.play_from(Nanos(0), trace, dilation, stop)
    }

    /// Sends a trace from this time of the machine's clock on.
    pub(crate) fn play_from(
        &self,
        start: Nanos,
        trace: &Trace,
        dilation: u32,
        stop: &Stop,
    ) -> Outcome<TraceResult> {
        let of = |task: &TracedTask| (self.types[usize::from(task.class)], task.service.unwrap_or_default());
        let (counted, switch_late, hosts_late) =
            (self.counted(), self.switches.lateness(), self.hosts.lateness());
        let planned = planned(trace, dilation, of);
        let played = finished(&self.player.play_from(start, planned, deadline(dilation)), stop)?;
        let labels_met = self.suited.as_ref().and_then(|suited| suited.met(&self.types, trace, &played));
        Ok(TraceResult {
            labels_met,
            played,
            counted: self.counted().since(&counted),
            switch_late: self.switches.lateness().since(switch_late),
            hosts_late: self.hosts.lateness().since(hosts_late),
        })
    }

    /// Ends all parts.
    pub(crate) fn end(self) -> Outcome<()> {
        drop(self.agent);
        self.hosts.end()?;
        self.servers.into_iter().try_for_each(LiveServer::end)?;
        self.switches.end()?;
        self.place.clear()
    }

    /// Waits until the client is registered. Workers register first, since clients wait for an open slice;
    /// the last worker may come a moment later.
    fn wait_until_ready(&self, workers: u32) -> Outcome<()> {
        self.player.wait_until_ready(READY_PATIENCE)?;
        let patience = std::time::Instant::now() + READY_PATIENCE;
        while self.hosts.serving() < workers as usize {
            if self.hosts.has_ended() || std::time::Instant::now() > patience {
                let ready = self.hosts.serving();
                return Err(Failure::broken(format!("only {ready} of {workers} workers registered")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.switches.wait_for_leaves(patience)
    }

    fn counted(&self) -> SwitchCounts {
        let of = |count| self.switches.counted(count);
        SwitchCounts {
            submits: of(Count::Submits),
            tokens: of(Count::Tokens),
            recirculated: of(Count::Recirculated),
            packets: of(Count::Received) + of(Count::Sent),
            passes: of(Count::Received) + of(Count::Recirculated),
            lost: of(Count::KernelDropped) + of(Count::HeldOverrun) + of(Count::SendFailed),
        }
    }
}

/// The agent's settings, and the file that workers write.
struct AgentSetup {
    settings: AgentSettings,
    folder: HeldMemory,
    lines: Lines,
}

impl AgentSetup {
    /// `None` if depths are fixed.
    fn of(sweep: &LiveSweep, who: &LivePolicy) -> Outcome<Option<Self>> {
        let Some(adaptive) = who.choice.traits().adaptive else { return Ok(None) };
        let settings = adaptation::settings(adaptive, agents::way(&sweep.testbed), sweep.dilation);
        let folder = folder_in_memory()?;
        let lines = Lines::make(&folder.path().join(LINES_FILE), sweep.testbed.workers as usize)?;
        Ok(Some(Self { settings, folder, lines }))
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(LINES_FILE)
    }
}

/// Creates a folder of this process's own, and removes it at the end.
///
/// In memory if possible, otherwise where temporary files are. Processes in several containers may have the
/// same number and share such a folder, so the name has a random part.
fn folder_in_memory() -> Outcome<HeldMemory> {
    let name = live_folder_name(random_bits()?);
    HeldMemory::take(Path::new(IN_MEMORY).join(&name))
        .or_else(|_| HeldMemory::take(std::env::temp_dir().join(name)))
}

impl SwitchCounts {
    fn since(&self, before: &Self) -> Self {
        Self {
            submits: self.submits - before.submits,
            tokens: self.tokens - before.tokens,
            recirculated: self.recirculated - before.recirculated,
            packets: self.packets - before.packets,
            passes: self.passes - before.passes,
            lost: self.lost - before.lost,
        }
    }
}

/// How each thread waits, and its core.
pub(super) struct ThreadLayout {
    pub(super) waiting: Waiting,
    pub(super) switch_core: Option<usize>,
    pub(super) hosts_core: Option<usize>,
}

impl ThreadLayout {
    /// The layout for this machine. If the kernel switches packets, no thread spins: packets would wait
    /// until another thread may run.
    pub(super) fn of(io: Io) -> Self {
        if cores() < 2 || io == Io::Xdp {
            return Self { waiting: Waiting::Block, switch_core: None, hosts_core: None };
        }
        // The cores that a process may use need not start at 0.
        let usable = |core| std::thread::spawn(move || pin_thread(core).is_ok()).join().unwrap_or(false);
        let on = |core| (usable(0) && usable(1)).then_some(core);
        Self { waiting: Waiting::Spin, switch_core: on(0), hosts_core: on(1) }
    }
}

/// The outcomes of a schedule's tasks; an error if a signal comes first.
pub(super) fn finished(playing: &Playing, stop: &Stop) -> Outcome<Vec<PlayedTask>> {
    loop {
        if stop.is_asked() {
            return Err(Failure::new(Kind::Aborted, "stopped by a signal"));
        }
        if let Some(played) = playing.wait(LOOK_EVERY)? {
            return Ok(played);
        }
    }
}

/// The time after which a task without an outcome counts as unknown.
pub(super) fn deadline(dilation: u32) -> Nanos {
    DEADLINE.max(DEADLINE_STOOD_FOR.times(dilation.into()))
}

/// How many tasks may be outstanding at once: C + ΣN, as in the simulator.
fn outstanding(sweep: &LiveSweep, who: &LivePolicy) -> u32 {
    sweep.testbed.queue + servers::workers(&sweep.testbed) * u32::from(quota(sweep, who))
}

/// The quota of workers. They register with at least 1, even if tasks are pushed and the quota is not used.
fn quota(sweep: &LiveSweep, who: &LivePolicy) -> u8 {
    if sweep.testbed.servers.depth.is_some() { QUOTA_MAX } else { who.choice.traits().quota.max(1) }
}

fn switch_config(sweep: &LiveSweep, who: &LivePolicy, epoch: Epoch, layout: &ThreadLayout) -> SwitchConfig {
    let most = outstanding(sweep, who);
    let quota_max = who.choice.quota_max().max(quota(sweep, who));
    let types = sweep.workload.classes.iter().map(|class| class.task_type.0 + 1).max();
    let size = Config {
        workers: servers::workers(&sweep.testbed) as u16,
        clients: 2,
        slices: sweep.slices.len().max(1) as u16,
        types: types.unwrap_or(1),
        tasks_per_slice: most.next_power_of_two(),
        tokens_per_slice: token_cells(servers::workers(&sweep.testbed), quota_max.into()),
        replay_cells: replay_cells(most),
        counters_start: Serial(0),
        polls_ahead: 0,
        seed: sweep.seed,
        ..Config::full(epoch)
    };
    SwitchConfig {
        program: who.choice,
        delays: sweep.delays(),
        waiting: layout.waiting,
        core: layout.switch_core,
        ..SwitchConfig::new(size)
    }
}

fn control_plan(
    sweep: &LiveSweep,
    who: &LivePolicy,
    suits: Option<&LabelCompatibility>,
    switch: Endpoint,
) -> Plan {
    let slice = |name: &str, serves: &dyn Fn(&str) -> bool| {
        let here = sweep.workload.classes.iter().filter(|class| serves(&class.name));
        let traits = who.choice.traits();
        let plan = sweep.testbed.slice_plan(name.into(), here, traits.classes, sweep.testbed.queue);
        SlicePlan { target: traits.target, ..plan }
    };
    let of = |(names, _): &(String, u32)| slice(names, &|class| names.split('+').any(|name| name == class));
    let slices = match &sweep.slices[..] {
        [] => vec![slice(ALL, &|_| true)],
        slices => slices.iter().map(of).collect(),
    };
    Plan {
        lease: LEASE,
        renew_every: RENEW_EVERY,
        retry_for: deadline(sweep.dilation),
        packet_lifetime: PACKET_LIFETIME,
        max_wait: nanos(Duration::from_secs(1)),
        ..testbed_plan(switch, slices, suits)
    }
}

/// The slice of a worker, by its index among all workers.
fn slice_of(sweep: &LiveSweep, mut place: u32) -> String {
    for (name, workers) in &sweep.slices {
        if place < *workers {
            return name.clone();
        }
        place -= workers;
    }
    sweep.slices.last().map_or_else(|| ALL.to_owned(), |(name, _)| name.clone())
}

/// Starts the testbed's servers of many cores; none if each worker is a single core.
fn servers(
    sweep: &LiveSweep,
    who: &LivePolicy,
    controller: &str,
    types: &[TaskType],
) -> Outcome<Vec<LiveServer>> {
    let count = sweep.testbed.servers.depth.map_or(0, |_| u32::from(sweep.testbed.servers.count));
    let start = |number| {
        let options = worker_options(sweep, who, controller, number)?;
        LiveServer::start(&sweep.testbed, options, types.to_vec())
    };
    (0..count).map(start).collect()
}

fn worker_options(
    sweep: &LiveSweep,
    who: &LivePolicy,
    controller: &str,
    number: u32,
) -> Outcome<WorkerOptions> {
    // A stated capacity is not measured, so the controller gets no reports about it.
    let capacity = (1e9 / sweep.workload.mean_service_ns() / f64::from(sweep.dilation)) as u32;
    Ok(WorkerOptions {
        name: worker_name(number),
        slice: slice_of(sweep, number),
        quota: quota(sweep, who),
        capacity: capacity.max(1),
        dilation: sweep.dilation,
        early: who.choice.traits().early.is_some(),
        patience: who.choice.traits().patience,
        ..WorkerOptions::new(controller)?
    })
}
