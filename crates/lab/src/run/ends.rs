//! Hosts of a run: one datapath device for each, and the connections between them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use pathweave_datapath::secure::Protection;
use pathweave_datapath::{
    Access, Connection, Device, DeviceConfig, Listener, MAX_PATHS, Region, Registration, Remote, Slice,
    Uncontrolled, Unprotected,
};
use pathweave_execution::{ConnId, Connections, MessagePart};
use pathweave_policy::{Adapt, Scheme};
use pathweave_records::{FlowRecord, FlowStatus};
use pathweave_sim::{NamedScheme, PathProfile, SimSpec, Verb, profile};
use pathweave_topo::Routing;
use pathweave_units::{HostId, Rate};

use super::devices::{HostPort, OpenDevice};
use crate::error::LabError;
use crate::lab::Lab;
use crate::settings::RateScale;

/// UDP port of every device: that of RoCEv2.
const PORT: u16 = 4791;
/// Largest number of connections, one for each queue pair of each stream of messages.
const MOST_CONNECTIONS: usize = 4_000;
/// Largest memory for messages in bytes, at senders and receivers together.
const MOST_BYTES: u64 = 4 << 30;
/// Size in bytes of the receiver's region that messages without memory of their own use in turn.
const TURN_BYTES: u64 = 16 << 20;
/// Largest total payload in bytes for which every message has memory of its own and is verified after the run.
const VERIFIED_BYTES: u64 = 512 << 20;
/// Spacing in bytes between the offsets at which messages begin in one random pattern, so that a message written to
/// the wrong memory is detected.
const PATTERN_SHIFT: u64 = 64;
const PATTERN_SHIFTS: u64 = 251;
/// Delay that software adds to a round trip between idle hosts.
const SOFTWARE_RTT: Duration = Duration::from_micros(200);
/// Largest initial retransmission timeout, for any rate scale.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(4);
/// Time limit for the other end of a connection to appear after this end is open.
const ACCEPT: Duration = Duration::from_secs(5);
/// Largest number of receives posted ahead on a connection.
const RECEIVES: u32 = 1_024;

/// All hosts of a run.
pub(super) struct Hosts {
    hosts: BTreeMap<u32, Host>,
    /// Offset of each message in its receiver's memory.
    places: Vec<u64>,
    pattern: Region,
    verified: bool,
}

/// Host that sends or receives.
struct Host {
    device: Device,
    listener: Listener,
    memory: Region,
    registration: Registration,
}

/// Queue pair: a connection of the datapath, with both of its ends.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) sender: Connection,
    pub(super) receiver: Connection,
}

/// Number of timed wake-ups of event loops, and their total delay.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WakeupDelays {
    times: u64,
    late_ns: u64,
}

impl WakeupDelays {
    /// Returns the average delay of wake-ups since `before`.
    pub(super) fn late_since(&self, before: &WakeupDelays) -> Duration {
        let times = self.times.saturating_sub(before.times).max(1);
        Duration::from_nanos(self.late_ns.saturating_sub(before.late_ns) / times)
    }
}

impl Hosts {
    /// Opens the devices of all hosts and the queue pairs of all connections.
    pub(super) fn open(
        lab: &Lab,
        spec: &SimSpec,
        open: &OpenDevice<'_>,
        connections: &mut Connections<Pair>,
        notes: &mut Vec<String>,
    ) -> Result<Hosts, LabError> {
        let messages = spec.graph.messages();
        let queue_pairs = |group| usize::from(spec.scheme_of(group).scheme.queue_pairs);
        let found = connections.iter().map(|connection| queue_pairs(connection.group)).sum();
        if found > MOST_CONNECTIONS {
            return Err(LabError::TooLarge { what: "connections", found, most: MOST_CONNECTIONS });
        }
        let names = spec.schemes.iter().map(preset).collect::<Result<Vec<_>, _>>()?;
        let MessageOffsets { places, sizes, own: verified } = MessageOffsets::of(spec)?;
        if !verified {
            notes.push("messages have too many bytes to compare each with the sent one".to_owned());
        }
        let largest = messages.iter().map(|message| message.size.get()).max().unwrap_or(1);
        let pattern = region(largest + PATTERN_SHIFT * PATTERN_SHIFTS)?;
        fill(&pattern, spec.seed);

        let mut hosts = BTreeMap::new();
        let routing = Routing::all_links_up(&spec.topology);
        for host in connections.iter().flat_map(|c| [c.src.0, c.dst.0]).collect::<BTreeSet<u32>>() {
            let config = config(lab, spec, &routing, host, connections, notes)?;
            let bytes = sizes.get(&host).copied().unwrap_or(1);
            hosts.insert(host, Host::open(lab, host, config, open, bytes)?);
        }
        let ends = Hosts { hosts, places, pattern, verified };
        for conn in 0..connections.len() as ConnId {
            let connection = &mut connections[conn];
            let (src, dst, group) = (connection.src, connection.dst, connection.group);
            let name = names[usize::from(spec.groups[group.index()].scheme)];
            connection.queue_pairs = ends.connect(lab, (src, dst), name, queue_pairs(group))?.into();
            let receives = connection.messages_left().min(RECEIVES);
            for pair in &connection.queue_pairs {
                (0..receives).try_for_each(|_| ends.receive(dst, &pair.receiver))?;
            }
        }
        notes.dedup();
        Ok(ends)
    }

