//! The film of a run: each packet on each link, and each arrival of data at a host, as columns of numbers.

use std::collections::{BTreeMap, HashMap};

use pathweave_sim::{Arrival, Hop, Tap};
use pathweave_wire::Body;

/// Bits of [`Film::hop_kind`] and [`Film::arrival_kind`].
const TRIMMED: u32 = 1;
const CONTROL: u32 = 2;
/// A packet of the same queue pair with a higher number has arrived before.
const LATE: u32 = 4;
const RETRANSMITTED: u32 = 8;
const MARKED: u32 = 16;

/// Packets of a run up to the limit. Times are picoseconds. Numbers of 64 bits hold them exactly up to two hours.
#[derive(Default)]
pub(crate) struct Film {
    most: usize,
    /// Time from which packets are not kept, if the limit was reached.
    pub(crate) ends_at: Option<f64>,
    pub(crate) hop_entered: Vec<f64>,
    pub(crate) hop_start: Vec<f64>,
    pub(crate) hop_arrival: Vec<f64>,
    /// Link of the hop.
    pub(crate) hop_link: Vec<f64>,
    /// Number of the packet, in order of the first hop.
    pub(crate) hop_packet: Vec<f64>,
    /// Sender times 2^16, plus receiver.
    pub(crate) hop_pair: Vec<f64>,
    /// Bytes on the link times 2^8, plus kinds.
    pub(crate) hop_kind: Vec<f64>,
    pub(crate) arrival_at: Vec<f64>,
    pub(crate) arrival_pair: Vec<f64>,
    /// Packet number within its queue pair.
    pub(crate) arrival_number: Vec<f64>,
    /// Payload bytes times 2^8, plus kinds.
    pub(crate) arrival_kind: Vec<f64>,
    packets: u32,
    /// Packets on their way: by the port and the time of their next arrival.
    on_the_way: HashMap<(u32, u64), u32>,
    /// Highest packet number so far of each sender, receiver and queue pair.
    highest: BTreeMap<(u32, u32, u32), u64>,
}

impl Film {
    pub(crate) fn new(most: usize) -> Self {
        Film { most, ..Film::default() }
    }

    /// Returns true if packets are to be kept.
    pub(crate) fn is_wanted(&self) -> bool {
        self.most > 0
    }

    fn is_full(&self) -> bool {
        self.hop_link.len() >= self.most || self.arrival_at.len() >= self.most
    }
}

fn pair(src: u32, dst: u32) -> f64 {
    f64::from(src) * 65_536.0 + f64::from(dst)
}

fn kind(bytes: u16, bits: u32) -> f64 {
    f64::from(u32::from(bytes) << 8 | bits)
}

impl Tap for Film {
    fn crossed(&mut self, hop: &Hop) {
        if self.ends_at.is_some() {
            return;
        }
        if self.is_full() {
            self.ends_at = Some(hop.start.as_ps() as f64);
            return;
        }
        let before = hop.ingress.and_then(|port| self.on_the_way.remove(&(port, hop.entered.as_ps())));
        let packet = before.unwrap_or_else(|| {
            self.packets += 1;
            self.packets - 1
        });
        self.on_the_way.insert((hop.far, hop.arrival.as_ps()), packet);
        self.hop_entered.push(hop.entered.as_ps() as f64);
        self.hop_start.push(hop.start.as_ps() as f64);
        self.hop_arrival.push(hop.arrival.as_ps() as f64);
        self.hop_link.push(f64::from(hop.port));
        self.hop_packet.push(f64::from(packet));
        self.hop_pair.push(pair(hop.src.0, hop.dst.0));
        let bits = if hop.trimmed { TRIMMED } else { 0 } | if hop.class == 0 { CONTROL } else { 0 };
        self.hop_kind.push(kind(hop.wire_bytes, bits));
    }

    fn arrived(&mut self, arrival: &Arrival<'_>) {
        let (number, len, retransmitted) = match &arrival.segment.body {
            Body::Data(data) => (data.psn, data.len, data.retransmit),
            Body::Rd(data) => (data.psn, data.len, data.retransmit),
            _ => return,
        };
        if self.ends_at.is_some() || self.is_full() {
            return;
        }
        let trimmed = arrival.trimmed_at.is_some();
        let key = (arrival.from.0, arrival.to.0, arrival.segment.dst_qp.0);
        let mut bits = if retransmitted { RETRANSMITTED } else { 0 };
        bits |= if arrival.congestion_experienced { MARKED } else { 0 };
        if trimmed {
            bits |= TRIMMED;
        } else {
            let highest = self.highest.entry(key).or_insert(number);
            bits |= if number < *highest { LATE } else { 0 };
            *highest = number.max(*highest);
        }
        self.arrival_at.push(arrival.at.as_ps() as f64);
        self.arrival_pair.push(pair(arrival.from.0, arrival.to.0));
        self.arrival_number.push(number as f64);
        self.arrival_kind.push(kind(if trimmed { 0 } else { len }, bits));
    }
}
