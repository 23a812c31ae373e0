//! What the gateway answers by itself: connections, what clients and benchmarks ask at their start, and
//! which commands there are.

use super::commands::{self, CommandName, names};
use super::reader::{Args, number};
use super::reply::{Version, array, bulk, error, integer, simple};

/// The version of Redis whose commands these are as far as they go, for clients that look at it.
const AS_REDIS: &str = "7.0.0";
/// The longest name of a connection.
const NAME_BYTES_MAX: usize = 64;

/// What a connection said about itself.
#[derive(Debug, Default)]
pub(super) struct Introduced {
    pub(super) version: Version,
    /// The connection's number.
    id: u32,
    name: Vec<u8>,
    /// Whether the client said that it ends.
    pub(super) has_quit: bool,
}

/// Numbers about the gateway, for INFO.
#[derive(Clone, Copy, Debug, Default)]
pub struct RespStanding {
    /// Connections that speak RESP now.
    pub clients: u64,
    /// How long the gateway runs.
    pub uptime_s: u64,
    /// Commands so far.
    pub commands: u64,
}

impl Introduced {
    pub(super) fn new(id: u32) -> Self {
        Self { id, ..Self::default() }
    }

    /// Answers a command that needs no task.
    pub(super) fn answer(
        &mut self,
        name: CommandName,
        args: Args<'_>,
        standing: impl FnOnce() -> RespStanding,
        out: &mut Vec<u8>,
    ) {
        match name {
            CommandName::Ping if args.len() > 2 => error("ERR", "PING takes one word at most", out),
            CommandName::Ping if args.len() == 2 => bulk(args.word(1), out),
            CommandName::Ping => simple("PONG", out),
            CommandName::Echo => bulk(args.word(1), out),
            CommandName::Hello => self.hello(args, out),
            CommandName::Select if number(args.word(1)) == Some(0) => simple("OK", out),
            CommandName::Select => error("ERR", "DB index is out of range: a rack has database 0 only", out),
            CommandName::Client => self.client(args, out),
            CommandName::Command => self.command(args, out),
            CommandName::Config => self.config(args, out),
            CommandName::Info => bulk(info(standing()).as_bytes(), out),
            CommandName::Auth => error("ERR", NO_PASSWORDS, out),
            CommandName::Reset => {
                *self = Self::new(self.id);
                simple("RESET", out);
            }
            CommandName::Quit => {
                self.has_quit = true;
                simple("OK", out);
            }
            CommandName::Get
            | CommandName::Set
            | CommandName::Mget
            | CommandName::Del
            | CommandName::Exists
            | CommandName::Scan => unreachable!("these are tasks"),
        }
    }

    fn hello(&mut self, args: Args<'_>, out: &mut Vec<u8>) {
        let mut version = self.version;
        let mut name = None;
        let mut words = args.from(1);
        if let Some(word) = words.next() {
            version = match number(word) {
                Some(2) => Version::Resp2,
                Some(3) => Version::Resp3,
                _ => return error("NOPROTO", "unsupported protocol version: 2 and 3 are known", out),
            };
        }
        while let Some(option) = words.next() {
            if option.eq_ignore_ascii_case(b"auth") {
                return error("ERR", NO_PASSWORDS, out);
            }
            match words.next() {
                Some(word) if option.eq_ignore_ascii_case(b"setname") && is_name(word) => {
                    name = Some(word.to_vec());
                }
                _ => {
                    return error("ERR", "syntax error: HELLO takes a version, and SETNAME with a name", out);
                }
            }
        }
        self.version = version;
        self.name = name.unwrap_or_else(|| std::mem::take(&mut self.name));
        version.map(7, out);
        for (key, value) in [("server", "redis"), ("version", AS_REDIS)] {
            bulk(key.as_bytes(), out);
            bulk(value.as_bytes(), out);
        }
        bulk(b"proto", out);
        integer(if version == Version::Resp3 { 3 } else { 2 }, out);
        bulk(b"id", out);
        integer(self.id.into(), out);
        for (key, value) in [("mode", "standalone"), ("role", "master")] {
            bulk(key.as_bytes(), out);
            bulk(value.as_bytes(), out);
        }
        bulk(b"modules", out);
        array(0, out);
    }

