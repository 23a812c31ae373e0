//! RocksDB behind Sluice: the read-only service, the store, and the program that is both.

mod kv;
mod program;
mod rocks;
