//! A session between a client's bytes and a rack that the test plays.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use sluice_net::client::{RefusedWhy, TaskReply, UnknownWhy};
use sluice_wire::Nanos;

use super::*;

/// A rack with a store, which runs tasks in whatever order the test likes.
#[derive(Default)]
struct Played {
    store: BTreeMap<Vec<u8>, Vec<u8>>,
    writes: u64,
    /// Tasks that were handed over and have not run.
    waiting: VecDeque<(u32, KvTask, Vec<u8>)>,
    room: usize,
    cursors: Cursors,
    counted: Vec<CommandOutcome>,
    is_closed: bool,
    /// Replies longer than this fail.
    reply_max: usize,
}

impl Played {
    fn new() -> Self {
        Self { room: 1_000, reply_max: 65_536, ..Self::default() }
    }

    fn run(&mut self, task: KvTask, bytes: &[u8]) -> Outcome {
        let mut reply = Vec::new();
        let (seen, mut keys) = bytes.split_first_chunk().unwrap_or((&[0; 8], bytes));
        let seen = u64::from_be_bytes(*seen);
        match task {
            KvTask::Set => {
                let length = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
                self.store.insert(bytes[2..2 + length].to_vec(), bytes[2 + length..].to_vec());
                self.writes += 1;
                reply.extend_from_slice(&self.writes.to_be_bytes());
            }
            KvTask::Get => {
                assert!(seen <= self.writes, "it is to see what was not written");
                while let Some(key) = next_key(&mut keys) {
                    match self.store.get(key) {
                        Some(value) => {
                            reply.extend_from_slice(&(value.len() as u32).to_be_bytes());
                            reply.extend_from_slice(value);
                        }
                        None => reply.extend_from_slice(&[0xff; 4]),
                    }
                }
            }
            KvTask::Del => {
                let mut keys = bytes;
                let mut count = 0_u32;
                while let Some(key) = next_key(&mut keys) {
                    count += u32::from(self.store.remove(key).is_some());
                }
                self.writes += 1;
                reply.extend_from_slice(&self.writes.to_be_bytes());
                reply.extend_from_slice(&count.to_be_bytes());
            }
            KvTask::Scan => {
                let most = u32::from_be_bytes(keys[..4].try_into().expect("a number")) as usize;
                let behind = keys[6..].to_vec();
                let mut all = self.store.keys().filter(|key| behind.is_empty() || **key > behind);
                let told: Vec<_> = all.by_ref().take(most).collect();
                reply.push(u8::from(all.next().is_some()));
                for key in told {
                    kv::add_key(key, &mut reply);
                }
            }
        }
        let failed = reply.len() > self.reply_max;
        let bytes = if failed { b"too long".to_vec() } else { reply };
        Outcome::Reply(TaskReply { bytes, failed, ..TaskReply::default() })
    }
}

fn next_key<'a>(keys: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = keys.split_first_chunk()?;
    let (key, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)));
    *keys = rest;
    Some(key)
}

impl RespDesk for Played {
    fn submit(&mut self, tag: u32, task: KvTask, bytes: &[u8]) -> Result<(), NotTaken> {
        if self.is_closed {
            return Err(NotTaken::Closed);
        }
        if self.waiting.len() == self.room {
            return Err(NotTaken::Full);
        }
        self.waiting.push_back((tag, task, bytes.to_vec()));
        Ok(())
    }

    fn cursors(&mut self) -> &mut Cursors {
        &mut self.cursors
    }

    fn now(&self) -> u64 {
        0
    }

    fn count(&mut self, outcome: CommandOutcome, _began: u64) {
        self.counted.push(outcome);
    }

    fn recycle(&mut self, _bytes: Vec<u8>) {}

    fn standing(&self) -> RespStanding {
        RespStanding::default()
    }
}

/// A session with its rack.
struct Spoken {
    session: RespSession,
    rack: Played,
}

impl Spoken {
    fn new() -> Self {
        Self { session: RespSession::new(1), rack: Played::new() }
    }

    fn send(&mut self, bytes: &[u8]) -> Paused {
        let mut rest = bytes;
        loop {
            let room = self.session.room();
            let count = room.len().min(rest.len());
            room[..count].copy_from_slice(&rest[..count]);
            self.session.filled(count);
            rest = &rest[count..];
            let paused = self.session.advance(&mut self.rack, usize::MAX);
            if rest.is_empty() || paused != Paused::Hungry {
                assert!(rest.is_empty(), "{paused:?}");
                return paused;
            }
        }
    }

