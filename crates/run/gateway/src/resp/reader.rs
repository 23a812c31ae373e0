//! Reads the commands of RESP2 from bytes as they come: arrays of bulk strings, and inline commands.
//!
//! The reader holds at most one command that is not whole. What it found of it stays found when more bytes
//! come, so that a client that sends byte by byte costs no more than another. All lengths are checked before
//! anything is kept: a command has at most [`COMMAND_BYTES_MAX`] bytes and [`ARGS_MAX`] words.
//!
//! An error is final: behind it nobody knows where a command begins.

use std::fmt;

/// The most bytes of one command, with all that frames it.
pub const COMMAND_BYTES_MAX: usize = 256 * 1_024;
/// The most words of one command: its name, and the keys of a long MGET.
pub const ARGS_MAX: usize = 1_025;
/// The most bytes of an inline command.
pub const INLINE_BYTES_MAX: usize = 16 * 1_024;
/// The most bytes of a line that tells a length.
const LENGTH_BYTES_MAX: usize = 24;
/// How many bytes are read at once, at least.
const ROOM: usize = 16 * 1_024;
/// A buffer that has grown beyond this shrinks once it is empty.
const KEPT: usize = 64 * 1_024;

/// Why bytes are no command. Each ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The number of words cannot be read, or is too large.
    Count,
    /// A word's length cannot be read, or is too large.
    Length,
    /// Something else than a word.
    NoBulk(u8),
    /// A word does not end where its length says.
    Unended,
    /// The command has more bytes than one may have.
    TooLong,
    /// An inline command has more bytes than one may have.
    InlineTooLong,
    /// Quotes of an inline command that do not end, or are followed by letters.
    Quotes,
    /// What a browser sends: somebody lets it speak to us.
    Http,
}

impl FrameError {
    /// All kinds, for counters.
    pub const ALL: [Self; 8] = [
        Self::Count,
        Self::Length,
        Self::NoBulk(0),
        Self::Unended,
        Self::TooLong,
        Self::InlineTooLong,
        Self::Quotes,
        Self::Http,
    ];

    /// The kind's name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Length => "length",
            Self::NoBulk(_) => "no_bulk",
            Self::Unended => "unended",
            Self::TooLong => "too_long",
            Self::InlineTooLong => "inline_too_long",
            Self::Quotes => "quotes",
            Self::Http => "http",
        }
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => write!(f, "invalid multibulk length: a command has at most {ARGS_MAX} words"),
            Self::Length => {
                write!(f, "invalid bulk length: a command has at most {COMMAND_BYTES_MAX} bytes")
            }
            Self::NoBulk(found) => write!(f, "expected '$', got '{}'", found.escape_ascii()),
            Self::Unended => f.write_str("a bulk string does not end where its length says"),
            Self::TooLong => write!(f, "too big request: a command has at most {COMMAND_BYTES_MAX} bytes"),
            Self::InlineTooLong => {
                write!(f, "too big inline request: one has at most {INLINE_BYTES_MAX} bytes")
            }
            Self::Quotes => f.write_str("unbalanced quotes in request"),
            Self::Http => f.write_str("this is HTTP: speak RESP here, or HTTP to the address of --http"),
        }
    }
}

/// The words of a whole command, its name first.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    places: &'a [(u32, u32)],
}

impl<'a> Args<'a> {
    /// How many words there are; at least one.
    pub const fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no word, which no command is.
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The word with this number; an empty one beyond the last.
    pub fn word(&self, at: usize) -> &'a [u8] {
        let place = self.places.get(at);
        place.map_or(&[], |(begin, end)| &self.bytes[*begin as usize..*end as usize])
    }

    /// The words from this number on.
    pub fn from(self, first: usize) -> impl Iterator<Item = &'a [u8]> + Clone {
        (first..self.places.len()).map(move |at| self.word(at))
    }
}

/// Reads commands.
#[derive(Debug, Default)]
pub struct RespReader {
    /// Bytes that came, up to `filled`; behind that there is room for more.
    bytes: Vec<u8>,
    filled: usize,
    /// Where the command begins that is read now.
    begin: usize,
    /// How many of its bytes are read.
    at: usize,
    /// How many of its words are still to come.
    left: usize,
    /// Its words: from the command's beginning, or in `words` for an inline command.
    places: Vec<(u32, u32)>,
    /// The words of an inline command, without quotes.
    words: Vec<u8>,
    is_inline: bool,
    is_whole: bool,
}

