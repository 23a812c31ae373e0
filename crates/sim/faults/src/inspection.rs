//! Checks from outside, while a run goes on and when it rests: the tokens in the switch against the tasks
//! at workers.

use sluice_host::worker::{Worker, WorkerStats};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::{Feed, RingCounts, SliceState, TableAnswer, TableOp};
use sluice_wire::{Nanos, SliceId, WorkerId};

use super::cores::CoresScenario;
use super::limits::{PROBE_LONGEST, START};
use super::rack::Rack;

/// How far a retrieve pointer may run ahead: until it is put right, plus the polls that come meanwhile.
const AHEAD_MAX: u32 = (1 << 16) + 1_024;

/// Checks the rule of the clock: after a tick a machine's deadline is none, or later than now.
pub(super) fn nothing_is_due(who: &str, next: Option<Nanos>, now: Nanos) -> Result<(), String> {
    match next.filter(|next| *next <= now) {
        Some(next) => Err(format!("the clock: a tick of {who} leaves {} ns due", next.0)),
        None => Ok(()),
    }
}

impl Rack<'_> {
    /// Promise 3: checks what the switch holds, the tasks that the worker holds, and the told end of its
    /// running task.
    ///
    /// A worker is checked again only after something has reached the worker or the switch. Time alone cannot
    /// break this promise.
    pub(super) fn inspect_worker(&mut self, worker: usize) -> Result<(), String> {
        let held = match self.workers[worker].held_when_seen {
            Some(_) if !self.switch.is_unseen => return Ok(()),
            Some(held) => held,
            None => match self.look_at_worker(worker)? {
                Some(held) => held,
                None => return Ok(()),
            },
        };
        let Some(grant) = self.workers[worker].grant else { return Ok(()) };
        if let Feed::Pushed { .. } = self.scenario.program.traits().feed {
            // Only the worker's own room bounds pushed tasks.
            return Ok(());
        }
        let Some(parked) = self.parked(grant.worker, grant) else { return Ok(()) };
        let at_hand = held.saturating_sub(self.workers[worker].late_in_hand.len() as u32);
        let quota = u32::from(self.workers[worker].quota_highest)
            + self.workers[worker].early.beyond_quota(self.world.now);
        if parked + at_hand > quota {
            return Err(format!(
                "promise 3: worker {worker}: {parked} granted and {at_hand} held, quota {quota}"
            ));
        }
        Ok(())
    }

    /// Checks a worker's own counts and the bytes that the worker keeps (promises 4 to 6). Returns how many
    /// tasks the worker holds; `None` if its process is down.
    fn look_at_worker(&mut self, worker: usize) -> Result<Option<u32>, String> {
        let node = &self.workers[worker];
        let Some(stats) = node.machine().map(Worker::stats) else { return Ok(None) };
        let most = u32::from(node.quota_highest) + self.scenario.held_max as u32;
        if node.grant.is_some() && stats.held > most {
            return Err(format!("promise 6: worker {worker} holds {} tasks", stats.held));
        }
        if (node.tasks.len(), node.replies.len()) != (stats.held as usize, stats.replies as usize) {
            return Err(format!("promise 6: worker {worker} keeps other bytes than its tasks' and replies'"));
        }
        if self.is_paused(worker) {
            return Ok(Some(stats.held));
        }
        self.inspect_silence(worker, &stats)?;
        self.workers[worker].held_when_seen = Some(stats.held);
        Ok(Some(stats.held))
    }

    /// Promise 4: a worker with tokens out asks for them within the longest interval between probes.
    fn inspect_silence(&self, worker: usize, stats: &WorkerStats) -> Result<(), String> {
        let Some(machine) = self.workers[worker].machine() else { return Ok(()) };
        let longest = PROBE_LONGEST.max(stats.rtt.times(2));
        let due = machine.deadline(&self.worker_settings);
        let asks = due.is_some_and(|due| due <= self.world.now + longest);
        if stats.serving && stats.tokens_out > 0 && !asks {
            return Err(format!("promise 4: worker {worker} will not ask for its tokens before {due:?}"));
        }
        Ok(())
    }

    /// Promise 6: no more tasks wait in a slice than its row has ever allowed, plus one for each worker
    /// whose poll may carry one. If classes have rings of their own, this holds for each class.
    pub(super) fn inspect_queues(&mut self) -> Result<(), String> {
        for slice in 0..self.scenario.slices {
            let carried = if self.scenario.program.traits().carries_waiting { self.workers.len() } else { 0 };
            let limit = self.switch.limits[slice] as i32 + carried as i32;
            let waiting = if self.scenario.program.traits().limits_each_class {
                self.longest(slice)
            } else {
                -self.balance(slice)
            };
            if waiting > limit {
                return Err(format!(
                    "promise 6: {waiting} tasks wait in slice {slice}, which has room for {limit}"
                ));
            }
            let left = self.slice_state(slice).map_or_else(RingCounts::default, |state| state.tasks_out);
            self.inspect_pointers(left)?;
        }
        Ok(())
    }

    /// Promise 6: a pointer that idle polls advance stays near the tasks that were added.
    fn inspect_pointers(&self, left: RingCounts) -> Result<(), String> {
        let program = &self.scenario.program;
        if !matches!(program.traits().feed, Feed::Polls { .. }) || program.traits().kinds > 1 {
            return Ok(());
        }
        let most = self.switch.reckoning.tasks + AHEAD_MAX;
        match left.0.iter().map(|left| left.since(START)).find(|ahead| *ahead > most as i32) {
            Some(ahead) => {
                Err(format!("promise 6: a pointer is {ahead} ahead, and no more than {most} came"))
            }
            None => Ok(()),
        }
    }

    /// Promises 5 and 6: clients keep bytes for outstanding tasks, and for nothing else.
    pub(super) fn inspect_clients(&self) -> Result<(), String> {
        for (client, node) in self.clients.iter().enumerate() {
            if node.tasks.len() != node.node.machine.outstanding() || node.replies.len() > node.tasks.len() {
                return Err(format!("promise 6: client {client} keeps other bytes than its tasks'"));
            }
        }
        Ok(())
    }

    /// Promise 4: without tasks, every worker is ready for tasks, and nothing else is left.
    pub(super) fn inspect_at_rest(&mut self) -> Result<(), String> {
        let slab = self.switch.slab.len();
        if slab > 0 {
            return Err(format!("promise 6: the switch rests with {slab} payloads that nobody waits for"));
        }
        let carried = self.carried();
        if carried > 0 {
            return Err(format!("promise 4: the switch rests with {carried} tasks that polls carry about"));
        }
        let waiting = self.switch.program.as_ref().map_or(0, |program| program.waiting());
        if waiting > 0 {
            return Err(format!("promise 4: the switch rests with {waiting} tasks that wait"));
        }
        if let Some(program) = &mut self.switch.program {
            self.servers.inspect(&mut **program)?;
        }
        match self.scenario.program.traits().feed {
            Feed::Tokens { .. } => self.inspect_parked(),
            Feed::Polls { .. } | Feed::Pushed { .. } => {
                (0..self.workers.len()).try_for_each(|worker| self.inspect_registration(worker))
            }
        }
    }

    /// Checks that every worker's whole quota is parked (at least one token of a patient worker), and
    /// nothing else.
    fn inspect_parked(&mut self) -> Result<(), String> {
        if let Some(cores) = self.scenario.cores {
            self.inspect_room_at_rest(&cores)?;
        }
        let mut all_parked = 0;
        for worker in 0..self.workers.len() {
            let quota = self.parked_at_least(worker);
            let highest = u32::from(self.workers[worker].quota_highest);
            let parked = self.parked_of(worker);
            let Some(parked) = parked.filter(|parked| (quota..=highest.max(quota)).contains(parked)) else {
                return Err(format!(
                    "promise 4: worker {worker} rests with {parked:?} of {quota} tokens parked"
                ));
            };
            all_parked += parked as i32;
        }
        let balance: i32 = (0..self.scenario.slices).map(|slice| self.balance(slice)).sum();
        if balance == all_parked {
            Ok(())
        } else {
            Err(format!(
                "promise 4: the switch rests with a balance of {balance}, workers parked {all_parked}"
            ))
        }
    }

    /// How many tokens of a worker are parked at rest, at least. With many cores the room is a server's and
    /// not a lane's.
    fn parked_at_least(&self, worker: usize) -> u32 {
        let quota = u32::from(self.scenario.quotas[worker]);
        match self.scenario.cores {
            Some(_) => 0,
            None if self.scenario.program.traits().patience > 0 => quota.min(1),
            None => quota,
        }
    }

    /// Checks that the switch knows the worker by the registration that the worker holds.
    fn inspect_registration(&mut self, worker: usize) -> Result<(), String> {
        match self.parked_of(worker) {
            Some(_) => Ok(()),
            None => Err(format!("promise 4: worker {worker} rests without a registration")),
        }
    }

    /// Promise 3 for a whole server: no more of a slice's tasks are granted to its lanes, or held by them,
    /// than its cores have room for when they are idle.
    pub(super) fn inspect_room(&mut self) -> Result<(), String> {
        let Some(cores) = self.scenario.cores else { return Ok(()) };
        for server in 0..cores.servers {
            for slice in 0..self.scenario.slices {
                let lanes = self.lanes_of(server, slice);
                let Some(taken) = lanes.map(|lane| self.granted_or_held(lane)).sum::<Option<u32>>() else {
                    continue;
                };
                if taken > cores.room_max() {
                    let room = cores.room_max();
                    return Err(format!(
                        "promise 3: server {server} has room for {room} of slice {slice}'s tasks, and \
                         {taken} are granted or held"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Promise 4: at rest a server's cores have no task, and for each slice as many tokens are parked as
    /// the cores have room for.
    fn inspect_room_at_rest(&mut self, cores: &CoresScenario) -> Result<(), String> {
        for server in 0..cores.servers {
            let held = self.servers_of_cores[server].held();
            if held > 0 {
                return Err(format!("promise 4: server {server} rests with {held} tasks on its cores"));
            }
            for slice in 0..self.scenario.slices {
                let lanes = self.lanes_of(server, slice);
                let parked: u32 = lanes.map(|lane| self.parked_of(lane).unwrap_or_default()).sum();
                if parked != cores.room_max() {
                    return Err(format!(
                        "promise 4: server {server} rests with {parked} of {} tokens parked in slice {slice}",
                        cores.room_max()
                    ));
                }
            }
        }
        Ok(())
    }

    /// The lanes of a server that were started for a slice.
    fn lanes_of(&self, server: usize, slice: usize) -> impl Iterator<Item = usize> + use<> {
        let (all, slices) = (self.scenario.workers_per_server(), self.scenario.slices);
        (server * all..(server + 1) * all).skip(slice).step_by(slices)
    }

    /// How many tasks are granted to a lane or held by it, without late tasks; `None` while this cannot be
    /// known.
    fn granted_or_held(&mut self, lane: usize) -> Option<u32> {
        let process = &self.workers[lane];
        let (Some(machine), Some(grant)) = (process.machine(), process.grant) else { return Some(0) };
        let held = process.held_when_seen.unwrap_or_else(|| machine.stats().held);
        let held = held.saturating_sub(process.late_in_hand.len() as u32);
        Some(self.parked(grant.worker, grant)? + held)
    }

    /// How many tokens of a running worker are parked in the switch; `None` if it is not registered there.
    fn parked_of(&mut self, worker: usize) -> Option<u32> {
        let grant = self.workers[worker].grant.filter(|_| self.workers[worker].lives())?;
        self.parked(grant.worker, grant)
    }

    /// How many tokens of this registration are parked in the switch.
    fn parked(&mut self, worker: WorkerId, grant: WorkerRegistration) -> Option<u32> {
        let epoch = self.switch.epoch();
        let program = self.switch.program.as_mut().filter(|_| epoch == grant.epoch)?;
        match program.table(TableOp::ReadWorker(worker)) {
            TableAnswer::Worker(state) if state.generation_out == grant.generation => {
                Some(state.seen.since(state.sent).max(0) as u32)
            }
            _ => None,
        }
    }

    fn balance(&mut self, slice: usize) -> i32 {
        self.slice_state(slice).map_or(0, |state| state.balance)
    }

    /// How many tasks wait, or are on their way with a poll, in the class where most do; 0 under a program
    /// whose polls carry no tasks.
    pub(super) fn carried(&mut self) -> i32 {
        if !self.scenario.program.traits().carries_waiting {
            return 0;
        }
        (0..self.scenario.slices).map(|slice| self.longest(slice)).max().unwrap_or(0)
    }

    /// How many tasks wait in the class where most wait.
    fn longest(&mut self, slice: usize) -> i32 {
        self.slice_state(slice).map_or(0, |state| state.tasks_out.behind(state.tasks_in) as i32)
    }

    fn slice_state(&mut self, slice: usize) -> Option<SliceState> {
        match self.switch.program.as_mut()?.table(TableOp::ReadSlice(SliceId(slice as u16))) {
            TableAnswer::Slice(state) => Some(state),
            _ => None,
        }
    }
}
