//! The events of clients (`nodes::client`), and the application that submits their tasks.

use sluice_events::{Mail, PacketId};
use sluice_host::client::{self, Client, Submission, Urgency};
use sluice_wire::serving::Labels;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Incarnation, Nanos, Payload, TaskType};

use crate::clients::ClientProcess;
use crate::controller::SIZES;
use crate::event::Event;
use crate::hosts::Host;
use crate::inspection::nothing_is_due;
use crate::limits::{DEADLINE, FAULTS_END, SUBMIT_END};
use crate::rack::Rack;
use crate::replay_log::Party;

/// A label that no worker has.
const NOBODYS: Labels = Labels(1 << 2);

impl Rack<'_> {
    pub(crate) fn start_client(&mut self, client: usize) {
        let incarnation = Incarnation(self.dice.word());
        self.world.network.injector.mend(Host::Client(client));
        self.clients[client].restart(incarnation);
        self.names.add_life(client, incarnation);
        self.say(Party::Client(client), || format!("starts; its tasks have ids {:016x}/…", incarnation.0));
        self.after(Nanos(1_000), Event::Renew(Host::Client(client), incarnation.0));
    }

    pub(crate) fn at_client(&mut self, client: usize, mail: Mail, packet: PacketId) -> Result<(), String> {
        let process = &mut self.clients[client];
        let thaws = process.session.frozen_until;
        if self.world.now < thaws {
            let at = process.node.at;
            self.remind(thaws, Event::Mail(at, mail));
            return Ok(());
        }
        let received = self.world.packets.take(packet);
        process.receive(self.world.now, &self.client_settings, &received, &mut self.client_actions);
        self.perform_client_actions(client)
    }

    /// Wakes a client at the time that it asked for. If the client stands still, the wake-up waits.
    pub(crate) fn wake_or_thaw(&mut self, client: usize) -> Result<(), String> {
        let (now, ClientProcess { node, session, .. }) = (self.world.now, &mut self.clients[client]);
        let thaws = session.frozen_until;
        if now >= thaws {
            if !node.wakeup.fires(now) {
                return Ok(());
            }
            self.on_client(client, Client::tick)?;
            return nothing_is_due("a client", self.clients[client].node.machine.deadline(), now);
        }
        if node.wakeup.fires(now) && node.wakeup.wake_by(thaws) {
            self.remind(thaws, Event::Wake(Host::Client(client)));
        }
        Ok(())
    }

    /// An application submits its next task, or several at once if a submission may hold several.
    pub(crate) fn submit(&mut self, client: usize) -> Result<(), String> {
        if self.world.now >= SUBMIT_END {
            return Ok(());
        }
        let jobs = u64::from(self.scenario.program.traits().jobs);
        // The gap grows with the tasks per submission, so the rate of tasks stays the same.
        let is_greedy = client == 0 && self.world.now < FAULTS_END;
        let greed = if is_greedy { self.scenario.greed } else { 1 };
        let gap = self.dice.between(1, ((jobs + 1) * self.scenario.gap_at(self.world.now).0 / greed).max(1));
        self.after(Nanos(gap), Event::Submit(client));
        if self.world.now < self.clients[client].session.frozen_until {
            return Ok(());
        }
        let tasks = if jobs > 1 { 1 + self.dice.below(jobs) } else { 1 };
        let task_type = TaskType(self.dice.below(self.scenario.slices as u64) as u16);
        for _ in 0..tasks {
            self.offer(client, task_type)?;
        }
        self.perform_client_actions(client)
    }

    fn offer(&mut self, client: usize, task_type: TaskType) -> Result<(), String> {
        let retry = self.world.now >= FAULTS_END || !self.dice.chance(self.scenario.no_retry);
        let deadline = self.world.now + DEADLINE;
        let urgency = self.urgency();
        let Some(needs) = self.needs(task_type) else { return Ok(()) };
        let payload = self.clients[client].tasks.keep(Payload::EMPTY);
        // The machine chooses the task's number when the task leaves, and its bytes follow from that
        // number; they are filled in then.
        let (begin_by, tag) = (self.budgets.draw(self.world.now), 0);
        let submission = Submission { task_type, urgency, needs, payload, deadline, begin_by, retry, tag };
        let Self { clients, client_settings: settings, client_actions: out, .. } = self;
        let taken = clients[client].node.machine.submit(self.world.now, settings, submission, out);
        if let Ok(task) = taken {
            self.oracle.submitted(self.world.now, task)?;
            self.oracle.begin_by(task, begin_by)?;
        }
        match taken {
            Ok(task) if !retry => self.oracle.only_once(task)?,
            Err(busy) if self.world.now >= self.scenario.settled && busy == client::Busy::NotRegistered => {
                return Err(format!("promise 4: client {client} is not registered in a rack without faults"));
            }
            Err(busy) => {
                if self.clients[client].node.machine.outstanding() == 0 && busy != client::Busy::NotRegistered
                {
                    return Err(format!(
                        "promise 4: client {client} has nothing outstanding and is told {busy:?}"
                    ));
                }
                self.clients[client].tasks.give_back(payload.handle)?;
            }
            Ok(_) => {}
        }
        Ok(())
    }

    /// The labels that a task names. In a rack without faults it names labels of an open class; `None` if
    /// no class is open.
    fn needs(&mut self, task_type: TaskType) -> Option<Labels> {
        if self.scenario.program.traits().kinds == 1 {
            return Some(Labels::NONE);
        }
        let labels = self.scenario.worker_labels.clone();
        let classes = labels.serving.classes();
        let first = self.dice.below(classes.len() as u64) as usize;
        if self.world.now < self.scenario.settled {
            // Tasks that no worker serves are few: such a task ends unknown if the answer to a try is lost.
            return Some(if self.dice.chance(20) { NOBODYS } else { classes[first] });
        }
        let open = self.open_classes(task_type);
        let served =
            |needs: &Labels| labels.class_of(task_type, *needs).is_some_and(|class| open >> class & 1 == 1);
        classes.iter().cycle().skip(first).take(classes.len()).find(|needs| served(needs)).copied()
    }

    /// The classes of a type's slice that have workers now, one bit each.
    fn open_classes(&mut self, task_type: TaskType) -> u8 {
        let Some(program) = self.switch.program.as_mut() else { return 0 };
        let TableAnswer::Type(Some(slice)) = program.table(TableOp::ReadType(task_type)) else { return 0 };
        let TableAnswer::Slice(state) = program.table(TableOp::ReadSlice(slice)) else { return 0 };
        if state.row.open { !state.row.closed } else { 0 }
    }

    /// The urgency that an application gives its task, if the program uses it.
    fn urgency(&mut self) -> Urgency {
        let classes = u64::from(self.scenario.program.traits().classes);
        if classes == 1 || self.scenario.program.traits().kinds > 1 {
            return Urgency::Unstated;
        }
        // In every other run most tasks are of the first class, so that the others would starve without
        // turns.
        if self.seed % 2 == 1 && self.dice.chance(950) {
            return Urgency::Priority(0);
        }
        match self.dice.below(3) {
            0 => Urgency::Unstated,
            1 => Urgency::Priority(self.dice.below(classes) as u8),
            _ => Urgency::Work(Nanos(self.dice.below(SIZES[2].0 + SIZES[0].0))),
        }
    }
}
