//! Schemes as real hosts need them.

use std::time::Duration;

use pathweave_policy::cc::{CcConfig, Window};
use pathweave_policy::{
    AckPolicy, DatagramConfig, PolicyConfig, Recovery, ReflexConfig, Scheme, Service, SplitConfig,
    UdmpConfig, UdmpLate, UdmpVariant, schemes,
};
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

/// Of what the line sends in a round trip, hosts' delay included, so much may be on the way.
const HELD_BDPS: f64 = 0.5;
/// Most bytes on the way that only the delay of hosts asks for: about what caches hold.
const HELD_BYTES: f64 = 524_288.0;
/// Packets that try another path: after one has died, those on the others are spread anew by them alone.
const EXPLORE: f64 = 0.03;
/// Queueing delay UDMP's rate settles at, in round-trip times, hosts' delay included.
const QUEUE_RTTS: u64 = 5;

/// Longest queueing delay Swift can be told to aim at.
const LONGEST_TARGET: Span = Span::from_ms(999);

/// Packets that may overtake one without its path being slow: several batches.
const LATE_PACKETS: u32 = 512;

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

/// The congestion control of datagrams as hosts need it.
pub(crate) fn suit_datagrams(scheme: &mut Scheme, config: &DeviceConfig) {
    suit_line(scheme, config, None);
}

/// DCQCN's clocks and TIMELY's thresholds are made for lines of 10 Gb/s and more: on a slower one the former must not tick
/// between two packets, and the latter must be above the time of one.
fn suit_line(scheme: &mut Scheme, config: &DeviceConfig, round_trip: Option<Span>) {
    let network = network_rtt(config, round_trip);
    if let Some(dcqcn) = scheme.dcqcn_mut() {
        *dcqcn = dcqcn.suited_to(config.line_rate, network);
    }
    if let PolicyConfig::Split(SplitConfig { cc: CcConfig::Timely(timely), .. })
    | PolicyConfig::Reflex(ReflexConfig { cc: CcConfig::Timely(timely), .. }) = &mut scheme.policy
    {
        *timely = timely.suited_to(config.line_rate, network);
    }
}

/// What a scheme is told of the delay that hosts add by themselves, `host_delay`. The rule is one for all: who steers by
/// delay takes so much above the network's for none, and nobody else hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostDelay {
    /// It goes by marks and losses, or by how delays of paths differ.
    Ignored,
    /// It measures round trips against that of an idle path, which is so much longer.
    InRoundTrip,
    /// It has thresholds of its own, which are so much higher.
    InThresholds,
}

impl HostDelay {
    fn of(policy: &PolicyConfig) -> HostDelay {
        let of_cc = |cc: &CcConfig| match cc {
            CcConfig::Swift(_) | CcConfig::Timely(_) => HostDelay::InThresholds,
            CcConfig::None(_) | CcConfig::Dcqcn(_) | CcConfig::Dctcp(_) | CcConfig::DctcpRate(_) => {
                HostDelay::Ignored
            }
        };
        match policy {
            PolicyConfig::Udmp(_) | PolicyConfig::Reps(_) => HostDelay::InRoundTrip,
            PolicyConfig::Laps(_) => HostDelay::InThresholds,
            PolicyConfig::Split(SplitConfig { cc, .. }) | PolicyConfig::Reflex(ReflexConfig { cc, .. }) => {
                of_cc(cc)
            }
            PolicyConfig::Mprdma(_) | PolicyConfig::Dlbf(_) => HostDelay::Ignored,
        }
    }
}

fn find_any(name: &str) -> Result<Scheme, ConfigError> {
    if let Some(info) = pathweave_policy::find_scheme(name) {
        return Ok((info.make)());
    }
    let nearest = pathweave_units::nearest(name, schemes().iter().map(|scheme| scheme.name));
    let all: Vec<&str> = schemes().iter().map(|scheme| scheme.name).collect();
    Err(ConfigError::UnknownScheme { name: name.into(), nearest, all: all.join(", ") })
}

/// Queue pairs over which a scheme divides a flow. A connection is one queue pair: whoever wants them all opens so many
/// connections, and posts of each message a part on each ([`part_bytes`](crate::part_bytes)), as the simulator does.
///
/// # Errors
/// There is no such scheme, or it is none of connections.
pub fn queue_pairs_of(name: &str) -> Result<u16, ConfigError> {
    find(name).map(|scheme| scheme.queue_pairs)
}

