//! Schemes as real hosts need them.

use std::time::Duration;

use pathweave_policy::{
    AckPolicy, Adapt, DatagramConfig, HostDelay, HostEnv, Recovery, Scheme, Service, schemes,
};
use pathweave_transport::RetransmissionConfig;
use pathweave_units::Duration as Span;

use crate::backend::UdpBackend;
use crate::config::{AROUND_PAYLOAD_BYTES, ConfigError, DeviceConfig};

/// Packets of one batch that one acknowledgement answers: what its bitmap covers, so that each can be told apart.
const ACK_EVERY_PACKETS: u16 = 64;
/// An acknowledgement held back leaves when the batch it belongs to is done with.
const ACK_DELAY: Span = Span::from_us(1);

/// What the kernel counts for a packet in a socket's buffer, besides its payload.
const BUFFER_BYTES_A_PACKET: usize = 1_024;
/// However small a buffer is, this many bytes may be on the way, the kernel's share included: 32 packets of 8,960 bytes of
/// payload, which fit the buffers that Linux grants by default.
const LEAST_WINDOW_BYTES: usize = 32 * (8_960 + BUFFER_BYTES_A_PACKET);
/// And at least this many packets: with fewer, loss recovery cannot tell which of them are lost.
const LEAST_WINDOW_PACKETS: usize = 4;

/// Of what the line sends in a round trip, hosts' delay included, so much may be on the way. In simulated time, four or eight unequal
/// paths behind 1 Gb/s: with a half, paths of 300, 150, 150 and 30 Mb/s give UDMP 80 % of their sum, and hosts that are not
/// scheduled for 2 ms now and then let fast paths run dry; with all of it, queues of 150 KB overflow after such a stall.
const HELD_BDPS: f64 = 0.75;
/// Packets on the way for each path, at least, over several network interfaces: with 16 paths over links of 100 and 10 Mb/s and
/// a line of their sum, UDMP sends 11 MB/s, and 5 without this rule.
const HELD_PACKETS_A_PATH: f64 = 2.0;
/// Most bytes on the way that only the delay of hosts asks for: about what caches hold.
const HELD_BYTES: f64 = 524_288.0;

/// The scheme of this name or alias, of connections.
pub(crate) fn find(name: &str) -> Result<Scheme, ConfigError> {
    let scheme = find_any(name)?;
    if scheme.service.is_connection() {
        Ok(scheme)
    } else {
        Err(ConfigError::NotConnections { name: name.into() })
    }
}

/// The names of all schemes of connections.
pub(crate) fn of_connections() -> impl Iterator<Item = &'static str> {
    schemes().iter().filter(|info| (info.make)().service.is_connection()).map(|info| info.name)
}

/// The scheme of this name or alias, of datagrams, and how they behave.
pub(crate) fn find_datagrams(name: &str) -> Result<(Scheme, DatagramConfig), ConfigError> {
    let scheme = find_any(name)?;
    let Service::Datagram(behaviour) = scheme.service else {
        let datagrams = schemes().iter().filter(|info| matches!((info.make)().service, Service::Datagram(_)));
        let all: Vec<&str> = datagrams.map(|info| info.name).collect();
        return Err(ConfigError::NotDatagrams { name: name.into(), all: all.join(", ") });
    };
    Ok((scheme, behaviour))
}

/// The congestion control of datagrams as hosts need it: clocks that are made for fast lines are slower on slow ones.
pub(crate) fn suit_datagrams(scheme: &mut Scheme, config: &DeviceConfig) {
    let network_rtt = network_rtt(config, None);
    scheme.policy.adapt_to_host(&HostEnv {
        line_rate: config.line_rate,
        network_rtt,
        host_delay: Span::ZERO,
        base_rtt: network_rtt,
        held_bdps: 1.0,
        batch_packets: 1,
    });
}

fn find_any(name: &str) -> Result<Scheme, ConfigError> {
    if let Some(info) = pathweave_policy::find_scheme(name) {
        return Ok((info.make)());
    }
    let nearest = pathweave_units::nearest(name, schemes().iter().map(|scheme| scheme.name));
    let all: Vec<&str> = schemes().iter().map(|scheme| scheme.name).collect();
    Err(ConfigError::UnknownScheme { name: name.into(), nearest, all: all.join(", ") })
}

/// Queue pairs over which a scheme divides a flow. A connection is one queue pair: an application that wants them all opens so
/// many connections, and posts of each message a part on each ([`part_bytes`](crate::part_bytes)), as the simulator does.
///
/// # Errors
/// There is no such scheme, or it is none of connections.
pub fn queue_pairs_of(name: &str) -> Result<u16, ConfigError> {
    find(name).map(|scheme| scheme.queue_pairs)
}

