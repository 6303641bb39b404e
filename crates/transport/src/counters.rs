//! Counters of an endpoint.

use alloc::boxed::Box;
use core::ops::{AddAssign, Index, IndexMut};

use pathweave_units::flow_counters;
use pathweave_wire::ControlKind;

/// Buckets of [`Counters::out_of_order`].
pub const OOD_BUCKETS: usize = 12;

macro_rules! counters {
    // The sender's counters of flows become part of the lists.
    (
        [ $($own:tt)* ] @behind [ $($behind:tt)* ] @rare [ $($rare:tt)* ]
        hot { $($hot:ident { $_ht:tt, $hot_doc:literal $(, $_ho:literal)? })* }
        again { $($again:ident { $_at:tt, $again_doc:literal $(, $_ao:literal)? })* }
        elsewhere $_elsewhere:tt;
        sender { $($sender:ident { $_st:tt, $sender_doc:literal $(, $_so:literal)? })* }
    ) => {
        counters! {
            $(#[doc = $hot_doc] $hot,)* $($own)*
            @behind $($behind)*
            @rare $(#[doc = $again_doc] $again,)* $(#[doc = $sender_doc] $sender,)* $($rare)*
        }
    };
    (
        $($(#[$doc:meta])* $name:ident,)*
        @behind $($(#[$behind_doc:meta])* $behind:ident,)*
        @rare $($(#[$rare_doc:meta])* $rare:ident,)*
    ) => {
        /// Counters of one queue pair or of a whole endpoint. They count packets unless stated otherwise.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
            /// Highest out-of-order degree.
            pub out_of_order_max: u64,
            /// Data packets by out-of-order degree, which is the distance in PSN behind the highest one seen before.
            /// Bucket i counts degrees from 2^i to 2^(i+1) - 1, the last bucket all higher ones.
            pub out_of_order: [u64; OOD_BUCKETS],
            $($(#[$behind_doc])* pub $behind: u64,)*
            $($(#[$rare_doc])* pub $rare: u64,)*
            /// Packets for a queue pair that does not exist (any more), or from a host other than its peer. Endpoints
            /// only.
            pub foreign: u64,
        }
        impl AddAssign<&Counters> for Counters {
            fn add_assign(&mut self, other: &Counters) {
                $(self.$name += other.$name;)*
                $(self.$behind += other.$behind;)*
                $(self.$rare += other.$rare;)*
                for (a, b) in self.out_of_order.iter_mut().zip(other.out_of_order) {
                    *a += b;
                }
                self.out_of_order_max = self.out_of_order_max.max(other.out_of_order_max);
                self.foreign += other.foreign;
            }
        }
        /// [`Counters`] as a queue pair stores them.
        // The order makes a packet touch few cache lines.
        #[derive(Debug, Default)]
        #[repr(C)]
        pub(crate) struct QpCounters {
            $(pub(crate) $name: u64,)*
            out_of_order_max: u64,
            out_of_order: [u64; OOD_BUCKETS],
            $(pub(crate) $behind: u64,)*
            rare: Option<Box<RareCounters>>,
        }
        /// Counters that stay zero in most queue pairs; allocated at the first count.
        #[derive(Debug, Default)]
        pub(crate) struct RareCounters {
            $(pub(crate) $rare: u64,)*
        }
        impl QpCounters {
            /// Returns all counters.
            pub(crate) fn all(&self) -> Counters {
                let mut all = Counters {
                    $($name: self.$name,)*
                    $($behind: self.$behind,)*
                    out_of_order_max: self.out_of_order_max,
                    out_of_order: self.out_of_order,
                    ..Counters::default()
                };
                if let Some(rare) = &self.rare {
                    $(all.$rare = rare.$rare;)*
                }
                all
            }
        }
    };
}

flow_counters! { counters
[
    /// Acknowledgements processed.
    acks_received,
    /// Payload bytes sent, retransmissions included.
    payload_bytes_sent,
    /// Data packets that arrived for this queue pair, duplicates and refused ones included.
    data_received,
    /// Payload bytes accepted, each once.
    payload_bytes_received,
    /// Acknowledgements created.
    acks_sent,
]
@behind [
    /// Data packets that arrived marked Congestion Experienced.
    marked_received,
]
@rare [
    /// Data packets that arrived a second time.
    duplicates,
    /// Data packets dropped because they arrived ahead of a gap (go-back-N).
    sequence_drops,
    /// Data packets dropped because they were beyond the receiver's window.
    beyond_window_drops,
    /// Data packets dropped because no receive was posted.
    rnr_drops,
    /// Data packets that a switch trimmed to the header, as counted by the receiver.
    trimmed_received,
    /// Data packets that a switch trimmed to the header, as counted by the sender.
    trimmed,
    /// Negative acknowledgements created.
    nacks_sent,
    /// Congestion notifications created.
    cnps_sent,
    /// Negative acknowledgements processed.
    nacks_received,
    /// Data packets declared lost before a timeout.
    lost,
    /// Malformed packets: numbers out of range, or contradictory fields.
    malformed,
]
}

/// Counters of one queue pair for features of some schemes only. They count packets unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounters {
    /// Control packets of the policy sent.
    pub controls_sent: ControlCounts,
    /// Missing packets reported to the peer; each report counts.
    pub missing_named: u64,
    /// Data packets that arrived ahead of a gap without a notice, if the receiver reports gaps.
    pub ahead_received: u64,
}

/// Packets by kind of control packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlCounts([u64; ControlKind::ALL.len()]);

impl ControlCounts {
    /// Returns true if all counts are zero.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }
}

impl Index<ControlKind> for ControlCounts {
    type Output = u64;
    fn index(&self, kind: ControlKind) -> &u64 {
        &self.0[kind as usize]
    }
}

impl IndexMut<ControlKind> for ControlCounts {
    fn index_mut(&mut self, kind: ControlKind) -> &mut u64 {
        &mut self.0[kind as usize]
    }
}

impl QpCounters {
    /// Counts a packet that arrived `degree` PSNs behind the highest one before it.
    #[inline]
    pub(crate) fn note_out_of_order(&mut self, degree: u64) {
        debug_assert!(degree > 0);
        self.out_of_order[(degree.ilog2() as usize).min(OOD_BUCKETS - 1)] += 1;
        self.out_of_order_max = self.out_of_order_max.max(degree);
    }
    /// Returns the rare counters for counting, and allocates them if necessary.
    pub(crate) fn rare(&mut self) -> &mut RareCounters {
        self.rare.get_or_insert_default()
    }
}

impl Counters {
    /// Number of data packets that arrived behind a later one.
    pub fn out_of_order_packets(&self) -> u64 {
        self.out_of_order.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_fall_into_powers_of_two() {
        let mut counters = QpCounters::default();
        for degree in [1, 2, 3, 4, 7, 8, 1 << 40] {
            counters.note_out_of_order(degree);
        }
        let c = counters.all();
        assert_eq!(c.out_of_order[..4], [1, 2, 2, 1]);
        assert_eq!((c.out_of_order[OOD_BUCKETS - 1], c.out_of_order_max), (1, 1 << 40));
        assert_eq!(c.out_of_order_packets(), 7);
    }

    #[test]
    fn rare_counters_are_allocated_when_counted() {
        let mut counters = QpCounters { sent_packets: 3, ..QpCounters::default() };
        assert!(counters.rare.is_none());
        counters.rare().timeouts += 2;
        counters.rare().duplicates += 1;
        let all = counters.all();
        assert_eq!((all.sent_packets, all.timeouts, all.duplicates, all.lost), (3, 2, 1, 0));
    }
}
