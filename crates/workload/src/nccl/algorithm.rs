//! Algorithms and protocols of NCCL, by its own names.

use std::fmt;
use std::str::FromStr;

use pathweave_units::closest_name;
use serde::Serialize;

/// Algorithm of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// Two complementary trees over the servers, and a chain inside each.
    Tree,
    /// Rings through all GPUs.
    Ring,
    /// Switches of the network reduce (SHARP); each GPU sends to all NICs of its server.
    CollNetDirect,
    /// Switches of the network reduce (SHARP); a chain inside each server.
    CollNetChain,
    /// Switches of the scale-up network reduce (NVLink SHARP).
    Nvls,
    /// NVLS inside each server, and trees between the servers.
    NvlsTree,
    /// Parallel aggregated trees, for servers with one GPU.
    Pat,
}

/// Protocol of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Protocol {
    /// Low latency: a flag for each 4 bytes of data.
    #[serde(rename = "LL")]
    Ll,
    /// Low latency with 120 bytes of data in 128.
    #[serde(rename = "LL128")]
    Ll128,
    /// Slots of a buffer with a barrier each.
    Simple,
}

impl Algorithm {
    /// All algorithms, in the order in which a tie is decided.
    pub const ALL: [Algorithm; 7] = [
        Algorithm::Tree,
        Algorithm::Ring,
        Algorithm::CollNetDirect,
        Algorithm::CollNetChain,
        Algorithm::Nvls,
        Algorithm::NvlsTree,
        Algorithm::Pat,
    ];

    /// Returns the name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Tree => "tree",
            Algorithm::Ring => "ring",
            Algorithm::CollNetDirect => "collnetdirect",
            Algorithm::CollNetChain => "collnetchain",
            Algorithm::Nvls => "nvls",
            Algorithm::NvlsTree => "nvlstree",
            Algorithm::Pat => "pat",
        }
    }
}

impl Protocol {
    /// All protocols, in the order in which a tie is decided.
    pub const ALL: [Protocol; 3] = [Protocol::Ll, Protocol::Ll128, Protocol::Simple];

    /// Returns the name as NCCL writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Ll => "LL",
            Protocol::Ll128 => "LL128",
            Protocol::Simple => "Simple",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn by_name<T: Copy>(kind: &str, text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    let same = |&&one: &&T| name(one).eq_ignore_ascii_case(text.trim());
    all.iter().find(same).copied().ok_or_else(|| {
        let names = || all.iter().map(|&one| name(one));
        let nearest = closest_name(text, names()).map(|name| format!("; did you mean \"{name}\"?"));
        let known: Vec<_> = names().collect();
        format!("no {kind} is named \"{text}\"{}; known: {}", nearest.unwrap_or_default(), known.join(", "))
    })
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name("algorithm", text, &Algorithm::ALL, Algorithm::name)
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name("protocol", text, &Protocol::ALL, Protocol::name)
    }
}

/// Algorithms and protocols that may be chosen, as `NCCL_ALGO` and `NCCL_PROTO` state them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Algorithms allowed. Empty: all.
    pub algorithms: Vec<Algorithm>,
    /// Protocols allowed. Empty: all.
    pub protocols: Vec<Protocol>,
}

impl Choices {
    /// Returns true if both may be chosen.
    pub fn allow(&self, algorithm: Algorithm, protocol: Protocol) -> bool {
        (self.algorithms.is_empty() || self.algorithms.contains(&algorithm))
            && (self.protocols.is_empty() || self.protocols.contains(&protocol))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        assert_eq!("NVLSTree".parse(), Ok(Algorithm::NvlsTree));
        assert_eq!("ll128".parse(), Ok(Protocol::Ll128));
        let error = "rign".parse::<Algorithm>().unwrap_err();
        assert!(
            error.starts_with("no algorithm is named \"rign\"; did you mean \"ring\"?; known: tree"),
            "{error}"
        );
        let error = "LL64".parse::<Protocol>().unwrap_err();
        assert!(error.contains("known: LL, LL128, Simple"), "{error}");
    }
}
