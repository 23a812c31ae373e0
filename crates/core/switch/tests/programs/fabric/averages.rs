//! A leaf's mean queue: as printed some events shift it for good; here none does.

use proptest::prelude::*;
use sluice_switch::horus::Average;

use super::*;

fn printed() -> FabricReading {
    FabricReading { as_published: true, ..FabricReading::default() }
}

fn average(fabric: &Fabric) -> Average {
    fabric.leaves[0].average(SLICE).expect("a leaf of a fabric")
}

/// The mean that the leaf should have.
fn reckoned(fabric: &Fabric, workers: u32) -> Average {
    let share = Average::share(RackSize::new(workers).expect("workers"));
    Average::of(fabric.leaves[0].known_tasks(SLICE), share).expect("few tasks")
}

/// Sends tasks until each of four workers has had one. All are answered except `lost`, whose DISPATCH or
/// REPLY is lost. Then all workers are idle, because each answered a later task.
fn after_losses(reading: FabricReading, lost: u16) -> Average {
    let mut fabric = Fabric::of(reading, &[4]);
    fabric.deliver();
    for round in 0..2 {
        let workers: Vec<u16> = (0..4).map(|_| fabric.task().1.worker.0).collect();
        let is_lost = |at: usize| round == 0 && at < usize::from(lost);
        let answered = workers.iter().enumerate().filter(|(at, _)| !is_lost(*at));
        answered.for_each(|(_, worker)| fabric.reply(0, *worker, 0));
        fabric.deliver();
    }
    (0..4).for_each(|_| fabric.forced(0));
    (0..4).for_each(|worker| fabric.reply(0, worker, 0));
    average(&fabric)
}

#[test]
fn a_lost_packet_shifts_the_mean_for_good_as_printed_and_not_here() {
    assert_eq!(after_losses(FabricReading::default(), 2), Average::default());
    assert_eq!(after_losses(printed(), 0), Average::default());
    assert_eq!(after_losses(printed(), 2).bits(), 0x8000, "two tasks of four workers that never end");
}

#[test]
fn a_changed_pool_shifts_the_mean_for_good_as_printed_and_not_here() {
    for (reading, left) in [(FabricReading::default(), 0), (printed(), 0x1_0000 - 2 * 0x5556)] {
        let mut fabric = Fabric::of(reading, &[2]);
        fabric.deliver();
        (0..2).for_each(|_| fabric.forced(0));
        assert_eq!(average(&fabric), Average::ONE);
        let row = WorkerRow { at: worker_at(0, 2), ..crate::rack::row(2, 1, true) };
        fabric.leaves[0].table(TableOp::SetWorker(WorkerId(2), Some(row)));
        (0..2).for_each(|worker| fabric.reply(0, worker, 0));
        assert_eq!(average(&fabric).bits(), left, "idle, and the share was a half and is a third");
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A task arrives; its DISPATCH may be lost.
    Task,
    /// The second pass of a task is delayed by so many events.
    Late,
    Reply {
        worker: u16,
        load: u32,
    },
    Leaves(u16),
    Comes(u16),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let worker = 0..4u16;
    let event = prop_oneof![
        5 => Just(Event::Task),
        2 => Just(Event::Late),
        4 => (worker.clone(), 0..4u32).prop_map(|(worker, load)| Event::Reply { worker, load }),
        1 => worker.clone().prop_map(Event::Leaves),
        1 => worker.prop_map(Event::Comes),
    ];
    proptest::collection::vec(event, 1..80)
}

/// A fabric of one rack with four workers, some of which are registered.
struct Changing {
    fabric: Fabric,
    there: [bool; 4],
    late: Vec<sluice_switch::Circulating>,
}

impl Changing {
    fn workers(&self) -> u32 {
        self.there.iter().filter(|there| **there).count() as u32
    }

    fn set(&mut self, worker: u16, there: bool) {
        self.there[usize::from(worker)] = there;
        let row = WorkerRow { at: worker_at(0, worker), ..crate::rack::row(worker, 1, there) };
        self.fabric.leaves[0].table(TableOp::SetWorker(WorkerId(worker), Some(row)));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Task => {
                let task = self.fabric.chosen();
                let packet = Packet::Dispatch(task);
                let arrival = Arrival::Wire { from: spine_at(), packet, room: true };
                if let Verdict::Again(round) = self.fabric.leaves[0].pass(Nanos(0), arrival) {
                    self.late.push(round);
                }
            }
            Event::Late => {
                if let Some(round) = self.late.pop()
                    && let Verdict::Again(round) = self.fabric.leaves[0].pass(Nanos(0), Arrival::Round(round))
                {
                    self.late.push(round);
                }
            }
            Event::Reply { worker, load } if self.there[usize::from(worker)] => {
                self.fabric.reply(0, worker, load);
            }
            Event::Leaves(worker) if self.workers() > 1 => self.set(worker, false),
            Event::Comes(worker) => self.set(worker, true),
            Event::Reply { .. } | Event::Leaves(_) => {}
        }
        self.fabric.told.extend(self.fabric.leaves[0].mirrored());
        self.fabric.deliver();
    }
}

proptest! {
    /// The mean is right whatever is lost, late, leaves or returns, in both ways of noting a second pass
    /// and of counting an idle worker's task.
    #[test]
    fn the_mean_is_always_what_is_known_of_the_workers_that_are_there(
        events in events(),
        resubmit_writes: bool,
        idle_uncounted: bool,
    ) {
        let reading = FabricReading { resubmit_writes, idle_uncounted, ..FabricReading::default() };
        let mut fabric = Fabric::of(reading, &[4]);
        fabric.deliver();
        let mut changing = Changing { fabric, there: [true; 4], late: Vec::new() };
        for event in events {
            changing.happens(event);
            let fabric = &changing.fabric;
            prop_assert_eq!(average(fabric), reckoned(fabric, changing.workers()), "{:?}", event);
        }
    }
}
