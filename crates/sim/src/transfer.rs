//! Transfer of events from one shard to another at the end of a window: packets, and items that hosts cause at other
//! hosts. Between processes the transfer is serialized.

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_fabric::PartTransfer;
use pathweave_units::{HostId, Time};

use crate::agenda::{Item, Rank};
use crate::host::Content;
use crate::ranks::{put, take};

/// Item that a host causes at a host of another shard, at a given time.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) struct RemoteItem {
    pub(crate) at: Time,
    pub(crate) to: HostId,
    pub(crate) rank: Rank,
    pub(crate) item: Item,
}

/// All events that one shard transfers to another in one window.
#[derive(Default)]
pub(crate) struct Transfer {
    pub(crate) packets: PartTransfer<Content>,
    pub(crate) items: Vec<RemoteItem>,
    /// Serialized packets and items, on their way to or from another process. Events in `packed` are not in the other
    /// two fields.
    pub(crate) packed: Vec<u8>,
}

impl Transfer {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.items.is_empty()
    }

    /// Serializes all events into `out`, the message to another process, and leaves this transfer empty.
    pub(crate) fn pack(&mut self, out: &mut Vec<u8>) {
        put(out, &(&self.packets, &self.items));
        self.packets.clear();
        self.items.clear();
    }

    /// Deserializes the events received from another process, if there are any.
    pub(crate) fn unpack(&mut self) {
        if self.packed.is_empty() {
            return;
        }
        let mut packed = self.packed.as_slice();
        self.packets
            .read(&mut packed)
            .unwrap_or_else(|why| panic!("packets of another rank cannot be read: {why}"));
        self.items = take(&mut packed);
        self.packed.clear();
    }
}

#[cfg(test)]
mod tests {
    use pathweave_policy::{MeasuredSection, PolicyEnv};
    use pathweave_transport::rd::SideMessage;
    use pathweave_units::{Duration, QpNum, Rate};
    use pathweave_wire::{PsnRun, RdFlow};

    use super::*;
    use crate::agenda::Opening;

    /// Every kind of item survives serialization unchanged.
    #[test]
    fn letters_survive_their_bytes() {
        let leg = MeasuredSection { base_rtt: Duration::from_ps(8_123_457), links: 6 };
        let env = PolicyEnv {
            line_rate: Rate::from_gbps(400),
            base_rtt: Duration::from_ps(8_123_456),
            mtu_wire_bytes: 4_178,
            mtu_payload_bytes: 4_096,
            paths: 64,
            measured: leg,
            edge: Some(leg),
        };
        let opening = Opening {
            env,
            port_rate: Rate::from_gbps(100),
            nic_ports: 4,
            rtt: Duration::from_us(9),
            side_latency: Duration::from_us(5),
        };
        let flow = RdFlow { src_qp: QpNum(7), dst_qp: QpNum(8) };
        let nack = SideMessage::Nack { flow, runs: vec![PsnRun { first: 1 << 40, count: 256 }] };
        let items = || {
            [
                (Rank::Expect(3), Item::Expect { flow: 3, opening: Some(Box::new(opening)) }),
                (Rank::Expect(4), Item::Expect { flow: 4, opening: None }),
                (Rank::Close(5), Item::Close(5)),
                (Rank::GivenUp(6), Item::GivenUp { flow: 6 }),
                (Rank::Side(HostId(1), 9), Item::Side { from: HostId(1), message: nack.clone() }),
            ]
        };
        let letters = || {
            let letter = |(rank, item)| RemoteItem { at: Time::from_ps(77), to: HostId(2), rank, item };
            items().map(letter).into_iter().collect::<Vec<RemoteItem>>()
        };
        let mut post = Transfer { items: letters(), ..Transfer::default() };
        let mut packed = Vec::new();
        post.pack(&mut packed);
        assert!(post.is_empty());
        let mut arrived = Transfer { packed, ..Transfer::default() };
        arrived.unpack();
        assert!(arrived.packed.is_empty());
        let text = |letters: &[RemoteItem]| {
            letters.iter().map(|l| format!("{:?}", (l.at, l.to, l.rank, &l.item))).collect::<Vec<_>>()
        };
        assert_eq!(text(&arrived.items), text(&letters()));
    }
}
