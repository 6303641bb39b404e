//! Control packets of schemes: a table with one entry for each. Transport, switches, simulator and datapath carry
//! them without interpreting them. The scheme that uses a control packet creates it, and receives it at the other
//! end.
//!
//! A new control packet needs an entry in `controls!` and its arms in the methods of [`Control`], which the compiler
//! demands. docs/wire.md describes the fields; a test compares it with the table.

use core::ops::RangeInclusive;

use pathweave_units::Time;

use crate::credit::CreditNumber;
use crate::frame::fields::{CreditAt, Field, LastPsnAt, MarkedFlag, PsnOfBth, Source, StampAt};
use crate::frame::layout::{AETH_LEN, COMMON_LEN};
use crate::frame::{EmitError, ParseError};

/// Reserved bytes of a congestion notification (RoCEv2 annex A17.9.3).
pub(crate) const CNP_LEN: usize = 16;
/// Header bytes of a packet in the ns-3 RDMA simulators, and all bytes of an acknowledgement.
pub(crate) const NS3_HEADER_LEN: u32 = 48;
pub(crate) const NS3_ACK_LEN: u32 = 60;

/// Constants of a kind of control packet.
pub(crate) struct ControlSpec {
    pub(crate) name: &'static str,
    /// Low six bits of the opcode.
    pub(crate) opcode: u8,
    /// Number of the kind in traces of the simulator.
    trace: u64,
    /// Bytes behind the BTH under RoCEv2 framing.
    pub(crate) rocev2_len: usize,
    /// Bytes of the packet under the framing of the ns-3 simulators.
    pub(crate) ns3_len: u32,
    /// Flags that the packet may have.
    pub(crate) flags: u8,
    /// True if the packet has a PSN. Otherwise the PSN of the BTH is zero.
    has_psn: bool,
    /// Bytes of the extension.
    pub(crate) extension_len: usize,
    /// Fields of the extension behind the common part: name, offset and length.
    #[cfg_attr(not(test), allow(dead_code, reason = "docs/wire.md is compared with them"))]
    pub(crate) fields: &'static [(&'static str, Option<(usize, usize)>)],
}

const fn max_end(end: usize, place: Option<(usize, usize)>) -> usize {
    match place {
        Some((at, len)) if at + len > end => at + len,
        _ => end,
    }
}