    /// Lets the task at this place of the queue run.
    fn run(&mut self, at: usize) -> Paused {
        let (tag, task, bytes) = self.rack.waiting.remove(at).expect("it waits");
        let outcome = self.rack.run(task, &bytes);
        self.session.ended(&mut self.rack, tag, outcome);
        self.session.advance(&mut self.rack, usize::MAX)
    }

    fn end(&mut self, outcome: Outcome) {
        let (tag, ..) = self.rack.waiting.pop_front().expect("it waits");
        self.session.ended(&mut self.rack, tag, outcome);
        self.session.advance(&mut self.rack, usize::MAX);
    }

    fn run_all(&mut self) {
        while !self.rack.waiting.is_empty() {
            self.run(0);
        }
    }

    fn out(&mut self) -> String {
        let out = String::from_utf8_lossy(self.session.out()).into_owned();
        self.session.sent(self.session.out().len());
        out
    }

    /// Sends a command line, lets all tasks run, and returns the reply.
    fn says(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        self.run_all();
        self.out()
    }
}

#[test]
fn commands_of_a_store_are_answered_as_redis_answers_them() {
    let mut spoken = Spoken::new();
    for (line, reply) in [
        ("GET a", "$-1\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("set b \"\"", "+OK\r\n"),
        ("get a", "$1\r\n1\r\n"),
        ("MGET a x b", "*3\r\n$1\r\n1\r\n$-1\r\n$0\r\n\r\n"),
        ("EXISTS a a x", ":2\r\n"),
        ("SCAN 0", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        ("SCAN 0 MATCH b* COUNT 100", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nb\r\n"),
        ("SCAN 0 TYPE list", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("DEL a b x", ":2\r\n"),
        ("UNLINK a", ":0\r\n"),
        ("PING", "+PONG\r\n"),
        ("PING \"a b\"", "$3\r\na b\r\n"),
        ("ECHO x", "$1\r\nx\r\n"),
        ("SELECT 0", "+OK\r\n"),
        ("CLIENT SETINFO lib-name x", "+OK\r\n"),
        ("CLIENT ID", ":1\r\n"),
        ("CLIENT GETNAME", "$-1\r\n"),
        ("CLIENT SETNAME me", "+OK\r\n"),
        ("CLIENT GETNAME", "$2\r\nme\r\n"),
        ("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        ("COMMAND COUNT", ":18\r\n"),
        (
            "COMMAND INFO nope get",
            "*2\r\n*-1\r\n*6\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n",
        ),
    ] {
        assert_eq!(spoken.says(line), reply, "{line}");
    }
    assert!(spoken.says("INFO").contains("sluice_version:"));
    assert!(spoken.says("HELLO 3").starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"));
    assert_eq!(spoken.says("GET x"), "_\r\n");
    assert_eq!(spoken.says("RESET"), "+RESET\r\n");
    assert_eq!(spoken.says("GET x"), "$-1\r\n");
}

#[test]
fn what_the_store_cannot_do_is_refused_in_words_and_the_connection_goes_on() {
    let mut spoken = Spoken::new();
    let long_key = "k".repeat(513);
    for (line, words) in [
        ("SET a 1 EX 10".to_owned(), "cannot keep EX"),
        ("SET a 1 nx".to_owned(), "cannot keep nx"),
        ("SET a".to_owned(), "wrong number of arguments for 'set' command"),
        ("GET".to_owned(), "wrong number of arguments"),
        ("GET \"\"".to_owned(), "a key of 0 bytes"),
        (format!("GET {long_key}"), "a key of 513 bytes"),
        (format!("MGET a {long_key}"), "a key of 513 bytes"),
        ("INCR a".to_owned(), "unknown command 'INCR'"),
        ("\"x\\r\\n+OK\" a".to_owned(), "unknown command 'x\\r\\n+OK'"),
        ("SELECT 1".to_owned(), "DB index is out of range"),
        ("SCAN x".to_owned(), "invalid cursor"),
        ("SCAN 1".to_owned(), "unknown cursor 1"),
        ("SCAN 18446744073709551615".to_owned(), "unknown cursor"),
        ("SCAN 0 COUNT 0".to_owned(), "COUNT takes a number above 0"),
        ("SCAN 0 MATCH".to_owned(), "syntax error"),
        (format!("SCAN 0 MATCH {}", "*".repeat(257)), "at most 256 bytes"),
        ("AUTH x".to_owned(), "no passwords"),
        ("HELLO 4".to_owned(), "NOPROTO"),
        ("HELLO 3 AUTH a b".to_owned(), "no passwords"),
        ("CLIENT KILL x".to_owned(), "CLIENT knows"),
        ("CONFIG SET a b".to_owned(), "CONFIG knows GET"),
    ] {
        let reply = spoken.says(&line);
        assert!(reply.starts_with('-') && reply.contains(words), "{line}: {reply}");
        assert_eq!(reply.matches("\r\n").count(), 1, "{line}: {reply}");
    }
    let value = vec![b'v'; 65_001];
    spoken.send(&[b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$65001\r\n", &value[..], b"\r\n"].concat());
    assert!(spoken.out().contains("a value of 65001 bytes"));
    assert_eq!(spoken.says("PING"), "+PONG\r\n");
    assert!(spoken.rack.counted[..21].iter().all(|outcome| *outcome == CommandOutcome::Malformed));
}

#[test]
fn replies_leave_in_order_whatever_ends_first() {
    let mut spoken = Spoken::new();
    spoken.rack.store.insert(b"a".to_vec(), b"1".to_vec());
    spoken.rack.store.insert(b"b".to_vec(), b"2".to_vec());
    assert_eq!(spoken.send(b"GET a\r\nPING\r\nGET b\r\nGET c\r\n"), Paused::Hungry);
    assert_eq!(spoken.rack.waiting.len(), 3, "they run at once");
    spoken.run(2);
    spoken.run(1);
    assert_eq!(spoken.out(), "");
    spoken.run(0);
    assert_eq!(spoken.out(), "$1\r\n1\r\n+PONG\r\n$1\r\n2\r\n$-1\r\n");
}

#[test]
fn a_command_waits_for_those_before_it_that_it_could_tell_from_later_ones() {
    for (pipeline, at_once) in [
        ("SET a 1\r\nGET a\r\n", 1),
        ("SET a 1\r\nSET a 2\r\n", 1),
        ("SET a 1\r\nDEL a\r\n", 1),
        ("GET a\r\nSET a 1\r\n", 1),
        ("MGET a b\r\nSET b 1\r\n", 1),
        ("DEL a b\r\nGET b\r\n", 1),
        ("SET a 1\r\nSCAN 0\r\n", 1),
        ("SCAN 0\r\nSET a 1\r\n", 1),
        ("SET a 1\r\nGET b\r\n", 2),
        ("SET a 1\r\nSET b 1\r\n", 2),
        ("GET a\r\nGET a\r\n", 2),
        ("SCAN 0\r\nGET a\r\n", 2),
    ] {
        let mut spoken = Spoken::new();
        spoken.send(pipeline.as_bytes());
        assert_eq!(spoken.rack.waiting.len(), at_once, "{pipeline}");
        spoken.run_all();
        assert!(spoken.session.pending.is_empty());
    }
}

#[test]
fn a_read_names_the_last_write_of_its_connection() {
    let mut spoken = Spoken::new();
    spoken.rack.writes = 41;
    spoken.send(b"SET a 1\r\nGET a\r\n");
    spoken.run(0);
    let (_, task, bytes) = spoken.rack.waiting.front().expect("the read");
    assert_eq!((*task, &bytes[..8]), (KvTask::Get, &42_u64.to_be_bytes()[..]));
    spoken.run(0);
    spoken.says("DEL a");
    spoken.send(b"GET a\r\n");
    assert_eq!(spoken.rack.waiting[0].2[..8], 43_u64.to_be_bytes());
}

#[test]
fn a_connection_that_outlives_its_store_reads_again_once_it_has_written() {
    let mut spoken = Spoken::new();
    spoken.rack.writes = 41;
    spoken.send(b"SET a 1\r\nSET b 1\r\n");
    let mut ended: Vec<_> = std::mem::take(&mut spoken.rack.waiting)
        .into_iter()
        .map(|(tag, task, bytes)| (tag, spoken.rack.run(task, &bytes)))
        .collect();
    while let Some((tag, outcome)) = ended.pop() {
        spoken.session.ended(&mut spoken.rack, tag, outcome);
        assert_eq!(spoken.session.seen, 43, "whichever of two writes ends first");
    }
    assert_eq!(spoken.out(), "+OK\r\n+OK\r\n");
    // Another store, which counts from 1 again.
    spoken.rack.writes = 0;
    assert_eq!(spoken.says("DEL a"), ":1\r\n");
    assert_eq!(spoken.session.seen, 1);
    assert_eq!(spoken.says("GET b"), "$1\r\n1\r\n");
    let misread = TaskReply { bytes: b"x".to_vec(), ..TaskReply::default() };
    spoken.send(b"SET a 1\r\n");
    spoken.end(Outcome::Reply(misread));
    assert_eq!(spoken.session.seen, 1, "a reply that cannot be read has no number");
}

#[test]
fn outcomes_without_a_reply_are_errors_that_say_whether_it_may_have_run() {
    let failed = TaskReply { bytes: b"no\r\ndisk".to_vec(), failed: true, ..TaskReply::default() };
    let misread = TaskReply { bytes: b"x".to_vec(), ..TaskReply::default() };
    for (outcome, said) in [
        (Outcome::Refused(RefusedWhy::Busy { retry_after: Nanos(50_000) }), "-BUSY it did not run: "),
        (Outcome::Refused(RefusedWhy::NeverSent), "-TRYAGAIN it did not run: "),
        (Outcome::Refused(RefusedWhy::NoSlice(sluice_wire::TaskType(20))), "-ERR it did not run: "),
        (Outcome::Unknown(UnknownWhy::Deadline), "-UNKNOWN it may have run"),
        (Outcome::Reply(failed), "-ERR its service failed: no"),
        (Outcome::Reply(misread), "-ERR its worker's reply is not one of a store"),
    ] {
        for command in ["GET a", "SET a 1", "DEL a", "MGET a", "SCAN 0", "EXISTS a"] {
            let mut spoken = Spoken::new();
            spoken.send(format!("{command}\r\nPING\r\n").as_bytes());
            spoken.end(outcome.clone());
            let out = spoken.out();
            assert!(out.starts_with(said) && out.ends_with("\r\n+PONG\r\n"), "{command}: {out}");
            assert_eq!(out.matches("\r\n").count(), 2, "{command}: {out}");
        }
    }
    let mut spoken = Spoken::new();
    spoken.rack.is_closed = true;
    assert!(spoken.says("GET a").starts_with("-TRYAGAIN "));
    assert!(spoken.says("MGET a b").starts_with("-TRYAGAIN "));
    assert_eq!(spoken.rack.counted, [CommandOutcome::Refused; 2]);
}

#[test]
fn a_full_rack_stops_the_connection_until_there_is_room() {
    let mut spoken = Spoken::new();
    spoken.rack.room = 2;
    assert_eq!(spoken.send(b"GET a\r\nGET b\r\nGET c\r\nPING\r\n"), Paused::Full(KvTask::Get));
    assert_eq!(spoken.rack.waiting.len(), 2);
    assert_eq!(spoken.run(0), Paused::Hungry);
    spoken.run_all();
    assert_eq!(spoken.out(), "$-1\r\n$-1\r\n$-1\r\n+PONG\r\n");
    spoken.rack.room = 0;
    assert_eq!(spoken.send(b"DEL a\r\n"), Paused::Full(KvTask::Del));
}

#[test]
fn one_connection_has_a_bound_of_commands_and_of_unread_bytes() {
    let mut spoken = Spoken::new();
    let many = b"GET a\r\n".repeat(PIPELINE_MAX + 1);
    assert_eq!(spoken.send(&many), Paused::Waits);
    assert_eq!(spoken.rack.waiting.len(), PIPELINE_MAX);
    spoken.run_all();
    assert_eq!(spoken.out().matches("$-1").count(), PIPELINE_MAX + 1);

    spoken.rack.store.insert(b"a".to_vec(), vec![b'v'; 60_000]);
    let mut taken = 0;
    while spoken.send(b"GET a\r\n") == Paused::Hungry {
        spoken.run_all();
        taken += 1;
        assert!(taken < 100, "nobody reads");
    }
    let unread = spoken.session.unread();
    assert!(unread > UNREAD_MAX && unread < 2 * UNREAD_MAX, "{unread}");
    spoken.out();
    assert_eq!(spoken.session.unread(), 0);
    assert!(spoken.session.out.capacity() <= KEPT);
}

#[test]
fn commands_of_many_tasks_have_the_same_bounds() {
    const VALUE: usize = 60_000;
    let mut spoken = Spoken::new();
    let keys: Vec<String> = (0..1_000).map(|key| format!("{key:0>40}")).collect();
    let all = format!("*{}\r\n$6\r\nEXISTS\r\n", keys.len() + 1) + &bulks(&keys);
    assert_eq!(spoken.send(all.repeat(PIPELINE_MAX / 8).as_bytes()), Paused::Waits);
    assert_eq!(spoken.rack.waiting.len(), PIPELINE_MAX);
    spoken.run_all();
    assert_eq!(spoken.out(), ":0\r\n".repeat(PIPELINE_MAX / 8));

    // Values that fit no common reply: each key becomes a task of its own.
    for key in &keys[..50] {
        spoken.rack.store.insert(key.clone().into_bytes(), vec![b'v'; VALUE]);
    }
    let long = format!("MGET {}\r\n", keys[..50].join(" "));
    let (times, one_reply) = (12, 50 * (VALUE + 10));
    spoken.send(long.repeat(times).as_bytes());
    let mut longest = 0;
    while !spoken.rack.waiting.is_empty() {
        // The last first, so that much waits for the first command.
        spoken.run(spoken.rack.waiting.len() - 1);
        assert!(spoken.rack.waiting.len() <= PIPELINE_MAX);
        longest = longest.max(spoken.session.unread());
    }
    let most = UNREAD_MAX + PIPELINE_MAX * (VALUE + 10) + one_reply;
    assert!(longest > UNREAD_MAX && longest < most, "{longest}");
    let mut read = 0;
    while !spoken.session.out().is_empty() {
        read += spoken.out().matches('v').count();
        spoken.session.advance(&mut spoken.rack, usize::MAX);
        spoken.run_all();
    }
    assert_eq!(read, times * 50 * VALUE);
    assert!(spoken.session.is_over() && spoken.session.under_way == 0 && spoken.session.held == 0);
}

/// Words of 40 letters as RESP writes them.
fn bulks(words: &[String]) -> String {
    words.iter().flat_map(|word| ["$40\r\n", word, "\r\n"]).collect()
}

#[test]
fn many_keys_become_as_many_tasks_as_fit_and_long_values_are_asked_for_apart() {
    let mut spoken = Spoken::new();
    let keys: Vec<String> = (0..1_000).map(|key| format!("{key:0>40}")).collect();
    for key in &keys {
        spoken.rack.store.insert(key.clone().into_bytes(), key.clone().into_bytes());
    }
    spoken.send(format!("MGET {}\r\n", keys[..100].join(" ")).as_bytes());
    assert_eq!(spoken.rack.waiting.len(), 1);
    spoken.run_all();
    spoken.out();
    let mut command = format!("*{}\r\n$4\r\nMGET\r\n", keys.len() + 1);
    command += &bulks(&keys);
    spoken.send(command.as_bytes());
    assert_eq!(spoken.rack.waiting.len(), 8);
    while let Some(last) = spoken.rack.waiting.len().checked_sub(1) {
        spoken.run(last);
    }
    let expected = bulks(&keys);
    assert_eq!(spoken.out(), format!("*1000\r\n{expected}"));

    spoken.rack.reply_max = 100;
    assert_eq!(spoken.says(&format!("MGET {} x", keys[..5].join(" "))).matches("$40").count(), 5);
    assert_eq!(spoken.says(&format!("EXISTS {} x", keys[..5].join(" "))), ":5\r\n");
    spoken.rack.reply_max = 10;
    assert!(spoken.says(&format!("MGET {}", keys[..3].join(" "))).starts_with("-ERR its service failed"));
    assert!(spoken.session.is_over() && spoken.session.unsent == 0 && spoken.session.held == 0);
}

#[test]
fn a_scan_finds_each_key_once_also_with_a_pattern() {
    let mut spoken = Spoken::new();
    for key in 0..95 {
        spoken.rack.store.insert(format!("k{key:02}").into_bytes(), Vec::new());
    }
    for (more, expected) in [("", 95), (" COUNT 7", 95), (" MATCH *5 COUNT 3", 9), (" COUNT 5000", 95)] {
        let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
        loop {
            let reply = spoken.says(&format!("SCAN {cursor}{more}"));
            let words: Vec<&str> = reply.split("\r\n").collect();
            words[2].clone_into(&mut cursor);
            found.extend(words.iter().filter(|word| word.starts_with('k')).map(|word| (*word).to_owned()));
            if cursor == "0" {
                break;
            }
        }
        let all = found.len();
        found.dedup();
        assert_eq!((all, found.len()), (expected, expected), "{more}");
    }
}

#[test]
fn malformed_bytes_get_one_error_behind_the_replies_before_them() {
    let mut spoken = Spoken::new();
    assert_eq!(spoken.send(b"GET a\r\n*1\r\n:1\r\nGET b\r\n"), Paused::Ending);
    assert_eq!((spoken.out(), spoken.session.is_over()), (String::new(), false));
    spoken.run_all();
    assert_eq!(spoken.out(), "$-1\r\n-ERR Protocol error: expected '$', got ':'\r\n");
    assert!(spoken.session.is_over());
    assert_eq!(spoken.session.malformed(), Some(FrameError::NoBulk(b':')));
}

#[test]
fn quit_and_the_end_of_input_end_it_when_all_is_answered() {
    let mut spoken = Spoken::new();
    assert_eq!(spoken.send(b"GET a\r\nQUIT\r\nGET b\r\n"), Paused::Ending);
    spoken.run_all();
    assert_eq!(spoken.out(), "$-1\r\n+OK\r\n");
    let mut spoken = Spoken::new();
    spoken.send(b"GET a\r\nGET a");
    assert_eq!(spoken.session.close_input(&mut spoken.rack, 10), Paused::Hungry);
    assert_eq!(spoken.session.advance(&mut spoken.rack, 10), Paused::Ending);
    spoken.run_all();
    assert_eq!(spoken.out(), "$-1\r\n");
    assert!(spoken.session.is_over());
}

#[test]
fn an_outcome_of_a_command_that_is_gone_changes_nothing() {
    let mut spoken = Spoken::new();
    spoken.send(b"MGET a b\r\nGET a\r\n");
    let again = spoken.rack.waiting.clone();
    spoken.run_all();
    spoken.out();
    for (tag, ..) in again {
        spoken.session.ended(&mut spoken.rack, tag, ENDING);
    }
    assert_eq!(spoken.out(), "");
}

/// A command over few keys, as a client may send it.
fn command() -> impl Strategy<Value = Vec<String>> {
    let key = || (0..3_u8).prop_map(|key| format!("k{key}"));
    prop_oneof![
        key().prop_map(|key| vec!["GET".to_owned(), key]),
        (key(), 0..100_u8).prop_map(|(key, value)| vec!["SET".to_owned(), key, value.to_string()]),
        (key(), key()).prop_map(|(one, other)| vec!["MGET".to_owned(), one, other]),
        (key(), key()).prop_map(|(one, other)| vec!["DEL".to_owned(), one, other]),
        key().prop_map(|key| vec!["EXISTS".to_owned(), key]),
        Just(vec!["SCAN".to_owned(), "0".to_owned()]),
        Just(vec!["PING".to_owned()]),
    ]
}

proptest! {
    /// Whatever the rack does first, a pipeline's replies are those of one command after the other.
    #[test]
    fn a_pipeline_is_answered_as_if_its_commands_ran_one_after_the_other(
        commands in proptest::collection::vec(command(), 1..40),
        choices in proptest::collection::vec(any::<prop::sample::Index>(), 200),
        room in 1_usize..6,
    ) {
        let mut expected = String::new();
        let mut one = Spoken::new();
        let mut pipeline = String::new();
        for command in &commands {
            let line = command.join(" ");
            expected += &one.says(&line);
            pipeline += &line;
            pipeline += "\r\n";
        }
        let mut all = Spoken::new();
        all.rack.room = room;
        all.send(pipeline.as_bytes());
        let mut choices = choices.iter().cycle();
        while !all.rack.waiting.is_empty() {
            let at = choices.next().expect("a cycle").index(all.rack.waiting.len());
            all.run(at);
        }
        prop_assert_eq!(all.out(), expected);
        prop_assert!(all.session.is_over() && all.session.held == 0);
        prop_assert_eq!((all.session.open, all.session.under_way), (0, 0));
    }

    #[test]
    fn no_bytes_break_a_session(
        bytes in proptest::collection::vec(
            prop_oneof![
                any::<u8>().prop_map(|byte| vec![byte]),
                prop::sample::select(vec!["GET", "SET", "SCAN", "HELLO", " ", "\r\n", "*1\r\n$3\r\n", "0"])
                    .prop_map(|word| word.as_bytes().to_vec()),
            ],
            0..60),
    ) {
        let mut spoken = Spoken::new();
        spoken.send(&bytes.concat());
        spoken.run_all();
        prop_assert!(spoken.session.pending.is_empty());
    }
}
