//! Where a controller's switch stands among others.

/// Where a switch stands (Horus §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tier {
    /// Alone: clients above it, workers below.
    #[default]
    Rack,
    /// Clients above it, leaves below. A leaf is a worker that stands for the workers of a rack.
    Spine,
    /// A spine above it, workers below.
    Leaf,
}