impl RespReader {
    /// A reader that has read nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Room for bytes to come; [`Self::filled`] says how many came.
    pub fn room(&mut self) -> &mut [u8] {
        if self.begin == self.filled {
            self.begin = 0;
            self.filled = 0;
            if self.bytes.len() > KEPT {
                self.bytes = Vec::new();
            }
        }
        if self.bytes.len() - self.filled < ROOM / 2 {
            self.bytes.copy_within(self.begin..self.filled, 0);
            self.filled -= self.begin;
            self.begin = 0;
            let wanted = (self.filled + ROOM).max(2 * self.filled);
            if self.bytes.len() < self.filled + ROOM / 2 {
                self.bytes.resize(wanted, 0);
            }
        }
        &mut self.bytes[self.filled..]
    }

    /// Takes so many bytes of the room as come.
    pub fn filled(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.bytes.len());
    }

    /// Whether bytes are here that belong to no command yet.
    pub const fn has_rest(&self) -> bool {
        self.begin < self.filled
    }

    /// Reads on; returns whether a command is whole. It stays so until [`Self::consume`].
    ///
    /// # Errors
    /// Bytes that are no command.
    pub fn read(&mut self) -> Result<bool, FrameError> {
        while !self.is_whole {
            if self.left > 0 {
                if !self.read_words()? {
                    return Ok(false);
                }
                self.is_whole = true;
                continue;
            }
            match self.rest().first() {
                None => return Ok(false),
                Some(b'*') if !self.is_inline => {
                    let Some(count) = self.number(FrameError::Count)? else { return Ok(false) };
                    if count > ARGS_MAX as i64 {
                        return Err(FrameError::Count);
                    }
                    if count > 0 {
                        self.left = count as usize;
                    } else {
                        // An empty array and a missing one are no command, and no error.
                        self.skip();
                    }
                }
                Some(_) => {
                    self.is_inline = true;
                    if !self.read_line()? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// The words of the command that is whole.
    pub fn args(&self) -> Args<'_> {
        let bytes = if self.is_inline { &self.words[..] } else { &self.bytes[self.begin..self.filled] };
        Args { bytes, places: &self.places }
    }

    /// Goes on behind the command that is whole.
    pub fn consume(&mut self) {
        self.skip();
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.begin + self.at..self.filled]
    }

    fn skip(&mut self) {
        self.begin += self.at;
        self.at = 0;
        self.left = 0;
        self.places.clear();
        self.words.clear();
        self.is_inline = false;
        self.is_whole = false;
    }

    /// Reads the words that have all come; returns whether that were all.
    fn read_words(&mut self) -> Result<bool, FrameError> {
        while self.left > 0 {
            match self.rest().first() {
                None => return Ok(false),
                Some(b'$') => {}
                Some(other) => return Err(FrameError::NoBulk(*other)),
            }
            let before = self.at;
            let Some(length) = self.number(FrameError::Length)? else { return Ok(false) };
            let length = usize::try_from(length).map_err(|_| FrameError::Length)?;
            if length > COMMAND_BYTES_MAX {
                return Err(FrameError::Length);
            }
            if self.at + length + 2 > COMMAND_BYTES_MAX {
                return Err(FrameError::TooLong);
            }
            let Some(word) = self.rest().get(..length + 2) else {
                self.at = before;
                return Ok(false);
            };
            if !word.ends_with(b"\r\n") {
                return Err(FrameError::Unended);
            }
            self.places.push((self.at as u32, (self.at + length) as u32));
            self.at += length + 2;
            self.left -= 1;
        }
        Ok(true)
    }

    /// Reads a line of a letter and a number; `None` if it has not come yet.
    fn number(&mut self, error: FrameError) -> Result<Option<i64>, FrameError> {
        let rest = self.rest();
        let line = &rest[..rest.len().min(LENGTH_BYTES_MAX)];
        let Some(end) = line.iter().position(|byte| [b'\r', b'\n'].contains(byte)) else {
            return if line.len() < LENGTH_BYTES_MAX { Ok(None) } else { Err(error) };
        };
        match (rest[end], rest.get(end + 1)) {
            (b'\r', None) => return Ok(None),
            (b'\r', Some(b'\n')) => {}
            _ => return Err(error),
        }
        let number = number(&rest[1..end]).ok_or(error)?;
        self.at += end + 2;
        Ok(Some(number))
    }

    /// Reads an inline command; returns whether its line has come. An empty line is skipped.
    fn read_line(&mut self) -> Result<bool, FrameError> {
        let rest = self.rest();
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            self.at += rest.len();
            return if self.at < INLINE_BYTES_MAX { Ok(false) } else { Err(FrameError::InlineTooLong) };
        };
        self.at += end + 1;
        if self.at > INLINE_BYTES_MAX {
            return Err(FrameError::InlineTooLong);
        }
        let line = &self.bytes[self.begin..self.begin + self.at - 1];
        split(line.strip_suffix(b"\r").unwrap_or(line), &mut self.words, &mut self.places)?;
        if self.places.is_empty() {
            self.skip();
            return Ok(true);
        }
        let first = self.args().word(0);
        if first.eq_ignore_ascii_case(b"post") || first.eq_ignore_ascii_case(b"host:") {
            return Err(FrameError::Http);
        }
        self.is_whole = true;
        Ok(true)
    }
}

