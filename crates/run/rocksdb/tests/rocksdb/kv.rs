//! The key-value store: a writer and readers in one process, as they are in several.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use sluice_net::service::{Service as _, ServiceError, Task};
use sluice_rocksdb::RocksError;
use sluice_rocksdb::kv::Kv;
use sluice_rocksdb::load;
use sluice_rocksdb::progress::Quiet;
use sluice_services::kv::codec::{
    KvDeleted, KvScan, KvSet, WriteNumber, decode_kv_del_reply, decode_kv_get_reply, decode_kv_scan_reply,
    decode_kv_set_reply, encode_kv_del, encode_kv_get,
};
use sluice_services::kv::{KV_DEL, KV_GET, KV_SCAN, KV_SET, KvArgs, KvRole};
use sluice_services::rocks::RocksArgs;
use sluice_wire::{Nanos, TASK_BYTES_MAX, TaskType};

/// A store in a folder of its own.
struct Store(tempfile::TempDir);

impl Store {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("db")
    }

    fn open(&self, role: KvRole) -> Kv {
        opened(&self.path(), role).expect("it opens")
    }

    fn writer(&self) -> Kv {
        self.open(KvRole::Writer)
    }

    fn reader(&self) -> Kv {
        self.open(KvRole::Reader)
    }
}

fn opened(path: &Path, role: KvRole) -> Result<Kv, RocksError> {
    Kv::open(&KvArgs { db: path.to_owned(), ..KvArgs::default() }, role)
}

fn refused(path: &Path, role: KvRole) -> String {
    let why = opened(path, role).expect_err("it is refused").to_string();
    assert_eq!(why.lines().count(), 1, "{why}");
    why
}

fn serve(kv: &mut Kv, task_type: TaskType, bytes: &[u8]) -> Result<Vec<u8>, ServiceError> {
    let (held, mut reply) = (Cell::new(Nanos(0)), Vec::new());
    kv.serve(Task::new(bytes, task_type, TASK_BYTES_MAX as usize, &held), &mut reply).map(|()| reply)
}

fn try_set(kv: &mut Kv, key: &[u8], value: &[u8]) -> Result<WriteNumber, ServiceError> {
    let mut request = Vec::new();
    KvSet { key, value }.encode(&mut request).expect("legal");
    serve(kv, KV_SET, &request).map(|reply| decode_kv_set_reply(&reply).expect("a number"))
}

fn set(kv: &mut Kv, key: &[u8], value: &[u8]) -> WriteNumber {
    try_set(kv, key, value).expect("it is written")
}

fn delete(kv: &mut Kv, keys: &[&[u8]]) -> KvDeleted {
    let mut request = Vec::new();
    encode_kv_del(keys.iter().copied(), &mut request).expect("legal");
    decode_kv_del_reply(&serve(kv, KV_DEL, &request).expect("they are removed")).expect("a reply")
}

