//! Configuration of an endpoint and of a queue pair.

use crate::memory::Domain;
use pathweave_policy::{AckPolicy, CnpPolicy, CreditParams, PathView, Recovery, Reordering};
use pathweave_units::{Duration, HostId};
use pathweave_wire::Framing;

pub use pathweave_wire::{MAX_MTU_PAYLOAD, MIN_MTU_PAYLOAD};

/// Configuration of an endpoint.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EndpointConfig {
    /// Number of this host.
    pub host: HostId,
    /// Payload of a full packet, in bytes: 256 to 32,576. Both ends of a queue pair use the same value.
    pub mtu_payload: u16,
    /// Framing, which determines the bytes of a segment on a link.
    pub framing: Framing,
    /// Number of NIC ports, 1 to 64. All lead to every peer, and path `p` leaves by port `p % nic_ports`, unless a
    /// [`PortChange`](crate::PortChange) says otherwise.
    pub nic_ports: u8,
    /// Seed of the run. Every queue pair draws from its own random stream.
    pub seed: u64,
}

impl EndpointConfig {
    /// Returns the configuration of a host with one port, 4,096-byte packets and RoCEv2 framing.
    pub const fn new(host: HostId) -> Self {
        EndpointConfig { host, mtu_payload: 4_096, framing: Framing::Rocev2, nic_ports: 1, seed: 0 }
    }
    /// Panics if a field is out of its range. Configurations from outside must be checked before.
    pub(crate) fn check(&self) {
        assert!(
            (MIN_MTU_PAYLOAD..=MAX_MTU_PAYLOAD).contains(&self.mtu_payload),
            "mtu_payload is {} bytes; allowed are {MIN_MTU_PAYLOAD} to {MAX_MTU_PAYLOAD}",
            self.mtu_payload
        );
        assert!((1..=64).contains(&self.nic_ports), "nic_ports is {}; allowed are 1 to 64", self.nic_ports);
    }
}

/// Configuration of a queue pair. Both ends should use the same `recovery`.
#[derive(Clone, Debug)]
pub struct QpConfig<'a, P> {
    /// Peer host. Packets from any other host are refused.
    pub peer: HostId,
    /// Decides when packets of this end leave and on which path.
    pub policy: P,
    /// Paths that the policy may choose from. Empty: all paths that the policy was built for, all up.
    pub paths: &'a [PathView],
    /// Loss recovery, as sender and as receiver.
    pub recovery: Recovery,
    /// Rule by which this end acknowledges.
    pub acks: AckPolicy,
    /// Rule by which this end sends congestion notifications.
    pub cnp: CnpPolicy,
    /// Reports that this end sends about packets that arrive ahead of a gap.
    pub reordering: Reordering,
    /// Terms of receiver-granted credit, or `None`. Both ends should have the same configuration of it.
    pub credit: Option<CreditParams>,
    /// Retransmission timer.
    pub rto: RetransmissionConfig,
    /// Round-trip time of a full packet in an idle network, including the hosts. Recovery by time starts from it.
    /// Zero: unknown, so recovery by time waits as long as `rto` until it has measured a round trip.
    pub idle_rtt: Duration,
    /// Scheduling delay of software hosts. Recovery by time waits longer than the slowest recent packet by at least
    /// this time (rounded down to a power of two of 256 ps), even if the hosts have been punctual so far. Zero: hosts
    /// are punctual.
    pub host_delay: Duration,
    /// Evidence by which recovery by time declares an overtaken packet lost.
    pub evidence: LossEvidence,
    /// Back-off when the peer has no receive posted.
    pub rnr: RnrConfig,
    /// Destination of the messages of the peer's SENDs.
    pub receive: ReceiveMode,
    /// Largest number of READs that this end may have outstanding. Further ones wait, as do requests posted after
    /// them.
    pub max_reads_out: u16,
    /// Largest number of the peer's READs that this end serves at a time. A further one is refused with "receiver not
    /// ready". At least the peer's `max_reads_out`.
    pub max_reads_in: u16,
    /// Protection domain. The peer reaches the memory regions of the domain, and those that are open to this queue
    /// pair alone.
    pub domain: Domain,
}

impl<'a, P> QpConfig<'a, P> {
    /// Returns a configuration with selective repeat over a window of 1,024 packets (only the timer finds losses), an
    /// acknowledgement for every packet, no congestion notifications, and receives that must be posted.
    pub fn new(peer: HostId, policy: P, paths: &'a [PathView]) -> Self {
        QpConfig {
            peer,
            policy,
            paths,
            recovery: Recovery::SelectiveRepeat {
                reorder_packets: 0,
                window_packets: Some(1_024),
                sender_window_packets: None,
            },
            acks: AckPolicy::by_packets(1, Duration::from_us(10)),
            cnp: CnpPolicy::Off,
            reordering: Reordering::Silent,
            credit: None,
            rto: RetransmissionConfig::SHORT,
            idle_rtt: Duration::ZERO,
            host_delay: Duration::ZERO,
            evidence: LossEvidence::default(),
            rnr: RnrConfig::default(),
            receive: ReceiveMode::Posted,
            max_reads_out: 16,
            max_reads_in: 16,
            domain: Domain::default(),
        }
    }
}

