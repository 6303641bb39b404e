//! Names of labs and of their network namespaces.
//!
//! Node `leaf0` of lab `demo` is the namespace `pw.demo.leaf0`, which `ip netns` lists, too. All parts of a lab are
//! found by this prefix, even if the process that created them has died.

use std::fmt;
use std::str::FromStr;

use crate::error::LabError;

const PREFIX: &str = "pw.";
/// Longest name of a lab.
const LONGEST: usize = 24;
/// Longest file name, and so longest name of a namespace, in bytes.
const LONGEST_FILE_NAME: usize = 255;

/// Name of a lab: 1 to 24 lower-case letters, digits or hyphens, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabName(String);

impl LabName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Derives a valid name from any text, for instance the name of a scenario. Each invalid character becomes a
    /// hyphen.
    pub fn from_text(text: &str) -> LabName {
        let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String =
            text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).chars().map(allowed).collect();
        let name: String = name.chars().take(LONGEST).collect();
        LabName(if name.is_empty() { "lab".to_owned() } else { name })
    }

    /// Returns the name of a node's namespace. Characters that are unsafe in file names or shells are written as %XX.
    pub(crate) fn namespace(&self, node: &str) -> Result<String, LabError> {
        let mut name = self.prefix();
        for byte in node.bytes() {
            if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
                name.push(char::from(byte));
            } else {
                name.push_str(&format!("%{byte:02X}"));
            }
        }
        if name.len() > LONGEST_FILE_NAME {
            let allowed = format!(
                "its namespace would be named with {} bytes, at most {LONGEST_FILE_NAME} are allowed: shorten the name",
                name.len()
            );
            return Err(LabError::Value { what: "node name", value: node.to_owned(), allowed });
        }
        Ok(name)
    }

    /// Returns the prefix of the names of this lab's namespaces.
    pub(crate) fn prefix(&self) -> String {
        format!("{PREFIX}{}.", self.0)
    }

    /// Returns the node that a namespace of this lab belongs to.
    pub(crate) fn node_of(&self, namespace: &str) -> Option<String> {
        let mut rest = namespace.strip_prefix(&self.prefix())?.bytes();
        let mut bytes = Vec::new();
        while let Some(byte) = rest.next() {
            if byte != b'%' {
                bytes.push(byte);
                continue;
            }
            let mut digit =
                || char::from(rest.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            bytes.push(digit()? << 4 | digit()?);
        }
        String::from_utf8(bytes).ok().filter(|node| !node.is_empty())
    }

    /// Returns the lab that a namespace belongs to, or `None` if it belongs to none.
    pub(crate) fn of_namespace(namespace: &str) -> Option<LabName> {
        let (lab, node) = namespace.strip_prefix(PREFIX)?.split_once('.')?;
        lab.parse().ok().filter(|_| !node.is_empty())
    }
}

impl FromStr for LabName {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text.is_empty() || text.len() > LONGEST || !text.chars().all(allowed) || text.starts_with('-') {
            return Err(LabError::Value {
                what: "lab name",
                value: text.to_owned(),
                allowed: format!(
                    "1 to {LONGEST} lower-case letters, digits or hyphens, beginning with a letter or digit; \
                     nearest: \"{}\"",
                    LabName::from_text(text)
                ),
            });
        }
        Ok(LabName(text.to_owned()))
    }
}

impl fmt::Display for LabName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_carry_lab_and_node() {
        let lab: LabName = "demo-1".parse().unwrap();
        assert_eq!(lab.namespace("agg0.1").unwrap(), "pw.demo-1.agg0.1");
        assert_eq!(lab.namespace("a/b:c").unwrap(), "pw.demo-1.a%2Fb%3Ac");
        assert_eq!(LabName::of_namespace("pw.demo-1.agg0.1"), Some(lab.clone()));
        for node in ["agg0.1", "a/b:c", "100%", "é"] {
            assert_eq!(lab.node_of(&lab.namespace(node).unwrap()).as_deref(), Some(node));
        }
        assert_eq!(lab.node_of("pw.demo-1.%4"), None);
        assert_eq!(lab.node_of("pw.other.x"), None);
        for other in ["demo", "pw.", "pw.demo-1", "pw.demo-1.", "pw.De.x", "docker0"] {
            assert_eq!(LabName::of_namespace(other), None, "{other}");
        }
        let long = lab.namespace(&"é".repeat(64)).unwrap_err().to_string();
        assert!(long.contains("would be named with 394 bytes, at most 255"), "{long}");
    }

    #[test]
    fn wrong_names_are_answered_with_the_nearest() {
        let error = "My Lab".parse::<LabName>().unwrap_err().to_string();
        assert!(error.starts_with("lab name \"My Lab\": 1 to 24 lower-case"), "{error}");
        assert!(error.ends_with("nearest: \"my-lab\""), "{error}");
        for wrong in ["", "-a", "a.b", "a/b", "ä", &"x".repeat(25)] {
            assert!(wrong.parse::<LabName>().is_err(), "{wrong}");
            assert!(LabName::from_text(wrong).as_str().parse::<LabName>().is_ok(), "{wrong}");
        }
    }
}
