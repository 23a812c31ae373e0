//! What the slices and hosts of a rack in virtual time are called.

/// A slice's name.
pub fn slice(index: usize) -> String {
    format!("slice-{index}")
}

/// A worker's name.
pub fn worker(index: usize) -> String {
    format!("worker-{index}")
}

/// A client's name.
pub fn client(index: usize) -> String {
    format!("client-{index}")
}

/// A server's name.
pub fn server(index: usize) -> String {
    format!("server-{index}")
}

/// The name of an agent's server.
pub fn agent(index: usize) -> String {
    format!("agent-{index}")
}
