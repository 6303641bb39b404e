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
