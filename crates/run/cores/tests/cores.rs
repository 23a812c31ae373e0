//! A dispatcher and its cores on real threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sluice_cores::{
    CoreDispatcher, CoreDispatcherSettings, CorePace, CoreThreads, CoresError, EndedRequest, Handler,
    RequestTable, ServiceOfCores, ThreadSettings, Yielding,
};
use sluice_host::orchestrator::{Assignment, CoreId, NicSettings, Priority, ServiceId, Trigger};
use sluice_wire::Nanos;

const SHORT: ServiceId = ServiceId::new(0).unwrap();
const LONG: ServiceId = ServiceId::new(1).unwrap();

/// A request, and its result.
#[derive(Debug, Default)]
struct Asked {
    spins: Nanos,
    holds: Nanos,
    until: Option<Arc<AtomicBool>>,
    yields: bool,
    number: u64,
    ran: u32,
}

#[derive(Default)]
struct Does {
    pieces: Arc<AtomicU64>,
    pieces_max: u64,
}

impl Handler<Asked> for Does {
    fn handle(&mut self, requests: &RequestTable<Asked>, place: u32, yielding: &Yielding<'_>) -> Nanos {
        let (spins, holds, until, yields) = {
            let mut asked = requests.at(place);
            asked.ran += 1;
            (asked.spins, asked.holds, asked.until.take(), asked.yields)
        };
        let began = clock();
        let goes_on = || until.as_ref().is_some_and(|until| !until.load(Ordering::Acquire));
        while clock().since(began) < spins || goes_on() {
            if yields {
                yielding.pause();
            }
            std::hint::spin_loop();
        }
        holds
    }

    fn batch(&mut self, yielding: &Yielding<'_>) -> bool {
        yielding.pause();
        self.pieces.fetch_add(1, Ordering::Relaxed) + 1 < self.pieces_max
    }
}

fn clock() -> Nanos {
    static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    Nanos(1 + BEGAN.get_or_init(Instant::now).elapsed().as_nanos() as u64)
}

struct Server {
    dispatcher: CoreDispatcher<Asked>,
    threads: CoreThreads,
    woken: Arc<AtomicU64>,
}

fn services(trigger: Option<Trigger>) -> Vec<ServiceOfCores> {
    let of = |service, priority| ServiceOfCores {
        service,
        priority: Priority::new(priority).unwrap(),
        floor: 1,
        trigger,
    };
    vec![of(SHORT, 1), of(LONG, 0)]
}

fn server(cores: usize, pace: CorePace, assignment: Assignment, trigger: Option<Trigger>) -> Server {
    server_with(cores, pace, (assignment, trigger), None)
}

/// A server with the services of [`services`]; `batch` adds a batch service: a counter, and the number of
/// its pieces of work.
fn server_with(
    cores: usize,
    pace: CorePace,
    (assignment, trigger): (Assignment, Option<Trigger>),
    batch: Option<(Arc<AtomicU64>, u64)>,
) -> Server {
    let settings = CoreDispatcherSettings {
        nic: NicSettings::paper(cores).unwrap(),
        services: services(trigger),
        assignment,
        threads: if pace.dilation > 1 { 1 } else { cores },
        moves_every: Nanos::from_micros(5),
    };
    let requests = RequestTable::new(512);
    let (dispatcher, seats) = CoreDispatcher::new(&settings, requests.clone()).unwrap();
    let of_threads = ThreadSettings {
        pace,
        clock,
        batch: batch.is_some(),
        spins: Nanos(0),
        stack_bytes: 64 * 1_024,
        on_stack: |_| (),
        on_start: |_| (),
    };
    let woken = Arc::new(AtomicU64::new(0));
    let wakes = Arc::clone(&woken);
    let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
        wakes.fetch_add(1, Ordering::Relaxed);
    });
    let (pieces, pieces_max) = batch.unwrap_or_default();
    let make: Arc<dyn Fn() -> Does + Send + Sync> =
        Arc::new(move || Does { pieces: Arc::clone(&pieces), pieces_max });
    let threads = CoreThreads::spawn(seats, of_threads, &requests, &make, &wake).unwrap();
    Server { dispatcher, threads, woken }
}

impl Server {
    fn offer(&mut self, service: ServiceId, asked: Asked) -> u32 {
        let place = self.dispatcher.place().unwrap();
        *self.dispatcher.requests().at(place) = asked;
        self.dispatcher.offer(service, place, clock()).unwrap();
        place
    }

    /// Runs until no request is left. Returns the ended requests in order, with their numbers.
    fn finish(&mut self) -> Vec<(u64, EndedRequest)> {
        let (mut all, give_up) = (Vec::new(), Instant::now() + Duration::from_mins(1));
        while self.dispatcher.held() > 0 {
            assert!(Instant::now() < give_up, "{} are left", self.dispatcher.held());
            self.turn(&mut all);
            std::thread::yield_now();
        }
        all
    }

