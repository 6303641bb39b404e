//! Schemes as real hosts need them.

use std::time::Duration;

use pathweave_policy::{AckPolicy, PolicyConfig, Recovery, Scheme, schemes};
use pathweave_transport::RtoConfig;
use pathweave_units::Duration as Span;

use crate::config::{ConfigError, DeviceConfig};

/// Packets of one batch that one acknowledgement answers: what its bitmap covers, so that each can be told apart.
const ACK_EVERY_PACKETS: u16 = 64;
/// An acknowledgement held back leaves when the batch it belongs to is done with.
const ACK_DELAY: Span = Span::from_us(1);

/// What the kernel counts for a packet in a socket's buffer, besides its payload.
const BUFFER_BYTES_A_PACKET: usize = 1_024;
/// However small a buffer is, so many packets may be on the way.
const LEAST_WINDOW_PACKETS: u32 = 32;

/// Packets that may overtake one without its path being slow: several batches.
const LATE_PACKETS: u32 = 512;

/// The scheme of this name or alias.
pub(crate) fn find(name: &str) -> Result<Scheme, ConfigError> {
    if let Some(info) = pathweave_policy::find_scheme(name) {
        let scheme = (info.make)();
        if !scheme.service.is_connection() {
            return Err(ConfigError::NotConnections { name: name.into() });
        }
        return Ok(scheme);
    }
    let nearest = schemes().iter().min_by_key(|scheme| distance(scheme.name, name));
    let all: Vec<&str> = schemes().iter().map(|scheme| scheme.name).collect();
    Err(ConfigError::UnknownScheme {
        name: name.into(),
        nearest: nearest.map_or("", |scheme| scheme.name),
        all: all.join(", "),
    })
}

/// The scheme as it runs on hosts made of software.
///
/// Two things differ from the simulator's hosts, which take no time. Acknowledgements are made a batch, not a packet,
/// since a batch is what the kernel hands over. And the delay that hosts add must not be taken for a queue in the
/// network: what steers by delay is given `host_delay` more.
///
/// And what the kernel buffers for a socket bounds what may be on the way to it: beyond that packets are lost, whatever
/// the scheme thinks of the network. The peer's buffer is taken to be like this end's.
pub(crate) fn for_hosts(
    mut scheme: Scheme,
    config: &DeviceConfig,
    paths: u16,
    receive_buffer_bytes: Option<usize>,
) -> Scheme {
    let by_path = matches!(scheme.recovery, Recovery::PathOrder { .. });
    if let (
        Recovery::SelectiveRepeat { window_packets, .. } | Recovery::PathOrder { window_packets, .. },
        Some(bytes),
    ) = (&mut scheme.recovery, receive_buffer_bytes)
    {
        let packet = usize::from(config.mtu_payload) + BUFFER_BYTES_A_PACKET;
        let fits = u32::try_from(bytes / 2 / packet).unwrap_or(u32::MAX);
        *window_packets = (*window_packets).min(fits.max(LEAST_WINDOW_PACKETS));
    }
    if let Recovery::PathOrder { rto_min, .. } = &mut scheme.recovery {
        *rto_min = (*rto_min).max(timeouts(config).initial);
    }
    if paths == 1 && !by_path {
        // On several paths the loop joins them, path by path, and so where each path is listened to by itself.
        scheme.acks = AckPolicy {
            every_packets: scheme.acks.every_packets.max(ACK_EVERY_PACKETS),
            max_delay: scheme.acks.max_delay.max(ACK_DELAY),
        };
    }
    if let PolicyConfig::Udmp(udmp) = &mut scheme.policy {
        let (host_ps, base_ps) = (picoseconds(config.host_delay), picoseconds(config.base_rtt).max(1));
        udmp.queue_target = Span::from_ps(udmp.queue_target.as_ps() + host_ps);
        if udmp.ooo_packets > 0 {
            // Batches of a path arrive whole, so what is behind by some of them is not late.
            udmp.ooo_packets = udmp.ooo_packets.max(LATE_PACKETS);
        }
        // A stall of a host must not pass for severe congestion.
        udmp.severe_rtt += 10.0 * (1.0 + host_ps as f64 / base_ps as f64);
    }
    if let PolicyConfig::Laps(laps) = &mut scheme.policy {
        laps.host_delay = Span::from_ps(laps.host_delay.as_ps() + picoseconds(config.host_delay));
    }
    scheme
}

/// Retransmission timer: patient enough for a host that is not scheduled for a while, and not done before the peer
/// counts as dead.
pub(crate) fn timeouts(config: &DeviceConfig) -> RtoConfig {
    let initial_ps = (10 * picoseconds(config.base_rtt)).max(10 * picoseconds(config.host_delay));
    let initial = Span::from_ps(initial_ps.max(Span::from_ms(1).as_ps()));
    let max = Span::from_ps(initial.as_ps().max(Span::from_ms(100).as_ps()));
    let mut rto = RtoConfig { initial, max, backoff: 2, retry_limit: 1 };
    while rto.give_up_after().as_ps() < picoseconds(config.peer_timeout) {
        rto.retry_limit += 1;
    }
    rto
}

/// A span of the standard library in picoseconds.
pub(crate) fn picoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1_000)
}

/// A span of the standard library as one of the protocol's.
pub(crate) fn span(span: Duration) -> Span {
    Span::from_ps(picoseconds(span))
}

/// Letters to insert, remove or change.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_up_when_the_peer_counts_as_dead() {
        let mut config = DeviceConfig::loopback();
        for seconds in [1, 5, 60] {
            config.peer_timeout = Duration::from_secs(seconds);
            let after = timeouts(&config).give_up_after();
            assert!(after >= Span::from_ms(1_000 * seconds) && after < Span::from_ms(1_000 * seconds + 200));
        }
    }

    #[test]
    fn letters_count() {
        assert_eq!((distance("udmp", "udpm"), distance("rps", "rps"), distance("", "abc")), (2, 0, 3));
    }

    #[test]
    fn every_scheme_stays_valid_on_hosts() {
        let config = DeviceConfig::loopback();
        for info in schemes() {
            for buffer in [None, Some(100_000), Some(16 << 20)] {
                let scheme = for_hosts((info.make)(), &config, 1, buffer);
                assert_eq!(scheme.validate(), Ok(()), "{}", info.name);
            }
        }
    }
}