/// The scheme as it runs on hosts made of software.
///
/// Three things differ from the simulator's hosts, which take no time and have lines of 100 Gb/s. Acknowledgements are
/// made a batch, not a packet, since a batch is what the kernel hands over. The delay that hosts add must not be taken
/// for a queue in the network: what steers by delay is given `host_delay` more ([`HostDelay`]), but does not keep as much
/// more on the way ([`held`]). And clocks that are made for fast lines are slower on slow ones.
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
        let every_packets = scheme.acks.every_packets;
        scheme.acks = AckPolicy {
            every_packets: every_packets.max(ACK_EVERY_PACKETS),
            // A scheme that acknowledges each packet says nothing of how long several may wait.
            max_delay: if every_packets > 1 { scheme.acks.max_delay.max(ACK_DELAY) } else { ACK_DELAY },
        };
    }
    suit_line(&mut scheme, config, round_trip);
    let (idle, bdps) = (rtts(&scheme, config, round_trip).base, held(&scheme, config, round_trip));
    match &mut scheme.policy {
        PolicyConfig::Udmp(udmp) => suit_udmp(udmp, idle, bdps),
        PolicyConfig::Reps(reps) => reps.max_bdp *= bdps,
        PolicyConfig::Split(SplitConfig { cc, .. }) | PolicyConfig::Reflex(ReflexConfig { cc, .. }) => {
            suit_delay(cc, span(config.host_delay), bdps);
        }
        PolicyConfig::Laps(laps) => {
            laps.suit_drops();
            laps.host_delay = Span::from_ps(laps.host_delay.as_ps() + picoseconds(config.host_delay));
        }
        PolicyConfig::Mprdma(_) | PolicyConfig::Dlbf(_) => {}
    }
    scheme
}

/// Allows for the delay of hosts, and bounds what is on the way. TIMELY has no bound by itself, and at the line's rate what
/// a socket holds is full before a delay is above thresholds as high as these.
fn suit_delay(cc: &mut CcConfig, hosts: Span, bdps: f64) {
    match cc {
        CcConfig::Swift(swift) => {
            swift.queue_target = (swift.queue_target + hosts).min(LONGEST_TARGET);
            swift.max_bdp *= bdps;
        }
        CcConfig::Timely(timely) => {
            let params = timely.params();
            (timely.t_low, timely.t_high) = (Some(params.t_low + hosts), Some(params.t_high + hosts));
            timely.window = Some(match params.window {
                Window::Unlimited => Window::Bdp(bdps),
                Window::Bdp(factor) => Window::Bdp(factor * bdps),
                packets @ Window::Packets(_) => packets,
            });
        }
        CcConfig::None(_) | CcConfig::Dcqcn(_) | CcConfig::Dctcp(_) | CcConfig::DctcpRate(_) => {}
    }
}

/// What may be on the way, in what the line sends in the round trip that a scheme is told: as much as it sends in the
/// network's, or so much as covers the delay of hosts and caches still hold.
fn held(scheme: &Scheme, config: &DeviceConfig, round_trip: Option<Span>) -> f64 {
    let bytes = |time: Span| config.line_rate.bytes_in(time) as f64;
    let network = network_rtt(config, round_trip);
    let held = (HELD_BDPS * bytes(network + span(config.host_delay))).min(HELD_BYTES);
    bytes(network).max(held) / bytes(rtts(scheme, config, round_trip).base).max(1.0)
}

/// UDMP decides by round-trip times to a fraction of the shortest, and every acknowledgement that seems late takes a
/// packet off the way. Hosts made of software are late by more than that all the time: what is on the way would dwindle
/// to one packet, on whichever path it happens to be. So times up to `host_delay` above the shortest are one and the
/// same to it ([`rtts`]), and its measures of delay are in proportion to that.
///
/// Paths share the load by the rule that an acknowledgement that comes late releases nothing and leaves its packet to
/// faster paths. That rule is in force while packets on the way are what limits it; where the rate does, every path
/// takes from the pool what it can, and the fullest one, which has most acknowledgements, takes most. So the rate is to
/// hold back only once queues are several times as long as the packets allowed would make them on links of a quarter of
/// the line's rate. Over four paths of 100, 100, 50 and 10 Mb/s behind 1 Gb/s that is the difference between 60 and
/// 100 % of their sum.
fn suit_udmp(udmp: &mut UdmpConfig, rtt: Span, bdps: f64) {
    if udmp.variant == UdmpVariant::Repaired {
        udmp.late = UdmpLate::ByQueue;
    }
    udmp.inflight_bdp *= bdps;
    udmp.pool_bdp *= bdps;
    udmp.queue_target = udmp.queue_target.max(Span::from_ps(rtt.as_ps().saturating_mul(QUEUE_RTTS)));
    if udmp.ooo_packets > 0 {
        // Batches of a path arrive whole, so what is behind by some of them is not late.
        udmp.ooo_packets = udmp.ooo_packets.max(LATE_PACKETS);
    }
    // A stall of a host must not pass for severe congestion.
    udmp.severe_rtt += 10.0;
    udmp.explore = udmp.explore.max(EXPLORE);
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
    let hosts = match HostDelay::of(&scheme.policy) {
        HostDelay::InRoundTrip => span(config.host_delay),
        HostDelay::InThresholds | HostDelay::Ignored => Span::ZERO,
    };
    Rtts { base: network_rtt(config, round_trip) + hosts, least: span(config.base_rtt) + hosts }
}

