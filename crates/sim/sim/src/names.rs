//! What the slices and hosts of a rack in virtual time are called.

/// A slice's name.
pub(crate) fn slice(index: usize) -> String {
    format!("slice-{index}")
}

/// A worker's name.
pub(crate) fn worker(index: usize) -> String {
    format!("worker-{index}")
}

/// A client's name.
pub(crate) fn client(index: usize) -> String {
    format!("client-{index}")
}

/// A server's name.
pub(crate) fn server(index: usize) -> String {
    format!("server-{index}")
}

/// The name of an agent's server.
pub(crate) fn agent(index: usize) -> String {
    format!("agent-{index}")
}
