//! Workers: the whole main of a service's program, or a thread of another program.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};

use sluice_net::exit::Kind;
use sluice_net::program::{self, ToldSignals, run_service_of, tell_signal};
use sluice_net::worker::{Stopper, WorkerReport};
use sluice_net::{NetError, Worker};

use crate::fault::{Fault, call};
use crate::options::{chosen, same_abi};
use crate::pointers::{ResultPlace, list};
use crate::process::{SignalsBlocked, ignore_closed_pipes};
use crate::service::CServices;
use crate::table::{HandleKind, HandleTable, InProcess};
use crate::types::{SluiceOptions, SluiceService, SluiceStatus, SluiceWorker};

static WORKERS: LazyLock<HandleTable<InProcess<ThreadWorker>>> =
    LazyLock::new(|| HandleTable::new(HandleKind::Worker));

const WORKER_THREAD: &str = "sluice-worker";
/// As much as a program's main thread and those of pthread_create() have: services in C keep arrays there.
const WORKER_STACK: usize = 8 << 20;

const OWN_THREAD: &CStr =
    c"a service cannot wait for its own worker, which waits for it: call from another thread";

/// A worker in a thread of its own. Dropping it ends it at once.
struct ThreadWorker {
    stopper: Stopper,
    thread: ThreadId,
    end: Mutex<WorkerEnd>,
}

enum WorkerEnd {
    Runs(JoinHandle<Result<WorkerReport, NetError>>),
    Ended(Result<(), Fault>),
}

impl ThreadWorker {
    fn start(options: SluiceOptions, services: CServices) -> Result<Self, Fault> {
        let options = chosen(options)?.worker()?;
        let _blocked = SignalsBlocked::new();
        let worker = Worker::new(&options, services)?;
        let stopper = worker.stopper();
        let failed = |why| NetError::Thread { name: WORKER_THREAD, why };
        let thread = thread::Builder::new().name(WORKER_THREAD.to_owned()).stack_size(WORKER_STACK);
        let thread = thread.spawn(|| worker.run()).map_err(failed)?;
        Ok(Self { stopper, thread: thread.thread().id(), end: Mutex::new(WorkerEnd::Runs(thread)) })
    }

    fn is_own_thread(&self) -> bool {
        thread::current().id() == self.thread
    }

    /// Ends it at once, and waits for that.
    fn end(&self) {
        self.stopper.stop();
        self.stopper.stop();
        // Nobody asks how it ended.
        self.wait().ok();
    }

    fn wait(&self) -> Result<(), Fault> {
        if self.is_own_thread() {
            return Err(Fault::fixed(SluiceStatus::BadArgument, OWN_THREAD));
        }
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *end, WorkerEnd::Ended(Ok(())));
        let ended = match before {
            WorkerEnd::Ended(ended) => ended,
            WorkerEnd::Runs(thread) => match thread.join() {
                Ok(ran) => ran.map_err(Fault::from).and_then(|report| drained(&report)),
                Err(_) => Err(Fault::new(SluiceStatus::Internal, "the worker panicked; report it")),
            },
        };
        *end = WorkerEnd::Ended(ended.clone());
        ended
    }
}

fn drained(report: &WorkerReport) -> Result<(), Fault> {
    if report.drained {
        return Ok(());
    }
    let line = "the worker ended before its tasks: it was stopped twice, or its drain limit passed";
    Err(Fault::new(SluiceStatus::Closed, line))
}

impl Drop for ThreadWorker {
    fn drop(&mut self) {
        self.end();
    }
}

/// Called by sluice_run_service(), which passes the header's version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_run_service_of(
    abi: u32,
    argc: c_int,
    argv: *const *mut c_char,
    services: *const SluiceService,
    count: usize,
) -> c_int {
    let run = |args, services| {
        ignore_closed_pipes();
        run_service_of(args, services)
    };
    // SAFETY: as the header asks.
    unsafe { run_service(abi, (argc, argv), (services, count), run) }
}

/// Called by sluice_run_service_told(), which passes the header's version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_run_service_told_of(
    abi: u32,
    argc: c_int,
    argv: *const *mut c_char,
    services: *const SluiceService,
    count: usize,
) -> c_int {
    let run = |args, services| {
        let _told = ToldSignals::new();
        run_service_of(args, services)
    };
    // SAFETY: as the header asks.
    unsafe { run_service(abi, (argc, argv), (services, count), run) }
}

