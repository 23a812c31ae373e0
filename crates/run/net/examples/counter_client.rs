//! A whole client of services that keep state: it counts a name where that name's state is. Run it with the
//! controller's address, the number of shards (types from 30 on), and a name.
use std::{env, error::Error, process::ExitCode, time::Duration};

use sluice_net::{Client, ClientOptions, TaskType, program};

/// The shard of a name: the one that gives it the largest number. With one shard more, only the names move
/// that the new shard gets.
fn shard_of(name: &str, shards: u16) -> u16 {
    let mix = |number: u64| (number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = u64::from(crc32fast::hash(name.as_bytes()));
    (0..shards).max_by_key(|shard| mix(mix(hash << 16 | u64::from(*shard)))).unwrap_or(0)
}

fn counted(address: &str, shards: &str, name: &str) -> Result<String, Box<dyn Error>> {
    let shard = shard_of(name, shards.parse()?);
    let client = Client::connect(&ClientOptions::new(address)?)?;
    let ended = client.submit(TaskType(30 + shard), name.as_bytes(), Duration::from_secs(60))?.wait();
    let count = ended.outcome.done().ok_or_else(|| ended.outcome.to_string())?;
    Ok(format!("shard {shard}: {}", String::from_utf8_lossy(count)))
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [address, shards, name] = &args[..] else {
        program::fail("usage: counter_client ADDRESS SHARDS NAME");
        return ExitCode::from(2);
    };
    counted(address, shards, name).map_or_else(program::fail, program::print)
}
