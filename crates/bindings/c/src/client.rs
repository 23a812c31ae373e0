//! Clients: connect, submit and wait, close.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use sluice_net::TaskType;
use sluice_net::client::{Client, Completed, CompletionQueue, SpineClients, SubmitError, TaskSpec, Urgency};
use sluice_wire::Nanos;

use crate::fault::{Fault, call};
use crate::labels::required;
use crate::options::chosen;
use crate::outcome::{handed, nothing};
use crate::pointers::{CallerRoom, ResultPlace, bytes, read, text};
use crate::process::{Birth, without_signals};
use crate::table::{HandleKind, HandleTable, InProcess, count_this_thread};
use crate::types::{SluiceClient, SluiceOptions, SluiceOutcome, SluiceSpec, SluiceStatus, SluiceUrgency};

static CLIENTS: LazyLock<HandleTable<InProcess<Connected>>> =
    LazyLock::new(|| HandleTable::new(HandleKind::Client));

const CLOSED: Fault =
    Fault::fixed(SluiceStatus::Closed, c"the client is closed, or its socket failed: connect a new one");
const BUSY: Fault = Fault::fixed(
    SluiceStatus::Busy,
    c"there is no room for another task of this type now: try again after an outcome, or wait with \
      sluice_submit or sluice_queue_submit",
);

/// A client, until it is closed.
pub(crate) struct Connected {
    clients: RwLock<Option<SpineClients>>,
    /// Set before the lock is asked for, so that no submit begins once a close has.
    is_closing: AtomicBool,
    deadline: Duration,
}

/// A task to submit, with everything checked.
pub(crate) struct Offer<'a> {
    spec: TaskSpec,
    deadline: Option<Duration>,
    bytes: &'a [u8],
}

/// One of the two ways in which a [`Client`] takes a task for a queue.
pub(crate) type SubmitWay =
    fn(&Client, &CompletionQueue, u64, TaskSpec, &[u8], Duration) -> Result<(), SubmitError>;

/// Waits for room.
pub(crate) const WAITING: SubmitWay =
    |client, queue, tag, spec, bytes, deadline| client.submit_to(queue, tag, spec, bytes, deadline);
/// Answers at once.
pub(crate) const TRYING: SubmitWay =
    |client, queue, tag, spec, bytes, deadline| client.try_submit_to(queue, tag, spec, bytes, deadline);

impl Connected {
    fn with<R>(&self, use_it: impl FnOnce(&SpineClients) -> Result<R, Fault>) -> Result<R, Fault> {
        if self.is_closing.load(Ordering::Acquire) {
            return Err(CLOSED);
        }
        let clients = self.clients.read().unwrap_or_else(PoisonError::into_inner);
        use_it(clients.as_ref().ok_or(CLOSED)?)
    }

    /// Submits a task whose outcome goes to `queue`.
    pub(crate) fn submit(
        &self,
        way: SubmitWay,
        offer: Offer<'_>,
        queue: &CompletionQueue,
        tag: u64,
    ) -> Result<(), Fault> {
        let Offer { spec, deadline, bytes } = offer;
        let deadline = deadline.unwrap_or(self.deadline);
        let submitted =
            self.with(|clients| Ok(way(clients.draw(spec.of), queue, tag, spec, bytes, deadline)))?;
        submitted.map_err(|why| match why {
            SubmitError::Busy => BUSY,
            SubmitError::Closed => CLOSED,
            SubmitError::TooLong { .. } => Fault::new(SluiceStatus::TooLong, why.to_string()),
        })
    }

    /// Takes the clients away from all other calls.
    fn taken(&self) -> Result<SpineClients, Fault> {
        self.is_closing.store(true, Ordering::Release);
        if let Some(clients) = &*self.clients.read().unwrap_or_else(PoisonError::into_inner) {
            clients.accept_no_more();
        }
        // Calls of other threads hold the lock until they are through; none of them waits for room any more.
        self.clients.write().unwrap_or_else(PoisonError::into_inner).take().ok_or(CLOSED)
    }

