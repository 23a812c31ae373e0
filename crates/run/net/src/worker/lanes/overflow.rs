//! Ends a process with a clear message if a coroutine's stack overflows.
//!
//! Each stack ends in a guard page. Access to it raises SIGSEGV. Rust's own handler knows only the stacks
//! of threads, so it would end the process without a message. This handler knows the coroutines' stacks,
//! prints what happened, and ends the process as broken; it passes all other faults to the previous
//! handler. Left out: foreign calls whose frames skip the guard page.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use sluice_cores::StackOf;

use crate::exit::Kind;

/// How many stacks the handler knows; an overflow of a further one ends the process without a message.
const KNOWN_MAX: usize = 8_192;
/// The size of the guard page: all supported machines reserve at least this much.
const GUARD_BYTES: usize = 4_096;

static KNOWN: [AtomicUsize; KNOWN_MAX] = [const { AtomicUsize::new(0) }; KNOWN_MAX];
static COUNT: AtomicUsize = AtomicUsize::new(0);
static SAYS: OnceLock<String> = OnceLock::new();
static BEFORE: OnceLock<Former> = OnceLock::new();

struct Former(libc::sigaction);

/// Registers a coroutine's stack.
pub(super) fn register_stack(stack: StackOf) {
    let kib = (stack.base - stack.limit) / 1_024;
    SAYS.get_or_init(|| {
        format!(
            "a coroutine's stack of {kib} KiB has overflowed, and this process ends: give it more with \
             --stack, or let the service call less deeply\n"
        )
    });
    BEFORE.get_or_init(install);
    let place = COUNT.fetch_add(1, Relaxed) % KNOWN_MAX;
    KNOWN[place].store(stack.limit, Release);
}

fn install() -> Former {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a sigaction consists of numbers, for which zeroes mean an empty mask and no flags; the
    // handler has the signature that SA_SIGINFO requires and does only what a signal handler may do. The
    // call fills `before` completely, or fails and leaves its zeroes, which are the default action.
    let before = unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &raw const action, before.as_mut_ptr());
        before.assume_init()
    };
    Former(before)
}

/// Runs on the thread's signal stack; Rust gives one to each thread that it starts.
extern "C" fn handle(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to a handler installed with SA_SIGINFO.
    let at = unsafe { (*info).si_addr() } as usize;
    let is_guard = |known: &AtomicUsize| {
        let limit = known.load(Acquire);
        limit != 0 && (limit..limit + GUARD_BYTES).contains(&at)
    };
    if KNOWN.iter().any(is_guard) {
        let says = SAYS.get().map_or("", String::as_str);
        // SAFETY: both calls are allowed in a signal handler; the text is static.
        unsafe {
            libc::write(libc::STDERR_FILENO, says.as_ptr().cast(), says.len());
            libc::_exit(Kind::Broken.code().into());
        }
    }
    // The fault then occurs again, and the previous handler takes it.
    if let Some(Former(before)) = BEFORE.get() {
        // SAFETY: this is the previous action, as the kernel returned it.
        unsafe { libc::sigaction(libc::SIGSEGV, &raw const *before, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Arc;

    use sluice_cores::{
        CoreDispatcher, CoreDispatcherSettings, CorePace, CoreThreads, Handler, RequestTable, ServiceOfCores,
        ThreadSettings, Yielding,
    };
    use sluice_host::orchestrator::{Assignment, NicSettings, Priority, ServiceId};
    use sluice_wire::Nanos;

    use super::*;
    use crate::clock::monotonic;

    struct Deep;

    impl Handler<u32> for Deep {
        fn handle(&mut self, _: &RequestTable<u32>, _: u32, _: &Yielding<'_>) -> Nanos {
            Nanos(descend(u64::MAX))
        }
    }

    #[expect(unconditional_recursion, reason = "it is to overflow")]
    fn descend(depth: u64) -> u64 {
        let here = std::hint::black_box([depth; 64]);
        descend(here[7] - 1) + here[3]
    }

    #[test]
    #[ignore = "ends its process; the test below starts it"]
    fn overflows() {
        let service = ServiceId::new(0).expect("legal");
        let priority = Priority::new(0).expect("legal");
        let settings = CoreDispatcherSettings {
            nic: NicSettings::paper(1).expect("legal"),
            services: vec![ServiceOfCores { service, priority, floor: 0, trigger: None }],
            assignment: Assignment::CompleteShare,
            threads: 1,
            moves_every: Nanos(0),
        };
        let table = RequestTable::new(1);
        let (mut dispatcher, seats) = CoreDispatcher::new(&settings, table.clone()).expect("legal");
        let of_threads = ThreadSettings {
            pace: CorePace::default(),
            clock: monotonic,
            batch: false,
            spins: Nanos(0),
            stack_bytes: 64 * 1_024,
            on_stack: register_stack,
            on_start: |_| (),
        };
        let make: Arc<dyn Fn() -> Deep + Send + Sync> = Arc::new(|| Deep);
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(|| ());
        let _threads = CoreThreads::spawn(seats, of_threads, &table, &make, &wake).expect("threads");
        let place = dispatcher.place().expect("one");
        dispatcher.offer(service, place, monotonic()).expect("taken");
        dispatcher.dispatch(monotonic()).expect("given");
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn a_stack_that_overflows_ends_the_process_with_one_clear_line() {
        let program = std::env::current_exe().expect("it runs");
        let name = format!("{}::overflows", module_path!().split_once("::").expect("in a crate").1);
        let ended = Command::new(program).args([&*name, "--exact", "--ignored", "--nocapture"]).output();
        let ended = ended.expect("it starts");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(Kind::Broken.code().into()), "{said}");
        assert!(said.contains("a coroutine's stack of 68 KiB has overflowed"), "{said}");
    }
}
