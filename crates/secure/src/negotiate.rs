//! Negotiation: parameters of a connection from two hellos. Both ends compute the same result from the same two
//! hellos.

use core::fmt;

use super::hello::{Features, Hello, TransportType};
use super::protection::Protection;

/// Parameters on which both ends agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionParams {
    /// Version of handshake and packet protection.
    pub version: u8,
    /// Protection of packets.
    pub protection: Protection,
    /// Transport service.
    pub transport: TransportType,
    /// Scheme of both ends.
    pub scheme: String,
    /// Payload of a full packet, in bytes.
    pub mtu_payload: u16,
    /// Number of paths in each direction.
    pub paths: u16,
    /// Features that both ends support.
    pub features: Features,
}

/// Reason why a connection is refused. It is authenticated, so it comes from a member of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The refusing end uses another protection.
    Protection {
        /// Protection of the refusing end.
        theirs: Protection,
    },
    /// The refusing end uses another transport service.
    Transport,
    /// The scheme is unknown or not allowed at the refusing end.
    Scheme,
    /// One end requires features that the other lacks.
    Features {
        /// Features that only one end has.
        missing: Features,
    },
    /// The refusing end does not know an option that must be understood.
    Option {
        /// Type of the option.
        option: u8,
    },
    /// The refusing end has too many connections or too many half-open ones.
    Busy,
    /// The refusing end has too many connections with this host.
    PeerLimit,
    /// The application at the refusing end declined the connection.
    Declined {
        /// Code that the application chose; 0 if none.
        code: u32,
    },
    /// The refusing end could not parse our hello.
    Malformed,
    /// Our hello lists a better version that both ends support than the one used: the exchange was modified on its
    /// way.
    Downgrade,
    /// A reason that this build does not know.
    Other {
        /// Code of the reason.
        code: u8,
    },
}

impl Refusal {
    /// Encodes the refusal as code and detail of a Reject.
    pub(crate) fn encode(self) -> (u8, u32) {
        match self {
            Refusal::Protection { theirs } => (1, theirs.code().into()),
            Refusal::Transport => (2, 0),
            Refusal::Scheme => (3, 0),
            Refusal::Features { missing } => (4, missing.0),
            Refusal::Option { option } => (5, option.into()),
            Refusal::Busy => (6, 0),
            Refusal::PeerLimit => (7, 0),
            Refusal::Declined { code } => (8, code),
            Refusal::Malformed => (9, 0),
            Refusal::Downgrade => (10, 0),
            Refusal::Other { code } => (code, 0),
        }
    }
    pub(crate) fn decode(code: u8, detail: u32) -> Self {
        match code {
            1 => match u8::try_from(detail).ok().and_then(Protection::from_code) {
                Some(theirs) => Refusal::Protection { theirs },
                None => Refusal::Other { code },
            },
            2 => Refusal::Transport,
            3 => Refusal::Scheme,
            4 => Refusal::Features { missing: Features(detail) },
            5 => Refusal::Option { option: detail as u8 },
            6 => Refusal::Busy,
            7 => Refusal::PeerLimit,
            8 => Refusal::Declined { code: detail },
            9 => Refusal::Malformed,
            10 => Refusal::Downgrade,
            code => Refusal::Other { code },
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Protection { theirs } => {
                write!(f, "it uses protection {theirs}; both ends must use the same")
            }
            Refusal::Transport => f.write_str("it uses the other transport (connections or datagrams)"),
            Refusal::Scheme => f.write_str("the scheme is unknown or not allowed there"),
            Refusal::Features { missing } => {
                write!(f, "features {:#010x} are required by one end and unknown to the other", missing.0)
            }
            Refusal::Option { option } => {
                write!(f, "option {option:#04x} is required and unknown there")
            }
            Refusal::Busy => f.write_str("it has reached its limit of connections; try again later"),
            Refusal::PeerLimit => f.write_str("it has reached its limit of connections with this host"),
            Refusal::Declined { code } => write!(f, "the application there declined with code {code}"),
            Refusal::Malformed => f.write_str("our hello is malformed"),
            Refusal::Downgrade => f.write_str("a host between the ends forced an older version"),
            Refusal::Other { code } => write!(f, "unknown reason {code}"),
        }
    }
}

/// Combines two valid hellos. The result is the same at both ends, except for the protection that a refusal names.
pub(crate) fn agree(version: u8, ours: &Hello, theirs: &Hello) -> Result<ConnectionParams, Refusal> {
    if ours.protection != theirs.protection {
        return Err(Refusal::Protection { theirs: ours.protection });
    }
    if ours.transport != theirs.transport {
        return Err(Refusal::Transport);
    }
    if ours.scheme != theirs.scheme {
        return Err(Refusal::Scheme);
    }
    let missing =
        Features(ours.required.difference(theirs.features).0 | theirs.required.difference(ours.features).0);
    if !missing.is_empty() {
        return Err(Refusal::Features { missing });
    }
    Ok(ConnectionParams {
        version,
        protection: ours.protection,
        transport: ours.transport,
        scheme: ours.scheme.clone(),
        mtu_payload: ours.mtu_payload.min(theirs.mtu_payload),
        paths: ours.paths.min(theirs.paths),
        features: ours.features.intersection(theirs.features),
    })
}
