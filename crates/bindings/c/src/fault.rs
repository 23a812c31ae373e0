//! What goes wrong: a status, and one line that says what is wrong and what to do.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use sluice_net::NetError;

use crate::types::SluiceStatus;

/// Why a function did not do what it was called for.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) status: SluiceStatus,
    line: FaultLine,
}

#[derive(Clone, Debug)]
enum FaultLine {
    /// Costs no allocation: for answers that a busy program gets all the time.
    Fixed(&'static CStr),
    Made(CString),
}

impl Fault {
    /// A fault with this line. Control characters and line ends in it become spaces.
    pub(crate) fn new(status: SluiceStatus, line: impl AsRef<str>) -> Self {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let line: String = line.as_ref().chars().map(plain).collect();
        let line = CString::new(line).expect("a zero is a control character");
        Self { status, line: FaultLine::Made(line) }
    }

    pub(crate) const fn fixed(status: SluiceStatus, line: &'static CStr) -> Self {
        Self { status, line: FaultLine::Fixed(line) }
    }

    /// A pointer that must not be NULL.
    pub(crate) fn null(what: &str) -> Self {
        Self::new(SluiceStatus::Null, format!("`{what}` is NULL: give a pointer to it"))
    }

    pub(crate) fn argument(line: impl AsRef<str>) -> Self {
        Self::new(SluiceStatus::BadArgument, line)
    }

    pub(crate) fn line(&self) -> &CStr {
        match &self.line {
            FaultLine::Fixed(line) => line,
            FaultLine::Made(line) => line,
        }
    }

    fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason");
        Self::new(SluiceStatus::Internal, format!("a bug in libsluice: {text}; report it"))
    }
}

impl From<NetError> for Fault {
    fn from(why: NetError) -> Self {
        let status = match &why {
            NetError::NotRegistered { .. } => SluiceStatus::Unreachable,
            NetError::Refused { .. } => SluiceStatus::TurnedAway,
            NetError::Rpc(_) if why.is_bad_input() => SluiceStatus::BadOption,
            _ => SluiceStatus::System,
        };
        Self::new(status, why.to_string())
    }
}

thread_local! {
    static LAST: RefCell<Fault> = const { RefCell::new(Fault::fixed(SluiceStatus::Ok, c"no error")) };
}

/// One line about the last call of this thread that did not return SLUICE_OK. Never NULL; good until a later
/// call of this thread fails.
#[allow(unsafe_code, reason = "the name that C calls")]
#[unsafe(no_mangle)]
pub extern "C" fn sluice_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().line().as_ptr()).unwrap_or(c"the thread is ending".as_ptr())
}

/// Runs a function's body; keeps its fault, or its panic, for `sluice_last_error`.
pub(crate) fn call(body: impl FnOnce() -> Result<(), Fault>) -> SluiceStatus {
    let ended = catch_unwind(AssertUnwindSafe(body));
    match ended.unwrap_or_else(|panic| Err(Fault::of_panic(&*panic))) {
        Ok(()) => SluiceStatus::Ok,
        Err(fault) => {
            let status = fault.status;
            // A thread that is ending has no place for it any more.
            LAST.try_with(|last| last.replace(fault)).ok();
            status
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(unsafe_code, reason = "reads as C does")]
    fn last() -> String {
        // SAFETY: it is never NULL.
        unsafe { CStr::from_ptr(sluice_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_is_a_status_and_a_line() {
        assert_eq!(call(|| panic!("out of {}", "mood")), SluiceStatus::Internal);
        assert_eq!(last(), "a bug in libsluice: out of mood; report it");
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(call(|| Err(Fault::argument("a\nb\0c"))), SluiceStatus::BadArgument);
        assert_eq!(last(), "a b c");
        assert_eq!(call(|| Ok(())), SluiceStatus::Ok);
        assert_eq!(last(), "a b c", "a call that went well leaves it");
    }
}