    fn close(&self) -> Result<(), Fault> {
        self.taken()?.close().map(drop).map_err(Fault::from)
    }
}

/// The client of a handle.
pub(crate) fn connected(client: SluiceClient) -> Result<Arc<Connected>, Fault> {
    CLIENTS.get(client.id)
}

impl Offer<'_> {
    /// The task that C's arguments describe.
    ///
    /// # Safety
    /// `spec` is NULL or points to one; `from` is NULL or has `length` bytes, for as long as the offer lives.
    pub(crate) unsafe fn new(
        spec: *const SluiceSpec,
        from: *const c_void,
        length: usize,
    ) -> Result<Self, Fault> {
        // SAFETY: as the caller says.
        let (told, bytes) = unsafe { (read(spec, "spec")?, bytes(from, length, "bytes")?) };
        let span = |ns: u64| (ns > 0).then(|| Duration::from_nanos(ns));
        let spec = TaskSpec {
            of: TaskType(told.r#type),
            urgency: urgency(&told)?,
            needs: required(told.labels)?,
            budget: span(told.budget_ns),
        };
        Ok(Self { spec, deadline: span(told.deadline_ns), bytes })
    }
}

fn urgency(told: &SluiceSpec) -> Result<Urgency, Fault> {
    if told.reserved != 0 {
        return Err(Fault::argument("`spec.reserved` is not 0: begin with a spec of all zeros"));
    }
    let is = |what: SluiceUrgency| u32::from(told.urgency_is) == what as u32;
    if is(SluiceUrgency::None) {
        return Ok(Urgency::Unstated);
    }
    if is(SluiceUrgency::Work) {
        return Ok(Urgency::Work(Nanos(told.urgency)));
    }
    match u8::try_from(told.urgency) {
        Ok(class) if is(SluiceUrgency::Class) => Ok(Urgency::Priority(class)),
        Err(_) if is(SluiceUrgency::Class) => {
            Err(Fault::argument(format!("class {} is over 255: class 0 goes first", told.urgency)))
        }
        _ => Err(Fault::argument(format!("{} is no sluice_urgency: choose one", told.urgency_is))),
    }
}

/// What a thread needs to wait for one task, kept for the next one.
struct OwnQueue {
    queue: CompletionQueue,
    ended: Vec<Completed>,
    birth: Birth,
}

thread_local! {
    static OWN: Cell<Option<OwnQueue>> = const { Cell::new(None) };
}

/// Runs `wait` with this thread's own queue.
fn with_own_queue<R>(wait: impl FnOnce(&mut OwnQueue) -> R) -> R {
    let kept = OWN.try_with(Cell::take).ok().flatten();
    let new = || OwnQueue { queue: CompletionQueue::new(), ended: Vec::new(), birth: Birth::now() };
    // A child's copy of the parent's queue may be locked for ever.
    let mut own = match kept {
        Some(own) if own.birth.is_of_parent() => {
            std::mem::forget(own);
            new()
        }
        kept => kept.unwrap_or_else(new),
    };
    let result = wait(&mut own);
    OWN.try_with(|kept| kept.set(Some(own))).ok();
    result
}

/// The arguments of the two functions that submit a task and wait until it ends.
struct WholeTask {
    client: SluiceClient,
    spec: *const SluiceSpec,
    bytes: *const c_void,
    length: usize,
    reply: *mut c_void,
    room: usize,
    outcome: *mut SluiceOutcome,
}