/// Evidence by which recovery by time declares a packet lost that others have overtaken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossEvidence {
    /// The packet has been in flight for longer than packets take. For networks that drop packets when buffers are
    /// full.
    #[default]
    Patience,
    /// The answer has arrived to a probe that followed the packet on its path. For networks that keep the order of
    /// packets on a path and rarely drop any, so that a late packet is mostly still queued. Without an answer, twice
    /// the time decides.
    Probe,
    /// The same evidence, but without an answer a quarter more than the time decides.
    BriefProbe,
}

/// Retransmission timer. It runs from the last progress of a queue pair, or from the departure of its oldest packet
/// in flight if that is later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct RetransmissionConfig {
    /// Time to the first timeout. Default 4 ms (ConWeave's set-ups): longer than a full 32 MB buffer takes to drain
    /// at 100 Gb/s, so that a late packet in a lossless fabric is not taken for lost. A fabric that drops packets
    /// needs less. In a scenario without the field, twice the longest idle round trip if that is longer, in whole
    /// milliseconds.
    pub timeout: Duration,
    /// Longest time between timeouts. Default 64 ms.
    pub max_timeout: Duration,
    /// Factor by which the time grows with each successive timeout, 1 to 16. Default 2.
    pub backoff: u32,
    /// Number of successive timeouts without progress after which a message fails. Default 7, the highest value of a
    /// RoCE NIC.
    pub retry_limit: u32,
}

impl RetransmissionConfig {
    /// The default, but with 1 ms to the first timeout: for fabrics whose queues are shorter than that.
    pub const SHORT: Self = RetransmissionConfig {
        timeout: Duration::from_ms(1),
        max_timeout: Duration::from_ms(64),
        backoff: 2,
        retry_limit: 7,
    };
}

impl Default for RetransmissionConfig {
    fn default() -> Self {
        RetransmissionConfig { timeout: Duration::from_ms(4), ..Self::SHORT }
    }
}

impl RetransmissionConfig {
    /// Returns the time to the next timeout after `timeouts` successive ones.
    pub fn after(&self, timeouts: u32) -> Duration {
        let factor = u64::from(self.backoff.max(1)).saturating_pow(timeouts);
        let grown = self.timeout.as_ps().saturating_mul(factor);
        Duration::from_ps(grown.min(self.max_timeout.as_ps().max(self.timeout.as_ps())).max(1))
    }
    /// Returns the time from the last progress to the failure of the message.
    pub fn give_up_after(&self) -> Duration {
        let mut total = 0u64;
        for timeouts in 0..=self.retry_limit {
            let next = self.after(timeouts).as_ps();
            if timeouts > 0 && next == self.after(timeouts - 1).as_ps() {
                // All further times are equal.
                let rest = u64::from(self.retry_limit - timeouts) + 1;
                return Duration::from_ps(total.saturating_add(next.saturating_mul(rest)));
            }
            total = total.saturating_add(next);
        }
        Duration::from_ps(total)
    }
}

/// Back-off after "receiver not ready" (RNR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RnrConfig {
    /// Time for which the queue pair sends nothing.
    pub delay: Duration,
    /// Number of successive back-offs without progress after which the queue pair fails. `None`: never (verbs' value
    /// 7).
    pub retry_limit: Option<u32>,
}

impl Default for RnrConfig {
    /// 100 us, without a limit.
    fn default() -> Self {
        RnrConfig { delay: Duration::from_us(100), retry_limit: None }
    }
}

/// Destination of the messages of the peer's SENDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveMode {
    /// The receives posted with `post_recv`, in order. Without one, the sender must wait.
    #[default]
    Posted,
    /// None: every message is accepted, nothing is placed and no receive completes. Only
    /// [`Event::Delivered`](crate::Event::Delivered) reports messages. For simulation without memory.
    Discard,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_double_up_to_the_maximum() {
        let rto = RetransmissionConfig {
            timeout: Duration::from_us(100),
            max_timeout: Duration::from_us(500),
            backoff: 2,
            retry_limit: 4,
        };
        let after: [u64; 5] = core::array::from_fn(|n| rto.after(n as u32).as_ns() / 1_000);
        assert_eq!(after, [100, 200, 400, 500, 500]);
        assert_eq!(rto.give_up_after(), Duration::from_us(1_700));
    }

    #[test]
    fn a_maximum_below_the_start_does_not_shorten_it() {
        let rto = RetransmissionConfig {
            timeout: Duration::from_ms(2),
            max_timeout: Duration::from_ms(1),
            backoff: 1,
            retry_limit: 2,
        };
        assert_eq!(rto.after(9), Duration::from_ms(2));
        assert_eq!(rto.give_up_after(), Duration::from_ms(6));
    }
}
