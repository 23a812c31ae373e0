//! The commands that the gateway knows, and what is told about them.

use super::reply::{Version, array, bulk, integer, simple};

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandName {
    Get,
    Set,
    Mget,
    Del,
    Exists,
    Scan,
    Ping,
    Echo,
    Hello,
    Select,
    Client,
    Command,
    Config,
    Info,
    Auth,
    Reset,
    Quit,
}

/// What is known of a command.
#[derive(Debug)]
pub(super) struct KnownCommand {
    pub(super) name: CommandName,
    /// The name, in small letters.
    text: &'static str,
    /// How many words it has with its name; a negative number for at least so many.
    arity: i64,
    flags: &'static [&'static str],
    /// The numbers of the first and last word that is a key, and the step between them.
    keys: [i64; 3],
    group: &'static str,
    summary: &'static str,
}

macro_rules! commands {
    ($($name:ident, $text:literal, $arity:literal, [$($flag:literal),*], $keys:expr, $group:literal,
        $summary:literal;)*) => {
        /// All commands; those that come often first.
        const ALL: &[KnownCommand] = &[$(KnownCommand {
            name: CommandName::$name, text: $text, arity: $arity, flags: &[$($flag),*], keys: $keys,
            group: $group, summary: $summary,
        },)*];
    };
}

commands! {
    Get, "get", 2, ["readonly", "fast"], [1, 1, 1], "string", "Returns the value of a key.";
    Set, "set", 3, ["write", "denyoom"], [1, 1, 1], "string", "Sets the value of a key; takes no options.";
    Mget, "mget", -2, ["readonly", "fast"], [1, -1, 1], "string", "Returns the values of keys.";
    Del, "del", -2, ["write"], [1, -1, 1], "generic", "Removes keys.";
    Del, "unlink", -2, ["write", "fast"], [1, -1, 1], "generic", "Removes keys, as DEL does.";
    Exists, "exists", -2, ["readonly", "fast"], [1, -1, 1], "generic", "Tells how many keys are there.";
    Scan, "scan", -2, ["readonly"], [0, 0, 0], "generic", "Returns keys in order, from a cursor on.";
    Ping, "ping", -1, ["fast"], [0, 0, 0], "connection", "Answers, without the rack.";
    Echo, "echo", 2, ["fast"], [0, 0, 0], "connection", "Returns its word.";
    Hello, "hello", -1, ["fast"], [0, 0, 0], "connection", "Chooses RESP2 or RESP3.";
    Select, "select", 2, ["fast"], [0, 0, 0], "connection", "Chooses database 0, the only one.";
    Client, "client", -2, [], [0, 0, 0], "connection", "Names the connection.";
    Command, "command", -1, [], [0, 0, 0], "server", "Tells about these commands.";
    Config, "config", -2, [], [0, 0, 0], "server", "CONFIG GET tells what benchmarks ask for.";
    Info, "info", -1, [], [0, 0, 0], "server", "Tells about the gateway.";
    Auth, "auth", -2, ["fast"], [0, 0, 0], "connection", "Refused: certificates say who calls.";
    Reset, "reset", 1, ["fast"], [0, 0, 0], "connection", "Forgets what HELLO and CLIENT said.";
    Quit, "quit", -1, ["fast"], [0, 0, 0], "connection", "Ends the connection.";
}

impl KnownCommand {
    /// The command with this name, in letters of any size.
    pub(super) fn called(name: &[u8]) -> Option<&'static Self> {
        ALL.iter().find(|known| known.text.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether it may have so many words, with its name.
    pub(super) fn takes(&self, words: usize) -> bool {
        let words = words as i64;
        if self.arity < 0 { words >= -self.arity } else { words == self.arity }
    }

    /// The name, for people.
    pub(super) const fn text(&self) -> &'static str {
        self.text
    }

    /// What COMMAND tells of it.
    fn write(&self, out: &mut Vec<u8>) {
        array(6, out);
        bulk(self.text.as_bytes(), out);
        signed(self.arity, out);
        array(self.flags.len(), out);
        for flag in self.flags {
            simple(flag, out);
        }
        for key in self.keys {
            signed(key, out);
        }
    }

    /// What COMMAND DOCS tells of it.
    fn write_docs(&self, version: Version, out: &mut Vec<u8>) {
        bulk(self.text.as_bytes(), out);
        let about = [("summary", self.summary), ("since", "1.0.0"), ("group", self.group)];
        version.map(about.len(), out);
        for text in about.into_iter().flat_map(|(key, value)| [key, value]) {
            bulk(text.as_bytes(), out);
        }
    }
}

fn signed(value: i64, out: &mut Vec<u8>) {
    if value >= 0 {
        integer(value.unsigned_abs(), out);
    } else {
        out.extend_from_slice(format!(":{value}\r\n").as_bytes());
    }
}

/// COMMAND: all commands.
pub(super) fn write_all(out: &mut Vec<u8>) {
    array(ALL.len(), out);
    for known in ALL {
        known.write(out);
    }
}

/// COMMAND COUNT.
pub(super) fn write_count(out: &mut Vec<u8>) {
    integer(ALL.len() as u64, out);
}

/// COMMAND LIST.
pub(super) fn write_names(out: &mut Vec<u8>) {
    array(ALL.len(), out);
    for known in ALL {
        bulk(known.text.as_bytes(), out);
    }
}

/// COMMAND INFO: the named commands, nothing for unknown ones.
pub(super) fn write_named<'a>(
    names: impl Iterator<Item = &'a [u8]> + Clone,
    version: Version,
    out: &mut Vec<u8>,
) {
    array(names.clone().count(), out);
    for name in names {
        match KnownCommand::called(name) {
            Some(known) => known.write(out),
            None if version == Version::Resp2 => out.extend_from_slice(b"*-1\r\n"),
            None => version.null(out),
        }
    }
}

/// COMMAND DOCS: the named commands, or all of them.
pub(super) fn write_docs<'a>(names: impl Iterator<Item = &'a [u8]>, version: Version, out: &mut Vec<u8>) {
    let mut names = names.peekable();
    let told: Vec<&KnownCommand> = match names.peek() {
        None => ALL.iter().collect(),
        Some(_) => names.filter_map(KnownCommand::called).collect(),
    };
    version.map(told.len(), out);
    for known in told {
        known.write_docs(version, out);
    }
}

/// The names, for a sentence.
pub(super) fn names() -> String {
    ALL.iter().map(|known| known.text.to_ascii_uppercase()).collect::<Vec<_>>().join(", ")
}
