//! C's pointers as Rust's values: the one place that trusts a caller about what a pointer points to.

use std::ffi::{CStr, c_char, c_void};
use std::{ptr, slice};

use crate::fault::Fault;
use crate::types::SLUICE_BYTES_MAX;
use crate::types::SluiceStatus;

/// A text of the caller.
///
/// # Safety
/// `text` is NULL, or ends with a zero.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Fault> {
    if text.is_null() {
        return Err(Fault::null(what));
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Fault::argument(format!("`{what}` is no UTF-8 text: write it as UTF-8")))
}

/// The bytes of a task or a reply.
///
/// # Safety
/// `bytes` is NULL, or has `length` bytes.
pub(crate) unsafe fn bytes<'a>(bytes: *const c_void, length: usize, what: &str) -> Result<&'a [u8], Fault> {
    if length > SLUICE_BYTES_MAX {
        let line = format!(
            "{length} bytes are more than the {SLUICE_BYTES_MAX} that a task or a reply may have: send less, \
             or in several tasks"
        );
        return Err(Fault::new(SluiceStatus::TooLong, line));
    }
    match (bytes.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Fault::null(what)),
        // SAFETY: as the caller says; the length is no more than a slice may have.
        (false, _) => Ok(unsafe { slice::from_raw_parts(bytes.cast(), length) }),
    }
}

/// What a pointer points to.
///
/// # Safety
/// `of` is NULL, or points to a T.
pub(crate) unsafe fn read<T: Copy>(of: *const T, what: &str) -> Result<T, Fault> {
    // SAFETY: as the caller says.
    if of.is_null() { Err(Fault::null(what)) } else { Ok(unsafe { ptr::read_unaligned(of) }) }
}

/// A list of the caller.
///
/// # Safety
/// `list` is NULL, or has `count` items.
pub(crate) unsafe fn list<T: Copy>(list: *const T, count: usize, what: &str) -> Result<Vec<T>, Fault> {
    if list.is_null() && count > 0 {
        return Err(Fault::null(what));
    }
    if count > u16::MAX.into() {
        return Err(Fault::argument(format!("{count} {what} are more than {}: give fewer", u16::MAX)));
    }
    // SAFETY: as the caller says.
    Ok((0..count).map(|at| unsafe { ptr::read_unaligned(list.add(at)) }).collect())
}

/// A place of the caller for a result.
pub(crate) struct ResultPlace<T>(*mut T);

impl<T: Default> ResultPlace<T> {
    /// A place for a handle, which is empty until there is one, so that to free it does no harm.
    ///
    /// # Safety
    /// As for [`Self::new`].
    pub(crate) unsafe fn empty(at: *mut T, what: &str) -> Result<Self, Fault> {
        // SAFETY: as the caller says.
        let place = unsafe { Self::new(at, what) }?;
        place.put(T::default());
        Ok(place)
    }
}

impl<T> ResultPlace<T> {
    /// # Safety
    /// `at` is NULL, or there is room for a T, which nobody else uses now.
    pub(crate) unsafe fn new(at: *mut T, what: &str) -> Result<Self, Fault> {
        if at.is_null() { Err(Fault::null(what)) } else { Ok(Self(at)) }
    }

    pub(crate) fn put(&self, value: T) {
        // SAFETY: as the maker said. What is there is not dropped, since it may be anything.
        unsafe { ptr::write_unaligned(self.0, value) };
    }
}

/// Memory of the caller for a reply, which may be none.
pub(crate) struct CallerRoom {
    at: *mut u8,
    room: usize,
}

impl CallerRoom {
    /// # Safety
    /// `at` is NULL, or `room` bytes are there that nobody else uses for as long as this lives.
    pub(crate) const unsafe fn new(at: *mut c_void, room: usize) -> Self {
        Self { at: at.cast(), room }
    }

    /// Copies bytes there; returns where they are, or `None` if there is no room for them.
    pub(crate) fn copy(&self, bytes: &[u8]) -> Option<*const u8> {
        if self.at.is_null() || bytes.len() > self.room {
            return None;
        }
        // SAFETY: as the maker said, there is so much room.
        unsafe { self.at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Some(self.at)
    }
}
