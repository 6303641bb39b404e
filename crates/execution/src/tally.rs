//! Counters that are attributed to single flows. Each end of a connection keeps its own.

use pathweave_records::FlowRecord;
use pathweave_transport::Counters;
use pathweave_units::flow_counters;

macro_rules! sender_counters {
    (
        hot { $($hot:tt)* } again { $($again:tt)* } elsewhere $_elsewhere:tt;
        sender { $($sender:tt)* }
    ) => {
        sender_counters! { $($hot)* $($again)* $($sender)* }
    };
    ($( $name:ident { $type:ty, $($_meaning:literal),* } )*) => {
        /// Counters of a sender, summed over the queue pairs of a connection.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct SenderCounters {
            $( pub(crate) $name: u64, )*
        }

        /// Counters of a message at its sender.
        #[derive(Clone, Copy, Debug, Default, borsh::BorshSerialize, borsh::BorshDeserialize)]
        pub(crate) struct MessageCounters {
            $( pub(crate) $name: $type, )*
        }

        impl SenderCounters {
            /// Adds the counters of one queue pair.
            pub fn add(&mut self, counters: &Counters) {
                $( self.$name += counters.$name; )*
            }
            /// Returns the growth since `before`.
            pub(crate) fn since(&self, before: &SenderCounters) -> MessageCounters {
                MessageCounters {
                    $( $name: <$type>::try_from(grown(self.$name, before.$name)).unwrap_or(<$type>::MAX), )*
                }
            }
        }

        impl MessageCounters {
            /// Writes the counters to the record of the message.
            pub(crate) fn fill_record(&self, record: &mut FlowRecord) {
                $( record.$name = self.$name; )*
            }
        }
    };
}
flow_counters!(sender_counters);

impl SenderCounters {
    /// Returns the counters without the packets of later messages. Since `before`, at most `packets` packets were
    /// sent for the first time that belong to the message at hand: packets leave in the order of messages.
    pub(crate) fn without_later_packets(self, before: &SenderCounters, packets: u64) -> SenderCounters {
        let first = |of: &SenderCounters| grown(of.sent_packets, of.retransmitted_packets);
        let later = grown(first(&self), first(before)).saturating_sub(packets);
        SenderCounters { sent_packets: self.sent_packets - later, ..self }
    }

    /// Returns the counters without the packets sent again of other messages. `own` of those since `before` belong to
    /// the message at hand.
    pub(crate) fn without_others_again(self, before: &SenderCounters, own: u64) -> SenderCounters {
        let others = grown(self.retransmitted_packets, before.retransmitted_packets).saturating_sub(own);
        SenderCounters {
            sent_packets: self.sent_packets - others,
            retransmitted_packets: self.retransmitted_packets - others,
            ..self
        }
    }
}

/// Counters of a receiver, summed over the queue pairs of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    pub(crate) ooo_packets: u64,
    /// Largest reordering degree so far.
    pub(crate) ooo_degree_max: u64,
}

impl ReceiverCounters {
    /// Adds the counters of one queue pair.
    pub fn add(&mut self, counters: &Counters) {
        self.ooo_packets += counters.out_of_order_packets();
        self.ooo_degree_max = self.ooo_degree_max.max(counters.out_of_order_max);
    }
}

/// Returns the growth of a counter. The counters of a closed real connection read zero; the growth is then zero.
pub(crate) fn grown(now: u64, before: u64) -> u64 {
    now.saturating_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(sent_packets: u64, retransmitted_packets: u64) -> SenderCounters {
        SenderCounters { sent_packets, retransmitted_packets, ..SenderCounters::default() }
    }

    /// Messages of ten packets each. When the first completes, 25 packets have left: its own, 2 of them again, and 13
    /// of the next ones.
    #[test]
    fn packets_count_for_the_message_that_they_belong_to() {
        let counts = |at: &[SenderCounters]| {
            let mut taken = SenderCounters::default();
            let count = |now: &SenderCounters| {
                let upto = now.without_later_packets(&taken, 10);
                let counters = upto.since(&taken);
                taken = upto;
                (counters.sent_packets, counters.retransmitted_packets)
            };
            at.iter().map(count).collect::<Vec<_>>()
        };
        assert_eq!(counts(&[sent(25, 2), sent(33, 3)]), [(12, 2), (11, 1)]);
        assert_eq!(
            counts(&[sent(16, 0), sent(16, 0)]),
            [(10, 0), (6, 0)],
            "the connection fails in the second"
        );
        assert_eq!(counts(&[sent(7, 0), sent(7, 0)]), [(7, 0), (0, 0)], "the connection fails in the first");
        assert_eq!(counts(&[sent(13, 3), SenderCounters::default()]), [(13, 3), (0, 0)], "it was closed");
    }
}
