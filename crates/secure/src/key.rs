//! Cluster key: the secret that all hosts of a cluster share.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::hmac;
use thiserror::Error;
use zeroize::Zeroizing;

use super::key_schedule::derive;
use super::random::{RandomError, SecureRandom};

/// Bytes of a cluster key.
pub const CLUSTER_KEY_LEN: usize = 32;

/// Largest length of a key file in bytes, including comments.
const MAX_FILE_LEN: u64 = 4_096;

/// Secret of 32 bytes that all hosts of a cluster share. It only proves membership: packets are protected by fresh
/// keys for each connection, so a cluster key that leaks later decrypts no recorded traffic. Its holder can
/// impersonate any host of the cluster.
///
/// # File
///
/// One line of 64 hexadecimal digits. Empty lines and lines that begin with `#` are ignored. The file must not be
/// readable or writable by others, nor writable by its group.
#[derive(Clone)]
pub struct ClusterKey {
    secret: Zeroizing<[u8; CLUSTER_KEY_LEN]>,
    origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Secret,
    WellKnown,
}

/// Reason why a cluster key could not be read or created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file does not exist.
    #[error(
        "cluster key file {path} does not exist; `pathweave key {path}` makes one, which every host needs a copy of"
    )]
    Missing {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("cluster key file {path}: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The path is not a regular file.
    #[error("cluster key file {path} is not a regular file")]
    NotAFile {
        /// Path of the file.
        path: PathBuf,
    },
    /// Others may read or change the file.
    #[error(
        "cluster key file {path} has mode {mode:03o}: {who}; allow the owner alone with: chmod 600 {path}"
    )]
    Permissions {
        /// Path of the file.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
        /// Description of the excessive permission.
        who: &'static str,
    },
    /// The file belongs to another user, who may change it.
    #[error(
        "cluster key file {path} belongs to user {owner}, who may change it; expected user {expected} or 0: chown {expected} {path}"
    )]
    Owner {
        /// Path of the file.
        path: PathBuf,
        /// Owner of the file.
        owner: u32,
        /// User of this process.
        expected: u32,
    },
    /// The text is not a key.
    #[error("cluster key file {path}: {source}")]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// Error in the text.
        source: KeyFormatError,
    },
    /// No random bytes are available for a new key.
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// Reason why a text is not a cluster key. Never contains any part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyFormatError {
    /// No line has a key.
    #[error("no key in it; expected a line of 64 hexadecimal digits")]
    Empty,
    /// More than one line has a key.
    #[error("line {line} is a second key; expected one line of 64 hexadecimal digits")]
    Second {
        /// Number of the line, from 1.
        line: usize,
    },
    /// The line is too short or too long.
    #[error("line {line} has {found} characters, expected 64 hexadecimal digits (32 bytes)")]
    Length {
        /// Number of the line, from 1.
        line: usize,
        /// Characters of the line.
        found: usize,
    },
    /// A character is not hexadecimal.
    #[error("line {line}, column {column} is not a hexadecimal digit")]
    Digit {
        /// Number of the line, from 1.
        line: usize,
        /// Number of the character, from 1.
        column: usize,
    },
    /// All bytes are equal: a placeholder that was not replaced.
    #[error("line {line} repeats one byte 32 times; a key must be random")]
    Trivial {
        /// Number of the line, from 1.
        line: usize,
    },
    /// The text is too long for a key file, or not UTF-8.
    #[error("not a key file: more than 4,096 bytes, or not text")]
    NotText,
}

impl ClusterKey {
    /// Creates a key from its bytes.
    pub fn from_bytes(bytes: [u8; CLUSTER_KEY_LEN]) -> Self {
        ClusterKey { secret: Zeroizing::new(bytes), origin: Origin::Secret }
    }
    /// Generates a new key.
    ///
    /// # Errors
    ///
    /// [`RandomError`] if the source fails.
    pub fn generate(random: &mut dyn SecureRandom) -> Result<Self, RandomError> {
        let mut secret = Zeroizing::new([0; CLUSTER_KEY_LEN]);
        random.fill(&mut secret[..])?;
        Ok(ClusterKey { secret, origin: Origin::Secret })
    }
    /// Returns the publicly known key, for [`Protection::Insecure`](super::Protection::Insecure) without a key file.
    /// Ends with protection refuse it.
    pub fn public_key_for_insecure() -> Self {
        ClusterKey { secret: Zeroizing::new(*b"pathweave: no key, no protection"), origin: Origin::WellKnown }
    }
    /// Returns true for the publicly known key.
    pub fn is_well_known(&self) -> bool {
        self.origin == Origin::WellKnown
    }

