//! The place of a controller's switch among other switches.

/// The place of a switch (Horus §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tier {
    /// Alone: clients above it, workers below.
    #[default]
    Rack,
    /// Clients above it, leaves below. A leaf is a worker that stands for all workers of a rack.
    Spine,
    /// A spine above it, workers below.
    Leaf,
}