macro_rules! controls {
    ($(
        $(#[$doc:meta])*
        $name:ident [opcode $opcode:literal, trace $trace:literal, rocev2 $rocev2:expr, ns3 $ns3:expr] {
            $( $(#[$field_doc:meta])* $field:ident: $value:ty = $place:ty ),* $(,)?
        }
    )*) => {
        /// A control packet of a scheme.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
        pub enum Control { $( $(#[$doc])* $name { $( $(#[$field_doc])* $field: $value ),* } ),* }

        /// The kinds of [`Control`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum ControlKind { $( $(#[$doc])* $name ),* }

        impl ControlKind {
            /// All kinds.
            pub const ALL: &'static [ControlKind] = &[ $( ControlKind::$name ),* ];

            pub(crate) const fn entry(self) -> &'static ControlSpec {
                match self { $( ControlKind::$name => const { &ControlSpec {
                    name: stringify!($name),
                    opcode: $opcode,
                    trace: $trace,
                    rocev2_len: $rocev2,
                    ns3_len: $ns3,
                    flags: 0 $( | <$place as Field>::FLAGS )*,
                    has_psn: false $( || <$place as Field>::IS_PSN )*,
                    extension_len: {
                        let end = COMMON_LEN;
                        $( let end = max_end(end, <$place as Field>::LAYOUT); )*
                        end
                    },
                    fields: &[ $( (stringify!($field), <$place as Field>::LAYOUT) ),* ],
                } } ),* }
            }

            /// Checks the fields of a frame of this kind.
            pub(crate) fn check(self, source: &Source<'_>) -> Result<(), ParseError> {
                if !self.entry().has_psn && source.psn != 0 {
                    return Err(ParseError::Reserved { field: "PSN", value: source.psn.into() });
                }
                match self { $( ControlKind::$name => { $( <$place as Field>::check(source)?; )* } )* }
                Ok(())
            }

            /// Returns the value of a frame of this kind that has passed [`check`](Self::check).
            pub(crate) fn read(self, source: &Source<'_>) -> Control {
                match self {
                    $( ControlKind::$name => Control::$name { $( $field: <$place as Field>::read(source) ),* } ),*
                }
            }
        }

        impl Control {
            /// Kind of the packet.
            pub const fn kind(&self) -> ControlKind {
                match self { $( Control::$name { .. } => ControlKind::$name ),* }
            }

            /// PSN of the packet, or 0 if it has none.
            pub fn psn(&self) -> u64 {
                match *self { $( Control::$name { $( $field ),* } => {
                    None $( .or(<$place as Field>::psn($field)) )*
                } ),* }
                .unwrap_or(0)
            }

            /// Writes the fields behind the common part of the extension.
            pub(crate) fn write(&self, extension: &mut [u8]) {
                match *self { $( Control::$name { $( $field ),* } => { $( <$place as Field>::write($field, extension); )* } )* }
            }

            /// Checks that every field fits the wire.
            pub(crate) fn fits(&self) -> Result<(), EmitError> {
                let psn = self.psn();
                match *self { $( Control::$name { $( $field ),* } => { $( <$place as Field>::fits($field, psn)?; )* } )* }
                Ok(())
            }
        }
    };
}

controls! {
    /// Asks for the delay of the packet's path. Either end answers at once. LAPS measures idle paths with it, and
    /// hosts detect dead paths and peers.
    Probe [opcode 0x19, trace 4, rocev2 CNP_LEN, ns3 NS3_HEADER_LEN] {
        /// Time at which the probe left.
        sent_at: Time = StampAt<8>,
    }
    /// Answer to a probe.
    ProbeReply [opcode 0x1a, trace 5, rocev2 CNP_LEN, ns3 NS3_ACK_LEN] {
        /// Time at which the probe left, by the prober's clock.
        sent_at: Time = StampAt<8>,
        /// Time at which the probe arrived, by the answering host's clock.
        received_at: Time = StampAt<16>,
    }
    /// DLBF's announcement that packets sent before on other paths may arrive after those that follow on this one.
    Notice [opcode 0x15, trace 16, rocev2 0, ns3 NS3_HEADER_LEN] {
        /// First PSN that may be late.
        first: u64 = PsnOfBth,
        /// Last PSN that may be late; not below `first`, and less than 2^23 above it.
        last: u64 = LastPsnAt<8>,
        /// Time at which the notice left the NIC, by the sender's clock.
        sent_at: Time = StampAt<12>,
    }
    /// Answer to a notice.
    NoticeReply [opcode 0x16, trace 17, rocev2 AETH_LEN, ns3 NS3_ACK_LEN] {
        /// Time at which the notice left, by its sender's clock.
        sent_at: Time = StampAt<8>,
        /// Time at which the notice arrived, by the answering host's clock.
        received_at: Time = StampAt<16>,
        /// True if the notice carried Congestion Experienced.
        marked: bool = MarkedFlag,
    }
    /// Answer of a switch at the edge of the sender's site to a data packet that has come that far (Reflex, section
    /// III-C). It acknowledges nothing and measures only the round trip to the edge. In the paper it is an
    /// acknowledgement with a flag.
    EdgeEcho [opcode 0x1c, trace 6, rocev2 AETH_LEN, ns3 NS3_ACK_LEN] {
        /// `sent_at` of the data packet.
        sent_at: Time = StampAt<8>,
    }
    /// A receiver grants credit to a sender of data (Ultra Ethernet's, EQDS's and NDP's PULL).
    Pull [opcode 0x12, trace 18, rocev2 AETH_LEN, ns3 NS3_ACK_LEN] {
        /// Quanta that the receiver has granted in all.
        granted: CreditNumber = CreditAt<8>,
    }
    /// Request of a sender that has data and no credit (Ultra Ethernet's and EQDS's request to send). The receiver
    /// answers at once with a `Pull`, even if it grants no more.
    PullRequest [opcode 0x13, trace 19, rocev2 AETH_LEN, ns3 NS3_ACK_LEN] {
        /// Quanta that the sender wants granted in all.
        target: CreditNumber = CreditAt<8>,
    }
}

/// Measurement that the stamps of a control packet give to the host that receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measurement {
    /// Round trip on the packet's path.
    Path {
        /// Time at which the question left, by the clock of the host that receives the answer.
        sent_at: Time,
        /// Time at which the question arrived, by the answering host's clock.
        received_at: Time,
    },
    /// Round trip on a part of the path, to a switch that answers.
    Part {
        /// Time at which the packet left that the switch answers.
        sent_at: Time,
    },
    /// No measurement: the packet has no stamps or is a question.
    Nothing,
}

impl Control {
    /// Answer that the receiving host sends at once, or `None`. `marked`: the packet arrived with Congestion
    /// Experienced.
    pub const fn answer(&self, now: Time, marked: bool) -> Option<Control> {
        match *self {
            Control::Probe { sent_at } => Some(Control::ProbeReply { sent_at, received_at: now }),
            Control::Notice { sent_at, .. } => {
                Some(Control::NoticeReply { sent_at, received_at: now, marked })
            }
            Control::ProbeReply { .. }
            | Control::NoticeReply { .. }
            | Control::EdgeEcho { .. }
            | Control::Pull { .. }
            | Control::PullRequest { .. } => None,
        }
    }

    /// Kind of question that this packet answers. `None` for questions, and for answers to data packets.
    pub const fn answered_kind(&self) -> Option<ControlKind> {
        match self {
            Control::ProbeReply { .. } => Some(ControlKind::Probe),
            Control::NoticeReply { .. } => Some(ControlKind::Notice),
            Control::Probe { .. }
            | Control::Notice { .. }
            | Control::EdgeEcho { .. }
            | Control::Pull { .. }
            | Control::PullRequest { .. } => None,
        }
    }

    /// Stamp that the answer to this packet echoes. `None` if the packet has no stamp or is not a question.
    pub const fn echoed_stamp(&self) -> Option<Time> {
        match *self {
            Control::Probe { sent_at } | Control::Notice { sent_at, .. } => Some(sent_at),
            Control::ProbeReply { .. }
            | Control::NoticeReply { .. }
            | Control::EdgeEcho { .. }
            | Control::Pull { .. }
            | Control::PullRequest { .. } => None,
        }
    }

    /// Measurement that the stamps of the packet give.
    pub const fn measures(&self) -> Measurement {
        match *self {
            Control::ProbeReply { sent_at, received_at }
            | Control::NoticeReply { sent_at, received_at, .. } => Measurement::Path { sent_at, received_at },
            Control::EdgeEcho { sent_at } => Measurement::Part { sent_at },
            Control::Probe { .. }
            | Control::Notice { .. }
            | Control::Pull { .. }
            | Control::PullRequest { .. } => Measurement::Nothing,
        }
    }

    /// Returns true if the packet is a question, which its receiver answers.
    pub const fn is_question(&self) -> bool {
        matches!(self, Control::Probe { .. } | Control::Notice { .. } | Control::PullRequest { .. })
    }

    /// `Some(true)` if the packet reports that its question carried Congestion Experienced. `None` if it reports
    /// nothing.
    pub const fn marked(&self) -> Option<bool> {
        match *self {
            Control::NoticeReply { marked, .. } => Some(marked),
            Control::Probe { .. }
            | Control::ProbeReply { .. }
            | Control::Notice { .. }
            | Control::EdgeEcho { .. }
            | Control::Pull { .. }
            | Control::PullRequest { .. } => None,
        }
    }

    /// PSNs of the packet's own direction that it announces as late.
    pub const fn announces_late(&self) -> Option<RangeInclusive<u64>> {
        match *self {
            Control::Notice { first, last, .. } => Some(first..=last),
            Control::Probe { .. }
            | Control::ProbeReply { .. }
            | Control::NoticeReply { .. }
            | Control::EdgeEcho { .. }
            | Control::Pull { .. }
            | Control::PullRequest { .. } => None,
        }
    }

    /// Number of the kind in traces of the simulator, and PSN of the packet.
    pub fn traced(&self) -> (u64, u64) {
        (self.kind().entry().trace, self.psn())
    }
}
