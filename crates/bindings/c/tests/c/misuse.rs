//! Wrong input through the C functions: each is a status and one clear line.

use std::ffi::{CString, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::common::calls::{bytes_of, connected, last, options, set, submit, wait_for_a_worker};
use super::common::{Running, lone_switch, root};
use sluice::*;
use sluice_ports::free_address;

/// Checks a status, and that the line says all of `parts`.
fn says(status: SluiceStatus, expected: SluiceStatus, parts: &[&str]) {
    let line = last();
    assert_eq!(status, expected, "{line}");
    assert!(parts.iter().all(|part| line.contains(part)) && !line.contains('\n'), "{line}");
}

/// A rack without workers, and a client of it.
fn client() -> (Running, SluiceClient) {
    let (rack, controller) = lone_switch(&root().join("crates/run/net/examples/reverse.toml"));
    let client = connected(&controller);
    (rack, client)
}

/// A task of type 9 that ends soon.
const BRIEF: SluiceSpec = SluiceSpec {
    r#type: 9,
    urgency_is: 0,
    reserved: 0,
    urgency: 0,
    deadline_ns: 1,
    budget_ns: 0,
    labels: SluiceLabels { id: 0 },
};

#[test]
fn a_null_pointer_is_named() {
    let options = options(&[]);
    let mut client = SluiceClient { id: 7 };
    // SAFETY: NULL is allowed everywhere.
    unsafe {
        says(sluice_options_new_of(SLUICE_ABI, null_mut()), SluiceStatus::Null, &["`options` is NULL"]);
        says(sluice_options_set(options, null(), c"1".as_ptr()), SluiceStatus::Null, &["`key`"]);
        says(sluice_options_set(options, c"name".as_ptr(), null()), SluiceStatus::Null, &["`value`"]);
        says(sluice_client_connect(options, null_mut()), SluiceStatus::Null, &["`client`"]);
        says(sluice_queue_new_of(SLUICE_ABI, null_mut()), SluiceStatus::Null, &["`queue`"]);
        says(sluice_queue_fd(SluiceQueue { id: 0 }, null_mut()), SluiceStatus::Null, &["`fd`"]);
        says(sluice_outcome_free(null_mut()), SluiceStatus::Null, &["`outcome`"]);
        says(sluice_labels_new(null(), 1, null_mut()), SluiceStatus::Null, &["`names`"]);
        says(sluice_worker_start(options, null(), 1, null_mut()), SluiceStatus::Null, &["`worker`"]);
        assert_eq!(sluice_outcome_text(null(), null_mut(), 0), 0);
        client.id = 0;
        let submitted = sluice_submit(client, null(), null(), 0, null_mut(), 0, null_mut());
        says(submitted, SluiceStatus::Null, &["`outcome`"]);
    }
}

#[test]
fn a_null_pointer_for_a_task_is_named() {
    let (_rack, client) = client();
    // SAFETY: all zeros are an outcome.
    let mut outcome: SluiceOutcome = unsafe { std::mem::zeroed() };
    // SAFETY: NULL is allowed everywhere.
    unsafe {
        let no_spec = sluice_submit(client, null(), null(), 0, null_mut(), 0, &raw mut outcome);
        says(no_spec, SluiceStatus::Null, &["`spec`"]);
        let no_bytes = sluice_submit(client, &BRIEF, null(), 1, null_mut(), 0, &raw mut outcome);
        says(no_bytes, SluiceStatus::Null, &["`bytes`"]);
        let none_needed = sluice_submit(client, &BRIEF, null(), 0, null_mut(), 9, &raw mut outcome);
        assert_eq!(none_needed, SluiceStatus::Ok, "no bytes need no pointer");
        assert!(!outcome.bytes.is_null(), "it may be passed to memcpy");
    }
    sluice_client_free(client);
}

#[test]
fn a_task_beyond_64_kib_is_refused_whatever_its_length_says() {
    let (_rack, client) = client();
    // SAFETY: all zeros are an outcome.
    let mut outcome: SluiceOutcome = unsafe { std::mem::zeroed() };
    for length in [SLUICE_BYTES_MAX + 1, isize::MAX as usize, usize::MAX] {
        let byte = [0_u8; 1];
        // SAFETY: the length is looked at before the bytes.
        let status = unsafe {
            sluice_submit(client, &BRIEF, byte.as_ptr().cast(), length, null_mut(), 0, &raw mut outcome)
        };
        says(status, SluiceStatus::TooLong, &[&length.to_string(), "65536", "send less"]);
        assert_eq!(outcome.kind, SluiceKind::None as u32);
    }
    sluice_client_free(client);
}

#[test]
fn a_header_of_another_version_is_refused_in_words() {
    let mut options = SluiceOptions { id: 7 };
    // SAFETY: the arguments are sound.
    unsafe {
        let status = sluice_options_new_of(SLUICE_ABI + 1, &raw mut options);
        says(status, SluiceStatus::OtherAbi, &["interface 2", "of interface 1", "compile it again"]);
        let mut queue = SluiceQueue::default();
        says(sluice_queue_new_of(0, &raw mut queue), SluiceStatus::OtherAbi, &["interface 0"]);
        assert_eq!(sluice_run_service_of(9, 0, null(), null(), 0), 2, "{}", last());
    }
    assert_eq!(options.id, 7, "nothing was written");
}

#[test]
fn options_that_make_no_sense_are_named() {
    let options = options(&[]);
    for (key, value, part) in [
        ("contoller", "x", "there are controller, name"),
        ("listen", "nowhere", "127.0.0.1:0"),
        ("patience", "5", "`5`"),
        ("retry", "yes", "neither on nor off"),
        ("quota", "1000", "from 1 to 16"),
        ("identity", "one.pem", "CERTIFICATE,KEY"),
    ] {
        says(set(options, key, value), SluiceStatus::BadOption, &[&format!("option `{key}`"), part]);
    }
    // SAFETY: the arguments are sound.
    let no_text = unsafe { sluice_options_set(options, c"name".as_ptr(), c"\xff".as_ptr()) };
    says(no_text, SluiceStatus::BadArgument, &["`value` is no UTF-8"]);
}

#[test]
fn a_client_that_cannot_connect_says_why() {
    let connect = |all: &[(&str, &str)]| {
        // What a caller does not initialise.
        let mut client = SluiceClient { id: 7 };
        // SAFETY: the arguments are sound.
        let status = unsafe { sluice_client_connect(options(all), &raw mut client) };
        assert_eq!(client.id, 0);
        status
    };
    let nobody = free_address().to_string();
    let alone = connect(&[("controller", &nobody), ("patience", "100ms")]);
    says(alone, SluiceStatus::Unreachable, &["not registered with", "after 0.1 s"]);
    says(connect(&[("controller", "no address")]), SluiceStatus::BadOption, &["option `controller`"]);
    says(connect(&[("ca", "/no/such.pem")]), SluiceStatus::BadOption, &["`ca`", "/no/such.pem"]);
    says(connect(&[("quota", "2")]), SluiceStatus::BadOption, &["`quota`: a client has none"]);
}

#[test]
fn a_freed_or_invented_handle_is_refused() {
    let (_rack, client) = client();
    let queue = queue();
    for wrong in [0, 1, u64::MAX, client.id + 1, queue.id] {
        says(submit(SluiceClient { id: wrong }, &BRIEF, b"").0, SluiceStatus::NoHandle, &["client"]);
    }
    // SAFETY: the arguments are sound.
    let crossed = unsafe { sluice_queue_submit(client, SluiceQueue { id: client.id }, 0, &BRIEF, null(), 0) };
    says(crossed, SluiceStatus::NoHandle, &["no handle to queue"]);
    let labels = SluiceSpec { labels: SluiceLabels { id: 77 }, ..BRIEF };
    says(submit(client, &labels, b"").0, SluiceStatus::NoHandle, &["labels"]);
    assert_eq!(sluice_client_free(client), SluiceStatus::Ok);
    says(sluice_client_free(client), SluiceStatus::NoHandle, &["freed"]);
    says(sluice_client_close(client), SluiceStatus::NoHandle, &["freed"]);
    says(submit(client, &BRIEF, b"").0, SluiceStatus::NoHandle, &["freed"]);
    assert_eq!(sluice_queue_free(queue), SluiceStatus::Ok);
    says(sluice_queue_free(queue), SluiceStatus::NoHandle, &["freed"]);
    says(sluice_options_free(SluiceOptions { id: 0 }), SluiceStatus::NoHandle, &["empty"]);
    says(sluice_worker_free(SluiceWorker { id: 5 }), SluiceStatus::NoHandle, &["worker"]);
}

#[test]
fn a_closed_client_takes_no_task_and_closes_once() {
    let (_rack, client) = client();
    assert_eq!(sluice_client_close(client), SluiceStatus::Ok, "{}", last());
    says(submit(client, &BRIEF, b"").0, SluiceStatus::Closed, &["connect a new one"]);
    says(sluice_client_close(client), SluiceStatus::Closed, &["closed"]);
    assert_eq!(sluice_client_free(client), SluiceStatus::Ok);
}

#[test]
fn a_spec_that_makes_no_sense_is_refused() {
    let (_rack, client) = client();
    for (spec, part) in [
        (SluiceSpec { urgency_is: 9, ..BRIEF }, "9 is no sluice_urgency"),
        (SluiceSpec { urgency_is: 1, urgency: 256, ..BRIEF }, "class 256"),
        (SluiceSpec { reserved: 1, ..BRIEF }, "all zeros"),
    ] {
        says(submit(client, &spec, b"").0, SluiceStatus::BadArgument, &[part]);
    }
    let (status, outcome) = submit(client, &SluiceSpec { r#type: 99, deadline_ns: 0, ..BRIEF }, b"");
    assert_eq!((status, outcome.why), (SluiceStatus::Ok, SluiceWhy::NoSlice as u32));
    let mut text = [0_u8; 200];
    // SAFETY: the arguments are sound.
    let length = unsafe { sluice_outcome_text(&raw const outcome, text.as_mut_ptr().cast(), text.len()) };
    let line = String::from_utf8_lossy(&text[..length]).into_owned();
    assert!(line.starts_with("refused: no slice takes type 99: "), "{line}");
    // SAFETY: the arguments are sound.
    let cut = unsafe { sluice_outcome_text(&raw const outcome, text.as_mut_ptr().cast(), 8) };
    assert_eq!((cut, &text[..8]), (length, &b"refused\0"[..]));
    sluice_client_free(client);
}

#[test]
fn a_type_is_found_by_its_name() {
    let (_rack, client) = client();
    let mut number = 0;
    // SAFETY: the arguments are sound.
    unsafe {
        let found = sluice_client_type(client, c"reverse".as_ptr(), &raw mut number);
        assert_eq!((found, number), (SluiceStatus::Ok, 9), "{}", last());
        let unknown = sluice_client_type(client, c"revers".as_ptr(), &raw mut number);
        says(unknown, SluiceStatus::BadArgument, &["no type `revers`", "reverse"]);
    }
    sluice_client_free(client);
}

fn queue() -> SluiceQueue {
    let mut queue = SluiceQueue::default();
    // SAFETY: the arguments are sound.
    assert_eq!(unsafe { sluice_queue_new_of(SLUICE_ABI, &raw mut queue) }, SluiceStatus::Ok);
    queue
}

/// How many tasks a queue gives, until none is there or the queue is freed; and how that ended.
fn taken(queue: SluiceQueue, longest_ns: u64) -> (SluiceStatus, u64) {
    // SAFETY: all zeros are an outcome.
    let (mut outcome, mut taken): (SluiceOutcome, u64) = (unsafe { std::mem::zeroed() }, 0);
    loop {
        let mut count = 7;
        // SAFETY: the arguments are sound.
        let status = unsafe { sluice_queue_wait(queue, &raw mut outcome, 1, longest_ns, &raw mut count) };
        if status != SluiceStatus::Ok || count == 0 {
            assert_eq!(count, 0);
            return (status, taken);
        }
        taken += 1;
    }
}

#[test]
fn threads_that_wait_on_a_freed_queue_are_told() {
    for _ in 0..20 {
        let queue = queue();
        let (waits, waiting) = mpsc::channel();
        let waiter = |_| {
            let waits = waits.clone();
            thread::spawn(move || {
                waits.send(()).expect("the test listens");
                taken(queue, SLUICE_FOREVER)
            })
        };
        let waiters: Vec<_> = (0..3).map(waiter).collect();
        for _ in &waiters {
            waiting.recv().expect("it begins");
        }
        assert_eq!(sluice_queue_free(queue), SluiceStatus::Ok);
        for waiter in waiters {
            assert_eq!(waiter.join().expect("no panic"), (SluiceStatus::NoHandle, 0));
        }
    }
}

#[test]
fn a_client_that_is_freed_ends_its_tasks_and_turns_away_a_thread_that_waits_for_room() {
    let (mut rack, client) = client();
    rack.0.kill().expect("it runs");
    let (queue, sent) = (queue(), AtomicU64::new(0));
    let patient = SluiceSpec { deadline_ns: 600_000_000_000, ..BRIEF };
    thread::scope(|threads| {
        let submitter = threads.spawn(|| {
            loop {
                // SAFETY: the arguments are sound.
                match unsafe { sluice_queue_submit(client, queue, 0, &raw const patient, null(), 0) } {
                    SluiceStatus::Ok => sent.fetch_add(1, Ordering::Relaxed),
                    other => break other,
                };
            }
        });
        // Until there is no more room, as far as one can see.
        let mut before = 0;
        while before == 0 || before != sent.load(Ordering::Relaxed) {
            before = sent.load(Ordering::Relaxed);
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(sluice_client_free(client), SluiceStatus::Ok);
        let ended = submitter.join().expect("no panic");
        assert!(matches!(ended, SluiceStatus::Closed | SluiceStatus::NoHandle), "{ended:?}");
    });
    assert_eq!(taken(queue, 0), (SluiceStatus::Ok, sent.load(Ordering::Relaxed)));
    assert_eq!(sluice_queue_free(queue), SluiceStatus::Ok);
}

/// A worker of this controller, or one that goes on looking for it.
fn worker(controller: &str, serve: SluiceServe) -> SluiceWorker {
    let service = SluiceService { r#type: 9, serve: Some(serve), context: null_mut() };
    let (options, mut worker) = (options(&[("controller", controller)]), SluiceWorker::default());
    // SAFETY: the arguments are sound.
    let started = unsafe { sluice_worker_start(options, &raw const service, 1, &raw mut worker) };
    assert_eq!(started, SluiceStatus::Ok, "{}", last());
    worker
}

#[test]
fn a_worker_that_is_freed_ends_also_while_another_thread_waits_for_it() {
    let worker = worker(&free_address().to_string(), answer_nothing);
    let (waits, waiting) = mpsc::channel();
    let waiter = thread::spawn(move || {
        waits.send(()).expect("the test listens");
        sluice_worker_wait(worker)
    });
    waiting.recv().expect("it begins");
    assert_eq!(sluice_worker_free(worker), SluiceStatus::Ok);
    let waited = waiter.join().expect("no panic");
    assert!(matches!(waited, SluiceStatus::Ok | SluiceStatus::Closed | SluiceStatus::NoHandle), "{waited:?}");
}

unsafe extern "C" fn fail_in_words(_: *mut c_void, _: *const SluiceTask, reply: SluiceReply) -> c_int {
    // SAFETY: the line is a text.
    unsafe { sluice_reply_fail(reply, c"told to fail".as_ptr()) }
}

#[test]
fn a_copy_of_an_outcome_that_was_given_back_has_no_text() {
    let (_rack, controller) = lone_switch(&root().join("crates/run/net/examples/reverse.toml"));
    let worker = worker(&controller, fail_in_words);
    wait_for_a_worker(&controller, 9);
    let client = connected(&controller);
    let patient = SluiceSpec { deadline_ns: 60_000_000_000, ..BRIEF };
    let (_, mut outcome) = submit(client, &patient, b"");
    let copy = outcome;
    let mut text = [b'x'; 8];
    // SAFETY: the arguments are sound.
    unsafe {
        assert!(sluice_outcome_text(&raw const copy, null_mut(), 0) > 0);
        assert_eq!(sluice_outcome_free(&raw mut outcome), SluiceStatus::Ok);
        assert_eq!(sluice_outcome_text(&raw const copy, text.as_mut_ptr().cast(), text.len()), 0);
    }
    assert_eq!(text[0], 0);
    let mut copy = copy;
    // SAFETY: the arguments are sound.
    says(unsafe { sluice_outcome_free(&raw mut copy) }, SluiceStatus::NoHandle, &["kept bytes", "freed"]);
    sluice_client_free(client);
    assert_eq!(sluice_worker_free(worker), SluiceStatus::Ok);
}

unsafe extern "C" fn keep_reply(context: *mut c_void, _: *const SluiceTask, reply: SluiceReply) -> c_int {
    // SAFETY: the test gives a place for a handle.
    unsafe { context.cast::<SluiceReply>().write(reply) };
    0
}

#[test]
fn services_that_make_no_sense_are_refused_and_a_worker_can_be_started_and_stopped() {
    let (_rack, controller) = lone_switch(&root().join("crates/run/net/examples/reverse.toml"));
    let options = options(&[("controller", &controller)]);
    let mut kept = SluiceReply::default();
    let service = SluiceService { r#type: 9, serve: Some(keep_reply), context: (&raw mut kept).cast() };
    let mut worker = SluiceWorker::default();
    let twice = [service, service];
    let no_function = SluiceService { serve: None, ..service };
    // SAFETY: the arguments are sound.
    unsafe {
        let none = sluice_worker_start(options, null(), 0, &raw mut worker);
        says(none, SluiceStatus::BadArgument, &["no services"]);
        let doubled = sluice_worker_start(options, twice.as_ptr(), 2, &raw mut worker);
        says(doubled, SluiceStatus::BadArgument, &["type 9 has two services"]);
        let empty = sluice_worker_start(options, &raw const no_function, 1, &raw mut worker);
        says(empty, SluiceStatus::Null, &["`serve`"]);
        let started = sluice_worker_start(options, &raw const service, 1, &raw mut worker);
        assert_eq!(started, SluiceStatus::Ok, "{}", last());
    }
    wait_for_a_worker(&controller, 9);
    let mut client = SluiceClient::default();
    // SAFETY: the arguments are sound.
    assert_eq!(unsafe { sluice_client_connect(options, &raw mut client) }, SluiceStatus::Ok, "{}", last());
    let patient = SluiceSpec { deadline_ns: 60_000_000_000, ..BRIEF };
    let (status, outcome) = submit(client, &patient, b"a task");
    assert_eq!((status, outcome.kind), (SluiceStatus::Ok, SluiceKind::Reply as u32));
    // SAFETY: the arguments are sound.
    unsafe {
        says(sluice_reply_write(kept, null(), 0), SluiceStatus::NoHandle, &["before the service returns"]);
        assert_eq!(sluice_reply_fail(kept, c"late".as_ptr()), 1);
    }
    says(sluice_task_left(kept, 1), SluiceStatus::NoHandle, &["before the service returns"]);
    sluice_client_free(client);
    assert_eq!(sluice_worker_stop(worker), SluiceStatus::Ok);
    assert_eq!(sluice_worker_wait(worker), SluiceStatus::Ok, "{}", last());
    assert_eq!(sluice_worker_wait(worker), SluiceStatus::Ok, "it can be asked again");
    assert_eq!(sluice_worker_free(worker), SluiceStatus::Ok);
}

/// The handle of the worker whose service frees it.
static OWN_WORKER: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn free_own_worker(_: *mut c_void, _: *const SluiceTask, reply: SluiceReply) -> c_int {
    let own = SluiceWorker { id: OWN_WORKER.load(Ordering::Acquire) };
    assert_eq!(sluice_worker_wait(own), SluiceStatus::BadArgument);
    assert_eq!(sluice_worker_free(own), SluiceStatus::BadArgument);
    // SAFETY: the line is a text.
    unsafe { sluice_reply_fail(reply, sluice_last_error()) }
}

#[test]
fn a_service_that_frees_its_own_worker_is_told_and_goes_on() {
    let (_rack, controller) = lone_switch(&root().join("crates/run/net/examples/reverse.toml"));
    let worker = worker(&controller, free_own_worker);
    OWN_WORKER.store(worker.id, Ordering::Release);
    wait_for_a_worker(&controller, 9);
    let client = connected(&controller);
    let patient = SluiceSpec { deadline_ns: 60_000_000_000, ..BRIEF };
    for _ in 0..2 {
        let (_, outcome) = submit(client, &patient, b"");
        assert_eq!(outcome.kind, SluiceKind::Failed as u32);
        let text = String::from_utf8_lossy(bytes_of(&outcome)).into_owned();
        assert!(text.contains("cannot wait for its own worker"), "{text}");
    }
    sluice_client_free(client);
    assert_eq!(sluice_worker_free(worker), SluiceStatus::Ok);
}

#[test]
fn a_bad_argument_of_a_service_ends_its_program_as_a_bad_flag_does() {
    let service = SluiceService { r#type: 9, serve: Some(keep_reply), context: null_mut() };
    let args = [c"service", c"--quota", c"99"].map(|arg| arg.as_ptr().cast_mut());
    // SAFETY: the arguments are sound.
    unsafe {
        assert_eq!(sluice_run_service_of(SLUICE_ABI, 3, args.as_ptr(), &raw const service, 1), 2);
        assert_eq!(sluice_run_service_of(SLUICE_ABI, 1, args.as_ptr(), null(), 0), 2);
        assert_eq!(sluice_run_service_of(SLUICE_ABI, -1, args.as_ptr(), &raw const service, 1), 2);
        assert_eq!(sluice_run_service_of(SLUICE_ABI, 1, null(), &raw const service, 1), 2);
    }
}

unsafe extern "C" fn answer_nothing(_: *mut c_void, _: *const SluiceTask, _: SluiceReply) -> c_int {
    0
}

#[test]
fn a_told_service_serves_on_at_a_hangup_and_drains_when_its_program_tells_it_to_end() {
    let (_rack, controller) = lone_switch(&root().join("crates/run/net/examples/reverse.toml"));
    let at = CString::new(controller.clone()).expect("text");
    let serves = thread::spawn(move || {
        let service = SluiceService { r#type: 9, serve: Some(answer_nothing), context: null_mut() };
        let args = [c"service", c"--controller", &at, c"--quiet"].map(|arg| arg.as_ptr().cast_mut());
        // SAFETY: the arguments are sound.
        unsafe { sluice_run_service_told_of(SLUICE_ABI, 4, args.as_ptr(), &raw const service, 1) }
    });
    wait_for_a_worker(&controller, 9);
    let client = connected(&controller);
    let patient = SluiceSpec { deadline_ns: 60_000_000_000, ..BRIEF };
    for signal in [libc::SIGHUP, libc::SIGTERM] {
        let (status, outcome) = submit(client, &patient, b"a task");
        assert_eq!((status, outcome.kind), (SluiceStatus::Ok, SluiceKind::Reply as u32));
        assert_eq!(sluice_tell_signal(signal), SluiceStatus::Ok, "{}", last());
    }
    assert_eq!(serves.join().expect("no panic"), 0);
    sluice_client_free(client);
}

#[test]
fn a_told_service_that_makes_no_sense_is_refused_and_so_is_a_signal_that_none_knows() {
    let service = SluiceService { r#type: 9, serve: Some(answer_nothing), context: null_mut() };
    let args = [c"service", c"--quota", c"99"].map(|arg| arg.as_ptr().cast_mut());
    // SAFETY: the arguments are sound.
    unsafe {
        assert_eq!(sluice_run_service_told_of(SLUICE_ABI, 3, args.as_ptr(), &raw const service, 1), 2);
        assert_eq!(sluice_run_service_told_of(SLUICE_ABI, 1, args.as_ptr(), null(), 0), 2);
        assert_eq!(sluice_run_service_told_of(SLUICE_ABI, 1, null(), &raw const service, 1), 2);
        assert_eq!(sluice_run_service_told_of(9, 0, null(), null(), 0), 2, "{}", last());
    }
    for signal in [0, -1, libc::SIGUSR1] {
        says(sluice_tell_signal(signal), SluiceStatus::BadArgument, &["tell SIGTERM, SIGINT or SIGHUP"]);
    }
}
