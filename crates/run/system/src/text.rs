//! Text files as people and other programs write them, line by line.
//!
//! A mark of byte order before UTF-8 is passed over, and lines may end as on Windows. What is no such text is
//! refused with the line where that shows, and nothing without an end is read to its end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::advice::{Attempt, advice};

/// The most bytes of a file that is read as a whole.
pub const TEXT_BYTES_MAX: u64 = 64 << 20;
/// The most bytes of a line.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// What stands before UTF-8 in files of some programs.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// The first bytes of what people take for text, what that is, and what makes text of it.
const NO_TEXT: [(&[u8], &str); 8] = [
    (b"\xff\xfe", "UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"),
    (b"\xfe\xff", "UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"),
    (b"\x1f\x8b", "packed (gzip): unpack it first"),
    (b"\x28\xb5\x2f\xfd", "packed (zstd): unpack it first"),
    (b"\xfd7zXZ", "packed (xz): unpack it first"),
    (b"BZh", "packed (bzip2): unpack it first"),
    (b"PK\x03\x04", "a ZIP file or a spreadsheet: save it as text (CSV)"),
    (b"PAR1", "a Parquet file: save it as text (CSV)"),
];

/// Why a file cannot be read as text.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The system cannot read the file.
    #[error("{why}; {}", advice(Attempt::Read, .why))]
    System {
        #[from]
        why: io::Error,
    },
    /// The file is no text from this line on.
    #[error("line {line}: {why}")]
    Line {
        /// From 1.
        line: usize,
        /// What the line contains instead of text, and what to do.
        why: String,
    },
}

/// Reads a file as a whole.
pub fn read(path: &Path) -> Result<String, TextError> {
    read_from(File::open(path)?)
}

/// Reads the source to its end, and returns the bytes as text. The call returns only when the source ends,
/// or has given more bytes than a text may have.
pub fn read_from(from: impl Read) -> Result<String, TextError> {
    of_bytes(&whole(from)?)
}

/// Reads a file of JSON as a whole, which may be one line of any length.
pub fn read_json(path: &Path) -> Result<String, TextError> {
    checked(&whole(File::open(path)?)?, TEXT_BYTES_MAX as usize)
}

fn whole(from: impl Read) -> Result<Vec<u8>, TextError> {
    let mut bytes = Vec::new();
    from.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Checks a file's bytes and returns them as text.
pub fn of_bytes(bytes: &[u8]) -> Result<String, TextError> {
    checked(bytes, LINE_BYTES_MAX)
}

/// Checks bytes of which a line may have so many.
fn checked(bytes: &[u8], line_most: usize) -> Result<String, TextError> {
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        let (line, most) = (bytes.split(|byte| *byte == b'\n').count(), TEXT_BYTES_MAX >> 20);
        let why = format!("there are more than {most} MiB before this file ends: give a shorter one");
        return Err(TextError::Line { line, why });
    }
    let mut text = String::with_capacity(bytes.len());
    each_line_of(bytes, line_most, |line, row| {
        if line > 1 {
            text.push('\n');
        }
        text.push_str(row);
        Ok::<_, TextError>(())
    })?;
    if bytes.ends_with(b"\n") {
        text.push('\n');
    }
    Ok(text)
}

/// Hands each line to `take` with its number, from 1; says how many there are. A line is without its end.
pub fn each_line<E: From<TextError>>(
    bytes: impl Read,
    take: impl FnMut(usize, &str) -> Result<(), E>,
) -> Result<usize, E> {
    each_line_of(bytes, LINE_BYTES_MAX, take)
}

fn each_line_of<E: From<TextError>>(
    bytes: impl Read,
    line_most: usize,
    mut take: impl FnMut(usize, &str) -> Result<(), E>,
) -> Result<usize, E> {
    let (mut bytes, mut row, mut line) = (BufReader::new(bytes), Vec::new(), 0);
    loop {
        row.clear();
        if bytes.by_ref().take(line_most as u64 + 1).read_until(b'\n', &mut row).map_err(TextError::from)?
            == 0
        {
            return Ok(line);
        }
        line += 1;
        take(line, read_line(line, &row, line_most).map_err(|why| TextError::Line { line, why })?)?;
    }
}

