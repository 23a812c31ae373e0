//! A whole client of a key-value store: `kv_client ADDRESS set KEY VALUE`, `del KEY...`, `get SEEN KEY...`,
//! or `scan SEEN MOST [AFTER]`. ADDRESS is the controller's; SEEN is the number of a write that the read
//! must not miss, or 0.
use std::{env, error::Error, process::ExitCode, time::Duration};

use sluice_net::{Client, ClientOptions, TaskType, program};
use sluice_services::kv::codec::{
    KvScan, KvSet, WriteNumber, decode_kv_del_reply, decode_kv_get_reply, decode_kv_scan_reply,
    decode_kv_set_reply, encode_kv_del, encode_kv_get,
};
use sluice_services::kv::{KV_DEL, KV_GET, KV_SCAN, KV_SET};

const USAGE: &str =
    "usage: kv_client ADDRESS set KEY VALUE | del KEY... | get SEEN KEY... | scan SEEN MOST [AFTER]";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some((address, words)) = args.split_first().filter(|(_, words)| words.len() > 1) else {
        program::fail(USAGE);
        return ExitCode::from(2);
    };
    answered(address, words).map_or_else(program::fail, program::print)
}

fn answered(address: &str, words: &[&str]) -> Result<String, Box<dyn Error>> {
    let mut request = Vec::new();
    let task_type = match words {
        ["set", key, value] => {
            KvSet { key: key.as_bytes(), value: value.as_bytes() }.encode(&mut request)?;
            KV_SET
        }
        ["del", keys @ ..] => {
            encode_kv_del(keys.iter().map(|key| key.as_bytes()), &mut request)?;
            KV_DEL
        }
        ["get", seen, keys @ ..] => {
            let keys = keys.iter().map(|key| key.as_bytes());
            encode_kv_get(WriteNumber(seen.parse()?), keys, &mut request)?;
            KV_GET
        }
        ["scan", seen, most, after @ ..] => {
            let after = after.first().unwrap_or(&"").as_bytes();
            let scan = KvScan { seen: WriteNumber(seen.parse()?), most: most.parse()?, after };
            scan.encode(&mut request)?;
            KV_SCAN
        }
        _ => return Err(USAGE.into()),
    };
    let client = Client::connect(&ClientOptions::new(address)?)?;
    let ended = client.submit(task_type, &request, Duration::from_secs(60))?.wait();
    let reply = ended.outcome.done().ok_or_else(|| ended.outcome.to_string())?;
    shown(task_type, reply, words)
        .ok_or_else(|| "the reply cannot be read: is the worker of another version?".into())
}

/// The reply for people; `None` if it is none of this type.
fn shown(task_type: TaskType, reply: &[u8], words: &[&str]) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).escape_debug().to_string();
    Some(match task_type {
        KV_SET => format!("write {}", decode_kv_set_reply(reply)?),
        KV_DEL => {
            let deleted = decode_kv_del_reply(reply)?;
            format!("write {}, {} removed", deleted.number, deleted.found)
        }
        KV_GET => {
            let values = decode_kv_get_reply(reply, words.len() - 2)?.into_iter();
            let lines = values.map(|value| value.map_or_else(|| "(none)".to_owned(), text));
            lines.collect::<Vec<_>>().join("\n")
        }
        _ => {
            let page = decode_kv_scan_reply(reply)?;
            let more = page.more.then(|| "(more)".to_owned());
            page.keys.map(text).chain(more).collect::<Vec<_>>().join("\n")
        }
    })
}