    /// Parses the text of a key file.
    ///
    /// # Errors
    ///
    /// [`KeyFormatError`] names the line.
    pub fn parse(text: &str) -> Result<Self, KeyFormatError> {
        let mut found = None;
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            if found.is_some() {
                return Err(KeyFormatError::Second { line });
            }
            found = Some(parse_line(line, content)?);
        }
        let secret = found.ok_or(KeyFormatError::Empty)?;
        Ok(ClusterKey { secret, origin: Origin::Secret })
    }

    /// Reads a key file.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if it is missing, accessible to others, or contains no key.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let io_error = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => KeyError::Missing { path: path.into() },
            _ => KeyError::Io { path: path.into(), source },
        };
        // Opening a FIFO would block for ever.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(io_error)?;
        // The permissions are those of the open file, because the path may refer to another file by now.
        check_permissions(path, &file.metadata().map_err(io_error)?)?;
        let mut text = Zeroizing::new(Vec::with_capacity(MAX_FILE_LEN as usize + 1));
        file.take(MAX_FILE_LEN + 1).read_to_end(&mut text).map_err(io_error)?;
        let parsed = match std::str::from_utf8(&text) {
            Ok(text) if text.len() as u64 <= MAX_FILE_LEN => Self::parse(text),
            _ => Err(KeyFormatError::NotText),
        };
        parsed.map_err(|source| KeyError::Format { path: path.into(), source })
    }

    /// Writes a new key file that only its owner can read. An existing file stays unchanged, and a file that cannot
    /// be written completely is removed.
    ///
    /// # Errors
    ///
    /// [`KeyError::Io`] if the file exists or cannot be written.
    pub fn create_file(&self, path: &Path) -> Result<(), KeyError> {
        let io_error = |source: io::Error| KeyError::Io { path: path.into(), source };
        let mut file =
            File::options().write(true).create_new(true).mode(0o600).open(path).map_err(io_error)?;
        let mut text = Zeroizing::new(String::with_capacity(2 * CLUSTER_KEY_LEN + 1));
        for byte in self.secret.iter() {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(digit.into(), 16).expect("a half byte is a digit"));
            }
        }
        text.push('\n');
        let written = io::Write::write_all(&mut file, text.as_bytes()).and_then(|()| file.sync_all());
        written.map_err(|source| {
            // An incomplete key is useless. The file did not exist before, so it may be removed.
            let _ = std::fs::remove_file(path);
            io_error(source)
        })
    }

    /// Returns eight hexadecimal digits for comparing the keys of two hosts. They reveal nothing else about the key.
    pub fn fingerprint(&self) -> String {
        let mut id = [0; 4];
        derive(&self.secret[..], &[b"fingerprint"], &mut id);
        format!("{:08x}", u32::from_be_bytes(id))
    }
    /// Returns the pre-shared key of the Noise handshake.
    pub(crate) fn noise_psk(&self) -> Zeroizing<[u8; 32]> {
        let mut psk = Zeroizing::new([0; 32]);
        derive(&self.secret[..], &[b"noise psk"], &mut psk[..]);
        psk
    }
    /// Returns the key that authenticates answers outside the Noise handshake.
    pub(crate) fn answer_key(&self) -> hmac::Key {
        let mut key = Zeroizing::new([0; 32]);
        derive(&self.secret[..], &[b"answers"], &mut key[..]);
        hmac::Key::new(hmac::HMAC_SHA256, &key[..])
    }
}

fn parse_line(line: usize, content: &str) -> Result<Zeroizing<[u8; CLUSTER_KEY_LEN]>, KeyFormatError> {
    let digits = content.chars().count();
    if digits != 2 * CLUSTER_KEY_LEN {
        return Err(KeyFormatError::Length { line, found: digits });
    }
    let mut secret = Zeroizing::new([0; CLUSTER_KEY_LEN]);
    for (index, digit) in content.chars().enumerate() {
        let value = digit.to_digit(16).ok_or(KeyFormatError::Digit { line, column: index + 1 })?;
        secret[index / 2] = secret[index / 2] << 4 | value as u8;
    }
    if secret.iter().all(|byte| *byte == secret[0]) {
        return Err(KeyFormatError::Trivial { line });
    }
    Ok(secret)
}

fn check_permissions(path: &Path, metadata: &Metadata) -> Result<(), KeyError> {
    if !metadata.is_file() {
        return Err(KeyError::NotAFile { path: path.into() });
    }
    let user = rustix::process::geteuid().as_raw();
    check_owner(path, metadata.uid(), user)?;
    let mode = metadata.permissions().mode() & 0o777;
    let who = match mode {
        _ if mode & 0o004 != 0 => "everybody may read it",
        _ if mode & 0o002 != 0 => "everybody may change it",
        _ if mode & 0o020 != 0 => "its group may change it",
        _ => return Ok(()),
    };
    Err(KeyError::Permissions { path: path.into(), mode, who })
}

