//! Capture of packets to a pcapng file (IETF draft-ietf-opsawg-pcapng), with one interface for each receiving host.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;
use std::io::{self, Write};

use pathweave_units::{HostId, QpNum, Time};
use pathweave_wire::{
    Body, Ecn, EmitError, EthernetAddresses, FrameAddressing, Operation, Segment, emit, emit_standard,
    entropy_port,
};

use crate::tap::{Arrival, Tap};

/// Selects the packets that a capture keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureFilter {
    /// All packets.
    #[default]
    All,
    /// Packets to and from a host, at their arrival.
    Host(HostId),
    /// Packets that arrive at a host: the inward traffic of its link.
    Into(HostId),
}

/// Frame format in which packets are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// Plain RoCEv2, as a current adapter would send it. Packets that RoCEv2 does not define are written in
    /// Pathweave's format.
    #[default]
    Standard,
    /// Frames as the datapath sends them, with the extension header.
    Pathweave,
}

/// Capture of the first packets of a run that pass its filter.
#[derive(Clone, Debug)]
pub struct Capture {
    filter: CaptureFilter,
    most: usize,
    packets: Vec<Packet>,
    left_out: u64,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    at: Time,
    from: HostId,
    to: HostId,
    segment: Segment,
    ecn: Ecn,
    /// True if a switch trimmed the payload, so that only the headers arrived.
    trimmed: bool,
}

/// Key of a message in flight: source host, destination host, source queue pair, destination queue pair, message
/// sequence number.
type Message = (HostId, HostId, QpNum, QpNum, u32);

impl Capture {
    /// Creates a capture that keeps at most `most` packets.
    pub fn new(filter: CaptureFilter, most: usize) -> Self {
        Capture { filter, most, packets: Vec::new(), left_out: 0 }
    }

    /// Number of packets kept.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns true if no packet was kept.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Number of packets that passed the filter after the capture was full.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Writes the capture to `out`. `name` returns the name of a host.
    ///
    /// # Errors
    /// Errors of `out`. A packet that has no frame, which would be a bug, is reported as invalid data.
    pub fn write(
        &self,
        frames: Frames,
        name: impl Fn(HostId) -> String,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let lengths = self.message_lengths();
        let mut writer = Pcapng { out };
        writer.section(concat!("pathweave ", env!("CARGO_PKG_VERSION")))?;
        let mut interfaces: BTreeMap<HostId, u32> = BTreeMap::new();
        let mut frame = vec![0; 1 << 16];
        let payload = vec![0; 1 << 16];
        for packet in &self.packets {
            let count = interfaces.len() as u32;
            let interface = match interfaces.get(&packet.to) {
                Some(&known) => known,
                None => {
                    writer.interface(&name(packet.to))?;
                    interfaces.insert(packet.to, count);
                    count
                }
            };
            let len = packet.frame(frames, &lengths, &payload, &mut frame);
            let len = len.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why.to_string()))?;
            let kept = if packet.trimmed { packet.headers_len(len) } else { len };
            writer.packet(interface, packet.at, &frame[..kept], len)?;
        }
        writer.out.flush()
    }

    /// Returns the lengths of messages whose last packet is in the capture.
    fn message_lengths(&self) -> BTreeMap<Message, u32> {
        let of = |packet: &Packet| match packet.segment.body {
            Body::Data(data) if data.last => {
                Some((packet.message(data.msn), data.offset.wrapping_add(u32::from(data.len))))
            }
            _ => None,
        };
        self.packets.iter().filter_map(of).collect()
    }
}

impl Tap for Capture {
    fn arrived(&mut self, arrival: &Arrival<'_>) {
        let &Arrival { at, from, to, segment, ecn_capable, congestion_experienced, trimmed_at } = arrival;
        let wanted = match self.filter {
            CaptureFilter::All => true,
            CaptureFilter::Host(host) => from == host || to == host,
            CaptureFilter::Into(host) => to == host,
        };
        if !wanted {
            return;
        }
        if self.packets.len() == self.most {
            self.left_out += 1;
            return;
        }
        let ecn = match (ecn_capable, congestion_experienced) {
            (_, true) => Ecn::Experienced,
            (true, false) => Ecn::Capable0,
            (false, false) => Ecn::NotCapable,
        };
        self.packets.push(Packet { at, from, to, segment: *segment, ecn, trimmed: trimmed_at.is_some() });
    }
}

impl Packet {
    fn message(&self, msn: u32) -> Message {
        (self.from, self.to, self.segment.src_qp, self.segment.dst_qp, msn)
    }

    /// Length in bytes of the packet's frame without payload, padding and checksum.
    fn headers_len(&self, frame_len: usize) -> usize {
        let payload = match self.segment.body {
            Body::Data(data) if data.op != Operation::ReadRequest => usize::from(data.len),
            _ => 0,
        };
        frame_len - payload.next_multiple_of(4) - ICRC_BYTES
    }

    fn frame(
        &self,
        frames: Frames,
        lengths: &BTreeMap<Message, u32>,
        payload: &[u8],
        out: &mut [u8],
    ) -> Result<usize, EmitError> {
        let Segment { src_qp, dst_qp, path, .. } = self.segment;
        let route = FrameAddressing {
            ethernet: Some(EthernetAddresses { dst: mac(self.to), src: mac(self.from) }),
            src_ip: address(self.from),
            dst_ip: address(self.to),
            src_port: entropy_port(src_qp, dst_qp, path),
            dscp: 0,
            ecn: self.ecn,
            ttl: 64,
        };
        if frames == Frames::Standard {
            let bytes = match self.segment.body {
                Body::Data(data) => lengths.get(&self.message(data.msn)).copied().unwrap_or(0),
                _ => 0,
            };
            if let Some(len) = emit_standard(&self.segment, bytes, &route, out)? {
                return Ok(len);
            }
        }
        let len = match self.segment.body {
            Body::Data(data) if data.op != Operation::ReadRequest => usize::from(data.len),
            Body::Rd(data) => usize::from(data.len),
            _ => 0,
        };
        emit(&self.segment, &route, &payload[..len], out)
    }
}

