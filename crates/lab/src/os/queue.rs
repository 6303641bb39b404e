//! Queue in front of a link: a token bucket, or a queue that lets no packet through.

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};
use pathweave_linux::netlink::{Netlink, SystemError};
use pathweave_units::{Duration, Rate};

/// Bytes of a frame on the wire that the kernel does not count: preamble 8, check sequence 4, gap 12.
const UNCOUNTED_BYTES: u16 = 24;
/// Bytes of an Ethernet header, which the kernel counts, and of tags before the IP header.
const FRAME_HEADER_BYTES: u32 = 50;
/// Largest packet with segmentation offload, in bytes.
const LARGEST_SUPER_PACKET_BYTES: u32 = 65_600;
/// Largest delay of a kernel timer. The bucket holds the tokens of this time, so that a late timer does not reduce
/// the rate.
const TIMER_SLACK: Duration = Duration::from_us(250);

/// Token bucket of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenBucket {
    rate: Rate,
    burst_bytes: u32,
    limit_bytes: u32,
}

impl TokenBucket {
    /// Creates a bucket for a rate, packets of up to `mtu_bytes`, and a queue of `queue_bytes`.
    pub(crate) fn new(rate: Rate, mtu_bytes: u32, queue_bytes: u64) -> TokenBucket {
        let packet = mtu_bytes + FRAME_HEADER_BYTES;
        let late = u32::try_from(rate.bytes_in(TIMER_SLACK)).unwrap_or(u32::MAX);
        let limit_bytes = u32::try_from(queue_bytes).unwrap_or(u32::MAX);
        TokenBucket { rate, burst_bytes: packet.saturating_add(late), limit_bytes }
    }

    /// Enlarges the bucket to a whole packet of segmentation offload.
    pub(crate) fn with_super_packets(self) -> TokenBucket {
        TokenBucket { burst_bytes: self.burst_bytes.max(LARGEST_SUPER_PACKET_BYTES), ..self }
    }

    /// Encodes `struct tc_tbf_qopt`: rate, peak rate (none), limit, bucket (set by another attribute), MTU (unused).
    fn parameters(&self) -> Vec<u8> {
        /// TC_LINKLAYER_ETHERNET: the kernel computes transmission times.
        const ETHERNET: u8 = 1;
        // The 32-bit field is ignored if the 64-bit attribute is present.
        let rate = u32::try_from(self.bytes_per_s()).unwrap_or(u32::MAX);
        // `struct tc_ratespec`: cell log, link layer, overhead, cell alignment, smallest packet, bytes a second.
        let mut bytes = vec![0, ETHERNET];
        bytes.extend(UNCOUNTED_BYTES.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(rate.to_ne_bytes());
        bytes.extend([0; 12]);
        bytes.extend(self.limit_bytes.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes
    }

    fn bytes_per_s(&self) -> u64 {
        self.rate.as_bps().div_ceil(8)
    }
}

/// Installs the token bucket in front of a device, in place of the previous queue.
pub(crate) fn install_token_bucket(
    netlink: &mut Netlink,
    device: u32,
    shape: &TokenBucket,
) -> Result<(), SystemError> {
    const PARMS: u16 = 1;
    const RATE64: u16 = 4;
    const BURST: u16 = 6;
    let option = |kind, value: Vec<u8>| TcOption::Other(DefaultNla::new(kind, value));
    let mut options = vec![option(PARMS, shape.parameters())];
    if shape.bytes_per_s() > u64::from(u32::MAX) {
        options.push(option(RATE64, shape.bytes_per_s().to_ne_bytes().to_vec()));
    }
    options.push(option(BURST, shape.burst_bytes.to_ne_bytes().to_vec()));
    replace_root(netlink, device, "tbf", TcAttribute::Options(options))
}

/// Drops everything that is to leave through a device, including the packets in its queue. Routes, addresses and
/// carrier stay unchanged, as after the break of a cable whose link is not monitored.
pub(crate) fn install_drop_all(netlink: &mut Netlink, device: u32) -> Result<(), SystemError> {
    const OPTIONS: u16 = 2;
    // `struct tc_fifo_qopt` with a queue of no packets.
    let no_packets = DefaultNla::new(OPTIONS, 0u32.to_ne_bytes().to_vec());
    replace_root(netlink, device, CLOSED, TcAttribute::Other(no_packets))
}

/// Queueing discipline of a closed device.
const CLOSED: &str = "pfifo";

fn replace_root(
    netlink: &mut Netlink,
    device: u32,
    kind: &str,
    options: TcAttribute,
) -> Result<(), SystemError> {
    let mut message = TcMessage::with_index(device as i32);
    message.header.parent = TcHandle::ROOT;
    message.attributes = vec![TcAttribute::Kind(kind.to_owned()), options];
    netlink.request(RouteNetlinkMessage::NewQueueDiscipline(message), NLM_F_CREATE | NLM_F_REPLACE)
}

/// State of a queue since its installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueState {
    pub(crate) device: u32,
    pub(crate) closed: bool,
    pub(crate) dropped_packets: u64,
}

/// Returns the queues in front of all devices of a namespace.
pub(crate) fn list(netlink: &mut Netlink) -> Result<Vec<QueueState>, SystemError> {
    let messages = netlink.dump(RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default()))?;
    let mut found = Vec::new();
    for message in messages {
        let RouteNetlinkMessage::NewQueueDiscipline(queue) = message else { continue };
        if queue.header.parent != TcHandle::ROOT {
            continue;
        }
        let mut state = QueueState { device: queue.header.index as u32, closed: false, dropped_packets: 0 };
        for attribute in queue.attributes {
            match attribute {
                TcAttribute::Kind(kind) => state.closed = kind == CLOSED,
                TcAttribute::Stats(stats) => state.dropped_packets = u64::from(stats.drops),
                _ => {}
            }
        }
        found.push(state);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_a_packet_and_what_a_late_timer_costs() {
        let shape = TokenBucket::new(Rate::from_mbps(100), 1_500, 1_000_000);
        assert_eq!(
            shape,
            TokenBucket { rate: Rate::from_mbps(100), burst_bytes: 1_550 + 3_125, limit_bytes: 1_000_000 }
        );
        assert_eq!(TokenBucket::new(Rate::from_mbps(1), 1_500, 1).burst_bytes, 1_550 + 31);
        assert_eq!(TokenBucket::new(Rate::from_gbps(10), 1_500, 1).burst_bytes, 1_550 + 312_500);
        assert_eq!(shape.with_super_packets().burst_bytes, 65_600);
    }

    #[test]
    fn parameters_are_laid_out_as_the_kernel_reads_them() {
        let bytes = TokenBucket::new(Rate::from_mbps(8), 1_500, 0x0102).parameters();
        let expected: Vec<u8> = [
            vec![0, 1, 24, 0, 0, 0, 0, 0],
            1_000_000u32.to_ne_bytes().to_vec(),
            vec![0; 12],
            0x0102u32.to_ne_bytes().to_vec(),
            vec![0; 8],
        ]
        .concat();
        assert_eq!((bytes.len(), &bytes), (36, &expected));
    }
}
