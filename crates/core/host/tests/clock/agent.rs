//! The agent's clock: its intervals end, however late its driver calls.

use proptest::prelude::*;
use sluice_host::agent::{Agent, AgentSettings, Rule, Sample, WorkerOverhead};
use sluice_wire::tallies::SliceOthers;
use sluice_wire::{Nanos, SliceId, WorkerId};

use super::{assert_later, jump};

#[derive(Clone, Copy, Debug)]
enum Step {
    Serves(u16, u16, u8),
    Gone(u16),
    Finished(u16, Nanos),
    Idled(u16, Nanos),
    Told(u64),
    Tick(Nanos),
}

fn step() -> impl Strategy<Value = Step> {
    let worker = 0..4_u16;
    prop_oneof![
        2 => (worker.clone(), 0..2_u16, 0..10_u8).prop_map(|(w, s, d)| Step::Serves(w, s, d)),
        1 => worker.clone().prop_map(Step::Gone),
        8 => (worker.clone(), jump()).prop_map(|(w, wait)| Step::Finished(w, wait)),
        2 => (worker, jump()).prop_map(|(w, wait)| Step::Idled(w, wait)),
        1 => any::<u64>().prop_map(Step::Told),
        4 => jump().prop_map(Step::Tick),
    ]
}

fn take(agent: &mut Agent, now: Nanos, step: Step) {
    match step {
        Step::Serves(worker, slice, depth) => agent.serves(now, WorkerId(worker), SliceId(slice), depth),
        Step::Gone(worker) => agent.gone(WorkerId(worker)),
        Step::Finished(worker, wait) => {
            let service = Nanos::from_micros(10);
            let sample = Sample { switch_wait: wait, worker_wait: wait, occupancy: 3, service };
            agent.finished(now, WorkerId(worker), sample);
        }
        Step::Idled(worker, blocked) => agent.idled(WorkerId(worker), blocked),
        Step::Told(tasks) => {
            agent.told(now, &[SliceOthers { slice: SliceId(0), workers: 2, heard: 1, tasks }]);
        }
        Step::Tick(_) => {
            agent.tick(now, &mut Vec::new(), &mut Vec::new());
            assert_later(Some(agent.deadline()), now);
        }
    }
}

proptest! {
    #[test]
    fn an_agents_tick_leaves_nothing_due(
        replays in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let way = WorkerOverhead { round_trip: Nanos::from_micros(10), busy: Nanos::from_micros(1) };
        let rule = if replays { Rule::Replay(way) } else { Rule::Steps };
        let mut now = Nanos(1_000);
        let settings = AgentSettings { rule, ..AgentSettings::default() };
        let mut agent = Agent::new(now, settings).expect("sound settings");
        for step in steps {
            if let Step::Tick(late) = step {
                now = now + late;
            }
            take(&mut agent, now, step);
        }
    }
}
