//! The switch on plain sockets.
