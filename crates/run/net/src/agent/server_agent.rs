//! The driver of the agent's state machine: it reads the workers' lines, ends intervals, and writes the
//! depths that the agent wants.

use sluice_host::agent::{Agent, AgentError, AgentSettings, Decision, Mode};
use sluice_wire::tallies::{SliceOthers, SliceTally};
use sluice_wire::{Nanos, SliceId, WorkerId};

use super::lines::{LineRegistration, Lines, Reader};
use super::slowdowns::Slowdowns;

/// The findings of an interval.
#[derive(Clone, Debug)]
pub struct Interval {
    pub ended: Nanos,
    /// All decisions but those that find everything in order.
    pub decisions: Vec<Decision>,
    /// The numbers for the controller's slice step; the depths are the new ones.
    pub tallies: Vec<SliceTally>,
    /// The slowdowns of the tasks that ended, by slice.
    pub slowdowns: Vec<(SliceId, Slowdowns)>,
    /// Tasks whose samples were overwritten before the agent read them.
    pub unseen: u64,
}

/// An agent with the lines of its workers.
#[derive(Debug)]
pub struct ServerAgent {
    agent: Agent,
    settings: AgentSettings,
    rows: Vec<Row>,
    slowdowns: Vec<(SliceId, Slowdowns)>,
    unseen: u64,
}

/// A line, and the worker that the agent last saw there.
#[derive(Debug)]
struct Row {
    reader: Reader,
    /// The worker's seat, with the depth that the agent wants.
    registration: Option<LineRegistration>,
}

impl ServerAgent {
    /// An agent whose first interval begins at `begins`.
    ///
    /// # Errors
    /// [`AgentError`] if a setting is out of its range.
    pub fn new(begins: Nanos, settings: AgentSettings, lines: &Lines) -> Result<Self, AgentError> {
        let agent = Agent::new(begins, settings)?;
        let rows = Reader::all(lines).into_iter().map(|reader| Row { reader, registration: None }).collect();
        Ok(Self { agent, settings, rows, slowdowns: Vec::new(), unseen: 0 })
    }

    /// When the present interval ends.
    pub const fn deadline(&self) -> Nanos {
        self.agent.deadline()
    }

    /// Reads what workers have written until now, or until the interval's end if that is earlier.
    pub fn read_samples(&mut self, now: Nanos) {
        let until = now.min(self.agent.deadline());
        for place in 0..self.rows.len() {
            self.registration(now, place);
            let row = &mut self.rows[place];
            let Some(registration) = row.registration else {
                row.reader.read(until, |_, _| ());
                row.reader.idled(until);
                continue;
            };
            let since = row.reader.registration(now).map_or(now, |(_, since)| since);
            let slowdowns = of_slice(&mut self.slowdowns, registration.slice);
            let mut account = self.agent.account(registration.worker);
            self.unseen += row.reader.read(until, |at, sample| {
                if at >= since {
                    slowdowns.add(sample.slowdown_milli(), 1);
                    if let Some(account) = &mut account {
                        account.finished(at, sample);
                    }
                }
            });
            self.agent.idled(registration.worker, row.reader.idled(until));
        }
    }

    /// Ends the interval if it is over.
    pub fn close(&mut self, now: Nanos) -> Option<Interval> {
        let ended = self.agent.deadline();
        if now < ended {
            return None;
        }
        let (mut decisions, mut tallies) = (Vec::new(), Vec::new());
        // Only tasks that ended within the interval were read: a late driver makes no interval longer.
        self.agent.tick(ended, &mut decisions, &mut tallies);
        if self.settings.mode == Mode::On {
            for decision in decisions.iter().filter(|decision| decision.from != decision.to) {
                self.order_depth(decision.worker, decision.to);
            }
        }
        let slowdowns = self.slowdowns.clone();
        self.slowdowns.iter_mut().for_each(|(_, slowdowns)| slowdowns.clear());
        Some(Interval { ended, decisions, tallies, slowdowns, unseen: std::mem::take(&mut self.unseen) })
    }

