//! Arguments of a launcher to its agent, in the syntax of ssh.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::error::LabError;

/// Options of ssh(1) with a value, in the same argument or the next.
const WITH_VALUE: &[u8] = b"BbcDEeFIiJLlmOoPpQRSWw";
/// Options of ssh(1) without a value.
const WITHOUT_VALUE: &[u8] = b"46AaCfGgKkMNnqsTtVvXxYy";

/// Command for another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCommand {
    /// Name of the host, as the launcher gives it.
    pub host: String,
    /// Shell command line: ssh joins its arguments with spaces.
    pub line: OsString,
}

impl RemoteCommand {
    /// Parses `[options] HOST COMMAND...`. The options have no effect, because no ssh connection is made.
    ///
    /// # Errors
    /// An option that ssh does not have, or a missing host or command.
    pub fn parse(arguments: &[OsString]) -> Result<RemoteCommand, LabError> {
        let refuse = |value: &OsStr| LabError::Value {
            what: "agent's arguments",
            value: value.to_string_lossy().into_owned(),
            allowed: "as for ssh: [options] HOST COMMAND".to_owned(),
        };
        let all = || refuse(&arguments.join(OsStr::new(" ")));
        let mut rest = arguments.iter();
        let host = loop {
            let word = rest.next().ok_or_else(all)?;
            if word == "--" {
                break rest.next().ok_or_else(all)?;
            }
            match word.as_bytes() {
                [b'-', flags @ ..] if !flags.is_empty() => {
                    if takes_next(flags).ok_or_else(|| refuse(word))? {
                        rest.next().ok_or_else(all)?;
                    }
                }
                _ => break word,
            }
        };
        let host = host.to_str().filter(|host| !host.is_empty()).ok_or_else(|| refuse(host))?;
        let words: Vec<&[u8]> = rest.map(|word| word.as_bytes()).collect();
        let line = OsString::from_vec(words.join(&b' '));
        if line.as_bytes().iter().all(u8::is_ascii_whitespace) {
            return Err(all());
        }
        Ok(RemoteCommand { host: host.to_owned(), line })
    }
}

/// Returns true if an argument of short options takes the next argument as a value, or `None` if it has an unknown
/// option.
fn takes_next(flags: &[u8]) -> Option<bool> {
    for (at, flag) in flags.iter().enumerate() {
        if WITH_VALUE.contains(flag) {
            return Some(at + 1 == flags.len());
        }
        if !WITHOUT_VALUE.contains(flag) {
            return None;
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<(String, String), String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let parsed = RemoteCommand::parse(&words).map_err(|why| why.to_string())?;
        Ok((parsed.host, parsed.line.into_string().unwrap()))
    }

    #[test]
    fn options_are_left_out_and_words_joined() {
        for words in [
            &["host1", "orted", "-mca", "ess \"env\""][..],
            &["-x", "host1", "orted -mca", "ess \"env\""],
            &[
                "-qx",
                "-l",
                "me",
                "-oBatchMode=yes",
                "-p",
                "22",
                "--",
                "host1",
                "orted",
                "-mca",
                "ess \"env\"",
            ],
            &["-vp22", "-o", "A=b", "host1", "orted -mca ess \"env\""],
        ] {
            assert_eq!(parse(words).unwrap(), ("host1".into(), "orted -mca ess \"env\"".into()), "{words:?}");
        }
        assert_eq!(parse(&["a@b", "-x"]).unwrap(), ("a@b".into(), "-x".into()));
    }

    #[test]
    fn arguments_without_a_remote_command_are_refused() {
        for words in [&[][..], &["-x"], &["host1"], &["host1", "", " "], &["-p"], &["--"], &["", "true"]] {
            assert!(parse(words).unwrap_err().contains("[options] HOST COMMAND"), "{words:?}");
        }
        assert!(parse(&["-xZ", "host1", "true"]).unwrap_err().starts_with("agent's arguments \"-xZ\""));
    }
}