/// Checks that the file belongs to the user of this process, or to root, who may change everything anyway.
fn check_owner(path: &Path, owner: u32, user: u32) -> Result<(), KeyError> {
    if owner == user || owner == 0 {
        return Ok(());
    }
    Err(KeyError::Owner { path: path.into(), owner, expected: user })
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterKey({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::OsRandom;
    use super::*;

    const GOOD: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1D1E1F";

    /// File that is removed at the end of the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("pathweave-key-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = std::fs::remove_file(&path);
            Scratch(path)
        }
        fn with(name: &str, text: &[u8], mode: u32) -> Self {
            let scratch = Scratch::new(name);
            std::fs::write(&scratch.0, text).expect("a writable folder");
            std::fs::set_permissions(&scratch.0, std::fs::Permissions::from_mode(mode)).expect("our file");
            scratch
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_key_is_a_line_among_comments() {
        let key = ClusterKey::parse(&format!("# cluster 7\n\n  {GOOD}\r\n# end")).unwrap();
        assert_eq!(*key.secret, core::array::from_fn(|i| i as u8));
        assert!(!key.is_well_known());
    }

    #[test]
    fn invalid_keys_are_refused_without_showing_them() {
        use KeyFormatError::{Digit, Empty, Length, Second, Trivial};
        let short = &GOOD[..63];
        let cases = [
            ("", Empty),
            ("# only words\n", Empty),
            (short, Length { line: 1, found: 63 }),
            (&format!("\n{GOOD}0"), Length { line: 2, found: 65 }),
            (&format!("{short}g"), Digit { line: 1, column: 64 }),
            (&format!("{short}\u{e9}"), Digit { line: 1, column: 64 }),
            (&format!("{GOOD}\n{GOOD}"), Second { line: 2 }),
            (&"0".repeat(64), Trivial { line: 1 }),
            (&"ab".repeat(32), Trivial { line: 1 }),
        ];
        for (text, error) in cases {
            let found = ClusterKey::parse(text).expect_err(text);
            assert_eq!(found, error, "{text}");
            assert!(!found.to_string().contains(&GOOD[..8]));
        }
        assert!(!format!("{:?}", ClusterKey::parse(GOOD).unwrap()).contains("0203"));
    }

    #[test]
    fn a_written_key_comes_back_and_is_not_overwritten() {
        let file = Scratch::new("written");
        let key = ClusterKey::generate(&mut OsRandom).unwrap();
        key.create_file(&file.0).unwrap();
        let mode = std::fs::metadata(&file.0).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let again = ClusterKey::read(&file.0).unwrap();
        assert_eq!((again.secret, again.origin), (key.secret.clone(), Origin::Secret));
        let error = ClusterKey::public_key_for_insecure().create_file(&file.0).unwrap_err();
        assert!(matches!(error, KeyError::Io { .. }), "{error}");
    }

    #[test]
    fn files_open_to_others_are_refused() {
        for (mode, who) in [
            (0o644, "everybody may read it"),
            (0o602, "everybody may change it"),
            (0o660, "its group may change it"),
        ] {
            let file = Scratch::with("open", GOOD.as_bytes(), mode);
            let error = ClusterKey::read(&file.0).unwrap_err().to_string();
            assert!(error.contains(who) && error.contains(&format!("{mode:03o}")), "{error}");
            assert!(error.contains("chmod 600"), "{error}");
        }
        for mode in [0o600, 0o400, 0o640] {
            let file = Scratch::with("closed", GOOD.as_bytes(), mode);
            assert!(ClusterKey::read(&file.0).is_ok(), "{mode:o}");
        }
    }

    #[test]
    fn files_of_others_are_refused() {
        let path = Path::new("cluster.key");
        assert!(check_owner(path, 1_000, 1_000).is_ok() && check_owner(path, 0, 1_000).is_ok());
        let error = check_owner(path, 12_345, 0).unwrap_err().to_string();
        assert!(error.contains("cluster.key belongs to user 12345") && error.contains("chown 0"), "{error}");
    }

    #[test]
    fn files_that_are_none_are_told_apart() {
        let missing = Scratch::new("missing");
        let error = ClusterKey::read(&missing.0).unwrap_err();
        assert!(matches!(error, KeyError::Missing { .. }), "{error}");
        assert!(error.to_string().contains(missing.0.to_str().unwrap()));
        let error = ClusterKey::read(&std::env::temp_dir()).unwrap_err();
        assert!(matches!(error, KeyError::NotAFile { .. }), "{error}");
        for (text, error) in [
            (&b"\xff\xfe"[..], KeyFormatError::NotText),
            (&[b'#'; 5_000], KeyFormatError::NotText),
            (b"", KeyFormatError::Empty),
        ] {
            let file = Scratch::with("wrong", text, 0o600);
            let found = ClusterKey::read(&file.0).unwrap_err();
            assert!(matches!(found, KeyError::Format { source, .. } if source == error), "{found}");
        }
    }

    #[test]
    fn fingerprints_tell_keys_apart() {
        let one = ClusterKey::parse(GOOD).unwrap();
        assert_eq!(one.fingerprint().len(), 8);
        assert_eq!(one.fingerprint(), one.clone().fingerprint());
        assert_ne!(one.fingerprint(), ClusterKey::public_key_for_insecure().fingerprint());
        assert_ne!(one.noise_psk(), one.secret);
    }
}