    fn client(&mut self, args: Args<'_>, out: &mut Vec<u8>) {
        let word = args.word(1).to_ascii_lowercase();
        match (&word[..], args.len()) {
            // What the client's library is called is of no use here, and asked for by none.
            (b"setinfo", 4) => simple("OK", out),
            (b"setname", 3) if is_name(args.word(2)) => {
                self.name = args.word(2).to_vec();
                simple("OK", out);
            }
            (b"setname", 3) => error("ERR", "a name has letters without blanks, 64 at most", out),
            (b"getname", 2) if self.name.is_empty() => self.version.null(out),
            (b"getname", 2) => bulk(&self.name, out),
            (b"id", 2) => integer(self.id.into(), out),
            (b"info", 2) => {
                let name = String::from_utf8_lossy(&self.name);
                bulk(format!("id={} name={name} db=0\n", self.id).as_bytes(), out);
            }
            _ => error("ERR", "CLIENT knows SETINFO, SETNAME, GETNAME, ID and INFO here", out),
        }
    }

    fn command(&self, args: Args<'_>, out: &mut Vec<u8>) {
        let word = args.word(1).to_ascii_lowercase();
        match &word[..] {
            b"" => commands::write_all(out),
            b"count" => commands::write_count(out),
            b"list" => commands::write_names(out),
            b"info" if args.len() == 2 => commands::write_all(out),
            b"info" => commands::write_named(args.from(2), self.version, out),
            b"docs" => commands::write_docs(args.from(2), self.version, out),
            _ => error("ERR", "COMMAND knows COUNT, LIST, INFO and DOCS here", out),
        }
    }

    /// What benchmarks ask: whether the store keeps what is written is its own matter.
    fn config(&self, args: Args<'_>, out: &mut Vec<u8>) {
        if !args.word(1).eq_ignore_ascii_case(b"get") {
            return error("ERR", "CONFIG knows GET here: the gateway has flags, and the rack a plan", out);
        }
        let all = [("save", ""), ("appendonly", "no"), ("databases", "1")];
        let asked = |key: &str| args.from(2).any(|word| super::glob::matches(word, key.as_bytes()));
        let told: Vec<_> = all.into_iter().filter(|(key, _)| asked(key)).collect();
        self.version.map(told.len(), out);
        for (key, value) in told {
            bulk(key.as_bytes(), out);
            bulk(value.as_bytes(), out);
        }
    }
}

const NO_PASSWORDS: &str = "there are no passwords here: a client shows a certificate, over TLS";

fn is_name(word: &[u8]) -> bool {
    word.len() <= NAME_BYTES_MAX && word.iter().all(u8::is_ascii_graphic)
}

fn info(standing: RespStanding) -> String {
    let RespStanding { clients, uptime_s, commands } = standing;
    let build = env!("CARGO_PKG_VERSION");
    format!(
        "# Server\r\nredis_version:{AS_REDIS}\r\nredis_mode:standalone\r\nsluice_version:{build}\r\n\
         uptime_in_seconds:{uptime_s}\r\n\r\n# Clients\r\nconnected_clients:{clients}\r\n\r\n\
         # Persistence\r\nloading:0\r\n\r\n# Stats\r\ntotal_commands_processed:{commands}\r\n\r\n\
         # Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n"
    )
}

/// What is said about a command that is not known.
pub(super) fn unknown(name: &[u8], out: &mut Vec<u8>) {
    let name = name[..name.len().min(64)].escape_ascii();
    error("ERR", format_args!("unknown command '{name}': this gateway has {}", names()), out);
}
