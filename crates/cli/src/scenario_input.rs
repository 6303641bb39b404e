//! Scenarios from files and from standard input.

use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use pathweave_scenario::{Changes, Loaded};

use crate::failure::Failure;

/// Name of standard input in messages, and of scenarios that name none.
const NAME: &str = "standard input";
/// Largest scenario in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// Reads the scenario at `path`, which may be standard input. Relative file names refer to the folder of the file, or
/// to the working directory.
///
/// # Errors
/// The scenario cannot be read, or is wrong.
pub(crate) fn read(path: &Path, changes: &Changes) -> Result<Loaded, Failure> {
    if !is_standard_input(path) {
        return Ok(Loaded::read(path, changes)?);
    }
    // Standard input can be read once, and a comparison loads its scenario for each scheme.
    static TEXT: OnceLock<Result<String, String>> = OnceLock::new();
    match TEXT.get_or_init(|| text_of(std::io::stdin().lock())) {
        Ok(text) => Ok(Loaded::parse(text, NAME, "", changes)?),
        Err(why) => Err(Failure::Input(format!("cannot read a scenario from {NAME}: {why}"))),
    }
}

/// Returns true if `path` denotes standard input: `-`, or the name of its device.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    ["-", "/dev/stdin"].iter().any(|name| path.as_os_str() == *name)
}

/// Checks that a command that needs a file is given one.
///
/// # Errors
/// The path denotes standard input.
pub(crate) fn check_is_file(path: &Path) -> Result<(), Failure> {
    if is_standard_input(path) {
        let why = "this command reads files only; save the text in a file and name that file";
        return Err(Failure::Input(format!("cannot read {}: {why}", path.display())));
    }
    Ok(())
}

fn text_of(from: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|why| why.to_string())?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("more than {MOST_BYTES} bytes, the largest allowed size"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim().is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_whole_or_refused() {
        assert_eq!(text_of(&b"\xef\xbb\xbfseed = 1\n"[..]), Ok("seed = 1\n".to_owned()));
        assert_eq!(text_of(&b" \n"[..]), Err("it is empty".to_owned()));
        assert_eq!(text_of(&b"a\xff"[..]), Err("not UTF-8 text".to_owned()));
        let long = text_of(std::io::repeat(b'#')).unwrap_err();
        assert!(long.starts_with("more than 16777216 bytes"), "{long}");
        assert!(check_is_file(Path::new("-")).is_err() && check_is_file(Path::new("./-")).is_ok());
    }
}