/// Retransmission timer: patient enough for a host that is not scheduled for a while, and not done before the peer
/// counts as dead.
pub(crate) fn timeouts(config: &DeviceConfig) -> RtoConfig {
    let own_ps = 10 * picoseconds(config.base_rtt).max(picoseconds(config.host_delay));
    let initial_ps = own_ps.max(picoseconds(config.retransmit_after));
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

#[cfg(test)]
mod tests {
    use pathweave_units::Rate;

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
    fn who_steers_by_delay_takes_that_of_hosts_for_none_and_nobody_else_hears_of_it() {
        let config = DeviceConfig { host_delay: Duration::from_millis(3), ..DeviceConfig::loopback() };
        let idle = DeviceConfig { host_delay: Duration::ZERO, ..config.clone() };
        let thresholds = |policy: &PolicyConfig| match policy {
            PolicyConfig::Laps(laps) => laps.host_delay,
            PolicyConfig::Split(SplitConfig { cc: CcConfig::Timely(timely), .. })
            | PolicyConfig::Reflex(ReflexConfig { cc: CcConfig::Timely(timely), .. }) => {
                timely.params().t_low
            }
            PolicyConfig::Split(SplitConfig { cc: CcConfig::Swift(swift), .. })
            | PolicyConfig::Reflex(ReflexConfig { cc: CcConfig::Swift(swift), .. }) => swift.queue_target,
            _ => Span::ZERO,
        };
        let mut told = Vec::new();
        for info in schemes().iter().filter(|info| (info.make)().service.is_connection()) {
            let on = |config| for_hosts((info.make)(), config, 1, None, None);
            let (scheme, without) = (on(&config), on(&idle));
            let rtts = rtts(&scheme, &config, None);
            // 50 us is the network's.
            let longer = rtts.base - Span::from_us(50);
            let higher = thresholds(&scheme.policy) - thresholds(&without.policy);
            assert_eq!(rtts.base, rtts.least, "{}", info.name);
            match (longer.as_ps(), higher.as_ps()) {
                (0, 0) => {}
                (3_000_000_000, 0) | (0, 3_000_000_000) => told.push(info.name),
                _ => panic!("{}: {longer} and {higher}", info.name),
            }
        }
        for name in ["udmp", "udmp-published", "swift", "swift-rps", "timely", "reps", "laps", "reflex-swift"]
        {
            assert!(told.contains(&name), "{name}: {told:?}");
        }
        for name in ["ecmp", "rps", "dctcp", "plb", "mprdma", "dlbf", "qp16"] {
            assert!(!told.contains(&name), "{name}: {told:?}");
        }
    }

    #[test]
    fn thresholds_of_delay_are_above_that_of_hosts_and_windows_are_not_as_much_longer() {
        let config = |gbps| DeviceConfig { line_rate: Rate::from_gbps(gbps), ..DeviceConfig::loopback() };
        let on = |name, gbps| for_hosts(find(name).unwrap(), &config(gbps), 1, None, None).policy;
        // The network's 50 us are 2.5 times TIMELY's 20 us, and so is T_low; hosts add 1 ms.
        let PolicyConfig::Split(SplitConfig { cc: CcConfig::Timely(timely), .. }) = on("timely", 100) else {
            panic!("TIMELY")
        };
        assert_eq!(timely.params().t_low, Span::from_us(1_125));
        assert_eq!(timely.params().window, Window::Bdp(1.0));
        let most = |policy| match policy {
            PolicyConfig::Split(SplitConfig { cc: CcConfig::Swift(swift), .. }) => swift.max_bdp,
            other => panic!("{other:?}"),
        };
        // At 100 Gb/s what leaves in 50 us, as in the simulator; at 1 Gb/s half of what leaves in 1.05 ms.
        for (gbps, share) in [(100, 1.0), (1, 10.5)] {
            let is = most(on("swift", gbps)) / most(find("swift").unwrap().policy);
            assert!((is - share).abs() < 1e-9, "{gbps} Gb/s: {is}");
        }
    }

    #[test]
    fn the_first_timeout_is_as_late_as_asked_for() {
        let mut config = DeviceConfig::loopback();
        assert_eq!(timeouts(&config).initial, Span::from_ms(10));
        config.retransmit_after = Duration::from_millis(5);
        assert_eq!(timeouts(&config).initial, Span::from_ms(10));
        config.retransmit_after = Duration::from_secs(2);
        config.peer_timeout = Duration::from_secs(5);
        let late = timeouts(&config);
        assert_eq!((late.initial, late.max), (Span::from_ms(2_000), Span::from_ms(2_000)));
    }

    #[test]
    fn udmp_takes_no_delay_of_hosts_for_a_queue_and_keeps_their_window_in_bounds() {
        let udmp = |gbps, round_trip| {
            let config = DeviceConfig { line_rate: Rate::from_gbps(gbps), ..DeviceConfig::loopback() };
            let scheme = for_hosts(find("udmp").unwrap(), &config, 16, None, round_trip);
            let rtts = rtts(&scheme, &config, round_trip);
            let PolicyConfig::Udmp(udmp) = scheme.policy else { panic!("{:?}", scheme.policy) };
            (udmp.inflight_bdp * config.line_rate.bytes_in(rtts.base) as f64, udmp.queue_target, rtts)
        };
        // The network takes 50 us and hosts 1 ms. 1 Gb/s sends 131,250 bytes meanwhile, of which half is allowed for;
        // 100 Gb/s sends 625,000 bytes in 50 us, more than is held for hosts' sake. A quarter more each is UDMP's.
        let both = Span::from_us(1_050);
        let (window, target, rtts) = udmp(1, None);
        assert_eq!((window.round(), target), (82_031.0, Span::from_us(5_250)));
        assert_eq!(rtts, Rtts { base: both, least: both });
        assert_eq!(udmp(100, None).0.round(), 781_250.0);
        // 10 Gb/s: half of 1,312,500 bytes is beyond the bound.
        assert_eq!(udmp(10, None).0.round(), 655_360.0);
        // The handshake took 10 ms: 12.5 MB at 10 Gb/s.
        let (window, target, rtts) = udmp(10, Some(Span::from_ms(10)));
        assert_eq!((window.round(), target), (15_625_000.0, Span::from_ms(55)));
        assert_eq!(rtts, Rtts { base: Span::from_ms(11), least: both });
    }

    /// 50 us there and back are 4.17 times HPCC's 12 us; packets take 250 times as long at 100 Mb/s as at 25 Gb/s.
    #[test]
    fn rates_of_slow_lines_have_slow_clocks() {
        let config = |mbps| DeviceConfig { line_rate: Rate::from_mbps(mbps), ..DeviceConfig::loopback() };
        let of = |scheme: &Scheme| {
            assert_eq!(scheme.validate(), Ok(()));
            let params = scheme.dcqcn().unwrap().params();
            (params.min_rate, params.rate_timer)
        };
        let destination = |mbps| {
            let (mut scheme, _) = find_datagrams("erd-dcqcn").unwrap();
            suit_datagrams(&mut scheme, &config(mbps));
            of(&scheme)
        };
        let connection =
            |name, mbps, round_trip| of(&for_hosts(find(name).unwrap(), &config(mbps), 1, None, round_trip));
        let slow = (Rate::from_mbps(1), Span::from_ms(75));
        assert_eq!((destination(100), connection("ecmp", 100, None)), (slow, slow));
        // ASTRA-sim's 900 us.
        assert_eq!(connection("dlbf", 100, None), (Rate::from_mbps(1), Span::from_ms(225)));
        let fast = (Rate::from_gbps(1), Span::from_us(1_250));
        assert_eq!((destination(100_000), connection("ecmp", 100_000, None)), (fast, fast));
        // The handshake took 1.2 ms.
        let far = (Rate::from_gbps(1), Span::from_ms(30));
        assert_eq!(connection("ecmp", 100_000, Some(Span::from_us(1_200))), far);
    }

    #[test]
    fn every_scheme_stays_valid_on_hosts() {
        let config = DeviceConfig::loopback();
        for info in schemes() {
            for buffer in [None, Some(100_000), Some(16 << 20)] {
                let scheme = for_hosts((info.make)(), &config, 1, buffer, None);
                assert_eq!(scheme.validate(), Ok(()), "{}", info.name);
            }
        }
    }
}
