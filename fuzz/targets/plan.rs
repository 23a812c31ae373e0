//! Whatever a plan holds: it is refused with one line, or read, and what is written of it then reads as the
//! same plan.
#![no_main]

extern crate self as sluice_experiment;
extern crate self as sluice_net;
extern crate self as sluice_services;

use libfuzzer_sys::fuzz_target;

// The files themselves: the crate would bring RPC and TLS into an instrumented build.
#[allow(dead_code, reason = "only the kinds of failure are needed")]
#[path = "../../crates/run/net/src/exit.rs"]
pub mod exit;
#[allow(dead_code, reason = "only the parser is called")]
#[path = "../../crates/cli/support/src/fail.rs"]
mod fail;
#[allow(dead_code, reason = "only the parser is called")]
#[path = "../../crates/cli/support/src/file_name.rs"]
mod file_name;
#[allow(dead_code, reason = "only the limits are needed")]
#[path = "../../crates/run/net/src/first.rs"]
pub mod first;
#[allow(dead_code, reason = "a plan that is a study is refused by its name")]
#[path = "../../crates/lab/experiment/src/kind.rs"]
mod kind;
#[allow(dead_code, unused_imports, reason = "only the parser is called")]
#[path = "../../crates/cli/support/src/plan/mod.rs"]
mod plan;
#[allow(dead_code, reason = "only the parser is called")]
#[path = "../../crates/cli/support/src/print.rs"]
mod print;
#[allow(dead_code, reason = "only the parser is called")]
#[path = "../../crates/run/net/src/served.rs"]
pub mod served;
#[allow(dead_code, reason = "only the parser is called")]
#[path = "../../crates/cli/support/src/units.rs"]
mod units;

/// Where a plan's packets are switched; the command's own is also a flag.
mod flags {
    /// Stands for it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Io {
        /// On a UDP socket.
        Udp,
        /// In the kernel.
        Xdp,
        /// On BMv2.
        Bmv2,
    }

    /// Stands for it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum TableServer {
        /// BMv2's own.
        Thrift,
        /// P4Runtime.
        P4Runtime,
    }

    impl Io {
        /// Whether hosts have links of their own.
        pub const fn is_on_links(self) -> bool {
            matches!(self, Self::Xdp | Self::Bmv2)
        }
    }
}

pub use kind::PlanKind;

/// Asked when a plan's file cannot be read, which does not happen here.
pub mod figures {
    /// No file is looked for.
    pub const fn is_figure(_name: &str) -> bool {
        false
    }
}

/// What a plan without a deadline gets.
pub mod client {
    /// Stands for the client's own.
    pub const fn deadline_default(_dilation: u32) -> std::time::Duration {
        std::time::Duration::from_secs(5)
    }
}

/// What a plan says of its database.
pub mod rocks {
    /// As many keys as a task of one packet may ask for; the number is the service's.
    pub const GET_KEYS_MAX: u32 = 20;

    /// Stands for the service's own.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RocksArgs {
        /// Its folder.
        pub db: std::path::PathBuf,
        /// How many keys it holds.
        pub keys: u64,
        /// Length of each value, in bytes.
        pub item_bytes: u32,
        /// Memory for each worker's blocks.
        pub cache_mib: u32,
    }

    impl Default for RocksArgs {
        /// Legal, as the service's own.
        fn default() -> Self {
            Self { db: "db".into(), keys: 1, item_bytes: 1, cache_mib: 1 }
        }
    }
}

/// What a plan says of its store.
pub mod kv {
    /// Stands for the service's own.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct KvArgs {
        /// Its folder.
        pub db: std::path::PathBuf,
        /// Memory for each worker's blocks.
        pub cache_mib: u32,
        /// Whether writes are on the disk before they are answered.
        pub sync: bool,
    }

    impl Default for KvArgs {
        /// Legal, as the service's own.
        fn default() -> Self {
            Self { db: "db".into(), cache_mib: 1, sync: false }
        }
    }

    /// The store's name among services.
    pub const KV: &str = "kv";

    /// Stands for the service's own.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum KvRole {
        /// Writes.
        Writer,
        /// Reads.
        Reader,
    }

    impl KvRole {
        /// The role that slices with these types need; the numbers are the service's.
        pub fn among(types: impl IntoIterator<Item = sluice_wire::TaskType>) -> Self {
            let writes = types.into_iter().any(|of| !(20..=21).contains(&of.0));
            if writes { Self::Writer } else { Self::Reader }
        }
    }
}

/// What a plan says of its servers.
pub mod rdma {
    pub use sluice_host::rdma::Mtu;
}

/// The names that the plan's services are checked against.
pub const SERVICES: [&str; 4] = ["rocksdb", "kv", "spin", "hold"];

fuzz_target!(|text: &str| {
    match plan::Plan::from_text("plan.toml", text) {
        Err(failure) => {
            assert!(!failure.to_string().is_empty());
            assert!(!failure.to_string().contains('\n'));
        }
        Ok(plan) => {
            let written = plan.to_toml().expect("what was read is text");
            let again = plan::Plan::from_text("plan.toml", &written).expect("what was written can be read");
            assert_eq!(again, plan);
        }
    }
});
