//! Adaptation of schemes to real hosts.

use std::time::Duration;

use pathweave_policy::{
    AckPolicy, Adapt, DatagramConfig, HostDelay, HostEnv, Recovery, Scheme, Service, schemes,
};
use pathweave_transport::RetransmissionConfig;
use pathweave_units::Duration as Span;

use crate::backend::UdpBackend;
use crate::config::{AROUND_PAYLOAD_BYTES, ConfigError, DeviceConfig};

/// Largest number of packets of one batch that one acknowledgement covers: the length of its bitmap, so that each is
/// reported individually.
const ACK_EVERY_PACKETS: u16 = 64;
/// Longest time for which an acknowledgement is delayed: it leaves when its batch has been processed.
const ACK_DELAY: Span = Span::from_us(1);

/// Bytes that the kernel charges to a socket's buffer for a packet, besides its payload.
const BUFFER_BYTES_A_PACKET: usize = 1_024;
/// Smallest bound on bytes in flight that a small socket buffer imposes, the kernel's overhead included: 32 packets
/// of 8,960 bytes of payload. They fit the buffers that Linux grants by default.
const LEAST_WINDOW_BYTES: usize = 32 * (8_960 + BUFFER_BYTES_A_PACKET);
/// Smallest bound on packets in flight. With fewer packets, loss recovery cannot determine which of them are lost.
const LEAST_WINDOW_PACKETS: usize = 4;

/// Part of the bandwidth-delay product, with the hosts' delay included in the delay, that may be in flight. In
/// simulated time, with four or eight unequal paths behind 1 Gb/s: with 0.5, UDMP gets 80 % of the sum of paths of
/// 300, 150, 150 and 30 Mb/s. Then fast paths also run dry when hosts are not scheduled for 2 ms now and then. With
/// 1.0, queues of 150 KB overflow after such a stall.
const HELD_BDPS: f64 = 0.75;
/// Smallest number of packets in flight for each path when the device has several network interfaces. With 16 paths
/// over links of 100 and 10 Mb/s and a line rate of their sum, UDMP sends 11 MB/s with this rule and 5 MB/s without
/// it.
const HELD_PACKETS_A_PATH: f64 = 2.0;
/// Largest number of bytes in flight that host delay alone justifies: about the size of a cache.
const HELD_BYTES: f64 = 524_288.0;

/// Returns the connection scheme with this name or alias.
pub(crate) fn find(name: &str) -> Result<Scheme, ConfigError> {
    let scheme = find_any(name)?;
    if scheme.policy.reads_telemetry() {
        return Err(ConfigError::NeedsTelemetry { name: name.into() });
    }
    if scheme.service.is_connection() {
        Ok(scheme)
    } else {
        Err(ConfigError::NotConnections { name: name.into() })
    }
}

/// Returns the names of all connection schemes that run on real hosts.
pub(crate) fn of_connections() -> impl Iterator<Item = &'static str> {
    schemes().iter().filter(|info| (info.make)().connects_real_hosts()).map(|info| info.name)
}

/// Returns the datagram scheme with this name or alias, and the configuration of its datagrams.
pub(crate) fn find_datagrams(name: &str) -> Result<(Scheme, DatagramConfig), ConfigError> {
    let scheme = find_any(name)?;
    let Service::Datagram(behaviour) = scheme.service else {
        let datagrams = schemes().iter().filter(|info| matches!((info.make)().service, Service::Datagram(_)));
        let all: Vec<&str> = datagrams.map(|info| info.name).collect();
        return Err(ConfigError::NotDatagrams { name: name.into(), all: all.join(", ") });
    };
    Ok((scheme, behaviour))
}

/// Adapts the congestion control of datagrams to real hosts: timers designed for fast links become slower on slow
/// ones.
pub(crate) fn suit_datagrams(scheme: &mut Scheme, config: &DeviceConfig) {
    let network_rtt = network_rtt(config, None);
    scheme.policy.adapt_to_host(&HostEnv {
        line_rate: config.line_rate,
        network_rtt,
        host_delay: Span::ZERO,
        base_rtt: network_rtt,
        max_inflight_bdps: 1.0,
        batch_packets: 1,
    });
}