fn try_get(kv: &mut Kv, seen: WriteNumber, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, ServiceError> {
    let mut request = Vec::new();
    encode_kv_get(seen, keys.iter().copied(), &mut request).expect("legal");
    let reply = serve(kv, KV_GET, &request)?;
    let values = decode_kv_get_reply(&reply, keys.len()).expect("a reply");
    Ok(values.into_iter().map(|value| value.map(<[u8]>::to_vec)).collect())
}

fn get(kv: &mut Kv, seen: WriteNumber, key: &[u8]) -> Option<Vec<u8>> {
    try_get(kv, seen, &[key]).expect("it is read").remove(0)
}

fn scan(kv: &mut Kv, seen: WriteNumber, most: u32, after: &[u8]) -> (bool, Vec<String>) {
    let mut request = Vec::new();
    KvScan { seen, most, after }.encode(&mut request).expect("legal");
    let reply = serve(kv, KV_SCAN, &request).expect("they are read");
    let page = decode_kv_scan_reply(&reply).expect("a page");
    (page.more, page.keys.map(|key| String::from_utf8_lossy(key).into_owned()).collect())
}

/// Writes so much that the log is flushed, more than once.
fn write_much(kv: &mut Kv) -> WriteNumber {
    let value = vec![7; 60_000];
    (0..300_u32).fold(WriteNumber::ANY, |_, number| set(kv, &number.to_be_bytes(), &value))
}

#[test]
fn what_is_written_is_read_by_the_writer_and_by_each_reader_and_so_is_what_is_removed() {
    let store = Store::new();
    let mut writer = store.writer();
    let mut readers = [store.reader(), store.reader()];
    let first = set(&mut writer, b"b", b"1");
    let second = set(&mut writer, b"a", b"");
    assert!(WriteNumber::ANY < first && first < second);
    for kv in readers.iter_mut().chain([&mut writer]) {
        let read = try_get(kv, second, &[b"a", b"b", b"c"]).expect("it is read");
        assert_eq!(read, [Some(Vec::new()), Some(b"1".to_vec()), None]);
    }
    let deleted = delete(&mut writer, &[b"b", b"c", b"b"]);
    assert_eq!((deleted.found, deleted.number > second), (1, true), "a key that is named twice counts once");
    for kv in readers.iter_mut().chain([&mut writer]) {
        assert_eq!(get(kv, deleted.number, b"b"), None);
    }
}

#[test]
fn writes_that_are_repeated_change_nothing_more() {
    let store = Store::new();
    let mut writer = store.writer();
    let first = set(&mut writer, b"key", b"value");
    let again = set(&mut writer, b"key", b"value");
    assert!(again > first);
    assert_eq!(get(&mut writer, again, b"key"), Some(b"value".to_vec()));
    assert_eq!(delete(&mut writer, &[b"key"]).found, 1);
    let repeated = delete(&mut writer, &[b"key"]);
    assert_eq!(repeated.found, 0, "the repeat says that it found none");
    assert_eq!(get(&mut writer, repeated.number, b"key"), None);
}

#[test]
fn a_scan_pages_through_all_keys_in_order_and_shows_none_of_ours() {
    let store = Store::new();
    let (mut writer, mut reader) = (store.writer(), store.reader());
    assert_eq!(scan(&mut reader, WriteNumber::ANY, 5, b""), (false, Vec::new()));
    let last = ["d", "a", "c", "b"].map(|key| set(&mut writer, key.as_bytes(), b"")).into_iter().max();
    let last = last.expect("four");
    for kv in [&mut writer, &mut reader] {
        assert_eq!(scan(kv, last, 3, b""), (true, vec!["a".into(), "b".into(), "c".into()]));
        assert_eq!(scan(kv, last, 3, b"c"), (false, vec!["d".into()]));
        assert_eq!(scan(kv, last, 3, b"bb"), (false, vec!["c".into(), "d".into()]), "it need not exist");
        assert_eq!(scan(kv, last, 1, b"d"), (false, Vec::new()));
    }
}

/// RocksDB's secondaries keep the old row above the new one then, and say that they have caught up.
#[test]
fn a_reader_sees_what_was_written_last_though_the_writer_was_started_again_or_flushed() {
    let store = Store::new();
    let mut writer = store.writer();
    let seen = set(&mut writer, b"key", b"old");
    let mut readers: Vec<Kv> = (0..5).map(|_| store.reader()).collect();
    for reader in &mut readers {
        assert_eq!(get(reader, seen, b"key"), Some(b"old".to_vec()));
    }
    let restart = |writer: Kv| {
        drop(writer);
        store.writer()
    };
    let seen = set(&mut writer, b"key", b"new");
    writer = restart(writer);
    assert_eq!(get(&mut readers[0], seen, b"key"), Some(b"new".to_vec()), "after a start");
    writer = restart(writer);
    assert_eq!(get(&mut readers[1], seen, b"key"), Some(b"new".to_vec()), "after two");
    let other = set(&mut writer, b"other", b"");
    assert_eq!(get(&mut readers[2], other, b"key"), Some(b"new".to_vec()), "after another write");
    let much = write_much(&mut writer);
    assert_eq!(get(&mut readers[3], much, b"key"), Some(b"new".to_vec()), "after flushes");
    let newest = set(&mut writer, b"key", b"newest");
    let much = write_much(&mut writer);
    writer = restart(writer);
    for reader in &mut readers {
        assert_eq!(get(reader, newest.max(much), b"key"), Some(b"newest".to_vec()), "after all");
        assert_eq!(get(reader, WriteNumber::ANY, b"key"), Some(b"newest".to_vec()), "and then at any time");
        assert_eq!(scan(reader, much, 9, b"key").1, ["other"], "and so do scans");
        assert_eq!(scan(reader, much, 1_000, b"").1.len(), 302);
    }
    assert_eq!(get(&mut writer, much, b"key"), Some(b"newest".to_vec()));
    let names = fs::read_dir(store.path()).expect("there").flatten().map(|entry| entry.file_name());
    let notes = names.filter(|name| name.to_string_lossy().starts_with("LOG")).count();
    assert!(notes <= 2, "RocksDB left {notes} files of notes");
}

/// Each reader reads the key that was written last, whatever the writer does meanwhile.
#[test]
fn no_read_is_older_than_the_write_that_it_names_while_the_writer_flushes_and_is_started_again() {
    const WRITES: u64 = 1_500;
    let store = Store::new();
    drop(store.writer());
    let (acknowledged, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let key = |number: u64| vec![b'k', (number % 50) as u8];
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let mut reader = store.reader();
                let (acknowledged, ended) = (&acknowledged, &ended);
                scope.spawn(move || {
                    let mut reads = 0_u64;
                    while !ended.load(Ordering::Acquire) {
                        let seen = acknowledged.load(Ordering::Acquire);
                        if seen == 0 {
                            continue;
                        }
                        let value = get(&mut reader, WriteNumber(seen), &key(seen)).expect("it was written");
                        let number = u64::from_be_bytes(value[..8].try_into().expect("a number"));
                        assert!(number >= seen, "{number} was read, and {seen} was acknowledged before");
                        reads += 1;
                    }
                    reads
                })
            })
            .collect();
        let mut writer = store.writer();
        for number in 1..=WRITES {
            let mut value = vec![0; 30_000];
            value[..8].copy_from_slice(&number.to_be_bytes());
            assert_eq!(set(&mut writer, &key(number), &value), WriteNumber(number));
            acknowledged.store(number, Ordering::Release);
            if number.is_multiple_of(200) {
                drop(writer);
                writer = store.writer();
            }
        }
        ended.store(true, Ordering::Release);
        assert!(readers.into_iter().all(|reader| reader.join().expect("no read was old") > 0));
    });
}