    /// Returns the devices with their hosts.
    pub(super) fn devices(&self) -> impl Iterator<Item = (u32, &Device)> {
        self.hosts.iter().map(|(number, host)| (*number, &host.device))
    }

    /// Returns the wake-up delays of all hosts' loops so far.
    pub(super) fn paced(&self) -> WakeupDelays {
        let mut sum = WakeupDelays::default();
        for stats in self.hosts.values().filter_map(|host| host.device.stats()) {
            sum.times += stats.paced;
            sum.late_ns += stats.paced_late_ns;
        }
        sum
    }

    /// Opens the queue pairs of a connection and matches their two ends.
    fn connect(
        &self,
        lab: &Lab,
        (from, to): (HostId, HostId),
        scheme: &str,
        queue_pairs: usize,
    ) -> Result<Vec<Pair>, LabError> {
        let (src, dst) = (&self.hosts[&from.0], &self.hosts[&to.0]);
        let name = |host: HostId| lab.plan().topology().node_name(host.into()).into_owned();
        let failed = |why: String| LabError::Run(format!("{} to {}: {why}", name(from), name(to)));
        let open = |_| {
            let sender = src.device.connect_with(dst.device.local_addr(), scheme, &[]);
            let sender = sender.map_err(|why| failed(why.to_string()))?;
            // One at a time, so that the next accepted connection is the other end of this one.
            let receiver = dst.listener.accept(ACCEPT).map_err(|why| failed(why.to_string()))?;
            Ok(Pair { sender, receiver })
        };
        (0..queue_pairs).map(open).collect()
    }

    /// Posts one receive at `host` for a message's immediate. A SEND's payload is written to memory that is not read.
    pub(super) fn receive(&self, host: HostId, receiver: &Connection) -> Result<(), LabError> {
        let memory = self.hosts[&host.0].memory.all();
        receiver.recv(0, memory).map_err(|why| LabError::Run(format!("cannot post a receive: {why}")))
    }

    /// Returns the source and destination of a message's share.
    pub(super) fn memory(
        &self,
        message: u32,
        dst: HostId,
        MessagePart { offset, len }: MessagePart,
    ) -> (Slice, Remote) {
        let start = pattern_offset(message) + offset;
        let from = self.pattern.slice(start as usize..(start + len) as usize);
        let to = self.hosts[&dst.0].registration.remote(self.places[message as usize] + offset);
        (from.expect("the pattern is as long as the longest message and its shift"), to)
    }

    /// Compares every message that arrived with its original.
    pub(super) fn verify(&self, flows: &[FlowRecord]) -> Result<(), LabError> {
        if !self.verified {
            return Ok(());
        }
        for flow in flows.iter().filter(|flow| flow.status == FlowStatus::Finished) {
            let (message, dst, size) = (flow.flow, flow.dst_host, flow.size_bytes);
            let bytes = |region: &Region, start: u64| region.to_vec(start as usize..(start + size) as usize);
            let place = self.places[message as usize];
            let (Ok(sent), Ok(arrived)) =
                (bytes(&self.pattern, pattern_offset(message)), bytes(&self.hosts[&dst].memory, place))
            else {
                return Err(LabError::Run(format!("message {message} is not in memory")));
            };
            if let Some(at) = sent.iter().zip(&arrived).position(|(a, b)| a != b) {
                return Err(LabError::Run(format!(
                    "message {message} arrived changed: byte {at} of {size} is {} instead of {}; this is a bug",
                    arrived[at], sent[at]
                )));
            }
        }
        Ok(())
    }
}