fn find_any(name: &str) -> Result<Scheme, ConfigError> {
    if let Some(info) = pathweave_policy::find_scheme(name) {
        return Ok((info.make)());
    }
    let nearest = pathweave_units::closest_name(name, schemes().iter().map(|scheme| scheme.name));
    let all: Vec<&str> = schemes().iter().map(|scheme| scheme.name).collect();
    Err(ConfigError::UnknownScheme { name: name.into(), nearest, all: all.join(", ") })
}

/// Returns the number of queue pairs over which a scheme divides a flow. A connection is one queue pair. An
/// application that wants all of them opens that many connections, and posts one part of each message on each of them
/// ([`part_bytes`](crate::part_bytes)), as the simulator does.
///
/// # Errors
/// There is no scheme with this name, or it is not a connection scheme.
pub fn queue_pairs_of(name: &str) -> Result<u16, ConfigError> {
    find(name).map(|scheme| scheme.queue_pairs)
}

/// Adapts a scheme to software hosts.
///
/// Four things differ from the simulator's hosts, which add no delay and have links of 100 Gb/s:
///
/// - Acknowledgements are sent for each batch instead of each packet, since the kernel delivers batches.
/// - Host delay must not be mistaken for queueing in the network. Schemes that react to delay get `host_delay` added
///   ([`HostDelay`]), but do not keep proportionally more in flight ([`held`]).
/// - Timers designed for fast links become slower on slow ones.
/// - As each send is a system call, consecutive packets may stay on one path ([`batch_packets`]).
///
/// Each policy configuration implements the last three ([`Adapt`]).
///
/// In addition, the kernel's buffer of a socket bounds the bytes in flight to it: packets beyond it are lost,
/// whatever the scheme knows of the network. The peer's buffer is assumed to be as large as this end's.
pub(crate) fn for_hosts(
    mut scheme: Scheme,
    config: &DeviceConfig,
    paths: u16,
    receive_buffer_bytes: Option<usize>,
    round_trip: Option<Span>,
) -> Scheme {
    let by_path = matches!(scheme.recovery, Recovery::PathOrder { .. });
    let datagrams = matches!(scheme.service, Service::Datagram(_));
    if let (Some(window_packets), Some(bytes)) = (scheme.recovery.window_packets(), receive_buffer_bytes) {
        let packet = usize::from(config.mtu_payload) + BUFFER_BYTES_A_PACKET;
        let fits = (bytes / 2).max(LEAST_WINDOW_BYTES) / packet;
        let fits = u32::try_from(fits.max(LEAST_WINDOW_PACKETS)).unwrap_or(u32::MAX);
        scheme.recovery = scheme.recovery.with_window_packets(window_packets.min(fits));
    }
    if let Recovery::PathOrder { rto_min, .. } = &mut scheme.recovery {
        *rto_min = (*rto_min).max(timeouts(config).timeout);
    }
    if paths == 1 && !by_path && !datagrams {
        // With several paths the loop joins acknowledgements path by path instead. Recovery by path order evaluates
        // each path separately, so it keeps the scheme's own acknowledgement policy.
        let every_packets = scheme.acks.every_packets;
        scheme.acks = AckPolicy {
            every_packets: every_packets.max(ACK_EVERY_PACKETS),
            // A scheme that acknowledges each packet defines no bound on the delay of an acknowledgement.
            max_delay: if scheme.acks.may_wait() { scheme.acks.max_delay.max(ACK_DELAY) } else { ACK_DELAY },
            every_bytes: scheme.acks.every_bytes,
        };
    }
    if let Recovery::Timeouts { retries, .. } = &mut scheme.recovery {
        // A retry limit sized for a NIC is exhausted after seconds. The device's configuration bounds the silence of
        // a peer instead.
        *retries = Recovery::RETRIES_FOR_EVER;
    }
    let host = HostEnv {
        line_rate: config.line_rate,
        network_rtt: network_rtt(config, round_trip),
        host_delay: span(config.host_delay),
        base_rtt: rtts(&scheme, config, round_trip).base,
        max_inflight_bdps: held(&scheme, config, paths, round_trip),
        batch_packets: batch_packets(config),
    };
    scheme.policy.adapt_to_host(&host);
    if let Some(credit) = &mut scheme.credit {
        credit.adapt_to_host(&host);
    }
    scheme
}