    /// Takes the depths that the controller wants.
    pub fn set_depths(&mut self, now: Nanos, depths: &[(WorkerId, u8)]) {
        for (worker, depth) in depths {
            if let Some(registration) = self.order_depth(*worker, *depth) {
                self.agent.serves(now, *worker, registration.slice, *depth);
            }
        }
    }

    /// Takes what other servers' workers did in the interval that ended at `ended`.
    pub fn add_others(&mut self, ended: Nanos, others: &[SliceOthers]) {
        self.agent.told(ended, others);
    }

    /// Reads which worker uses a line now.
    fn registration(&mut self, now: Nanos, place: usize) {
        let row = &mut self.rows[place];
        let (known, found) = (row.registration, row.reader.registration(now));
        let is_same = known.zip(found).is_some_and(|(known, (found, _))| {
            (known.worker, known.slice, known.life()) == (found.worker, found.slice, found.life())
        });
        if is_same {
            return;
        }
        row.registration = found.map(|(registration, _)| registration);
        let left = known.map(|known| known.worker);
        let is_elsewhere =
            |worker| self.rows.iter().any(|row| row.registration.is_some_and(|s| s.worker == worker));
        if let Some(worker) = left.filter(|worker| !is_elsewhere(*worker)) {
            self.agent.gone(worker);
        }
        if let Some((registration, since)) = found {
            self.agent.serves(since, registration.worker, registration.slice, registration.depth);
        }
    }

    fn order_depth(&mut self, worker: WorkerId, depth: u8) -> Option<LineRegistration> {
        let is_his =
            |row: &&mut Row| row.registration.is_some_and(|registration| registration.worker == worker);
        let row = self.rows.iter_mut().find(is_his)?;
        let registration = row.registration.as_mut()?;
        registration.depth = depth;
        row.reader.order_depth(registration, depth);
        Some(*registration)
    }
}

fn of_slice(all: &mut Vec<(SliceId, Slowdowns)>, slice: SliceId) -> &mut Slowdowns {
    let place = all.iter().position(|(known, _)| *known == slice).unwrap_or_else(|| {
        all.push((slice, Slowdowns::default()));
        all.len() - 1
    });
    &mut all[place].1
}

#[cfg(test)]
mod tests {
    use sluice_host::agent::{Sample, Verdict};
    use sluice_wire::{Epoch, Generation};
    use tempfile::TempDir;

    use super::*;
    use crate::agent::Line;

    const MS: Nanos = Nanos::from_millis(1);
    const LATER: Nanos = Nanos(u64::MAX);

    struct Server {
        folder: TempDir,
        desk: ServerAgent,
        now: Nanos,
    }

    impl Server {
        fn new(settings: AgentSettings) -> Self {
            let folder = tempfile::tempdir().expect("there is room");
            let lines = Lines::make(&folder.path().join("agent"), 4).expect("there is room");
            let desk = ServerAgent::new(MS.times(100), settings, &lines).expect("sound settings");
            Self { folder, desk, now: MS.times(100) }
        }

        fn line(&self, name: &str, registration: LineRegistration) -> Line {
            let mut line =
                Line::claim(&self.folder.path().join("agent"), name, self.now).expect("there is room");
            line.set_registration(self.now, registration, LATER);
            line
        }

        /// An interval of ten milliseconds in which a task ends every 20 µs.
        fn interval(&mut self, line: &mut Line, sample: Sample) -> Interval {
            for _ in 0..500 {
                self.now = self.now + Nanos::from_micros(20);
                line.ended(self.now, &sample);
            }
            self.desk.read_samples(self.now);
            self.desk.close(self.now).expect("the interval is over")
        }
    }

    fn registration(worker: u16, slice: u16, generation: u32) -> LineRegistration {
        let (worker, slice, generation) = (WorkerId(worker), SliceId(slice), Generation(generation));
        LineRegistration { worker, slice, epoch: Epoch(1), generation, depth: 2 }
    }