impl Host {
    fn open(
        lab: &Lab,
        host: u32,
        config: DeviceConfig,
        open: &OpenDevice<'_>,
        bytes: u64,
    ) -> Result<Host, LabError> {
        let name = lab.plan().topology().node_name(HostId(host).into()).into_owned();
        let failed = |why: String| LabError::Run(format!("{name} has no network: {why}"));
        let ports = &lab.plan().node(HostId(host).into()).ports;
        let interface = ports.first().map(|port| port.device.clone()).unwrap_or_default();
        let port = HostPort { interface, mtu_bytes: lab.plan().settings().mtu_bytes };
        let device = lab.inside(HostId(host).into(), || open(&port, config))?.map_err(failed)?;
        let listener = device.listen().map_err(|why| failed(why.to_string()))?;
        let memory = region(bytes)?;
        let registration = device.register(&memory, Access::WRITE).map_err(|why| failed(why.to_string()))?;
        Ok(Host { device, listener, memory, registration })
    }
}

/// Locations of messages in their receivers' memory.
struct MessageOffsets {
    /// Offset of each message.
    places: Vec<u64>,
    /// Memory of each receiver in bytes.
    sizes: BTreeMap<u32, u64>,
    /// True if each message has memory of its own.
    own: bool,
}

impl MessageOffsets {
    fn of(spec: &SimSpec) -> Result<MessageOffsets, LabError> {
        let messages = spec.graph.messages();
        let total = spec.graph.total_bytes();
        let own =
            spec.network.verb == Verb::Write && (spec.run.verify || total <= u128::from(VERIFIED_BYTES));
        let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
        let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
        let mut places = Vec::with_capacity(messages.len());
        for message in messages {
            let end = sizes.entry(message.dst.0).or_default();
            // Used in turn to avoid overlaps: a WRITE waits for WRITEs of its connection that it overlaps.
            let next = ends.entry(message.dst.0).or_default();
            let write = spec.network.verb == Verb::Write;
            let fits = *next + message.size.get() <= TURN_BYTES;
            let place = if own || write && fits { *next } else { 0 };
            *next = place + message.size.get();
            *end = (*end).max(*next);
            places.push(place);
        }
        let needed = sizes.values().sum::<u64>() + messages.iter().map(|m| m.size.get()).max().unwrap_or(0);
        if needed > MOST_BYTES {
            let why = format!(
                "its messages need {needed} bytes of memory; a lab uses at most {MOST_BYTES}: choose smaller messages, or \
                 run.verify = false"
            );
            return Err(LabError::Run(why));
        }
        Ok(MessageOffsets { places, sizes, own })
    }
}

fn region(bytes: u64) -> Result<Region, LabError> {
    Region::zeroed(bytes.max(1) as usize).map_err(|why| LabError::Run(why.to_string()))
}

/// Fills a region with bytes derived from the seed (upper half of a linear congruential generator).
fn fill(region: &Region, seed: u64) {
    const CHUNK: usize = 1 << 16;
    let mut state = seed | 1;
    let mut chunk = vec![0; CHUNK];
    for start in (0..region.len()).step_by(CHUNK) {
        for bytes in chunk.chunks_mut(4) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.copy_from_slice(&((state >> 32) as u32).to_ne_bytes());
        }
        let len = CHUNK.min(region.len() - start);
        region.write(start, &chunk[..len]).expect("the chunk ends where the region does");
    }
}

fn pattern_offset(message: u32) -> u64 {
    u64::from(message) % PATTERN_SHIFTS * PATTERN_SHIFT
}

/// Returns the datapath's name of a scheme. The datapath runs presets unchanged; only paths and queue pairs may
/// differ, because the lab sets them.
fn preset(named: &NamedScheme) -> Result<&'static str, LabError> {
    if named.scheme.forwarding.is_some() {
        return Err(LabError::Run(format!(
            "scheme \"{}\" needs switches that balance load; those of a lab are the kernel's and hash",
            named.name
        )));
    }
    if named.scheme.policy.reads_telemetry() {
        return Err(LabError::Run(format!(
            "scheme \"{}\" needs switches that write telemetry into packets; those of a lab are the kernel's and write \
             none; the nearest scheme without them is \"swift\"",
            named.name
        )));
    }
    let same = |made: Scheme| {
        let Scheme { paths, queue_pairs, .. } = named.scheme;
        Scheme { paths, queue_pairs, ..made } == named.scheme
    };
    pathweave_policy::schemes().iter().find(|info| same((info.make)())).map(|info| info.name).ok_or_else(|| {
        LabError::Run(format!(
            "scheme \"{}\" has settings of its own; on real hosts a preset runs as it is, except for paths and \
             queue_pairs",
            named.name
        ))
    })
}

