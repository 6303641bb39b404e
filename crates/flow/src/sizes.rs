//! What messages take on the wire, and how long when nothing else is there.

use pathweave_sim::{HostConfig, PathProfile, full_and_ack_bytes, ideal_fct, message_wire_bytes};
use pathweave_units::{Duration, Rate};

use crate::walk::bytes_a_ps;

/// Entries of the memory; a power of two.
const REMEMBERED: usize = 1 << 12;

/// A message of some size on some path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    /// Bytes on the wire.
    pub(crate) wire: u64,
    /// Packets.
    pub(crate) packets: u64,
    /// How long it takes when nothing else is there.
    pub(crate) ideal: Duration,
    /// Of that, what is not sending at the slower of both ends.
    pub(crate) base: Duration,
}

/// What is the same for all messages on a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Bytes a picosecond that both ends can do.
    pub(crate) rate: f64,
    slower: Rate,
}

impl Line {
    /// Of a path whose links have this share of their capacity.
    pub(crate) fn of(profile: &PathProfile, share: f64) -> Self {
        let of_ports = |rate: Rate, ports: u32| Rate::from_bps(rate.as_bps() * u64::from(ports));
        let (first, last) = (profile.hops[0].0, profile.hops[profile.hops.len() - 1].0);
        let slower = of_ports(first, profile.nic_ports.0).min(of_ports(last, profile.nic_ports.1));
        Line { rate: share * bytes_a_ps(slower), slower }
    }
}

/// Sizes of messages by path; those seen last are remembered.
pub(crate) struct Sizes {
    host: HostConfig,
    packet_bytes: u32,
    known: Vec<Option<((u32, u64), Size)>>,
}

impl Sizes {
    pub(crate) fn new(host: &HostConfig) -> Self {
        let (packet_bytes, _) = full_and_ack_bytes(host);
        Sizes { host: host.clone(), packet_bytes, known: vec![None; REMEMBERED] }
    }

    /// A full packet on the wire.
    pub(crate) fn packet_bytes(&self) -> u32 {
        self.packet_bytes
    }

    /// A message of so many bytes on the path of this number.
    pub(crate) fn of(&mut self, number: u32, (profile, line): (&PathProfile, &Line), bytes: u64) -> Size {
        let key = (number, bytes);
        let place = pathweave_units::mix64(bytes ^ u64::from(number) << 40) as usize % REMEMBERED;
        if let Some((known, size)) = &self.known[place]
            && *known == key
        {
            return *size;
        }
        let (mtu, framing, verb) = (self.host.mtu.get() as u16, self.host.framing, self.host.verb);
        let wire = message_wire_bytes(profile, bytes, mtu, framing, verb);
        let ideal = ideal_fct(profile, bytes, mtu, framing, verb);
        let size = Size {
            wire,
            packets: bytes.div_ceil(u64::from(mtu)).max(1),
            ideal,
            base: ideal.saturating_sub(line.slower.time_for(wire)),
        };
        self.known[place] = Some((key, size));
        size
    }
}