impl WholeTask {
    fn run(&self, way: SubmitWay) -> SluiceStatus {
        call(|| {
            // SAFETY: as the header asks.
            let place = unsafe { ResultPlace::new(self.outcome, "outcome") }?;
            place.put(nothing());
            let client = connected(self.client)?;
            // SAFETY: as the header asks.
            let into = unsafe { CallerRoom::new(self.reply, self.room) };
            if self.reply.is_null() {
                // Else the task would run, and its reply could not be kept.
                count_this_thread()?;
            }
            // SAFETY: as the header asks.
            let offer = unsafe { Offer::new(self.spec, self.bytes, self.length) }?;
            let ended = with_own_queue(|own| {
                client.submit(way, offer, &own.queue, 0)?;
                drop(client);
                while own.queue.wait(&mut own.ended, 1, None) == 0 {}
                let completed = own.ended.pop().expect("the queue gave one");
                handed(completed, &own.queue, Some(&into))
            })?;
            place.put(ended);
            Ok(())
        })
    }
}

/// Registers a client, and waits for that. A process that forks connects in the child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_client_connect(
    options: SluiceOptions,
    client: *mut SluiceClient,
) -> SluiceStatus {
    call(|| {
        // SAFETY: as the header asks.
        let place = unsafe { ResultPlace::empty(client, "client") }?;
        let options = chosen(options)?;
        let (clients, deadline) = without_signals(|| options.connect())??;
        let clients = RwLock::new(Some(clients));
        let connected = Connected { clients, is_closing: AtomicBool::new(false), deadline };
        place.put(SluiceClient { id: CLIENTS.add_here(connected)? });
        Ok(())
    })
}

/// The number of a type by its name in the rack's plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_client_type(
    client: SluiceClient,
    name: *const c_char,
    r#type: *mut u16,
) -> SluiceStatus {
    call(|| {
        // SAFETY: as the header asks.
        let (name, place) = unsafe { (text(name, "name")?, ResultPlace::new(r#type, "type")?) };
        let known = connected(client)?.with(|clients| Ok(clients.type_names()))?;
        if let Some((of, _)) = known.iter().find(|(_, known)| known == name) {
            place.put(of.0);
            return Ok(());
        }
        let known: Vec<&str> = known.iter().map(|(_, name)| name.as_str()).collect();
        let known = if known.is_empty() { "no names of types".to_owned() } else { known.join(", ") };
        Err(Fault::argument(format!("the rack's plan has no type `{name}`; it has {known}")))
    })
}

/// Takes no more tasks, waits until each has its outcome, and ends the registration. Threads that wait for
/// room, and later submits, are answered SLUICE_CLOSED. The handle stays until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_client_close(client: SluiceClient) -> SluiceStatus {
    call(|| connected(client)?.close())
}

/// Frees a client. One that was not closed takes no more tasks, and ends those that it has at once: as
/// unknown, or as never sent. A child may free its parent's.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_client_free(client: SluiceClient) -> SluiceStatus {
    call(|| {
        if let Some(client) = CLIENTS.remove(client.id)? {
            // Other threads may hold it too: it ends here, and not with the last of them. If it was closed,
            // nothing is left to end.
            drop(client.taken());
        }
        Ok(())
    })
}

/// Submits a task and waits until it ends; waits for room first. The reply's bytes are written to `reply` if
/// they fit into `room` bytes; if they do not, or if `reply` is NULL, the library keeps them:
/// `outcome->bytes` is where they are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_submit(
    client: SluiceClient,
    spec: *const SluiceSpec,
    bytes: *const c_void,
    length: usize,
    reply: *mut c_void,
    room: usize,
    outcome: *mut SluiceOutcome,
) -> SluiceStatus {
    WholeTask { client, spec, bytes, length, reply, room, outcome }.run(WAITING)
}

/// Like sluice_submit(), but answers SLUICE_BUSY if there is no room for the task now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_try_submit(
    client: SluiceClient,
    spec: *const SluiceSpec,
    bytes: *const c_void,
    length: usize,
    reply: *mut c_void,
    room: usize,
    outcome: *mut SluiceOutcome,
) -> SluiceStatus {
    WholeTask { client, spec, bytes, length, reply, room, outcome }.run(TRYING)
}