    fn turn(&mut self, all: &mut Vec<(u64, EndedRequest)>) {
        self.dispatcher.tick(clock());
        self.dispatcher.dispatch(clock()).unwrap();
        self.dispatcher
            .collect(|requests, ended| {
                let asked = requests.at(ended.place);
                assert_eq!(asked.ran, 1, "each runs once");
                all.push((asked.number, ended));
            })
            .unwrap();
    }
}

#[test]
fn every_request_runs_once_and_comes_back() {
    let mut server = server(2, CorePace::default(), Assignment::CompleteShare, None);
    let mut all = Vec::new();
    for number in 0..2_000 {
        let service = if number % 3 == 0 { LONG } else { SHORT };
        while server.dispatcher.held() > 400 {
            server.turn(&mut all);
        }
        server.offer(service, Asked { spins: Nanos(2_000), yields: true, number, ..Asked::default() });
        server.turn(&mut all);
    }
    all.extend(server.finish());
    let mut numbers: Vec<u64> = all.iter().map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..2_000).collect::<Vec<_>>());
    assert!(server.woken.load(Ordering::Relaxed) > 0);
    assert_eq!(server.dispatcher.counts().dispatched, 2_000);
    assert_eq!(server.threads.end(Duration::from_mins(2)).unwrap(), 0);
}

#[test]
fn a_short_request_overtakes_a_long_one_that_yields_and_not_one_that_does_not() {
    for (yields, first) in [(true, 2), (false, 1)] {
        let mut server = server(1, CorePace::default(), Assignment::CompleteShare, None);
        let over = Arc::new(AtomicBool::new(false));
        let until = Some(Arc::clone(&over));
        let place = server.offer(LONG, Asked { until, yields, number: 1, ..Asked::default() });
        server.dispatcher.dispatch(clock()).unwrap();
        while server.dispatcher.requests().at(place).ran == 0 {
            std::thread::yield_now();
        }
        server.offer(SHORT, Asked { number: 2, ..Asked::default() });
        server.dispatcher.dispatch(clock()).unwrap();
        let mut all = Vec::new();
        if yields {
            while all.is_empty() {
                server.turn(&mut all);
            }
        }
        over.store(true, Ordering::Release);
        all.extend(server.finish());
        assert_eq!(all[0].0, first, "yields: {yields}");
        assert_eq!(all.len(), 2);
    }
}

#[test]
fn a_coroutine_that_never_yields_is_found_by_its_services_name() {
    let mut server = server(1, CorePace::default(), Assignment::CompleteShare, None);
    let over = Arc::new(AtomicBool::new(false));
    server.offer(LONG, Asked { until: Some(Arc::clone(&over)), ..Asked::default() });
    server.dispatcher.dispatch(clock()).unwrap();
    let longest = Nanos::from_micros(500);
    let found = loop {
        let now = clock();
        if let Some(found) = server.dispatcher.overdue(longest, now).next() {
            break found;
        }
        std::thread::yield_now();
    };
    assert_eq!((found.core, found.service), (CoreId(0), Some(LONG)));
    assert!(found.ran > longest);
    over.store(true, Ordering::Release);
    server.finish();
    assert_eq!(server.dispatcher.overdue(longest, clock()).count(), 0);
}

#[test]
fn dilated_cores_share_a_thread_and_each_has_its_own_time() {
    let pace = CorePace { dilation: 200, ..CorePace::default() };
    let mut server = server(8, pace, Assignment::CompleteShare, None);
    for number in 0..24 {
        server.offer(SHORT, Asked { holds: Nanos::from_millis(1), number, ..Asked::default() });
    }
    let all = server.finish();
    let span = Nanos::from_millis(200);
    for core in 0..8 {
        let mut of: Vec<_> = all.iter().map(|(_, ended)| ended).filter(|of| of.core.0 == core).collect();
        of.sort_by_key(|ended| ended.ended);
        assert_eq!(of.len(), 3, "core {core}");
        // Three requests of 200 ms in turns of 1 ms: the first to end takes between one and three times as
        // long, the last exactly three times, however late the thread was.
        let first = of.iter().map(|ended| ended.began).min().unwrap();
        assert_eq!(of[2].ended - first, span.times(3));
        assert!(of[0].ended - first > span.times(2));
    }
}

