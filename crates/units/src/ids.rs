//! Identifiers shared by the protocol core and the simulator.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
        pub struct $name(pub $inner);
        impl $name {
            /// Returns the identifier as an index.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// A host: an end of the fabric with one or more NIC ports and one endpoint.
    HostId(u32)
);
id!(
    /// A path that a source can select: an index into the paths of a queue pair. It becomes the UDP source port
    /// (entropy for ECMP) or names an explicit source route.
    PathId(u16)
);
id!(
    /// A queue pair number, unique within one endpoint (24 bits on the wire).
    QpNum(u32)
);
