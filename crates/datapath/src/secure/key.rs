//! The cluster key: what all hosts of a cluster share and nobody else knows.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::hmac;
use thiserror::Error;
use zeroize::Zeroizing;

use super::random::{RandomError, SecureRandom};
use super::schedule::derive;

/// Bytes of a cluster key.
pub const CLUSTER_KEY_LEN: usize = 32;

/// No key file is longer than this, comments included.
const MAX_FILE_LEN: u64 = 4_096;

/// A secret of 32 bytes that all hosts of a cluster share. It proves membership and nothing more: packets are
/// protected by keys that are made afresh for each connection, so a cluster key that leaks later opens no recorded
/// traffic. Whoever has it can pose as any host of the cluster.
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

/// Why there is no cluster key.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No such file.
    #[error(
        "cluster key file {path} does not exist; make one with 64 hexadecimal digits, the same on every host"
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("cluster key file {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Not a regular file.
    #[error("cluster key file {path} is not a regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Others may read or change it.
    #[error(
        "cluster key file {path} has mode {mode:03o}: {who}; allow the owner alone with: chmod 600 {path}"
    )]
    Permissions {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Who may do what.
        who: &'static str,
    },
    /// The text is not a key.
    #[error("cluster key file {path}: {source}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: KeyFormatError,
    },
    /// No random bytes to make a key from.
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// Why a text is not a cluster key. Never shows what might be a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyFormatError {
    /// No line with a key.
    #[error("no key in it; expected a line of 64 hexadecimal digits")]
    Empty,
    /// More than one line with a key.
    #[error("line {line} is a second key; expected one line of 64 hexadecimal digits")]
    Second {
        /// Number of the line, from 1.
        line: usize,
    },
    /// Too short or too long.
    #[error("line {line} has {found} characters, expected 64 hexadecimal digits (32 bytes)")]
    Length {
        /// Number of the line, from 1.
        line: usize,
        /// Characters it has.
        found: usize,
    },
    /// Not hexadecimal.
    #[error("line {line}, column {column} is not a hexadecimal digit")]
    Digit {
        /// Number of the line, from 1.
        line: usize,
        /// Number of the character, from 1.
        column: usize,
    },
    /// All bytes alike: a placeholder somebody forgot to replace.
    #[error("line {line} repeats one byte 32 times; a key must be random")]
    Trivial {
        /// Number of the line, from 1.
        line: usize,
    },
    /// Too long for a key file, or not text.
    #[error("not a key file: more than 4,096 bytes, or not text")]
    NotText,
}

impl ClusterKey {
    /// A key from its bytes.
    pub fn from_bytes(bytes: [u8; CLUSTER_KEY_LEN]) -> Self {
        ClusterKey { secret: Zeroizing::new(bytes), origin: Origin::Secret }
    }
    /// A new key.
    ///
    /// # Errors
    ///
    /// [`RandomError`] if the source fails.
    pub fn generate(random: &mut dyn SecureRandom) -> Result<Self, RandomError> {
        let mut secret = Zeroizing::new([0; CLUSTER_KEY_LEN]);
        random.fill(&mut secret[..])?;
        Ok(ClusterKey { secret, origin: Origin::Secret })
    }
    /// The key everybody knows, for [`Protection::Insecure`](super::Protection::Insecure) without a key file. Ends
    /// with protection refuse it.
    pub fn well_known() -> Self {
        ClusterKey { secret: Zeroizing::new(*b"pathweave: no key, no protection"), origin: Origin::WellKnown }
    }
    /// It is the key everybody knows.
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
    /// [`KeyError`] if it is missing, open to others, or holds no key.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let io_error = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => KeyError::Missing { path: path.into() },
            _ => KeyError::Io { path: path.into(), source },
        };
        // A FIFO would hold the program up for ever.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(io_error)?;
        // Of the open file, not of the name: the name may mean another file by now.
        check_permissions(path, &file.metadata().map_err(io_error)?)?;
        let mut text = Zeroizing::new(Vec::with_capacity(MAX_FILE_LEN as usize + 1));
        file.take(MAX_FILE_LEN + 1).read_to_end(&mut text).map_err(io_error)?;
        let parsed = match std::str::from_utf8(&text) {
            Ok(text) if text.len() as u64 <= MAX_FILE_LEN => Self::parse(text),
            _ => Err(KeyFormatError::NotText),
        };
        parsed.map_err(|source| KeyError::Format { path: path.into(), source })
    }

    /// Makes a key file only its owner can read. An existing file is not touched.
    ///
    /// # Errors
    ///
    /// [`KeyError::Io`] if it exists already or cannot be written.
    pub fn write_new(&self, path: &Path) -> Result<(), KeyError> {
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
        io::Write::write_all(&mut file, text.as_bytes()).and_then(|()| file.sync_all()).map_err(io_error)
    }

    /// Eight hexadecimal digits by which people can tell whether two hosts have the same key. Says nothing else
    /// about it.
    pub fn fingerprint(&self) -> String {
        let mut id = [0; 4];
        derive(&self.secret[..], &[b"fingerprint"], &mut id);
        format!("{:08x}", u32::from_be_bytes(id))
    }
    /// The pre-shared key of the Noise handshake.
    pub(crate) fn noise_psk(&self) -> Zeroizing<[u8; 32]> {
        let mut psk = Zeroizing::new([0; 32]);
        derive(&self.secret[..], &[b"noise psk"], &mut psk[..]);
        psk
    }
    /// What answers outside the Noise handshake are authenticated with.
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
    let mode = metadata.permissions().mode() & 0o777;
    let who = match mode {
        _ if mode & 0o004 != 0 => "everybody may read it",
        _ if mode & 0o002 != 0 => "everybody may change it",
        _ if mode & 0o020 != 0 => "its group may change it",
        _ => return Ok(()),
    };
    Err(KeyError::Permissions { path: path.into(), mode, who })
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterKey({})", self.fingerprint())
    }
}
