//! What of Horus is read how, where its text leaves a choice.

/// How the text is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The idle list is as printed, with its holes (Algorithm 1).
    pub(super) as_published: bool,
    /// A task that goes round writes its node's load anew and clears its drift (A.1), where else it adds
    /// one to the load and leaves the drift (Algorithm 2).
    pub(super) writes: bool,
    /// An idle node's drift does not count the task that it gets (Algorithm 1, to the letter).
    pub(super) uncounted: bool,
}
