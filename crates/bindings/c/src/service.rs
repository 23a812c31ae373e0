//! Services in C: functions that a worker calls, and the replies that they write.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use sluice_net::{Nanos, Service, ServiceError, Task, TaskType};

use crate::fault::{Fault, call};
use crate::pointers::{bytes, list};
use crate::types::{SluiceReply, SluiceServe, SluiceService, SluiceStatus, SluiceTask};

/// The functions of a program, one for each type of task.
pub(crate) struct CServices(Vec<ServedType>);

#[derive(Clone, Copy)]
struct ServedType {
    of: TaskType,
    serve: SluiceServe,
    context: *mut c_void,
}

// SAFETY: the header says that the worker's thread, and no other, calls the functions with their contexts.
unsafe impl Send for CServices {}

impl CServices {
    /// The services of C's list.
    ///
    /// # Safety
    /// `services` is NULL, or has `count` of them.
    pub(crate) unsafe fn new(services: *const SluiceService, count: usize) -> Result<Self, Fault> {
        // SAFETY: as the caller says.
        let given = unsafe { list(services, count, "services") }?;
        if given.is_empty() {
            return Err(Fault::argument("there are no services: give at least one"));
        }
        let mut served: Vec<ServedType> = Vec::with_capacity(given.len());
        for service in given {
            let of = TaskType(service.r#type);
            let serve = service.serve.ok_or_else(|| Fault::null("serve"))?;
            if served.iter().any(|other| other.of == of) {
                return Err(Fault::argument(format!("type {of} has two services: give it one")));
            }
            served.push(ServedType { of, serve, context: service.context });
        }
        Ok(Self(served))
    }
}

/// The task that a thread runs now.
struct RunningTask<'a> {
    id: u64,
    task: Task<'a>,
    reply: &'a mut Vec<u8>,
    /// The length of the reply, if it is too long.
    over: Option<usize>,
    why: Option<String>,
}

thread_local! {
    /// The task of this thread; NULL if there is none.
    static RUNNING: Cell<*mut RunningTask<'static>> = const { Cell::new(ptr::null_mut()) };
}

/// Numbers all tasks of the process, so that a service cannot write a reply of an earlier task.
static TASKS: AtomicU64 = AtomicU64::new(0);

impl Service for CServices {
    fn types(&self) -> Vec<TaskType> {
        self.0.iter().map(|served| served.of).collect()
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        let served = self.0.iter().find(|served| served.of == task.task_type);
        let served = served.ok_or_else(|| ServiceError::new("no service has this type"))?;
        let told = SluiceTask {
            bytes: task.bytes.as_ptr(),
            length: task.bytes.len(),
            r#type: task.task_type.0,
            number: task.id.sequence.0,
            client: task.id.incarnation.0,
            reply_max: task.reply_max,
            packet_max: task.packet_max,
        };
        let id = TASKS.fetch_add(1, Ordering::Relaxed) + 1;
        let mut running = RunningTask { id, task, reply, over: None, why: None };
        let code = running.enter(|| {
            // SAFETY: the function is C's, called as the header says.
            unsafe { (served.serve)(served.context, &raw const told, SluiceReply { id }) }
        });
        if let Some(why) = running.why {
            return Err(ServiceError::new(why));
        }
        if let Some(bytes) = running.over {
            return Err(ServiceError::new(format!("an answer of {bytes} bytes is over {}", task.reply_max)));
        }
        if code != 0 {
            return Err(ServiceError::new(format!("the service returned {code} and no text")));
        }
        Ok(())
    }
}

impl RunningTask<'_> {
    /// Runs `serve`, while which this is the thread's task. A service may run a service within.
    fn enter(&mut self, serve: impl FnOnce() -> c_int) -> c_int {
        let here: *mut RunningTask<'static> = ptr::from_mut(self).cast();
        let before = RUNNING.replace(here);
        let code = serve();
        RUNNING.set(before);
        code
    }
}

/// Runs `with` on the task of a reply.
fn with_running<R>(reply: SluiceReply, with: impl FnOnce(&mut RunningTask<'_>) -> R) -> Result<R, Fault> {
    let here = RUNNING.try_with(Cell::get).unwrap_or(ptr::null_mut());
    // SAFETY: `enter` is on this thread's stack and holds the task. Nobody else has a reference to it while
    // C's code runs, and `with` calls no such code.
    match unsafe { here.as_mut() } {
        Some(running) if running.id == reply.id => Ok(with(running)),
        _ => Err(Fault::fixed(
            SluiceStatus::NoHandle,
            c"the handle to a reply is of no task that this thread runs now: write the reply before the \
              service returns, and on the thread that called it",
        )),
    }
}

/// Appends bytes to a reply. A reply over SLUICE_BYTES_MAX fails the task.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_reply_write(
    reply: SluiceReply,
    from: *const c_void,
    length: usize,
) -> SluiceStatus {
    call(|| {
        with_running(reply, |running| {
            let whole = running.over.unwrap_or(running.reply.len()).saturating_add(length);
            if whole > running.task.reply_max {
                running.over = Some(whole);
                let most = running.task.reply_max;
                let line =
                    format!("a reply of {whole} bytes is over {most}: the task fails; answer with less");
                return Err(Fault::new(SluiceStatus::TooLong, line));
            }
            // SAFETY: as the header asks.
            running.reply.extend_from_slice(unsafe { bytes(from, length, "bytes") }?);
            Ok(())
        })?
    })
}

/// Fails the task with a text for its client. Returns 1, for `return sluice_reply_fail(reply, "why");`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_reply_fail(reply: SluiceReply, why: *const c_char) -> c_int {
    call(|| {
        // SAFETY: as the header asks.
        let why = (!why.is_null()).then(|| unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned());
        with_running(reply, |running| running.why = Some(why.unwrap_or_else(|| "no reason given".to_owned())))
    });
    1
}

/// States how much time the task still needs, before dilation: for early tokens. Call it at the start of the
/// work, and every few microseconds after.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_task_left(reply: SluiceReply, left_ns: u64) -> SluiceStatus {
    call(|| with_running(reply, |running| running.task.left(Nanos(left_ns))))
}

/// Keeps the worker busy for so long after the service returns: for services that emulate work.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_task_hold(reply: SluiceReply, span_ns: u64) -> SluiceStatus {
    call(|| with_running(reply, |running| running.task.hold(Nanos(span_ns))))
}
