//! Handles: numbers that stand for objects of the library, so that a caller cannot hold a dangling pointer.
//!
//! A number has the object's kind in its upper bits, its place, and how often the place was used, so that a
//! freed handle is found out, also if its place has another owner.

use std::cell::OnceCell;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sharded_slab::{Config, Slab};

use crate::fault::Fault;
use crate::process::Birth;
use crate::types::SluiceStatus;

/// The bits for the kind.
const KIND_BITS: usize = 4;
const KIND_SHIFT: usize = u64::BITS as usize - KIND_BITS;

/// A place is used again a million times before its number comes back.
struct HandleBits;

impl Config for HandleBits {
    const MAX_PAGES: usize = 20;
    const RESERVED_BITS: usize = KIND_BITS;
}

/// How many threads at once may add to tables and take from them. `sharded-slab` numbers a few more; beyond
/// them it panics.
const THREADS_MAX: usize = 4_000;

/// Lets a thread add to tables and take from them, until it ends.
struct TableThread(&'static AtomicUsize);

impl TableThread {
    fn new(count: &'static AtomicUsize) -> Result<Self, Fault> {
        let one_more = |threads| (threads < THREADS_MAX).then_some(threads + 1);
        let line = c"4000 threads have handles or replies that the library keeps: end some, or give \
                     sluice_submit() memory for the reply";
        let counted = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        counted.map(|_| Self(count)).map_err(|_| Fault::fixed(SluiceStatus::System, line))
    }
}

impl Drop for TableThread {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Fails if this thread may not add to tables and take from them, since too many others do.
pub(crate) fn count_this_thread() -> Result<(), Fault> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static COUNTED: OnceCell<TableThread> = const { OnceCell::new() };
    }
    let count = |counted: &OnceCell<TableThread>| {
        if counted.get().is_none() {
            counted.set(TableThread::new(&COUNT)?).ok();
        }
        Ok(())
    };
    // A thread that is ending has no number in the tables either.
    COUNTED.try_with(count).unwrap_or(Ok(()))
}

/// What a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum HandleKind {
    Options = 1,
    Client = 2,
    Queue = 3,
    Labels = 4,
    Bytes = 5,
    Worker = 6,
}

impl HandleKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Options => "options",
            Self::Client => "client",
            Self::Queue => "queue",
            Self::Labels => "labels",
            Self::Bytes => "kept bytes",
            Self::Worker => "worker",
        }
    }
}

/// The objects of one kind.
pub(crate) struct HandleTable<T> {
    kind: HandleKind,
    slab: Slab<T, HandleBits>,
}

impl<T> HandleTable<T> {
    pub(crate) fn new(kind: HandleKind) -> Self {
        Self { kind, slab: Slab::new_with_config::<HandleBits>() }
    }

    /// Adds an object; returns its handle, which is not 0.
    pub(crate) fn add(&self, object: T) -> Result<u64, Fault> {
        let full = || {
            let many = format!("there are too many handles to {}: free some", self.kind.name());
            Fault::new(SluiceStatus::System, many)
        };
        count_this_thread()?;
        let key = self.slab.insert(object).ok_or_else(full)?;
        Ok(((self.kind as u64) << KIND_SHIFT) | key as u64)
    }

    /// Looks at an object.
    pub(crate) fn with<R>(&self, id: u64, look: impl FnOnce(&T) -> R) -> Result<R, Fault> {
        let entry = self.slab.get(self.key(id)?).ok_or_else(|| self.no_handle(id))?;
        Ok(look(&entry))
    }

    /// Takes an object out of the table.
    pub(crate) fn take(&self, id: u64) -> Result<T, Fault> {
        count_this_thread()?;
        self.slab.take(self.key(id)?).ok_or_else(|| self.no_handle(id))
    }

    fn key(&self, id: u64) -> Result<usize, Fault> {
        if id >> KIND_SHIFT == self.kind as u64 {
            Ok((id & ((1 << KIND_SHIFT) - 1)) as usize)
        } else {
            Err(self.no_handle(id))
        }
    }

    fn no_handle(&self, id: u64) -> Fault {
        let name = self.kind.name();
        let line = match id {
            0 => format!("the handle to {name} is empty: make one first"),
            _ => format!("{id:#x} is no handle to {name}: it was freed, or never was one"),
        };
        Fault::new(SluiceStatus::NoHandle, line)
    }
}

/// An object that a child process cannot use, since it needs threads or locks of the parent.
pub(crate) struct InProcess<T> {
    birth: Birth,
    object: Arc<T>,
}

impl<T> HandleTable<InProcess<T>> {
    pub(crate) fn add_here(&self, object: T) -> Result<u64, Fault> {
        self.add(InProcess { birth: Birth::now(), object: Arc::new(object) })
    }

    /// The object of a handle, which may be freed meanwhile.
    pub(crate) fn get(&self, id: u64) -> Result<Arc<T>, Fault> {
        let entry = self.slab.get(self.key(id)?).ok_or_else(|| self.no_handle(id))?;
        if entry.birth.is_of_parent() {
            return Err(self.forked());
        }
        Ok(Arc::clone(&entry.object))
    }

    /// Takes an object out of the table. In a child process the object stays in memory for good: to end it
    /// would mean to wait for threads that are not there.
    pub(crate) fn remove(&self, id: u64) -> Result<Option<Arc<T>>, Fault> {
        let entry = self.take(id)?;
        if entry.birth.is_of_parent() {
            mem::forget(entry);
            return Ok(None);
        }
        Ok(Some(entry.object))
    }

    fn forked(&self) -> Fault {
        let name = self.kind.name();
        let line = format!(
            "this process was forked after its parent made this {name}, and has none of the parent's \
             threads: make a {name} of its own in the child"
        );
        Fault::new(SluiceStatus::Forked, line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_or_invented_handle_is_none_also_if_its_place_has_another_owner() {
        let table = HandleTable::new(HandleKind::Labels);
        let first = table.add("first").expect("room");
        assert_eq!(table.take(first).expect("it is there"), "first");
        let second = table.add("second").expect("room");
        assert!(table.take(first).is_err());
        for invented in [0, 1, u64::MAX, second ^ (1 << 63), second + 1] {
            assert_eq!(table.take(invented).expect_err("nobody").status, SluiceStatus::NoHandle);
        }
        assert_eq!(table.take(second).expect("it is there"), "second");
    }

    #[test]
    fn one_thread_too_many_is_told_and_takes_the_place_of_one_that_ended() {
        static COUNT: AtomicUsize = AtomicUsize::new(THREADS_MAX - 1);
        let last = TableThread::new(&COUNT).expect("there is room");
        let why = TableThread::new(&COUNT).err().expect("there is no more room");
        assert!(why.line().to_string_lossy().contains("end some"), "{why:?}");
        drop(last);
        assert!(TableThread::new(&COUNT).is_ok());
    }

    #[test]
    fn a_handle_of_one_kind_is_none_of_another() {
        let (labels, bytes) = (HandleTable::new(HandleKind::Labels), HandleTable::new(HandleKind::Bytes));
        let id = labels.add(1).expect("room");
        bytes.add(2).expect("room");
        let why = bytes.take(id).expect_err("it is of labels");
        assert!(why.line().to_string_lossy().contains("no handle to kept bytes"));
    }
}
