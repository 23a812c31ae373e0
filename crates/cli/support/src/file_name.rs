//! Turns names that users choose into file names.

use std::fmt::Write;

/// A file name for a name. Letters, digits and `-_.` stay; everything else is percent-encoded as in URLs,
/// so that different names have different files. The file is never hidden, and never in another folder.
pub fn file_name(name: &str) -> String {
    let mut file = String::with_capacity(name.len());
    for (place, byte) in name.bytes().enumerate() {
        let stays = byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || byte == b'.' && place > 0;
        if stays {
            file.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(file, "%{byte:02X}");
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_lead_nowhere_and_are_told_apart() {
        for (name, file) in [
            ("get", "get"),
            ("kv/read", "kv%2Fread"),
            ("../../../evil", "%2E.%2F..%2F..%2Fevil"),
            (".", "%2E"),
            ("a\"b\nc", "a%22b%0Ac"),
            ("kv%2Fread", "kv%252Fread"),
        ] {
            assert_eq!(file_name(name), file);
        }
    }
}