#[test]
fn a_number_that_no_write_has_is_said_to_be_so_at_once() {
    let store = Store::new();
    let (mut writer, mut reader) = (store.writer(), store.reader());
    set(&mut writer, b"key", b"value");
    for kv in [&mut writer, &mut reader] {
        let why = try_get(kv, WriteNumber(7), &[b"key"]).expect_err("there is none").to_string();
        assert!(
            why.contains("no write has the number 7 here: the last one") && why.contains("is 1;"),
            "{why}"
        );
        assert_eq!(get(kv, WriteNumber(1), b"key"), Some(b"value".to_vec()));
    }
}

#[test]
fn requests_that_make_no_sense_fail_with_a_sentence() {
    let store = Store::new();
    let (mut writer, mut reader) = (store.writer(), store.reader());
    for task_type in [KV_GET, KV_SCAN, KV_SET, KV_DEL] {
        assert!(serve(&mut writer, task_type, b"").is_err());
    }
    let written = try_set(&mut reader, b"key", b"value").expect_err("it reads").to_string();
    assert_eq!(written, "a reader of a key-value store serves no tasks of type 22");
    for key in [b"a", b"b"] {
        set(&mut writer, key, &vec![0; 40_000]);
    }
    let long = try_get(&mut writer, WriteNumber::ANY, &[b"a", b"b"]).expect_err("too long").to_string();
    assert!(long.contains("80008 bytes are more than the 65536") && long.contains("fewer keys"), "{long}");
}

#[test]
fn a_second_writer_is_refused_until_the_first_is_gone() {
    let store = Store::new();
    let writer = store.writer();
    let why = refused(&store.path(), KvRole::Writer);
    assert!(why.contains("has a writer: stop that one") && why.contains("--role reader"), "{why}");
    drop(writer);
    store.writer();
}