/// One line, with its end if it has one.
fn read_line(line: usize, row: &[u8], most: usize) -> Result<&str, String> {
    let row = if line == 1 { row.strip_prefix(UTF8_MARK).unwrap_or(row) } else { row };
    if let Some((_, what)) = NO_TEXT.iter().find(|(first, _)| line == 1 && row.starts_with(first)) {
        return Err(format!("this is {what}"));
    }
    if let Some(at) = row.iter().position(|byte| *byte == 0) {
        return Err(format!("byte {} is NUL, which no text holds: give a text file (UTF-8)", at + 1));
    }
    let Some(row) = row.strip_suffix(b"\n").or((row.len() <= most).then_some(row)) else {
        return Err(format!("it is longer than {} KiB: give a text file with shorter lines", most >> 10));
    };
    let row = row.strip_suffix(b"\r").unwrap_or(row);
    let row = str::from_utf8(row).map_err(|why| {
        let at = why.valid_up_to();
        format!("byte {} (0x{:02x}) is not UTF-8: save the file as UTF-8", at + 1, row[at])
    })?;
    if row.contains('\r') {
        return Err("its lines end in CR alone: save it with line ends of Unix (LF)".to_owned());
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_mark_of_byte_order_and_line_ends_of_windows_are_passed_over() {
        for (bytes, text) in [
            (&b"\xef\xbb\xbf0,a\r\n1,b\r\n"[..], "0,a\n1,b\n"),
            (b"0,a\n1,b", "0,a\n1,b"),
            (b"", ""),
            (b"\n\n", "\n\n"),
            (b"\xef\xbb\xbf", ""),
            ("ä\n".as_bytes(), "ä\n"),
        ] {
            assert_eq!(of_bytes(bytes).unwrap(), text);
        }
    }

    #[test]
    fn what_is_no_text_is_told_with_its_line_and_what_helps() {
        let long = vec![b'1'; LINE_BYTES_MAX + 2];
        for (bytes, says) in [
            (&b"0,a\n1,b\n2,\xff\n"[..], "line 3: byte 3 (0xff) is not UTF-8"),
            (b"\xff\xfe0\0", "line 1: this is UTF-16"),
            (b"\x1f\x8b\x08", "line 1: this is packed (gzip)"),
            (b"0,a\n1,\0\n", "line 2: byte 3 is NUL"),
            (b"0,a\r1,b\r", "line 1: its lines end in CR alone"),
            (&long, "line 1: it is longer than 1024 KiB"),
        ] {
            let why = of_bytes(bytes).unwrap_err().to_string();
            assert!(why.contains(says) && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn a_folder_a_missing_file_and_one_without_an_end_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let told = |path: &Path| read(path).unwrap_err().to_string();
        assert!(told(folder.path()).contains("name a file in it"));
        assert!(told(&folder.path().join("no")).contains("there is no such file"));
        assert!(told(Path::new("/dev/zero")).contains("NUL") || told(Path::new("/dev/zero")).contains("MiB"));
        let long = folder.path().join("long");
        fs::write(&long, "1\n".repeat(1 + (TEXT_BYTES_MAX as usize >> 1))).unwrap();
        assert!(told(&long).contains("more than 64 MiB"));
    }

    #[test]
    fn json_may_be_one_long_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("study.json");
        let long = format!("[{}1]\n", "1,".repeat(LINE_BYTES_MAX));
        fs::write(&path, &long).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("longer than 1024 KiB"));
        assert_eq!(read_json(&path).unwrap(), long);
        fs::write(&path, b"\x1f\x8b\x08").unwrap();
        assert!(read_json(&path).unwrap_err().to_string().contains("packed (gzip)"));
    }

    #[test]
    fn a_line_as_long_as_may_be_is_read_with_and_without_an_end() {
        let mut long = vec![b'1'; LINE_BYTES_MAX];
        assert_eq!(of_bytes(&long).unwrap().len(), LINE_BYTES_MAX);
        long.push(b'\n');
        assert_eq!(of_bytes(&long).unwrap().len(), LINE_BYTES_MAX + 1);
    }
}
