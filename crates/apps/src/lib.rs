//! What Sluice's own workers serve: [`rocks`] (RocksDB point reads and scans), [`spin`] (a busy processor) and
//! [`hold`] (a worker that is only taken, for dilated runs).
//!
//! Each is a [`Service`], and a binary of its own whose `main` is one call. The encodings of requests and replies
//! are in `docs/services.md`.
#![forbid(unsafe_code)]

mod error;
pub mod hold;
pub mod progress;
pub mod rocks;
mod span;
pub mod spin;

pub use error::AppError;

use sluice_net::service::Service;

/// The names that [`open`] knows, in the order in which they are listed.
pub const SERVICES: [&str; 3] = ["rocksdb", "spin", "hold"];

/// What any of our services may be told.
#[derive(Clone, Debug, clap::Args)]
pub struct ServiceArgs {
    /// Where RocksDB keeps its data, and how much of it there is.
    #[command(flatten)]
    pub rocks: rocks::RocksArgs,
}

/// Opens the service called `name`, showing on stderr what takes long.
///
/// An unknown name is [`AppError::UnknownService`]; a database that cannot be opened or loaded says why.
pub fn open(name: &str, args: &ServiceArgs) -> Result<Box<dyn Service>, AppError> {
    match name {
        "rocksdb" => Ok(Box::new(rocks::Rocks::open(&args.rocks, &mut progress::Shown::new())?)),
        "spin" => Ok(Box::new(spin::Spin)),
        "hold" => Ok(Box::new(hold::Hold::default())),
        _ => Err(AppError::UnknownService { name: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_service_is_refused_with_the_known_names() {
        let args = ServiceArgs { rocks: rocks::RocksArgs::default() };
        let Err(error) = open("rocksbd", &args) else { panic!("opened") };
        assert_eq!(error.to_string(), "no service is called \"rocksbd\"; known are rocksdb, spin, hold");
    }
}
