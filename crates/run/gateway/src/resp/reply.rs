//! Replies as RESP2 and RESP3 write them.

use std::io::Write as _;

/// The protocol that a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Version {
    #[default]
    Resp2,
    Resp3,
}

impl Version {
    /// Nothing, where a value was asked for.
    pub(super) fn null(self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self {
            Self::Resp2 => b"$-1\r\n",
            Self::Resp3 => b"_\r\n",
        });
    }

    /// The head of a map; in RESP2 of an array of its keys and values.
    pub(super) fn map(self, pairs: usize, out: &mut Vec<u8>) {
        match self {
            Self::Resp2 => head(b'*', 2 * pairs, out),
            Self::Resp3 => head(b'%', pairs, out),
        }
    }

    /// A value, or nothing.
    pub(super) fn value(self, value: Option<&[u8]>, out: &mut Vec<u8>) {
        match value {
            Some(value) => bulk(value, out),
            None => self.null(out),
        }
    }
}

/// A string of any bytes.
pub(super) fn bulk(value: &[u8], out: &mut Vec<u8>) {
    head(b'$', value.len(), out);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The head of an array.
pub(super) fn array(length: usize, out: &mut Vec<u8>) {
    head(b'*', length, out);
}

/// A number.
pub(super) fn integer(value: u64, out: &mut Vec<u8>) {
    head(b':', value as usize, out);
}

/// A word of ours.
pub(super) fn simple(text: &str, out: &mut Vec<u8>) {
    write(format_args!("+{text}\r\n"), out);
}

/// An error: a word for programs, and a sentence, which has no control characters.
pub(super) fn error(word: &str, text: impl std::fmt::Display, out: &mut Vec<u8>) {
    write(format_args!("-{word} {text}\r\n"), out);
}

fn head(letter: u8, number: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.push(letter);
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
}

fn write(what: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
    out.write_fmt(what).expect("memory takes all that is written");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_written_as_redis_writes_them() {
        let mut out = Vec::new();
        bulk(b"a\r\nb", &mut out);
        integer(0, &mut out);
        integer(1_230, &mut out);
        array(2, &mut out);
        Version::Resp2.null(&mut out);
        Version::Resp3.null(&mut out);
        Version::Resp2.map(2, &mut out);
        Version::Resp3.map(2, &mut out);
        error("ERR", "no", &mut out);
        simple("OK", &mut out);
        assert_eq!(out, b"$4\r\na\r\nb\r\n:0\r\n:1230\r\n*2\r\n$-1\r\n_\r\n*4\r\n%2\r\n-ERR no\r\n+OK\r\n");
    }
}