/// A decimal number as RESP writes lengths.
pub(super) fn number(digits: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match digits {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(if is_negative { -value } else { value })
}

/// Splits a line at its blanks. Words may stand in quotes: in double ones `\n`, `\r`, `\t`, `\b`, `\a`, `\\`,
/// `\"` and `\xHH` mean a byte each, in single ones only `\'` does.
fn split(line: &[u8], words: &mut Vec<u8>, places: &mut Vec<(u32, u32)>) -> Result<(), FrameError> {
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        let Some(first) = line.get(at) else { return Ok(()) };
        if places.len() == ARGS_MAX {
            return Err(FrameError::Count);
        }
        let begin = words.len() as u32;
        if [b'"', b'\''].contains(first) {
            at = unquote(line, at, words)?;
            if line.get(at).is_some_and(|next| !next.is_ascii_whitespace()) {
                return Err(FrameError::Quotes);
            }
        } else {
            let word = &line[at..];
            let end = word.iter().position(u8::is_ascii_whitespace).unwrap_or(word.len());
            words.extend_from_slice(&word[..end]);
            at += end;
        }
        places.push((begin, words.len() as u32));
    }
}

/// Adds the quoted word that begins at `at`; returns where it ends.
fn unquote(line: &[u8], mut at: usize, words: &mut Vec<u8>) -> Result<usize, FrameError> {
    let quote = line[at];
    at += 1;
    loop {
        match line[at..] {
            [] => return Err(FrameError::Quotes),
            [end, ..] if end == quote => return Ok(at + 1),
            [b'\\', b'x', high, low, ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                words.push(hex(high) << 4 | hex(low));
                at += 4;
            }
            [b'\\', escaped, ..] if quote == b'"' => {
                words.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => other,
                });
                at += 2;
            }
            [b'\\', b'\'', ..] if quote == b'\'' => {
                words.push(b'\'');
                at += 2;
            }
            [plain, ..] => {
                words.push(plain);
                at += 1;
            }
        }
    }
}