/// The scheme as it runs on hosts made of software.
///
/// Four things differ from the simulator's hosts, which take no time and have lines of 100 Gb/s. Acknowledgements are
/// made a batch, not a packet, since a batch is what the kernel hands over. The delay that hosts add must not be taken
/// for a queue in the network: what steers by delay is given `host_delay` more ([`HostDelay`]), but does not keep as much
/// more on the way ([`held`]). Clocks that are made for fast lines are slower on slow ones. And as each send is a system call,
/// packets in a row may keep to one path ([`batch_packets`]). The last three are the affair of each configuration ([`Adapt`]).
///
/// And what the kernel buffers for a socket bounds what may be on the way to it: beyond that packets are lost, whatever
/// the scheme thinks of the network. The peer's buffer is taken to be like this end's.
pub(crate) fn for_hosts(
    mut scheme: Scheme,
    config: &DeviceConfig,
    paths: u16,
    receive_buffer_bytes: Option<usize>,
    round_trip: Option<Span>,
) -> Scheme {
    let by_path = matches!(scheme.recovery, Recovery::PathOrder { .. });
    if let (Some(window_packets), Some(bytes)) = (scheme.recovery.window_packets(), receive_buffer_bytes) {
        let packet = usize::from(config.mtu_payload) + BUFFER_BYTES_A_PACKET;
        let fits = (bytes / 2).max(LEAST_WINDOW_BYTES) / packet;
        let fits = u32::try_from(fits.max(LEAST_WINDOW_PACKETS)).unwrap_or(u32::MAX);
        scheme.recovery = scheme.recovery.with_window_packets(window_packets.min(fits));
    }
    if let Recovery::PathOrder { rto_min, .. } = &mut scheme.recovery {
        *rto_min = (*rto_min).max(timeouts(config).timeout);
    }
    if paths == 1 && !by_path {
        // On several paths the loop joins them, path by path, and so where each path is listened to by itself.
        let every_packets = scheme.acks.every_packets;
        scheme.acks = AckPolicy {
            every_packets: every_packets.max(ACK_EVERY_PACKETS),
            // A scheme that acknowledges each packet says nothing of how long several may wait.
            max_delay: if scheme.acks.may_wait() { scheme.acks.max_delay.max(ACK_DELAY) } else { ACK_DELAY },
            every_bytes: scheme.acks.every_bytes,
        };
    }
    if let Recovery::Timeouts { retries, .. } = &mut scheme.recovery {
        // As many as a NIC has are over after seconds. How long a peer may be silent, the device is told.
        *retries = Recovery::RETRIES_FOR_EVER;
    }
    let host = HostEnv {
        line_rate: config.line_rate,
        network_rtt: network_rtt(config, round_trip),
        host_delay: span(config.host_delay),
        base_rtt: rtts(&scheme, config, round_trip).base,
        held_bdps: held(&scheme, config, paths, round_trip),
        batch_packets: batch_packets(config),
    };
    scheme.policy.adapt_to_host(&host);
    if let Some(credit) = &mut scheme.credit {
        credit.adapt_to_host(&host);
    }
    scheme
}

/// Full packets that leave as one send.
fn batch_packets(config: &DeviceConfig) -> u8 {
    let packet = usize::from(config.mtu_payload) + AROUND_PAYLOAD_BYTES as usize;
    let packets = (UdpBackend::LIMITS.batch_bytes / packet).min(UdpBackend::LIMITS.batch_segments);
    u8::try_from(packets).unwrap_or(u8::MAX).max(1)
}

/// What may be on the way, in what the line sends in the round trip that a scheme is told: as much as it sends in the
/// network's, or so much as covers the delay of hosts and caches still hold. Where the line is that of several interfaces
/// together, also a few packets for each path: what waits before the slowest of them must not be all there is.
fn held(scheme: &Scheme, config: &DeviceConfig, paths: u16, round_trip: Option<Span>) -> f64 {
    let bytes = |time: Span| config.line_rate.bytes_in(time) as f64;
    let network = network_rtt(config, round_trip);
    let held = (HELD_BDPS * bytes(network + span(config.host_delay))).min(HELD_BYTES);
    let packet = f64::from(u32::from(config.mtu_payload) + AROUND_PAYLOAD_BYTES);
    let several =
        if config.also_bind.is_empty() { 0.0 } else { HELD_PACKETS_A_PATH * packet * f64::from(paths) };
    bytes(network).max(held).max(several) / bytes(rtts(scheme, config, round_trip).base).max(1.0)
}

/// Round-trip time of the network: as configured, or as the handshake found it where that is more.
fn network_rtt(config: &DeviceConfig, round_trip: Option<Span>) -> Span {
    span(config.base_rtt).max(round_trip.unwrap_or(Span::ZERO))
}

/// Round-trip times of idle paths, as a scheme is told of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rtts {
    /// What it starts from.
    pub(crate) base: Span,
    /// It is told of no shorter one: the shortest that a host made of software now and then achieves says nothing of
    /// the usual one, and schemes measure everything in units of the shortest.
    pub(crate) least: Span,
}

/// Round-trip times for a scheme. `round_trip`: the handshake's.
pub(crate) fn rtts(scheme: &Scheme, config: &DeviceConfig, round_trip: Option<Span>) -> Rtts {
    let hosts = match scheme.policy.host_delay() {
        HostDelay::InRoundTrip => span(config.host_delay),
        HostDelay::InThresholds | HostDelay::Ignored => Span::ZERO,
    };
    Rtts { base: network_rtt(config, round_trip) + hosts, least: span(config.base_rtt) + hosts }
}

/// Retransmission timer: patient enough for a host that is not scheduled for a while, and not done before the peer
/// counts as dead.
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

/// A span of the standard library in picoseconds.
pub(crate) fn picoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1_000)
}

/// A span of the standard library as one of the protocol's.
pub(crate) fn span(span: Duration) -> Span {
    Span::from_ps(picoseconds(span))
}

#[cfg(test)]
mod tests;
