//! The RocksDB service over a small database.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::thread;

use sluice_net::service::{Service as _, ServiceError, Task};
use sluice_rocksdb::progress::{Progress, Quiet, Step};
use sluice_rocksdb::{Rocks, RocksError};
use sluice_services::rocks::codec::{self, Digest};
use sluice_services::rocks::{GET, RocksArgs, SCAN};
use sluice_wire::{Nanos, TaskType};

const KEYS: u64 = 1_000;
const ITEM_BYTES: u32 = 24;
const REPLY_MAX: usize = 10_000;

#[test]
fn a_get_finds_what_is_there_and_says_what_is_not() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rocks = open(folder.path());
    let mut request = Vec::new();
    codec::encode_get([3, KEYS, 999], &mut request);
    let reply = serve(&mut rocks, GET, &request).expect("a legal request");
    let reply = codec::decode_get_reply(&reply).expect("a legal reply");
    let (third, last) = (item(3), item(999));
    assert_eq!(reply.found, 2);
    assert_eq!(reply.values().collect::<Vec<_>>(), [Some(&third[..]), None, Some(&last[..])]);
    let mut digest = Digest::default();
    digest.add(&third);
    digest.add(&last);
    assert_eq!(reply.digest, digest.value());
}

#[test]
fn a_scan_reads_rows_in_order_and_stops_at_the_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rocks = open(folder.path());
    let mut request = Vec::new();
    codec::encode_scan(990, 500, &mut request);
    let reply = serve(&mut rocks, SCAN, &request).expect("a legal request");
    let reply = codec::decode_scan_reply(&reply).expect("a legal reply");
    let mut digest = Digest::default();
    for number in 990..KEYS {
        digest.add(&codec::key(number));
        digest.add(&item(number));
    }
    assert_eq!(reply.rows, 10);
    assert_eq!(reply.bytes, 10 * (64 + u64::from(ITEM_BYTES)));
    assert_eq!(reply.digest, digest.value());
}

#[test]
fn a_scan_sends_its_rows_if_it_is_asked_to_as_far_as_the_longest_reply_goes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rocks = open(folder.path());
    let mut request = Vec::new();
    codec::encode_scan_for_rows(10, 500, &mut request);
    let reply = serve(&mut rocks, SCAN, &request).expect("a legal request");
    let rows: Vec<_> = codec::rows_of(&reply).collect();
    let row_bytes = 4 + 64 + ITEM_BYTES as usize;
    assert_eq!(rows.len(), (REPLY_MAX - codec::SCAN_HEAD_BYTES) / row_bytes);
    for (number, (key, value)) in (10..).zip(rows) {
        assert_eq!((key, value), (&codec::key(number)[..], &item(number)[..]));
    }
    assert_eq!(codec::decode_scan_reply(&reply).expect("a legal reply").rows, 500);
}

#[test]
fn a_request_that_makes_no_sense_is_an_error_not_a_crash() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rocks = open(folder.path());
    for (task_type, bytes) in [(GET, &b""[..]), (GET, &[0; 63]), (SCAN, &[0; 3]), (SCAN, &[0xff; 9])] {
        assert!(serve(&mut rocks, task_type, bytes).is_err());
    }
    assert!(serve(&mut rocks, TaskType(77), b"").is_err());
    let whole_range = serve(&mut rocks, SCAN, &5u32.to_be_bytes()).expect("no start key is the first key");
    assert_eq!(codec::decode_scan_reply(&whole_range).expect("a legal reply").rows, 5);
}

#[test]
fn many_workers_that_start_at_once_load_the_data_once_and_share_it() {
    struct Loads(u32);
    impl Progress for Loads {
        fn step(&mut self, step: Step) {
            self.0 += u32::from(matches!(step, Step::Loaded { done: 0, .. }));
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let args = args(folder.path());
    let loads: u32 = thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut loads = Loads(0);
                    let mut rocks = Rocks::open(&args, &mut loads).expect("it opens");
                    let mut request = Vec::new();
                    codec::encode_get([7], &mut request);
                    serve(&mut rocks, GET, &request).expect("a legal request");
                    loads.0
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).sum()
    });
    assert_eq!(loads, 1);
}

#[test]
fn a_load_that_was_cut_off_is_begun_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(folder.path().join("db.loading")).expect("it can be made");
    fs::write(folder.path().join("db.loading/half"), "done").expect("it can be written");
    open(folder.path());
}

#[test]
fn other_data_or_a_strange_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    open(folder.path());
    let other = RocksArgs { keys: 5, ..args(folder.path()) };
    let error = Rocks::open(&other, &mut Quiet).expect_err("it holds other data");
    assert!(error.to_string().contains("holds 1000 keys of 24 bytes, not 5 keys of 24 bytes"), "{error}");

    let strange = RocksArgs { db: folder.path().to_owned(), ..args(folder.path()) };
    assert!(matches!(Rocks::open(&strange, &mut Quiet), Err(RocksError::NotOurs { .. })));
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("it can be written");
    let args = RocksArgs { db: file.join("db"), ..args(folder.path()) };
    let error = Rocks::open(&args, &mut Quiet).expect_err("a file has no folders in it");
    assert!(matches!(error, RocksError::NotWritable { .. }), "{error}");
}

#[test]
fn sizes_out_of_range_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let none = RocksArgs { keys: 0, ..args(folder.path()) };
    let error = Rocks::open(&none, &mut Quiet).expect_err("no keys");
    assert_eq!(error.to_string(), "--keys is 0, outside 1 to 1000000000");
}

fn args(folder: &Path) -> RocksArgs {
    RocksArgs { db: folder.join("db"), keys: KEYS, item_bytes: ITEM_BYTES, cache_mib: 1 }
}

fn open(folder: &Path) -> Rocks {
    Rocks::open(&args(folder), &mut Quiet).expect("a small database")
}

fn item(number: u64) -> Vec<u8> {
    codec::value(number, ITEM_BYTES as usize)
}

fn serve(rocks: &mut Rocks, task_type: TaskType, bytes: &[u8]) -> Result<Vec<u8>, ServiceError> {
    let held = Cell::new(Nanos(0));
    let mut reply = Vec::new();
    rocks.serve(Task::new(bytes, task_type, REPLY_MAX, &held), &mut reply)?;
    Ok(reply)
}