/// Returns the number of full packets that one send system call carries.
fn batch_packets(config: &DeviceConfig) -> u8 {
    let packet = usize::from(config.mtu_payload) + AROUND_PAYLOAD_BYTES as usize;
    let packets = (UdpBackend::LIMITS.batch_bytes / packet).min(UdpBackend::LIMITS.batch_segments);
    u8::try_from(packets).unwrap_or(u8::MAX).max(1)
}

/// Returns the bytes that may be in flight, in units of the bandwidth-delay product of the base round trip that the
/// scheme is given. This is the largest of three values: the network's bandwidth-delay product; as much as covers
/// host delay and still fits caches; with several interfaces, a few packets for each path. The last one prevents
/// packets queued for the slowest interface from using up the whole allowance.
fn held(scheme: &Scheme, config: &DeviceConfig, paths: u16, round_trip: Option<Span>) -> f64 {
    let bytes = |time: Span| config.line_rate.bytes_in(time) as f64;
    let network = network_rtt(config, round_trip);
    let held = (HELD_BDPS * bytes(network + span(config.host_delay))).min(HELD_BYTES);
    let packet = f64::from(u32::from(config.mtu_payload) + AROUND_PAYLOAD_BYTES);
    let several =
        if config.also_bind.is_empty() { 0.0 } else { HELD_PACKETS_A_PATH * packet * f64::from(paths) };
    bytes(network).max(held).max(several) / bytes(rtts(scheme, config, round_trip).base).max(1.0)
}

/// Returns the round-trip time of the network: the configured one, or the handshake's if that is longer.
fn network_rtt(config: &DeviceConfig, round_trip: Option<Span>) -> Span {
    span(config.base_rtt).max(round_trip.unwrap_or(Span::ZERO))
}

/// Round-trip times of idle paths, as given to a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rtts {
    /// Base round-trip time from which the scheme starts.
    pub(crate) base: Span,
    /// Lower bound on the samples given to the scheme. The shortest round trip that a software host occasionally
    /// achieves is not representative, and schemes measure everything in units of the shortest.
    pub(crate) least: Span,
}

/// Returns the round-trip times for a scheme. `round_trip`: measured by the handshake.
pub(crate) fn rtts(scheme: &Scheme, config: &DeviceConfig, round_trip: Option<Span>) -> Rtts {
    let hosts = match scheme.policy.host_delay() {
        HostDelay::InRoundTrip => span(config.host_delay),
        HostDelay::InThresholds | HostDelay::Ignored => Span::ZERO,
    };
    Rtts { base: network_rtt(config, round_trip) + hosts, least: span(config.base_rtt) + hosts }
}

/// Returns the retransmission timer's configuration. It tolerates a host that is not scheduled for a while, and does
/// not give up before the peer timeout.
pub(crate) fn timeouts(config: &DeviceConfig) -> RetransmissionConfig {
    let own_ps = 10 * picoseconds(config.base_rtt).max(picoseconds(config.host_delay));
    let initial_ps = own_ps.max(picoseconds(config.retransmit_after));
    let initial = Span::from_ps(initial_ps.max(Span::from_ms(1).as_ps()));
    let max = Span::from_ps(initial.as_ps().max(Span::from_ms(100).as_ps()));
    let mut rto = RetransmissionConfig { timeout: initial, max_timeout: max, backoff: 2, retry_limit: 1 };
    while rto.give_up_after().as_ps() < picoseconds(config.peer_timeout) {
        rto.retry_limit += 1;
    }
    rto
}

/// Converts a duration of the standard library to picoseconds.
pub(crate) fn picoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1_000)
}

/// Converts a duration of the standard library to one of the protocol's.
pub(crate) fn span(span: Duration) -> Span {
    Span::from_ps(picoseconds(span))
}

#[cfg(test)]
mod tests;
