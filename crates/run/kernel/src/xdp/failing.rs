//! Reads error messages of the kernel and the loader.

use crate::KernelError;

pub(super) fn failed(doing: &'static str, why: &(impl ToString + ?Sized)) -> KernelError {
    KernelError::Xdp { doing, why: why.to_string() }
}

/// An error and all its causes, on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}

/// The errno behind an error.
pub(super) fn errno(why: &(dyn std::error::Error + 'static)) -> Option<i32> {
    std::iter::successors(Some(why), |why| why.source())
        .find_map(|why| why.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error))
}