#[test]
fn folders_of_others_are_refused_and_stay_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let (strange, file) = (folder.path().join("strange"), folder.path().join("file"));
    fs::create_dir(&strange).expect("made");
    fs::write(strange.join("notes.txt"), "mine").expect("written");
    fs::write(&file, "").expect("written");
    let data = RocksArgs { db: folder.path().join("data"), keys: 10, ..RocksArgs::default() };
    load::ensure(&data, &mut Quiet).expect("it is loaded");
    let store = Store::new();
    drop(store.writer());
    for role in [KvRole::Writer, KvRole::Reader] {
        let why = refused(&strange, role);
        assert!(why.contains("is not a database that Sluice loaded; choose another path"), "{why}");
        assert!(refused(&file, role).contains("Not a directory"), "{}", refused(&file, role));
        let why = refused(&data.db, role);
        assert!(why.contains("holds 10 keys of 128 bytes, not a key-value store"), "{why}");
    }
    assert_eq!(fs::read_dir(&strange).expect("there").count(), 1);
    let other = load::ensure(&RocksArgs { db: store.path(), ..data }, &mut Quiet).expect_err("it is a store");
    assert!(other.to_string().contains("holds a key-value store, not 10 keys"), "{other}");
}

#[test]
fn a_store_that_is_removed_below_its_workers_is_missed_by_them_all_and_a_new_one_is_found() {
    let store = Store::new();
    let (mut writer, mut reader) = (store.writer(), store.reader());
    let seen = set(&mut writer, b"key", b"old");
    assert_eq!(get(&mut reader, seen, b"key"), Some(b"old".to_vec()));
    fs::remove_dir_all(store.path()).expect("removed");
    let why = try_set(&mut writer, b"key", b"lost").expect_err("nobody could read it").to_string();
    assert!(why.contains("was removed or replaced") && why.contains("start the writer again"), "{why}");
    let mut missing = Vec::new();
    encode_kv_del([&b"missing"[..]], &mut missing).expect("legal");
    assert!(serve(&mut writer, KV_DEL, &missing).is_err(), "nor is there anything to remove");
    assert!(try_get(&mut writer, seen, &[b"key"]).is_err(), "nor to read");
    let why = try_get(&mut reader, WriteNumber(2), &[b"key"]).expect_err("it is gone").to_string();
    assert!(why.contains("is gone: No such file"), "{why}");
    drop(writer);
    let mut next = store.writer();
    assert_eq!(get(&mut reader, WriteNumber::ANY, b"key"), None, "the new store is empty");
    let seen = set(&mut next, b"key", b"new");
    assert_eq!(get(&mut reader, seen, b"key"), Some(b"new".to_vec()));
}

/// The numbers of the new store's writes are numbers of the old one's, too.
#[test]
fn a_reader_takes_no_young_state_of_a_store_for_one_of_its_successor() {
    let store = Store::new();
    let mut writer = store.writer();
    let mut reader = store.reader();
    for round in 0..20_u8 {
        for _ in 0..3 {
            set(&mut writer, b"key", b"old");
        }
        assert_eq!(get(&mut reader, WriteNumber(3), b"key"), Some(b"old".to_vec()));
        fs::remove_dir_all(store.path()).expect("removed");
        drop(writer);
        writer = store.writer();
        let seen = set(&mut writer, b"key", &[round]);
        assert_eq!(get(&mut reader, seen, b"key"), Some(vec![round]));
        fs::remove_dir_all(store.path()).expect("removed");
        drop(writer);
        writer = store.writer();
    }
}

/// RocksDB would remove the data.
#[test]
fn a_store_without_the_file_that_names_its_tables_is_not_taken_for_an_empty_one() {
    let store = Store::new();
    let mut writer = store.writer();
    set(&mut writer, b"key", b"value");
    drop(writer);
    let (current, kept) = (store.path().join("CURRENT"), store.0.path().join("kept"));
    fs::rename(&current, &kept).expect("moved");
    assert!(refused(&store.path(), KvRole::Writer).contains("it has no file CURRENT"));
    fs::rename(kept, current).expect("moved");
    assert_eq!(get(&mut store.writer(), WriteNumber::ANY, b"key"), Some(b"value".to_vec()));
}