/// Does to the service that sluice_run_service_told() runs what a signal does to others: SIGTERM and SIGINT
/// drain it, a second one ends it at once; SIGHUP has it read its certificates again. From any thread, at any
/// time, but from no signal handler. A signal before the service runs waits for it.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_tell_signal(signal: c_int) -> SluiceStatus {
    call(|| {
        if ![libc::SIGTERM, libc::SIGINT, libc::SIGHUP].contains(&signal) {
            return Err(Fault::argument(
                "the signal is none that a service knows: tell SIGTERM, SIGINT or SIGHUP",
            ));
        }
        tell_signal(signal);
        Ok(())
    })
}

/// Runs services as a `main` with these arguments.
///
/// # Safety
/// As the header asks of sluice_run_service().
unsafe fn run_service(
    abi: u32,
    (argc, argv): (c_int, *const *mut c_char),
    (services, count): (*const SluiceService, usize),
    run_with: impl FnOnce(Vec<OsString>, CServices) -> u8,
) -> c_int {
    let run = || -> Result<u8, Fault> {
        same_abi(abi)?;
        // SAFETY: as the caller says.
        let services = unsafe { CServices::new(services, count) }?;
        let argc = usize::try_from(argc).map_err(|_| Fault::argument("argc is negative: pass main's"))?;
        // SAFETY: as the caller says.
        let args = unsafe { list(argv, argc, "arguments") }?;
        let mut all = Vec::<OsString>::new();
        for arg in args {
            if arg.is_null() {
                return Err(Fault::null("argv"));
            }
            // SAFETY: as the caller says.
            all.push(OsStr::from_bytes(unsafe { CStr::from_ptr(arg) }.to_bytes()).to_owned());
        }
        Ok(run_with(all, services))
    };
    let mut code = Kind::Broken.code();
    let status = call(|| run().map(|ran| code = ran).inspect_err(complain));
    // What is wrong with the arguments is the caller's, as wrong flags are.
    let is_bad_input = !matches!(status, SluiceStatus::Ok | SluiceStatus::Internal);
    c_int::from(if is_bad_input { Kind::BadInput.code() } else { code })
}

/// Says on stderr why no worker was started, as a program does of which this is the main.
fn complain(fault: &Fault) {
    // The exit code is another one.
    let _ = program::fail(fault.line().to_string_lossy());
}

/// Starts a worker in a thread of its own. It registers there, and goes on trying until it is stopped. The
/// thread blocks signals. A program that a service starts there inherits that: unblock them for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_worker_start(
    options: SluiceOptions,
    services: *const SluiceService,
    count: usize,
    worker: *mut SluiceWorker,
) -> SluiceStatus {
    call(|| {
        // SAFETY: as the header asks.
        let (place, services) =
            unsafe { (ResultPlace::empty(worker, "worker")?, CServices::new(services, count)?) };
        place.put(SluiceWorker { id: WORKERS.add_here(ThreadWorker::start(options, services)?)? });
        Ok(())
    })
}

/// Has a worker take no more tasks, finish those that it has, and end. A second call ends it at once. Neither
/// waits.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_worker_stop(worker: SluiceWorker) -> SluiceStatus {
    call(|| {
        WORKERS.get(worker.id)?.stopper.stop();
        Ok(())
    })
}

/// Waits until a worker has ended, and says whether it ended well.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_worker_wait(worker: SluiceWorker) -> SluiceStatus {
    call(|| WORKERS.get(worker.id)?.wait())
}

/// Frees a worker; one that runs is ended at once, and waited for: then no function of its services runs.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_worker_free(worker: SluiceWorker) -> SluiceStatus {
    call(|| {
        let here = WORKERS.get(worker.id);
        if here.is_ok_and(|here| here.is_own_thread()) {
            return Err(Fault::fixed(SluiceStatus::BadArgument, OWN_THREAD));
        }
        if let Some(worker) = WORKERS.remove(worker.id)? {
            // Other threads may hold it too: it ends here, and not with the last of them.
            worker.end();
        }
        Ok(())
    })
}