fn config(
    lab: &Lab,
    spec: &SimSpec,
    routing: &Routing,
    host: u32,
    connections: &Connections<Pair>,
    notes: &mut Vec<String>,
) -> Result<DeviceConfig, LabError> {
    let plan = lab.plan();
    let address = SocketAddr::V4(SocketAddrV4::new(lab.address(HostId(host)), PORT));
    let paths = spec.schemes.iter().map(|named| named.scheme.paths).max().unwrap_or(1);
    if paths > MAX_PATHS {
        notes.push(format!("connections have {MAX_PATHS} paths instead of {paths}"));
    }
    let mut config = DeviceConfig {
        paths: paths.min(MAX_PATHS),
        // The lab's network is isolated: no other host can send to it.
        protection: Protection::Insecure,
        unprotected: Unprotected::Anywhere,
        uncontrolled: Uncontrolled::All,
        max_connections: 2 * MOST_CONNECTIONS,
        max_connections_per_peer: 2 * MOST_CONNECTIONS,
        seed: Some(spec.seed ^ u64::from(host) << 32),
        ..DeviceConfig::new(address)
    };
    let wrong = |why: pathweave_datapath::ConfigError| LabError::Run(why.to_string());
    config.fit_link(plan.settings().mtu_bytes as usize).map_err(wrong)?;
    let wanted = spec.network.mtu.get();
    if u64::from(config.mtu_payload) < wanted {
        notes.push(format!(
            "packets carry {} bytes instead of {wanted}, because links carry {}",
            config.mtu_payload,
            plan.settings().mtu_bytes
        ));
    }
    config.mtu_payload = config.mtu_payload.min(wanted as u16);
    let nics: u64 = plan.node(HostId(host).into()).ports.iter().map(|port| port.rate.as_bps()).sum();
    config.line_rate = Rate::from_bps(nics).max(Rate::from_mbps(1));
    let partners = connections.iter().filter(|c| c.src.0 == host).map(|c| c.dst);
    let scale = plan.settings().rate_scale;
    let round_trips = partners
        .filter_map(|dst| profile(&spec.topology, routing, HostId(host), dst))
        .map(|path| transmission_s(&path, config.mtu_payload) / scale.share());
    let longest = round_trips.fold(0.0, f64::max);
    config.base_rtt = SOFTWARE_RTT + Duration::from_secs_f64(longest.min(1.0));
    set_retransmission_timers(&mut config, spec, scale);
    Ok(config)
}

/// Sets the retransmission timers to the scenario's values, scaled like all times, but not below the device's own.
fn set_retransmission_timers(config: &mut DeviceConfig, spec: &SimSpec, scale: RateScale) {
    let timeout = Duration::from_secs_f64(
        (spec.network.retransmission.timeout.as_secs_f64() / scale.share()).min(60.0),
    );
    config.retransmit_after = timeout.min(LONGEST_TIMEOUT);
    config.peer_timeout = config.peer_timeout.max(2 * config.retransmit_after);
}

/// Returns the largest delay that software adds to a round trip, as schemes assume it.
pub(super) fn hosts_rtt() -> Duration {
    let any = SocketAddr::V4(SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, PORT));
    SOFTWARE_RTT + DeviceConfig::new(any).host_delay
}

/// Returns the longest round-trip time of a full packet and its acknowledgement in the idle network, in the network's
/// time, in seconds.
pub(super) fn longest_round_trip_s(spec: &SimSpec) -> f64 {
    let routing = Routing::all_links_up(&spec.topology);
    let messages = spec.graph.messages();
    let stride = messages.len().div_ceil(super::capacity::SAMPLED_MESSAGES).max(1);
    let paths = messages.iter().step_by(stride);
    let paths = paths.filter_map(|message| profile(&spec.topology, &routing, message.src, message.dst));
    let round_trip = |path: PathProfile| {
        let delays: f64 = path.hops.iter().map(|(_, delay)| delay.as_secs_f64()).sum();
        2.0 * delays + transmission_s(&path, spec.network.mtu.get() as u16)
    };
    paths.map(round_trip).fold(0.0, f64::max)
}

/// Returns the transmission time of a full packet and its acknowledgement at the network's rates, in seconds. A lab
/// has no delays.
fn transmission_s(path: &PathProfile, mtu_payload: u16) -> f64 {
    const HEADERS: u64 = 150;
    const ACKNOWLEDGEMENT: u64 = 150;
    let bytes = u64::from(mtu_payload) + HEADERS + ACKNOWLEDGEMENT;
    path.hops.iter().map(|(rate, _)| rate.time_for(bytes).as_secs_f64()).sum()
}
