//! Stories: packets on the link, and their effects for the application.

mod acknowledgements;
mod errors;
mod loss;
mod messages;
mod pace;
#[path = "../pair/mod.rs"]
mod pair;
mod trimming;

use pair::Channel;
use pathweave_policy::Recovery;
use pathweave_units::Duration;
use pathweave_wire::Body;

const SR: fn(u32) -> Recovery = |reorder_packets| Recovery::SelectiveRepeat {
    reorder_packets,
    window_packets: Some(64),
    sender_window_packets: None,
};
const LIMIT: Duration = Duration::from_ms(100);

/// Drops the first transmission of each of these PSNs.
fn dropping(psns: &'static [u64]) -> Channel {
    let mut channel = Channel::new(1);
    channel.script = Some(Box::new(move |packet| match packet.segment.body {
        Body::Data(data) => Some(data.retransmit || !psns.contains(&data.psn)),
        _ => None,
    }));
    channel
}
