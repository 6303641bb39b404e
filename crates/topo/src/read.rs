//! Reading files of bounded size, and saying where in them something is wrong.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use crate::error::{Location, TopoError};

/// Largest topology file, in bytes. The largest topology allowed takes less in either format.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The text of a file of at most `most_bytes`, without the byte order mark that some editors put before it. The error is
/// the reason alone. Every file of text that people write is read by this function, whatever is in it.
pub fn read_text_file(path: &Path, most_bytes: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most_bytes {
        return Err(match most_bytes >> 20 {
            0 => format!("more than {most_bytes} bytes"),
            mib => format!("it is larger than {mib} MiB"),
        });
    }
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("not UTF-8 text (line 1): it begins as UTF-16 does".to_owned());
    }
    String::from_utf8(bytes).map_err(|why| {
        let good = &why.as_bytes()[..why.utf8_error().valid_up_to()];
        let line = good.iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("not UTF-8 text (line {line})")
    })
}

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Name (for errors) and text of a file.
pub(crate) fn read_text(base_dir: &Path, path: &Path) -> Result<(String, String), TopoError> {
    let full = base_dir.join(path);
    let name = full.display().to_string();
    match read_text_file(&full, MAX_FILE_BYTES) {
        Ok(text) => Ok((name, text)),
        Err(why) => Err(TopoError::Read { path: name, why }),
    }
}

/// The text being read, for errors.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    pub(crate) fn refuse(&self, span: Range<usize>, what: impl Into<String>) -> TopoError {
        let at = Location::of_offset(self.file, self.text, span.start);
        let what = what.into();
        match self.field_before(span.start) {
            Some(field) => TopoError::File { at, what: format!("field `{field}`: {what}") },
            None => TopoError::File { at, what },
        }
    }

    /// The key of which the value begins at byte `offset`.
    fn field_before(&self, offset: usize) -> Option<&str> {
        let before = self.text.get(..offset)?.trim_end().strip_suffix('=')?.trim_end();
        let in_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let key = &before[before.trim_end_matches(in_key).len()..];
        (!key.is_empty()).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        let path = std::env::temp_dir().join(format!("pathweave-read-{}", std::process::id()));
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_text_file(&path, 8)
        };
        assert_eq!(read(b"\xef\xbb\xbfa\n"), Ok("a\n".to_owned()));
        assert_eq!(read(b"a\n"), Ok("a\n".to_owned()));
        assert_eq!(read(b""), Ok(String::new()));
        assert_eq!(read(b"123456789").unwrap_err(), "more than 8 bytes");
        assert_eq!(read(b"a\n\xff").unwrap_err(), "not UTF-8 text (line 2)");
        assert_eq!(read(b"\xff\xfea\0").unwrap_err(), "not UTF-8 text (line 1): it begins as UTF-16 does");
        std::fs::remove_file(&path).unwrap();
        assert!(read_text_file(&path, 8).is_err());
    }
}