#[test]
fn a_writer_that_died_before_it_wrote_anything_leaves_a_store_for_the_next_one() {
    for label in ["", "a key-value store\n"] {
        let store = Store::new();
        fs::create_dir(store.path()).expect("made");
        fs::write(store.path().join("SLUICE"), label).expect("written");
        set(&mut store.writer(), b"key", b"value");
    }
}

/// A writer is refused in one line, also one that has to make the folder.
#[test]
fn a_folder_that_cannot_be_written_is_refused_in_one_line() {
    const NAME: &str = "kv::a_folder_that_cannot_be_written_is_refused_in_one_line";
    // Only a disk that is mounted read-only keeps root out. This test starts itself once more there.
    if let Some(disk) = std::env::var_os("READ_ONLY_DISK") {
        let disk = Path::new(&disk);
        for name in ["store", "empty", "missing"] {
            let why = refused(&disk.join(name), KvRole::Writer);
            assert!(why.contains("Read-only file system"), "{name}: {why}");
            assert!(why.contains(&disk.join(name).display().to_string()), "{name}: {why}");
        }
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = opened(&folder.path().join("store"), KvRole::Writer).expect("it opens");
    set(&mut writer, b"key", b"value");
    drop(writer);
    fs::create_dir(folder.path().join("empty")).expect("made");
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\"";
    let output = with_mounts(script, folder.path(), NAME).env("READ_ONLY_DISK", folder.path()).output();
    passed_alone(&output.expect("util-linux is there"));
}

/// This test once more, in a mount namespace that `script` prepares with the folder as `$0`.
fn with_mounts(script: &str, folder: &Path, test: &str) -> Command {
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare.args(["--mount", "sh", "-c", script]).arg(folder);
    unshare.arg(std::env::current_exe().expect("this test")).args(["--exact", test]);
    unshare
}

fn passed_alone(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    let more = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{more}");
}

#[test]
fn a_writer_goes_on_when_a_full_disk_has_room_again_and_readers_read_meanwhile() {
    const NAME: &str = "kv::a_writer_goes_on_when_a_full_disk_has_room_again_and_readers_read_meanwhile";
    // This test starts itself once more, with a disk of 32 MiB that only that process sees.
    if let Some(disk) = std::env::var_os("SMALL_DISK") {
        return fill_and_go_on(Path::new(&disk));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = "mount -t tmpfs -o size=32m none \"$0\" && exec \"$@\"";
    let output = with_mounts(script, folder.path(), NAME).env("SMALL_DISK", folder.path()).output();
    passed_alone(&output.expect("util-linux is there"));
}

fn fill_and_go_on(disk: &Path) {
    let (mut writer, mut reader) = (
        opened(&disk.join("db"), KvRole::Writer).expect("it opens"),
        opened(&disk.join("db"), KvRole::Reader).expect("it opens"),
    );
    let seen = set(&mut writer, b"key", b"value");
    let filler = disk.join("filler");
    assert!(fs::write(&filler, vec![0; 32 << 20]).is_err(), "it fills the disk");
    let mut number: u32 = 0;
    let why = loop {
        number += 1;
        match try_set(&mut writer, &number.to_be_bytes(), &vec![1; 60_000]) {
            Ok(_) => assert!(number < 1_000, "the disk never filled"),
            Err(why) => break why.to_string(),
        }
    };
    assert!(why.contains("cannot be written") && why.contains("No space left on device"), "{why}");
    assert!(why.contains("is not known: read it, or write it again"), "{why}");
    assert_eq!(get(&mut reader, seen, b"key"), Some(b"value".to_vec()));
    // What the closed database gave back.
    assert!(fs::write(disk.join("more"), vec![0; 32 << 20]).is_err(), "it fills the disk again");
    let still = try_set(&mut writer, b"key", b"new").expect_err("it is full").to_string();
    assert!(still.contains("No space left on device"), "{still}");
    assert_eq!(get(&mut reader, seen, b"key"), Some(b"value".to_vec()));
    fs::remove_file(filler).expect("removed");
    let seen = set(&mut writer, b"key", b"new");
    for kv in [&mut writer, &mut reader] {
        assert_eq!(get(kv, seen, b"key"), Some(b"new".to_vec()));
        let last = (number - 1).to_be_bytes();
        assert_eq!(get(kv, seen, &last), (number > 1).then(|| vec![1; 60_000]), "what was acknowledged");
    }
}