#[test]
fn a_server_that_is_full_says_so_and_takes_the_next_when_there_is_room() {
    let settings = CoreDispatcherSettings {
        nic: NicSettings::paper(1).unwrap(),
        services: services(None),
        assignment: Assignment::CompleteShare,
        threads: 1,
        moves_every: Nanos::from_micros(5),
    };
    let (mut dispatcher, _seats) = CoreDispatcher::new(&settings, RequestTable::<Asked>::new(2)).unwrap();
    assert_eq!((dispatcher.room(SHORT, 0), dispatcher.room(LONG, 0)), (4, 4));
    let first = dispatcher.place().unwrap();
    dispatcher.offer(SHORT, first, clock()).unwrap();
    assert_eq!((dispatcher.room(SHORT, 0), dispatcher.room(LONG, 0)), (3, 4), "it waits");
    dispatcher.dispatch(clock()).unwrap();
    assert_eq!(
        (dispatcher.room(SHORT, 0), dispatcher.room(LONG, 0)),
        (3, 3),
        "more important ones count in full"
    );
    let second = dispatcher.place().unwrap();
    let unknown = ServiceId::new(9).unwrap();
    assert!(matches!(dispatcher.offer(unknown, second, clock()), Err(CoresError::Refused(_))));
    let second = dispatcher.place().unwrap();
    dispatcher.offer(LONG, second, clock()).unwrap();
    assert!(matches!(dispatcher.place(), Err(CoresError::Full(2))));
}

#[test]
fn cores_move_to_the_service_whose_load_wants_them() {
    let trigger = Some(Trigger::congestion(Nanos::from_micros(200)));
    let mut server = server(4, CorePace::default(), Assignment::Dedicated, trigger);
    let mut all = Vec::new();
    let give_up = Instant::now() + Duration::from_mins(1);
    while server.dispatcher.moves() == 0 && Instant::now() < give_up {
        if server.dispatcher.held() < 100 {
            server.offer(SHORT, Asked { spins: Nanos(20_000), ..Asked::default() });
        }
        server.turn(&mut all);
    }
    assert!(server.dispatcher.moves() > 0, "a queue that stays asks for a core");
    server.finish();
}

#[test]
fn a_batch_service_runs_where_no_request_does_and_keeps_none_waiting() {
    for dilation in [1, 50] {
        let pace = CorePace { dilation, ..CorePace::default() };
        let pieces = Arc::<AtomicU64>::default();
        let batch = Some((Arc::clone(&pieces), u64::MAX));
        let mut server = server_with(2, pace, (Assignment::CompleteShare, None), batch);
        let did = || pieces.load(Ordering::Relaxed);
        let mut all = Vec::new();
        for round in 1..=20 {
            let before = did();
            while did() < before + 10 {
                std::thread::yield_now();
            }
            for number in 0..10 {
                let service = if number % 2 == 0 { SHORT } else { LONG };
                server
                    .offer(service, Asked { number, spins: Nanos(1_000), yields: true, ..Asked::default() });
            }
            all.extend(server.finish());
            assert_eq!(all.len(), round * 10, "a request passes it, whatever its priority");
        }
        assert!(server.dispatcher.batch_time() > Nanos(0));
        let dispatcher = server.dispatcher;
        assert_eq!(server.threads.end(Duration::from_mins(2)).unwrap(), 0, "it is left when the server ends");
        assert!(all.iter().all(|(_, ended)| ended.ended >= ended.began));
        let took = dispatcher.batch_time();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(dispatcher.batch_time(), took);
    }
}

#[test]
fn a_core_that_is_busy_leaves_a_batch_service_nothing() {
    let pieces = Arc::<AtomicU64>::default();
    let batch = Some((Arc::clone(&pieces), u64::MAX));
    let mut server = server_with(1, CorePace::default(), (Assignment::CompleteShare, None), batch);
    let over = Arc::new(AtomicBool::new(false));
    let place =
        server.offer(LONG, Asked { until: Some(Arc::clone(&over)), yields: true, ..Asked::default() });
    server.dispatcher.dispatch(clock()).unwrap();
    while server.dispatcher.requests().at(place).ran == 0 {
        std::thread::yield_now();
    }
    let took = server.dispatcher.batch_time();
    let began = clock();
    while clock().since(began) < Nanos::from_millis(20) {
        std::thread::yield_now();
    }
    assert_eq!(server.dispatcher.batch_time(), took, "the least important request goes before it");
    over.store(true, Ordering::Release);
    server.finish();
}

#[test]
fn a_batch_service_that_is_done_is_not_asked_again() {
    let pieces = Arc::<AtomicU64>::default();
    let batch = Some((Arc::clone(&pieces), 7));
    let server = server_with(1, CorePace::default(), (Assignment::CompleteShare, None), batch);
    while pieces.load(Ordering::Relaxed) < 7 {
        std::thread::yield_now();
    }
    assert_eq!(server.threads.end(Duration::from_mins(2)).unwrap(), 0);
    assert_eq!(pieces.load(Ordering::Relaxed), 7);
}
