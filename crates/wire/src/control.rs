//! Control packets of schemes, one entry of a table each. Transport, switches, simulator and datapath carry them
//! without knowing them: the scheme that needs one makes it and is told of it.
//!
//! A new control packet is one more entry of `controls!` and its lines in [`Control`]'s own methods, where the
//! compiler asks for them. Its fields are described in docs/wire.md, which a test compares with the table.

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

/// What the table says of a kind.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// Low six bits of the opcode.
    pub(crate) opcode: u8,
    /// Its number in traces of the simulator.
    trace: u64,
    /// Bytes behind the BTH where RoCEv2's are counted.
    pub(crate) rocev2_len: usize,
    /// Bytes of the packet where those of the ns-3 simulators are counted.
    pub(crate) ns3_len: u32,
    /// Flags it may have.
    pub(crate) flags: u8,
    /// It has a PSN; otherwise that of the BTH is zero.
    has_psn: bool,
    /// Bytes of its extension.
    pub(crate) extension_len: usize,
    /// Fields of the extension behind the common part, and their offsets.
    #[cfg_attr(not(test), allow(dead_code, reason = "docs/wire.md is compared with them"))]
    pub(crate) fields: &'static [(&'static str, Option<(usize, usize)>)],
}

const fn later(end: usize, place: Option<(usize, usize)>) -> usize {
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
            /// All of them.
            pub const ALL: &'static [ControlKind] = &[ $( ControlKind::$name ),* ];

            pub(crate) const fn entry(self) -> &'static Entry {
                match self { $( ControlKind::$name => const { &Entry {
                    name: stringify!($name),
                    opcode: $opcode,
                    trace: $trace,
                    rocev2_len: $rocev2,
                    ns3_len: $ns3,
                    flags: 0 $( | <$place as Field>::FLAGS )*,
                    has_psn: false $( || <$place as Field>::IS_PSN )*,
                    extension_len: {
                        let end = COMMON_LEN;
                        $( let end = later(end, <$place as Field>::PLACE); )*
                        end
                    },
                    fields: &[ $( (stringify!($field), <$place as Field>::PLACE) ),* ],
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

            /// The value of a frame of this kind that has been checked.
            pub(crate) fn read(self, source: &Source<'_>) -> Control {
                match self {
                    $( ControlKind::$name => Control::$name { $( $field: <$place as Field>::get(source) ),* } ),*
                }
            }
        }

        impl Control {
            /// Which one it is.
            pub const fn kind(&self) -> ControlKind {
                match self { $( Control::$name { .. } => ControlKind::$name ),* }
            }

            /// Its PSN; 0 where it has none.
            pub fn psn(&self) -> u64 {
                match *self { $( Control::$name { $( $field ),* } => {
                    None $( .or(<$place as Field>::psn($field)) )*
                } ),* }
                .unwrap_or(0)
            }

            /// Writes its fields behind the common part of the extension.
            pub(crate) fn write(&self, extension: &mut [u8]) {
                match *self { $( Control::$name { $( $field ),* } => { $( <$place as Field>::put($field, extension); )* } )* }
            }

            /// Whether every field fits the wire.
            pub(crate) fn fits(&self) -> Result<(), EmitError> {
                let psn = self.psn();
                match *self { $( Control::$name { $( $field ),* } => { $( <$place as Field>::fits($field, psn)?; )* } )* }
                Ok(())
            }
        }
    };
}

controls! {
    /// Asks for the delay of the packet's path; any end answers at once. LAPS measures silent paths so, and hosts ask
    /// paths and peers whether they live.
    Probe [opcode 0x19, trace 4, rocev2 CNP_LEN, ns3 NS3_HEADER_LEN] {
        /// When the probe left.
        sent_at: Time = StampAt<8>,
    }
    /// Answer to a probe.
    ProbeReply [opcode 0x1a, trace 5, rocev2 CNP_LEN, ns3 NS3_ACK_LEN] {
        /// When the probe left, by the prober's clock.
        sent_at: Time = StampAt<8>,
        /// When it arrived, by the answerer's clock.
        received_at: Time = StampAt<16>,
    }
    /// DLBF announces that packets sent before on other paths may arrive after those that follow on this one.
    Notice [opcode 0x15, trace 16, rocev2 0, ns3 NS3_HEADER_LEN] {
        /// First PSN that may be late.
        first: u64 = PsnOfBth,
        /// Last PSN that may be late; not below `first`, and less than 2^23 above it.
        last: u64 = LastPsnAt<8>,
        /// When the notice left the NIC, by the sender's clock.
        sent_at: Time = StampAt<12>,
    }
    /// Answer to a notice.
    NoticeReply [opcode 0x16, trace 17, rocev2 AETH_LEN, ns3 NS3_ACK_LEN] {
        /// When the notice left, by its sender's clock.
        sent_at: Time = StampAt<8>,
        /// When it arrived, by the answerer's clock.
        received_at: Time = StampAt<16>,
        /// It carried Congestion Experienced.
        marked: bool = MarkedFlag,
    }
    /// A switch at the edge of the sender's site answers for the network behind it (Reflex, section III-C): a data
    /// packet has come that far. Acknowledges nothing; says only how long the way to the edge and back takes. In the
    /// paper it is an acknowledgement with a flag.
    EdgeEcho [opcode 0x1c, trace 6, rocev2 AETH_LEN, ns3 NS3_ACK_LEN] {
        /// `sent_at` of the data packet.
        sent_at: Time = StampAt<8>,
    }
    /// A receiver grants credit to a sender of data (Ultra Ethernet's, EQDS's and NDP's PULL).
    Pull [opcode 0x12, trace 18, rocev2 AETH_LEN, ns3 NS3_ACK_LEN] {
        /// Quanta that it has granted in all.
        granted: CreditNumber = CreditAt<8>,
    }
    /// A sender that has data and no credit says so (Ultra Ethernet's and EQDS's request to send). The receiver answers with
    /// a `Pull` at once, whether or not it grants more.
    PullRequest [opcode 0x13, trace 19, rocev2 AETH_LEN, ns3 NS3_ACK_LEN] {
        /// Quanta that it wants granted in all.
        target: CreditNumber = CreditAt<8>,
    }
}

/// What the stamps of a control packet measure for whom it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measures {
    /// The packet's path, there and back.
    Path {
        /// When the question left, by the clock of whom the answer comes to.
        sent_at: Time,
        /// When it arrived, by the answerer's clock.
        received_at: Time,
    },
    /// A part of the path: to a switch that answers, and back.
    Part {
        /// When the packet left that the switch answers.
        sent_at: Time,
    },
    /// Nothing: it has none, or is a question.
    Nothing,
}

impl Control {
    /// What whoever gets it answers at once; `marked`: it came with Congestion Experienced.
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

    /// What it answers; `None` for questions, and for what data packets are answered by.
    pub const fn question(&self) -> Option<ControlKind> {
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

    /// The stamp that its answer echoes; `None` where it has none, or asks nothing.
    pub const fn asked_at(&self) -> Option<Time> {
        match *self {
            Control::Probe { sent_at } | Control::Notice { sent_at, .. } => Some(sent_at),
            Control::ProbeReply { .. }
            | Control::NoticeReply { .. }
            | Control::EdgeEcho { .. }
            | Control::Pull { .. }
            | Control::PullRequest { .. } => None,
        }
    }

    /// What its stamps measure.
    pub const fn measures(&self) -> Measures {
        match *self {
            Control::ProbeReply { sent_at, received_at }
            | Control::NoticeReply { sent_at, received_at, .. } => Measures::Path { sent_at, received_at },
            Control::EdgeEcho { sent_at } => Measures::Part { sent_at },
            Control::Probe { .. }
            | Control::Notice { .. }
            | Control::Pull { .. }
            | Control::PullRequest { .. } => Measures::Nothing,
        }
    }

    /// Whether it asks, and is answered by whoever gets it.
    pub const fn is_question(&self) -> bool {
        matches!(self, Control::Probe { .. } | Control::Notice { .. } | Control::PullRequest { .. })
    }

    /// Whether what it answers was marked Congestion Experienced; `None` where it does not say.
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

    /// PSNs of its own direction that it says may arrive late.
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

    /// Its number in traces of the simulator, and its PSN.
    pub fn traced(&self) -> (u64, u64) {
        (self.kind().entry().trace, self.psn())
    }
}
