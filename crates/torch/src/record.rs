//! Texts that processes exchange through torch's store, and the greeting of a connection.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

/// Version of the record and of the frames between processes.
const VERSION: u16 = 2;
const NAME: &str = "pathweave";
const GREETING: [u8; 4] = *b"PWTD";

/// Number of a process that a stranger does not guess.
pub(crate) type Cookie = [u8; 16];

/// A member of a group, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) cookie: Cookie,
    /// Number that the group gets if this is its first rank.
    pub(crate) group: u64,
    pub(crate) addresses: Vec<SocketAddr>,
}

/// Returns a random number. The hasher's keys are random; the cluster's key protects connections.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Returns a random cookie.
pub(crate) fn new_cookie() -> Cookie {
    let mut cookie = [0; 16];
    cookie.chunks_mut(8).for_each(|half| half.copy_from_slice(&random().to_le_bytes()));
    cookie
}

impl Record {
    /// Returns the text for the store.
    pub(crate) fn encode(&self) -> String {
        let addresses: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        let cookie = u128::from_be_bytes(self.cookie);
        format!("{NAME} {VERSION} {cookie:032x} {:016x} {}", self.group, addresses.join(","))
    }

    /// Parses a text of the store.
    ///
    /// # Errors
    /// One line for users.
    pub(crate) fn decode(text: &str) -> Result<Self, String> {
        let wrong = || format!("the store has {text:?} where a rank's address is expected");
        let mut parts = text.split(' ');
        let (name, version) = (parts.next(), parts.next());
        if name != Some(NAME) {
            return Err(wrong());
        }
        if version.and_then(|version| version.parse().ok()) != Some(VERSION) {
            let other = version.unwrap_or_default();
            return Err(format!("a rank uses version {other} of the backend, this one version {VERSION}"));
        }
        let (Some(cookie), Some(group), Some(addresses), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        Ok(Record {
            cookie: u128::from_str_radix(cookie, 16).map_err(|_| wrong())?.to_be_bytes(),
            group: u64::from_str_radix(group, 16).map_err(|_| wrong())?,
            addresses: addresses
                .split(',')
                .map(|one| one.parse().map_err(|_| wrong()))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Returns the private data of a connection from one process to another.
pub(crate) fn greeting(from: &Cookie, to: &Cookie, identity: &[u8]) -> Vec<u8> {
    let mut bytes = GREETING.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(from);
    bytes.extend(to);
    bytes.extend(identity);
    bytes
}

/// Returns the process that a connection comes from, with its identity on its host, if it is meant for this one.
pub(crate) fn greeted<'a>(bytes: &'a [u8], own: &Cookie) -> Option<(Cookie, &'a [u8])> {
    let rest = bytes.strip_prefix(&GREETING)?.strip_prefix(&VERSION.to_le_bytes())?;
    let (from, rest) = rest.split_first_chunk()?;
    let (to, identity) = rest.split_first_chunk()?;
    (to == own).then_some((*from, identity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_others_are_refused_by_name() {
        let addresses = ["127.0.0.1:7", "[fd00::1]:80"].map(|text| text.parse().unwrap()).to_vec();
        let record = Record { cookie: [0xa1; 16], group: 5, addresses };
        let text = record.encode();
        assert_eq!(Record::decode(&text), Ok(record));
        for (wrong, named) in [
            (text.replace("weave 2", "weave 3"), "version 3"),
            (text.replace("pathweave", "gloo"), "gloo"),
            (text.replace("127", "x"), "x.0.0.1"),
            (format!("{text} more"), "more"),
            (String::new(), "address is expected"),
        ] {
            let error = Record::decode(&wrong).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_greeting_is_for_one_process() {
        let bytes = greeting(&[1; 16], &[2; 16], b"me");
        assert_eq!(greeted(&bytes, &[2; 16]), Some(([1; 16], &b"me"[..])));
        assert_eq!((greeted(&bytes, &[3; 16]), greeted(&bytes[..30], &[2; 16])), (None, None));
        assert!(new_cookie() != new_cookie());
    }
}