    /// A task that waited in the switch, after which its worker should get one token more.
    fn waited_there() -> Sample {
        let (switch_wait, service) = (Nanos::from_micros(200), Nanos::from_micros(10));
        Sample { switch_wait, service, occupancy: 3, worker_wait: Nanos(0) }
    }

    #[test]
    fn what_a_line_says_becomes_a_depth_that_its_worker_reads() {
        let mut server = Server::new(AgentSettings::default());
        let mut line = server.line("a", registration(5, 1, 1));
        let interval = server.interval(&mut line, waited_there());
        let [decision] = &interval.decisions[..] else { panic!("one worker, one judgement: {interval:?}") };
        assert_eq!((decision.worker, decision.from, decision.to), (WorkerId(5), 2, 3));
        assert_eq!(decision.verdict, Verdict::Deeper);
        assert_eq!(line.ordered_depth(), Some(3));
        assert_eq!(interval.tallies[0].depths, [(WorkerId(5), 3)]);
        let (slice, slowdowns) = &interval.slowdowns[0];
        assert_eq!((*slice, slowdowns.tasks()), (SliceId(1), 500));
        assert!((20_000..=21_000).contains(&slowdowns.p99_milli()), "{}", slowdowns.p99_milli());
    }

    #[test]
    fn an_adviser_wants_nothing() {
        let mut server = Server::new(AgentSettings { mode: Mode::Advise, ..AgentSettings::default() });
        let mut line = server.line("a", registration(5, 1, 1));
        for _ in 0..2 {
            let interval = server.interval(&mut line, waited_there());
            assert_eq!((interval.decisions[0].from, interval.decisions[0].to), (2, 3));
            assert_eq!(line.ordered_depth(), None);
        }
    }

    #[test]
    fn what_the_controller_wants_is_wanted_from_then_on() {
        let mut server = Server::new(AgentSettings::default());
        let mut line = server.line("a", registration(5, 1, 1));
        server.interval(&mut line, waited_there());
        server.desk.set_depths(server.now, &[(WorkerId(5), 6), (WorkerId(9), 1)]);
        assert_eq!(line.ordered_depth(), Some(6));
        let interval = server.interval(&mut line, waited_there());
        assert_eq!((interval.decisions[0].from, interval.decisions[0].to), (6, 7));
    }

    #[test]
    fn a_worker_that_moved_brings_nothing_along_from_its_last_slice() {
        let mut server = Server::new(AgentSettings::default());
        let mut line = server.line("a", registration(5, 1, 1));
        for _ in 0..3 {
            line.ended(server.now + MS, &waited_there());
        }
        line.set_registration(server.now + MS.times(2), registration(5, 2, 2), LATER);
        let quick = Sample { switch_wait: Nanos(0), ..waited_there() };
        let interval = server.interval(&mut line, quick);
        assert!(interval.decisions.is_empty(), "{interval:?}");
        assert_eq!(interval.tallies.iter().map(|tally| tally.slice).collect::<Vec<_>>(), [SliceId(2)]);
    }

    #[test]
    fn a_worker_whose_registration_ended_is_gone_unless_it_is_back_at_another_line() {
        let mut server = Server::new(AgentSettings::default());
        let mut first = server.line("a", registration(5, 1, 1));
        server.interval(&mut first, waited_there());
        let mut second = server.line("b", registration(5, 1, 2));
        first.set_registration(server.now, registration(5, 1, 1), server.now);
        let interval = server.interval(&mut second, waited_there());
        assert_eq!(interval.tallies[0].depths, [(WorkerId(5), 3)]);
        drop(second);
        server.now = server.now + MS.times(10);
        server.desk.read_samples(server.now);
        assert_eq!(server.desk.close(server.now).map(|interval| interval.tallies.len()), Some(0));
    }
}
