//! Fuzz targets. A target fails by panicking; an error is a valid result.

mod collective;
mod datagrams;
mod endpoint;
mod mutate;
mod secure;
mod tagged;

pub use collective::collective;
pub use datagrams::datagrams;
pub use endpoint::{datagram_queue_pair, endpoint};
pub use mutate::mutate;
pub use secure::{handshake, packet_open};
pub use tagged::tagged;

use std::net::IpAddr;

use pathweave_bypass::ether::frame::{FrameAddresses, MAX_HEADERS, Template, parse};
use pathweave_bypass::ether::{FrameResult, Local, Message, MessageKind, Resolver};
use pathweave_shm::{MOST_NOTE_BYTES, MemoryRequest};
use pathweave_wire::{Packet, Runs, SideFrame, emit};

/// Fuzz target: its name, which is also the folder of its seeds, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 32] = [
    ("wire", wire),
    ("wire_resealed", wire_resealed),
    ("side_channel", side_channel),
    ("datagrams", datagrams),
    ("endpoint", endpoint),
    ("datagram_queue_pair", datagram_queue_pair),
    ("topology_file", topology_file),
    ("hpcc_topology", hpcc_topology),
    ("simai_topology", simai_topology),
    ("htsim_topology", htsim_topology),
    ("path_file", path_file),
    ("partition_file", partition_file),
    ("astra_network", astra_network),
    ("laps_topology", laps_topology),
    ("laps_paths", laps_paths),
    ("source_route", source_route),
    ("nccl_tests", nccl_tests),
    ("ns3_flows", ns3_flows),
    ("csv_flows", csv_flows),
    ("size_cdf", size_cdf),
    ("chakra", chakra),
    ("goal", goal),
    ("simai", simai),
    ("config_json", config_json),
    ("htsim_cm", htsim_cm),
    ("handshake", handshake),
    ("packet_open", packet_open),
    ("tagged", tagged),
    ("collective", collective),
    ("note", note),
    ("xdp_frame", xdp_frame),
    ("link_message", link_message),
];

/// Parses a frame as received past the kernel. A datagram that is found must be within the frame, and must be found
/// again after it is written between the same ends.
pub fn xdp_frame(data: &[u8]) {
    let Ok(parsed) = parse(data) else { return };
    let datagram = &data[parsed.datagram.clone()];
    let mac = |at: usize| data[at..at + 6].try_into().expect("six bytes");
    let ends = FrameAddresses { from_mac: mac(6), to_mac: mac(0), from: parsed.from, to: parsed.to };
    let template = Template::new(ends, parsed.ecn).expect("both ends are of the frame's family");
    let mut frame = vec![0; MAX_HEADERS + datagram.len()];
    let len = template.write(datagram, &mut frame).expect("it was in a packet before");
    let again = parse(&frame[..len]).expect("what was written can be parsed");
    assert_eq!((again.from, again.to, again.ecn), (parsed.from, parsed.to, parsed.ecn));
    assert_eq!(&frame[again.datagram], datagram);
}

/// Handles a message of address resolution, of either family. A message that parses must have the same meaning after
/// it is written again. The resolver must accept it, and answer only requests for our address.
pub fn link_message(data: &[u8]) {
    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
    let now = std::time::Duration::ZERO;
    for local in ["10.0.0.1/8", "fd00::1/8"] {
        let local: Local = local.parse().expect("an address");
        let mut resolver = Resolver::new(local, MAC);
        let known = [1u8, 2, 3].map(|last| match local.address() {
            IpAddr::V4(_) => IpAddr::from([10, 0, 0, last]),
            IpAddr::V6(_) => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last.into()]),
        });
        known.iter().for_each(|host| drop(resolver.resolve(*host, now)));
        let message = match (Message::parse(data), resolver.handle_frame(data, now)) {
            (Ok(None), heard) => return assert_eq!(heard, FrameResult::Other),
            (Err(flaw), heard) => return assert_eq!(heard, FrameResult::Flawed(flaw)),
            (Ok(Some(message)), heard) => {
                let FrameResult::Message(answer) = heard else { panic!("{heard:?}") };
                let looks_for_us = message.kind == MessageKind::Request && message.target == local.address();
                assert_eq!(answer.is_some(), looks_for_us && message.mac != MAC);
                message
            }
        };
        let to = if message.from.is_unspecified() { message.target } else { message.from };
        let again = message.emit(MAC, to).expect("of one family");
        assert_eq!(Message::parse(&again), Ok(Some(message)));
    }
}

