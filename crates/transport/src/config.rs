//! What an endpoint and a queue pair are made from.

use crate::memory::Domain;
use pathweave_policy::{AckPolicy, CnpMode, CnpPolicy, CreditTerms, PathView, Recovery, Reordering};
use pathweave_units::{Duration, HostId};
use pathweave_wire::Framing;

pub use pathweave_wire::{MAX_MTU_PAYLOAD, MIN_MTU_PAYLOAD};

/// What an endpoint is made from.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EndpointConfig {
    /// This host.
    pub host: HostId,
    /// Payload of a full packet, in bytes; 256 to 32,576. Both ends of a queue pair use the same.
    pub mtu_payload: u16,
    /// How many bytes a segment takes on a link.
    pub framing: Framing,
    /// NIC ports, 1 to 64. All of them lead to every peer, and path `p` leaves by port `p % nic_ports`, unless told otherwise.
    pub nic_ports: u8,
    /// Seed of the run; every queue pair draws from a stream of its own.
    pub seed: u64,
}

impl EndpointConfig {
    /// A host with one port, 4,096-byte packets and RoCEv2 framing.
    pub const fn new(host: HostId) -> Self {
        EndpointConfig { host, mtu_payload: 4_096, framing: Framing::Rocev2, nic_ports: 1, seed: 0 }
    }
    /// Panics if a field is out of its range: a configuration is checked before it gets here.
    pub(crate) fn check(&self) {
        assert!(
            (MIN_MTU_PAYLOAD..=MAX_MTU_PAYLOAD).contains(&self.mtu_payload),
            "mtu_payload is {} bytes; allowed are {MIN_MTU_PAYLOAD} to {MAX_MTU_PAYLOAD}",
            self.mtu_payload
        );
        assert!((1..=64).contains(&self.nic_ports), "nic_ports is {}; allowed are 1 to 64", self.nic_ports);
    }
}

/// What a queue pair is made from. Both ends should use the same `recovery`.
#[derive(Clone, Debug)]
pub struct QpConfig<'a, P> {
    /// The host at the other end; packets from any other are refused.
    pub peer: HostId,
    /// Decides when packets of this end leave and on which path.
    pub policy: P,
    /// Paths the policy may choose from. Empty: all those it was built for, all up.
    pub paths: &'a [PathView],
    /// Loss recovery, as sender and as receiver.
    pub recovery: Recovery,
    /// When this end acknowledges.
    pub acks: AckPolicy,
    /// When this end notifies of congestion.
    pub cnp: CnpPolicy,
    /// What this end says of packets that arrive ahead of a gap.
    pub reordering: Reordering,
    /// Credit, where receivers grant any. Both ends should have the same configuration of it.
    pub credit: Option<CreditTerms>,
    /// Retransmission timer.
    pub rto: RetransmissionConfig,
    /// Round-trip time of a full packet while nothing queues, what hosts take included: where recovery by time starts from.
    /// Zero: not known, so that it waits as long as `rto` says until it has measured one.
    pub idle_rtt: Duration,
    /// How late hosts made of software may be, however punctual they have been: recovery by time waits at least so much
    /// (rounded down to a power of two of 256 ps) longer than any packet of late took. Zero: hosts are punctual.
    pub host_delay: Duration,
    /// What proves an overtaken packet lost to recovery by time.
    pub evidence: Evidence,
    /// Back-off when the other end has no receive posted.
    pub rnr: RnrConfig,
    /// Where the messages of the other end's SENDs go.
    pub receive: ReceiveMode,
    /// READs this end may have outstanding; further ones wait, and what is posted after them with them.
    pub max_reads_out: u16,
    /// READs of the other end this end serves at a time; one more is told to come again later. At least the other
    /// end's `max_reads_out`.
    pub max_reads_in: u16,
    /// Protection domain: which memory regions the other end reaches, besides those that are open to this queue pair alone.
    pub domain: Domain,
}

impl<'a, P> QpConfig<'a, P> {
    /// A queue pair with selective repeat over a window of 1,024 packets (only the timer finds losses), an
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
            cnp: CnpPolicy { mode: CnpMode::Off, interval: Duration::ZERO },
            reordering: Reordering::Silent,
            credit: None,
            rto: RetransmissionConfig::SHORT,
            idle_rtt: Duration::ZERO,
            host_delay: Duration::ZERO,
            evidence: Evidence::default(),
            rnr: RnrConfig::default(),
            receive: ReceiveMode::Posted,
            max_reads_out: 16,
            max_reads_in: 16,
            domain: Domain::default(),
        }
    }
}

/// What proves to recovery by time that a packet is lost that others have overtaken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// That it has been away for longer than packets take. For networks that drop what finds their buffers full.
    #[default]
    Patience,
    /// That the answer of a probe came which followed it on its path. For networks that keep the order of packets on a path and
    /// drop none of their own accord: what is late there mostly waits. Without an answer twice as long decides.
    Probe,
}

/// Retransmission timer: runs from the last progress of a queue pair, or from its oldest packet in flight if that
/// left later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RetransmissionConfig {
    /// Time to the first timeout. Default 4 ms (ConWeave's set-ups): longer than a full 32 MB buffer takes to drain at
    /// 100 Gb/s, so that in a lossless fabric what is late is not taken for lost. A fabric that drops wants less.
    pub timeout: Duration,
    /// Longest time between timeouts. Default 64 ms.
    pub max_timeout: Duration,
    /// Factor by which the time grows with each timeout in a row, 1 to 16. Default 2.
    pub backoff: u32,
    /// Timeouts in a row without progress after which a message fails. Default 7, the most a RoCE NIC can be set to.
    pub retry_limit: u32,
}

impl RetransmissionConfig {
    /// The usual one, but a millisecond to the first timeout: for fabrics whose queues are shorter than that.
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
    /// Time to the next timeout after `timeouts` in a row.
    pub fn after(&self, timeouts: u32) -> Duration {
        let factor = u64::from(self.backoff.max(1)).saturating_pow(timeouts);
        let grown = self.timeout.as_ps().saturating_mul(factor);
        Duration::from_ps(grown.min(self.max_timeout.as_ps().max(self.timeout.as_ps())).max(1))
    }
    /// Time from the last sign of life to giving up.
    pub fn give_up_after(&self) -> Duration {
        let mut total = 0u64;
        for timeouts in 0..=self.retry_limit {
            let next = self.after(timeouts).as_ps();
            if timeouts > 0 && next == self.after(timeouts - 1).as_ps() {
                // From here on all are alike.
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
    /// The queue pair sends nothing for this long.
    pub delay: Duration,
    /// Back-offs in a row without progress after which the queue pair fails; `None`: never (verbs' value 7).
    pub retry_limit: Option<u32>,
}

impl Default for RnrConfig {
    /// 100 us, for ever.
    fn default() -> Self {
        RnrConfig { delay: Duration::from_us(100), retry_limit: None }
    }
}

/// Where the messages of the other end's SENDs go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveMode {
    /// Into the receives posted with `post_recv`, in order; without one the sender is told to wait.
    #[default]
    Posted,
    /// Nowhere: every message is welcome, nothing is placed and no receive completes; only
    /// [`Event::Delivered`](crate::Event::Delivered) tells of it. For simulation without memory.
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
