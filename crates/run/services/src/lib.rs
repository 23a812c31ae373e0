//! The services of Sluice's own workers: [`spin`] (keeps a processor busy), [`hold`] (only occupies a
//! worker, for dilated runs), and the messages of [`rocks`] (RocksDB point reads and scans) and [`kv`] (a
//! store that can be written).
//!
//! The encodings of requests and replies are in `docs/manual/services.md`. RocksDB itself is left out: only
//! the program `sluice-rocksdb` links the library.
#![forbid(unsafe_code)]

mod error;
pub mod hold;
pub mod kv;
pub mod rocks;
mod span;
pub mod spin;

pub use error::AppError;

use sluice_net::service::Service;

/// The services' names, in listing order.
pub const SERVICES: [&str; 4] = [rocks::NAME, kv::KV, "spin", "hold"];

/// The service called `name`. `None` for [`rocks::NAME`] and [`kv::KV`], which are a program of their own,
/// and for unknown names.
pub fn open(name: &str) -> Option<Box<dyn Service>> {
    opener(name).map(|make| make())
}

/// A function that creates instances of the service called `name`; `None` as for [`open`].
pub fn opener(name: &str) -> Option<fn() -> Box<dyn Service>> {
    match name {
        "spin" => Some(|| Box::new(spin::Spin)),
        "hold" => Some(|| Box::new(hold::Hold::default())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_services_but_those_on_rocksdb_are_served_in_this_process() {
        let elsewhere: Vec<&str> = SERVICES.into_iter().filter(|name| open(name).is_none()).collect();
        assert_eq!(elsewhere, [rocks::NAME, kv::KV]);
    }
}