/// The value of a hexadecimal digit.
const fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Commands = Vec<Vec<Vec<u8>>>;

    /// The commands in these bytes, which come in pieces of so many bytes, and the error behind them.
    fn read(bytes: &[u8], piece: usize) -> (Commands, Option<FrameError>) {
        let (mut reader, mut found) = (RespReader::new(), Commands::new());
        for piece in bytes.chunks(piece.max(1)) {
            let mut rest = piece;
            while !rest.is_empty() {
                let room = reader.room();
                let count = room.len().min(rest.len());
                room[..count].copy_from_slice(&rest[..count]);
                reader.filled(count);
                rest = &rest[count..];
                loop {
                    match reader.read() {
                        Ok(false) => break,
                        Err(why) => return (found, Some(why)),
                        Ok(true) => {
                            found.push(reader.args().from(0).map(<[u8]>::to_vec).collect());
                            reader.consume();
                        }
                    }
                }
            }
        }
        (found, None)
    }

    fn words(text: &[&str]) -> Vec<Vec<u8>> {
        text.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn commands_are_found_however_they_are_cut() {
        let bytes =
            b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\nset k \"v \\x41\"\n";
        let expected = [words(&["GET", "a"]), words(&["PING"]), words(&[""]), words(&["set", "k", "v A"])];
        for piece in 1..bytes.len() {
            assert_eq!(read(bytes, piece), (expected.to_vec(), None), "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_command_is_told_apart() {
        for (bytes, why) in [
            (&b"*x\r\n"[..], FrameError::Count),
            (b"*1026\r\n", FrameError::Count),
            (b"*9999999999999999999999999999\r\n", FrameError::Count),
            (b"*1\n", FrameError::Count),
            (b"*1\r\nx", FrameError::NoBulk(b'x')),
            (b"*1\r\n$-1\r\n", FrameError::Length),
            (b"*1\r\n$262145\r\n", FrameError::Length),
            (b"*1\r\n$18446744073709551617\r\n", FrameError::Length),
            (b"*1\r\n$262144\r\n", FrameError::TooLong),
            (b"*1\r\n$1\r\nabc", FrameError::Unended),
            (b"get \"x\r\n", FrameError::Quotes),
            (b"get \"x\"y\r\n", FrameError::Quotes),
            (b"POST / HTTP/1.1\r\n", FrameError::Http),
            (b"\r\nhost: localhost\r\n", FrameError::Http),
        ] {
            let piece = bytes.len();
            assert_eq!(read(bytes, piece), (Vec::new(), Some(why)), "{}", bytes.escape_ascii());
        }
        // Bytes without an end: each kind of line has its limit.
        let (_, why) = read(&[b'*'; 64], 1);
        assert_eq!(why, Some(FrameError::Count));
        let (_, why) = read(&vec![b'a'; INLINE_BYTES_MAX + 1], 1_000);
        assert_eq!(why, Some(FrameError::InlineTooLong));
    }

    #[test]
    fn a_half_escape_is_only_bytes() {
        for (line, word) in
            [(r#"echo "x\x4""#, "xx4"), (r#"echo "\xfg""#, "xfg"), (r#"echo "ax\\x""#, "ax\\x")]
        {
            assert_eq!(read(format!("{line}\n").as_bytes(), 5), (vec![words(&["echo", word])], None));
        }
        assert_eq!(read(b"echo 'it\\'s \\n'\n", 5), (vec![words(&["echo", "it's \\n"])], None));
    }

    #[test]
    fn the_longest_command_fits_and_a_reader_gives_its_memory_back() {
        let long = vec![b'v'; COMMAND_BYTES_MAX - 100];
        let mut bytes = format!("*2\r\n$4\r\nECHO\r\n${}\r\n", long.len()).into_bytes();
        bytes.extend_from_slice(&long);
        bytes.extend_from_slice(b"\r\n");
        let (found, why) = read(&bytes, 1_400);
        assert_eq!((found.len(), why), (1, None));
        assert_eq!(found[0][1], long);

        let mut reader = RespReader::new();
        let room = reader.room();
        room[..4].copy_from_slice(b"*1\r\n");
        reader.filled(4);
        assert_eq!(reader.read(), Ok(false));
        assert!(reader.has_rest());
        reader.bytes.resize(4 * KEPT, 0);
        reader.skip();
        assert_eq!(reader.room().len(), ROOM);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            commands in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..6), 0..8),
            piece in 1_usize..100,
        ) {
            let mut bytes = Vec::new();
            for command in &commands {
                bytes.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
                for word in command {
                    bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                    bytes.extend_from_slice(word);
                    bytes.extend_from_slice(b"\r\n");
                }
            }
            prop_assert_eq!(read(&bytes, piece), (commands, None));
        }

        #[test]
        fn no_bytes_break_the_reader_and_pieces_change_nothing(
            bytes in proptest::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(b"\r\n$*1\"".to_vec())],
                0..200),
            piece in 1_usize..20,
        ) {
            prop_assert_eq!(read(&bytes, piece), read(&bytes, bytes.len()));
        }
    }
}
