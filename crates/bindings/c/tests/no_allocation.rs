//! No call and no outcome allocates for each task once warm, on the caller's thread and on the client's. The
//! rack is in other processes.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::mem::zeroed;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::calls::{connected, last, wait_for_a_worker};
use common::{Running, lone_switch, sluice};
use sluice::*;

/// Tasks before what is counted, and while it is.
const WARM: u64 = 2_000;
const COUNTED: u64 = 5_000;
/// Tables grow now and then; a task that allocates would do so each time.
const ALLOWED: usize = COUNTED as usize / 10;

struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_OF_INTEREST: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Whether this is the test's thread or the one that handles packets. The registration has others, which
/// allocate by the clock.
fn is_of_interest() -> bool {
    IS_OF_INTEREST.with(|known| {
        if known.get().is_none() {
            let mut name = [0_u8; 16];
            // SAFETY: the kernel writes 16 bytes there.
            unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
            known.set(Some(name.starts_with(b"sluice-client") || name.starts_with(b"no_call")));
        }
        known.get() == Some(true)
    })
}

// SAFETY: all is the system's allocator, and the counters do not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_COUNTING.load(Ordering::Relaxed) && is_of_interest() {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { System.dealloc(at, layout) }
    }
}

fn well(status: SluiceStatus) {
    assert_eq!(status, SluiceStatus::Ok, "{}", last());
}

/// A task that keeps no processor busy, and whose reply has 8 bytes.
fn spec() -> SluiceSpec {
    SluiceSpec { r#type: 3, deadline_ns: 300_000_000_000, ..SluiceSpec::default() }
}

const BYTES: [u8; 8] = [0; 8];

fn blocking(client: SluiceClient, tasks: u64, own: Option<&mut [u8]>) {
    // SAFETY: all zeros are an outcome.
    let (spec, mut outcome): (_, SluiceOutcome) = (spec(), unsafe { zeroed() });
    let (reply, room) = own.map_or((null_mut(), 0), |own| (own.as_mut_ptr().cast(), own.len()));
    for _ in 0..tasks {
        // SAFETY: the arguments are sound.
        unsafe {
            well(sluice_submit(
                client,
                &raw const spec,
                BYTES.as_ptr().cast(),
                8,
                reply,
                room,
                &raw mut outcome,
            ));
            assert_eq!((outcome.kind, outcome.length), (SluiceKind::Reply as u32, 8));
            well(sluice_outcome_free(&raw mut outcome));
        }
    }
}

fn at_a_queue(client: SluiceClient, queue: SluiceQueue, tasks: u64) {
    const UNDER_WAY: u64 = 16;
    // SAFETY: all zeros are outcomes.
    let (spec, mut outcomes): (_, [SluiceOutcome; 16]) = (spec(), unsafe { zeroed() });
    let (mut sent, mut ended, mut count) = (0, 0, 0);
    while ended < tasks {
        while sent < tasks && sent - ended < UNDER_WAY {
            // SAFETY: the arguments are sound.
            well(unsafe {
                sluice_queue_submit(client, queue, sent, &raw const spec, BYTES.as_ptr().cast(), 8)
            });
            sent += 1;
        }
        // SAFETY: the arguments are sound.
        unsafe {
            let at = outcomes.as_mut_ptr();
            well(sluice_queue_wait(queue, at, outcomes.len(), SLUICE_FOREVER, &raw mut count));
            for outcome in &mut outcomes[..count] {
                assert_eq!((outcome.kind, outcome.length), (SluiceKind::Reply as u32, 8));
                well(sluice_outcome_free(outcome));
            }
        }
        ended += count as u64;
    }
}

/// How often `run` allocates for so many tasks, once warm.
fn allocations(run: impl Fn(u64)) -> usize {
    run(WARM);
    ALLOCATIONS.store(0, Ordering::Relaxed);
    IS_COUNTING.store(true, Ordering::Relaxed);
    run(COUNTED);
    IS_COUNTING.store(false, Ordering::Relaxed);
    ALLOCATIONS.load(Ordering::Relaxed)
}

#[test]
fn no_call_allocates_for_each_task_once_warm() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan.toml");
    std::fs::write(&plan, "name = \"a\"\n[[slice]]\nname = \"a\"\ntypes = [\"spin\"]\n").expect("written");
    let (_rack, controller) = lone_switch(&plan);
    let mut worker = Command::new(sluice());
    worker.args(["worker", "spin", "--controller", &controller, "--quiet"]);
    let _worker = Running::start(&mut worker);
    wait_for_a_worker(&controller, 3);
    let client = connected(&controller);
    let mut queue = SluiceQueue::default();
    // SAFETY: the arguments are sound.
    well(unsafe { sluice_queue_new_of(SLUICE_ABI, &raw mut queue) });

    assert_eq!(allocations(|tasks| drop(vec![0; tasks as usize])), 1, "this thread is counted");
    let counted = [
        ("own memory", allocations(|tasks| blocking(client, tasks, Some(&mut [0; 64])))),
        ("kept memory", allocations(|tasks| blocking(client, tasks, None))),
        ("a queue", allocations(|tasks| at_a_queue(client, queue, tasks))),
    ];
    assert!(counted.iter().all(|(_, count)| *count <= ALLOWED), "{counted:?} for {COUNTED} tasks each");
    well(sluice_client_free(client));
}