/// Parses a frame, with and without Ethernet. An accepted frame must emit to one with the same meaning.
pub fn wire(data: &[u8]) {
    for parsed in [Packet::parse_ipv4(data), Packet::parse_ethernet(data)] {
        match parsed {
            Ok(packet) => check_faithful(&packet),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn check_faithful(packet: &Packet<'_>) {
    let near = 1 << 40;
    let segment = packet.segment(near);
    assert_eq!(segment, segment.normalized());
    let mut out = vec![0; 70_000];
    let len =
        emit(&segment, packet.route(), packet.payload(), &mut out).expect("what was parsed can be emitted");
    let again = match packet.route().ethernet {
        Some(_) => Packet::parse_ethernet(&out[..len]),
        None => Packet::parse_ipv4(&out[..len]),
    };
    let again = again.expect("what was emitted can be parsed");
    assert_eq!(again.segment(near), segment);
    assert_eq!(again.payload(), packet.payload());
    assert_eq!(again.route(), packet.route());
}

/// Parses an IPv4 packet after correcting its lengths and checksums, so that mutations reach the fields behind them.
pub fn wire_resealed(data: &[u8]) {
    let mut packet = data.to_vec();
    if packet.len() < 48 || packet.len() > 65_535 {
        return wire(data);
    }
    let len = packet.len() as u16;
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[6..8].copy_from_slice(&[0x40, 0]);
    packet[9] = 17;
    packet[10..12].fill(0);
    let mut sum: u32 = packet[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet[22..24].copy_from_slice(&4791u16.to_be_bytes());
    packet[24..26].copy_from_slice(&(len - 20).to_be_bytes());
    packet[26..28].fill(0);
    let end = packet.len() - 4;
    let mut covered = vec![0xff; 8];
    covered.extend_from_slice(&packet[..end]);
    for masked in [1, 8, 10, 11, 26, 27, 32] {
        covered[8 + masked] = 0xff;
    }
    packet[end..].copy_from_slice(&crc32fast::hash(&covered).to_le_bytes());
    wire(&packet);
}

/// Parses a stream of side-channel messages. Each accepted message must have the same meaning after it is written
/// again.
pub fn side_channel(mut data: &[u8]) {
    while let Ok((frame, len)) = SideFrame::parse(data) {
        let mut again = vec![0; len];
        assert_eq!(frame.emit(&mut again), len);
        match (SideFrame::parse(&again).expect("what was emitted can be parsed").0, frame) {
            (SideFrame::Nack { flow: a, runs: x }, SideFrame::Nack { flow: b, runs: y }) => {
                assert!(a == b && x.iter().eq(y.iter()));
            }
            (again, frame) => assert_eq!(again, frame),
        }
        data = &data[len..];
    }
}

/// Decodes a note of a shared-memory lane. An accepted note must encode to the same bytes.
pub fn note(data: &[u8]) {
    let first = &data[..data.len().min(MOST_NOTE_BYTES)];
    if let Some((note, behind)) = MemoryRequest::decode(first, data.len()) {
        assert_eq!(note.encode().as_slice(), &data[..data.len() - behind]);
    }
}

/// Returns the text that a parser gets from a file, without a byte order mark, as in
/// `pathweave_topo::read_text_file`.
fn text_of(data: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(data.strip_prefix("\u{feff}".as_bytes()).unwrap_or(data))
}

/// Parses our topology file.
pub fn topology_file(data: &[u8]) {
    let text = text_of(data);
    let _ = pathweave_topo::parse_topology_file("fuzz", &text).map_err(|error| error.to_string());
}

/// Parses HPCC's `topology.txt`.
pub fn hpcc_topology(data: &[u8]) {
    let text = text_of(data);
    let _ = pathweave_topo::parse_hpcc_topology("fuzz", &text).map_err(|error| error.to_string());
}

/// Parses a topology of SimAI.
pub fn simai_topology(data: &[u8]) {
    let text = text_of(data);
    let _ = pathweave_topo::parse_simai_topology("fuzz", &text).map_err(|error| error.to_string());
}

/// Parses a `network.yml` of ASTRA-sim.
pub fn astra_network(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = pathweave_topo::parse_astra_network("fuzz", &text).map_err(|error| error.to_string());
}

/// Parses a `TOPO.txt` of LAPS.
pub fn laps_topology(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = pathweave_topo::parse_laps_topology("fuzz", &text).map_err(|error| error.to_string());
}

/// Parses the paths of LAPS in a network of two switches with a host each, and two switches between them.
pub fn laps_paths(data: &[u8]) {
    use pathweave_topo::{RequestedPairs, parse_laps_paths, parse_laps_topology};
    let network = "4 2\n0 4 0 100 1\n1 5 1 100 1\n2 0 2 100 1\n3 0 3 100 1\n4 2 1 100 1\n5 3 1 100 1\n";
    let topology = parse_laps_topology("network", network).expect("a network");
    let text = String::from_utf8_lossy(data);
    match parse_laps_paths("fuzz", &text, &topology, RequestedPairs::All) {
        Ok(sets) => {
            let _ = sets.find_next_hop_loop(&topology);
        }
        Err(error) => _ = error.to_string(),
    }
}

/// Parses a topology of htsim.
pub fn htsim_topology(data: &[u8]) {
    let text = text_of(data);
    let _ = pathweave_topo::parse_htsim_topology("fuzz", &text).map_err(|error| error.to_string());
}

/// Parses a source-route header. An accepted one can be advanced waypoint by waypoint.
pub fn source_route(data: &[u8]) {
    let Ok(route) = pathweave_wire::SourceRoute::parse(data) else { return };
    let left = route.remaining();
    assert_eq!(route.backwards().count(), route.len());
    let mut bytes = data.to_vec();
    for _ in 0..left {
        assert!(pathweave_wire::pass_waypoint(&mut bytes, 1).expect("it was accepted").is_some());
    }
    assert_eq!(pathweave_wire::pass_waypoint(&mut bytes, 1), Ok(None));
}

/// Parses a file of paths for a small leaf-spine with parallel links.
pub fn path_file(data: &[u8]) {
    use pathweave_topo::{Build, LeafSpine, RequestedPairs, parse_path_file};
    let network = LeafSpine { leaf_spine_links: 2, ..LeafSpine::new(3, 2, 1) };
    let topology = network.build(".".as_ref()).expect("a leaf-spine");
    let text = text_of(data);
    let pairs = [(pathweave_units::HostId(0), pathweave_units::HostId(1))];
    match parse_path_file("fuzz", &text, &topology, RequestedPairs::Pairs(&pairs)) {
        Ok(sets) => assert!(sets.count(pairs[0].0, pairs[0].1) > 0),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Parses a partition file for a small leaf-spine. An accepted one has a part for each node, which the text named.
pub fn partition_file(data: &[u8]) {
    use pathweave_topo::{Build, LeafSpine, parse_partition};
    let topology = LeafSpine::new(2, 2, 2).build(".".as_ref()).expect("a leaf-spine");
    let text = text_of(data);
    match parse_partition("fuzz", &text, &topology) {
        Ok(parts) => {
            assert_eq!(parts.len(), topology.nodes() as usize);
            let words = || text.split(|c: char| c.is_whitespace() || c == '#');
            let named = |part: &u16| words().any(|word| word.parse() == Ok(*part));
            assert!(parts.iter().all(named));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Parses the output of nccl-tests.
pub fn nccl_tests(data: &[u8]) {
    match pathweave_workload::nccl::parse_nccl_tests(&text_of(data), "fuzz") {
        Ok(found) => assert!(found.rows.iter().all(|row| row.time_us >= 0.0 && row.bytes <= 1 << 40)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Parses the `flow.txt` of the ns-3 simulators.
pub fn ns3_flows(data: &[u8]) {
    let text = text_of(data);
    let _ = pathweave_workload::parse_ns3(&text, "fuzz", None).map_err(|error| error.to_string());
}

/// Parses our flow list.
pub fn csv_flows(data: &[u8]) {
    let text = text_of(data);
    let _ = pathweave_workload::parse_csv(&text, "fuzz").map_err(|error| error.to_string());
}

/// Reads a rank's Chakra trace.
pub fn chakra(data: &[u8]) {
    match pathweave_workload::ChakraReader::new(data, "fuzz") {
        Ok(reader) => {
            let _ = reader.take_while(Result::is_ok).count();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Parses a GOAL schedule, as binary and as text. Dependencies must be on operations of the same rank.
pub fn goal(data: &[u8]) {
    let _ = pathweave_workload::parse_goal_binary(data, "fuzz").map_err(|error| error.to_string());
    let text = text_of(data);
    match pathweave_workload::parse_goal(&text, "fuzz") {
        Ok(schedule) => {
            for rank in &schedule.ranks {
                let ops = rank.ops.len() as u32;
                assert!(rank.waits.iter().all(|wait| wait.op < ops && wait.on < ops));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Parses a workload file of SimAI.
pub fn simai(data: &[u8]) {
    let text = text_of(data);
    let _ = pathweave_workload::parse_simai(&text, "fuzz").map_err(|error| error.to_string());
}

/// Parses the architecture of a model. Its numbers must be computable.
pub fn config_json(data: &[u8]) {
    let text = text_of(data);
    match pathweave_workload::parse_config_json(&text, "fuzz") {
        Ok(architecture) => {
            assert!(architecture.active_parameters() <= architecture.parameters());
            assert!(architecture.training_flops(4096) > 0.0 && architecture.cached_values() > 0);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Parses a connection matrix of htsim.
pub fn htsim_cm(data: &[u8]) {
    let text = text_of(data);
    let _ = pathweave_workload::parse_htsim_cm(&text, "fuzz", None).map_err(|error| error.to_string());
}

/// Parses a distribution of flow sizes.
pub fn size_cdf(data: &[u8]) {
    let text = text_of(data);
    let _ = pathweave_workload::SizeCdf::parse(&text, "fuzz").map_err(|error| error.to_string());
}
