//! Reading of text files of bounded size, and locations of errors in them.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::Path;

use crate::error::{Location, TopoError};

/// Largest topology file, in bytes. The largest topology allowed takes less in either format.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Reads a file. Returns its name (for errors) and its text.
pub(crate) fn read_text(base_dir: &Path, path: &Path) -> Result<(String, String), TopoError> {
    let full = base_dir.join(path);
    let name = full.display().to_string();
    match read_text_file(&full, MAX_FILE_BYTES) {
        Ok(text) => Ok((name, text)),
        Err(why) => Err(TopoError::Read { path: name, why }),
    }
}

/// Reads a text file of at most `most` bytes. All text files that users write are read by this function.
///
/// A byte order mark at the start, which some editors add, is removed. Reading stops at the first byte that is not
/// text.
///
/// # Errors
/// The file does not exist, is a folder or a device, is larger than `most`, or is not text.
pub fn read_text_file(path: &Path, most: u64) -> Result<String, String> {
    let about = std::fs::metadata(path).map_err(|why| why.to_string())?;
    if about.is_dir() {
        return Err("it is a folder; expected a file".to_owned());
    }
    if !about.is_file() {
        return Err("not a regular file".to_owned());
    }
    if about.len() > most {
        return Err(format!("{} bytes; at most {most} are allowed", about.len()));
    }
    text_of(File::open(path).map_err(|why| why.to_string())?, most)
}

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads text like [`read_text_file`] from a source that is already open.
fn text_of(mut from: impl Read, most: u64) -> Result<String, String> {
    /// Number of bytes read at a time.
    const CHUNK_BYTES: usize = 256 << 10;
    let mut piece = vec![0; CHUNK_BYTES];
    let mut bytes: Vec<u8> = Vec::new();
    // Bytes before this offset are known to be text.
    let mut checked = 0;
    loop {
        let read = match from.read(&mut piece) {
            Err(why) if why.kind() == ErrorKind::Interrupted => continue,
            Err(why) => return Err(why.to_string()),
            Ok(read) => read,
        };
        let before = bytes.len();
        bytes.extend_from_slice(&piece[..read]);
        let line = |at: usize| bytes[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Err("not UTF-8 text (line 1): it begins as UTF-16 does".to_owned());
        }
        if let Some(nul) = piece[..read].iter().position(|&byte| byte == 0) {
            return Err(format!("not text: line {} has a byte of value 0", line(before + nul)));
        }
        match std::str::from_utf8(&bytes[checked..]) {
            Ok(_) => checked = bytes.len(),
            // A character may continue in the next chunk.
            Err(why) if why.error_len().is_none() && read > 0 => checked += why.valid_up_to(),
            Err(why) => return Err(format!("not UTF-8 text (line {})", line(checked + why.valid_up_to()))),
        }
        if bytes.len() as u64 > most {
            return Err(format!("more than {most} bytes, the largest allowed size"));
        }
        if read == 0 {
            if bytes.starts_with(BYTE_ORDER_MARK) {
                bytes.drain(..BYTE_ORDER_MARK.len());
            }
            return String::from_utf8(bytes).map_err(|why| why.to_string());
        }
    }
}

/// Text being read, for errors.
pub(crate) struct SourceText<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl SourceText<'_> {
    pub(crate) fn refuse(&self, span: Range<usize>, what: impl Into<String>) -> TopoError {
        let at = Location::of_offset(self.file, self.text, span.start);
        let what = what.into();
        match self.field_before(span.start) {
            Some(field) => TopoError::File { at, what: format!("field `{field}`: {what}") },
            None => TopoError::File { at, what },
        }
    }

    /// Returns the key whose value begins at byte `offset`.
    fn field_before(&self, offset: usize) -> Option<&str> {
        let before = self.text.get(..offset)?.trim_end().strip_suffix('=')?.trim_end();
        let in_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let key = &before[before.trim_end_matches(in_key).len()..];
        (!key.is_empty()).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Reader that counts the bytes read from it.
    struct Counted<R> {
        from: R,
        read: u64,
    }

    impl<R: Read> Read for Counted<R> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let read = self.from.read(into)?;
            self.read += read as u64;
            Ok(read)
        }
    }

    /// Returns the result, and the number of bytes read for it.
    fn look(from: impl Read, most: u64) -> (Result<String, String>, u64) {
        let mut counted = Counted { from, read: 0 };
        (text_of(&mut counted, most), counted.read)
    }

    #[test]
    fn binary_files_are_refused_at_once() {
        let sevens = || io::repeat(b'7').take(1 << 20).chain(&b"\n"[..]);
        let (zeros, read) = look(io::repeat(0), 1 << 40);
        assert_eq!(zeros.unwrap_err(), "not text: line 1 has a byte of value 0");
        assert!(read <= 1 << 18, "{read} bytes of zeros were read");
        let (after, read) = look(sevens().chain(io::repeat(0)), 1 << 40);
        assert_eq!(after.unwrap_err(), "not text: line 2 has a byte of value 0");
        assert!(read < (1 << 20) + (1 << 19), "{read} bytes were read");
        let (binary, read) = look(sevens().chain(io::repeat(0xff)), 1 << 40);
        assert_eq!(binary.unwrap_err(), "not UTF-8 text (line 2)");
        assert!(read < (1 << 20) + (1 << 19), "{read} bytes were read");
        let (long, read) = look(io::repeat(b'7'), 1 << 20);
        assert_eq!(long.unwrap_err(), "more than 1048576 bytes, the largest allowed size");
        assert!(read <= (1 << 20) + (1 << 18), "{read} bytes were read");
    }

    #[test]
    fn text_arrives_whole_in_pieces_of_any_size() {
        /// Reader that returns one byte at a time.
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let Some((&first, rest)) = self.0.split_first() else { return Ok(0) };
                (into[0], self.0) = (first, rest);
                Ok(1)
            }
        }
        let text = "10 µs, é\r\nend";
        assert_eq!(look(Slow(text.as_bytes()), 100).0.as_deref(), Ok(text));
        assert_eq!(look(&b""[..], 100).0.as_deref(), Ok(""));
        assert_eq!(look(&"µ".as_bytes()[..1], 100).0.unwrap_err(), "not UTF-8 text (line 1)");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        let read = |bytes: &[u8]| look(bytes, 8).0;
        assert_eq!(read(b"\xef\xbb\xbfa\n"), Ok("a\n".to_owned()));
        assert_eq!(read(b"a\n"), Ok("a\n".to_owned()));
        assert_eq!(read(b"123456789").unwrap_err(), "more than 8 bytes, the largest allowed size");
        assert_eq!(read(b"a\n\xff").unwrap_err(), "not UTF-8 text (line 2)");
        assert_eq!(read(b"\xff\xfea\0").unwrap_err(), "not UTF-8 text (line 1): it begins as UTF-16 does");
    }

    #[test]
    fn folders_and_missing_files_say_so() {
        assert_eq!(read_text_file(Path::new("."), 10).unwrap_err(), "it is a folder; expected a file");
        assert!(read_text_file(Path::new("no-such-file"), 10).unwrap_err().contains("No such file"));
    }
}