/// Length of the checksum at the end of a frame.
const ICRC_BYTES: usize = 4;

/// Returns the host's address in 10.0.0.0/8, which has room for 16 million hosts.
fn address(host: HostId) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 | ((host.0 + 1) & 0xff_ffff))
}

/// Returns a locally administered MAC address that contains the host's number.
fn mac(host: HostId) -> [u8; 6] {
    let [a, b, c, d] = (host.0 + 1).to_be_bytes();
    [2, 0, a, b, c, d]
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const LINK_ETHERNET: u16 = 1;
/// pcapng option codes: application that wrote the section, name and time resolution of an interface, direction of a
/// packet.
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;
/// Time resolution: units of 10^-9 seconds.
const NANOSECONDS: u8 = 9;
const INBOUND: u32 = 1;

/// Writer of pcapng blocks, little-endian.
struct Pcapng<'a, W> {
    out: &'a mut W,
}

impl<W: Write> Pcapng<'_, W> {
    fn section(&mut self, program: &str) -> io::Result<()> {
        let mut body = Vec::new();
        body.extend(BYTE_ORDER.to_le_bytes());
        body.extend([1, 0, 0, 0]); // version 1.0
        body.extend(u64::MAX.to_le_bytes()); // section of unknown length
        option(&mut body, USER_APPLICATION, program.as_bytes());
        self.block(SECTION_HEADER, body)
    }

    fn interface(&mut self, name: &str) -> io::Result<()> {
        let mut body = Vec::new();
        body.extend(LINK_ETHERNET.to_le_bytes());
        body.extend([0; 2]);
        body.extend(0u32.to_le_bytes()); // no limit on the captured length
        option(&mut body, INTERFACE_NAME, name.as_bytes());
        option(&mut body, RESOLUTION, &[NANOSECONDS]);
        self.block(INTERFACE, body)
    }

    /// Writes a packet block. `len` is the length of the packet in bytes; `frame` holds the packet or its beginning.
    fn packet(&mut self, interface: u32, at: Time, frame: &[u8], len: usize) -> io::Result<()> {
        let ns = (at.as_ps() + 500) / 1_000;
        let mut body = Vec::with_capacity(frame.len() + 40);
        body.extend(interface.to_le_bytes());
        body.extend(((ns >> 32) as u32).to_le_bytes());
        body.extend((ns as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend((len as u32).to_le_bytes());
        body.extend(frame);
        pad(&mut body);
        option(&mut body, FLAGS, &INBOUND.to_le_bytes());
        self.block(ENHANCED_PACKET, body)
    }

    /// Writes a block whose options come last, and terminates the options.
    fn block(&mut self, kind: u32, mut body: Vec<u8>) -> io::Result<()> {
        option(&mut body, 0, &[]);
        let total = (body.len() + 12) as u32;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&total.to_le_bytes())?;
        self.out.write_all(&body)?;
        self.out.write_all(&total.to_le_bytes())
    }
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

/// Pads the body to a multiple of four bytes.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::PathId;

    #[test]
    fn blocks_by_hand() {
        let segment = Segment::new(QpNum(3), QpNum(4), PathId(0), Body::Cnp);
        let arrival = |to, at| Arrival {
            at: Time::from_ps(at),
            from: HostId(9),
            to: HostId(to),
            segment: &segment,
            ecn_capable: false,
            congestion_experienced: false,
            trimmed_at: None,
        };
        let mut capture = Capture::new(CaptureFilter::Into(HostId(1)), 1);
        for (to, at) in [(2, 100), (1, (5 << 32) * 1_000 + 2_600), (1, u64::MAX / 4)] {
            capture.arrived(&arrival(to, at));
        }
        assert_eq!((capture.len(), capture.left_out()), (1, 1));
        let mut out = Vec::new();
        capture.write(Frames::Standard, |host| format!("h{}", host.0), &mut out).unwrap();
        let word = |at: usize| u32::from_le_bytes(out[at..at + 4].try_into().unwrap());
        // Section header: its length twice, byte order, version.
        let section = word(4) as usize;
        assert_eq!(
            (word(0), word(8), word(12), word(section - 4)),
            (0x0a0d_0d0a, 0x1a2b_3c4d, 1, section as u32)
        );
        // Interface: 8 of head, 8 of body, name 4 + 4, resolution 4 + 4, end 4, length 4.
        let at = section;
        assert_eq!((word(at), word(at + 4), word(at + 8), word(at + 12)), (1, 40, 1, 0));
        assert_eq!(out[at + 16..at + 36], [2, 0, 2, 0, b'h', b'1', 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        // Packet: time in two words, length 74 twice, frame padded to 76, flags, end.
        let at = at + 40;
        assert_eq!((word(at), word(at + 4)), (6, 8 + 20 + 76 + 8 + 4 + 4));
        assert_eq!([8, 12, 16, 20, 24].map(|o| word(at + o)), [0, 5, 3, 74, 74]);
        assert_eq!(out[at + 28..at + 42], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 10, 8, 0]);
        assert_eq!(out.len(), at + word(at + 4) as usize);
    }
}
