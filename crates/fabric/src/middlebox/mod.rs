//! Middleboxes: what an external switch, at the edge of a site, does with packets beyond forwarding them.
//!
//! A switch with a middlebox sees every packet as it comes in and as its transmission begins. It may hold packets in
//! queues of its own, rewrite them, and emit new ones. What packets carry is opaque to the fabric; a [`Lens`] is all a
//! middlebox can see of it, and all it can change. Such a switch is simulated strictly in order of time, every service
//! an event; others do not pay for it.
//!
//! Add one: a file with the algorithm, its configuration and its counts, a field in [`ExternalConfig`] and [`Middlebox`],
//! and its calls from `run.rs`.

mod ndt;
mod nsf;
mod run;
mod table;

use std::collections::VecDeque;
use std::sync::Arc;

use pathweave_units::{Bytes, Duration, HostId, Time};

use crate::config_error::{ConfigError, out_of_range};
use crate::packet::{Header, PortId};

pub use ndt::{NdtConfig, NdtStats, OrderGuards};
pub use nsf::{CoolMode, NsfConfig, NsfStats};

pub(crate) use ndt::{Lane, Ndt, Turn};
pub(crate) use nsf::Nsf;
use table::FlowKey;

/// External switches: those that join data centres.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExternalConfig {
    /// Packet memory shared by all ports of an external switch. Default 512 MB: a pause of 500 us at 400 Gb/s is 25 MB,
    /// and nothing is paused across the WAN.
    pub buffer: Bytes,
    /// Near-source feedback. Absent: off.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub nsf: Option<NsfConfig>,
    /// Near-destination throttling. Absent: off.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub ndt: Option<NdtConfig>,
}

impl Default for ExternalConfig {
    fn default() -> Self {
        ExternalConfig { buffer: Bytes::from_mb(512), nsf: None, ndt: None }
    }
}

impl ExternalConfig {
    /// Whether external switches are more than switches.
    pub fn has_middlebox(&self) -> bool {
        self.nsf.is_some() || self.ndt.is_some()
    }

    /// Names the first field that is wrong.
    pub fn validate(&self, data_classes: usize) -> Result<(), ConfigError> {
        let (low, high) = (Bytes::from_kb(64), Bytes::new(u64::from(u32::MAX)));
        if !(low..=high).contains(&self.buffer) {
            return Err(out_of_range("external.buffer", self.buffer, format!("{low} to {high}")));
        }
        if let Some(nsf) = &self.nsf {
            nsf.validate()?;
        }
        if let Some(ndt) = &self.ndt {
            ndt.validate()?;
        }
        // The controlled queue takes the bit of the eighth class.
        if self.has_middlebox() && data_classes > 6 {
            return Err(out_of_range("weights", data_classes, "at most 6 data classes with middleboxes"));
        }
        Ok(())
    }
}

/// What a middlebox sees of a packet's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Data. `flow` tells the flows of a pair of hosts apart.
    Data {
        /// Its flow.
        flow: u64,
        /// When it left its host, or whatever was written there since.
        sent_at: Time,
    },
    /// A question that follows the data of its flow through the same queues.
    Probe {
        /// The flow it follows.
        flow: u64,
    },
    /// An acknowledgement of data.
    Ack {
        /// The flow of the data.
        flow: u64,
        /// The data's `sent_at` as the receiver found it.
        echo: Time,
    },
    /// Anything else.
    Other,
}

/// What a middlebox can see of contents of type `P`, and what it can do with them.
#[derive(Clone, Copy, Debug)]
pub struct Lens<P> {
    /// What it sees.
    pub look: fn(&P) -> Look,
    /// Writes another `sent_at` into data.
    pub restamp: fn(&mut P, Time),
    /// The answer to data, to be sent back to its host in place of the receiver.
    pub answer: fn(&P) -> P,
    /// Bytes of an answer on a link.
    pub answer_bytes: u32,
}

/// Times above which a full packet has met a queue, between an external switch and the farthest host of its site.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    /// From the host to the switch, first bit out to last bit in.
    pub there: Duration,
    /// From the switch to the host, and the acknowledgement back.
    pub round_trip: Duration,
}

/// Where an external switch stands.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its own site.
    pub site: u32,
    /// What is long between it and the hosts of its site, where its configuration does not say.
    pub queued: Queued,
    /// The site of each host.
    pub of_host: Arc<[u32]>,
}

/// What the middlebox of a switch has counted. Each part is absent where it is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct MiddleboxStats {
    /// Near-source feedback.
    pub nsf: Option<NsfStats>,
    /// Near-destination throttling.
    pub ndt: Option<NdtStats>,
}

/// A box that is certain to be there.
const BOXED_SWITCH: &str = "ports are marked where their switch has a middlebox";

/// The middleboxes of all switches: by switch; empty where none has one.
pub(crate) struct Middleboxes<P> {
    boxes: Vec<Option<Box<Middlebox<P>>>>,
}

impl<P: Copy> Middleboxes<P> {
    pub(crate) fn none() -> Self {
        Middleboxes { boxes: Vec::new() }
    }

    /// Gives a switch a middlebox.
    pub(crate) fn attach(&mut self, switch: u32, middlebox: Middlebox<P>) {
        let switches = self.boxes.len().max(switch as usize + 1);
        self.boxes.resize_with(switches, || None);
        self.boxes[switch as usize] = Some(Box::new(middlebox));
    }

    #[inline]
    pub(crate) fn get(&self, switch: u32) -> Option<&Middlebox<P>> {
        self.boxes.get(switch as usize)?.as_deref()
    }

    /// The middlebox of a switch that has one.
    fn at(&mut self, switch: u32) -> &mut Middlebox<P> {
        self.boxes[switch as usize].as_mut().expect(BOXED_SWITCH)
    }
}

/// The middlebox of one switch.
pub(crate) struct Middlebox<P> {
    lens: Lens<P>,
    place: Place,
    first_port: PortId,
    /// By port of the switch: whether it leads to another site.
    wan: Vec<bool>,
    pub(crate) nsf: Option<(Nsf, NsfStats)>,
    pub(crate) ndt: Option<(Ndt, NdtStats)>,
    /// Emitted and not yet forwarded, with the port of what they answer.
    outbox: VecDeque<(Time, PortId, Header)>,
}

impl<P: Copy> Middlebox<P> {
    pub(crate) fn new(
        config: &ExternalConfig,
        lens: Lens<P>,
        place: Place,
        first_port: PortId,
        wan: Vec<bool>,
    ) -> Self {
        let ports = wan.len();
        Middlebox {
            lens,
            first_port,
            wan,
            nsf: config.nsf.as_ref().map(|nsf| (Nsf::new(nsf, place.queued.there), NsfStats::default())),
            ndt: config
                .ndt
                .as_ref()
                .map(|ndt| (Ndt::new(ndt, ports, place.queued.round_trip), NdtStats::default())),
            place,
            outbox: VecDeque::new(),
        }
    }

    pub(crate) fn stats(&self) -> MiddleboxStats {
        MiddleboxStats {
            nsf: self.nsf.as_ref().map(|(_, stats)| *stats),
            ndt: self.ndt.as_ref().map(|(_, stats)| *stats),
        }
    }

    #[inline]
    fn index(&self, port: PortId) -> usize {
        (port - self.first_port) as usize
    }
    #[inline]
    fn is_wan(&self, port: PortId) -> bool {
        self.wan[self.index(port)]
    }
    #[inline]
    fn is_local(&self, host: HostId) -> bool {
        self.place.of_host[host.index()] == self.place.site
    }
    /// From another site to this one.
    #[inline]
    fn comes_in(&self, header: &Header) -> bool {
        self.is_local(header.dst()) && !self.is_local(header.src())
    }
    /// From this site to another one.
    #[inline]
    fn goes_out(&self, header: &Header) -> bool {
        self.is_local(header.src()) && !self.is_local(header.dst())
    }

    /// The flow of data, if it is that and whole, and its stamp. A trimmed packet is news of a loss and no data any more.
    #[inline]
    fn data(&self, header: &Header, content: &P) -> Option<(FlowKey, Time)> {
        if header.trimmed_at().is_some() {
            return None;
        }
        match (self.lens.look)(content) {
            Look::Data { flow, sent_at } => {
                Some((FlowKey { src: header.src(), dst: header.dst(), flow }, sent_at))
            }
            _ => None,
        }
    }

    /// The flow in whose queue a packet waits: that of data, and of what follows it.
    #[inline]
    fn queued(&self, header: &Header, content: &P) -> Option<FlowKey> {
        match (self.lens.look)(content) {
            // One of the class of acknowledgements overtakes data everywhere.
            Look::Probe { flow } if header.class() > 0 => {
                Some(FlowKey { src: header.src(), dst: header.dst(), flow })
            }
            _ => self.data(header, content).map(|(key, _)| key),
        }
    }

    /// The flow an acknowledgement is of, if it is one, and the stamp it echoes.
    #[inline]
    fn ack(&self, header: &Header, content: &P) -> Option<(FlowKey, Time)> {
        match (self.lens.look)(content) {
            Look::Ack { flow, echo } => Some((FlowKey { src: header.dst(), dst: header.src(), flow }, echo)),
            _ => None,
        }
    }

    /// An acknowledgement leaves the site: what it changes for the controlled queues.
    fn on_ack(&mut self, now: Time, header: &Header, content: &P) -> Turn {
        if !self.goes_out(header) {
            return Turn::Nothing;
        }
        let sample = self.ack(header, content);
        match (&mut self.ndt, sample) {
            (Some((ndt, stats)), Some((key, left_at))) => ndt.on_ack(now, left_at, key, stats),
            _ => Turn::Nothing,
        }
    }

    /// A packet that the buffer has taken in joins a queue: which.
    fn lane(&mut self, now: Time, egress: PortId, header: &Header, content: &P) -> Lane {
        if self.is_wan(egress) || !self.comes_in(header) {
            return Lane::Normal;
        }
        let queued = self.queued(header, content);
        match (&mut self.ndt, queued) {
            (Some((ndt, stats)), Some(key)) => ndt.on_data(now, key, stats),
            _ => Lane::Normal,
        }
    }

    /// A packet is taken off its queue.
    fn on_left(&mut self, egress: PortId, header: &Header, content: &P, lane: Lane) {
        if self.is_wan(egress) || !self.comes_in(header) {
            return;
        }
        let queued = self.queued(header, content);
        if let (Some((ndt, _)), Some(key)) = (&mut self.ndt, queued) {
            ndt.on_left(&key, lane);
        }
    }

    /// Transmission begins. The answer to send, if any.
    fn on_transmit(
        &mut self,
        start: Time,
        egress: PortId,
        header: &Header,
        content: &mut P,
        lane: Lane,
    ) -> Option<P> {
        if !self.is_wan(egress) {
            if self.ndt.is_some() && self.comes_in(header) {
                self.on_left(egress, header, content, lane);
                if self.data(header, content).is_some() {
                    (self.lens.restamp)(content, start);
                }
            }
            return None;
        }
        if !self.goes_out(header) {
            return None;
        }
        let data = self.data(header, content);
        let (Some((nsf, stats)), Some((key, sent_at))) = (&mut self.nsf, data) else { return None };
        nsf.on_data(start, sent_at, key, stats).then(|| (self.lens.answer)(content))
    }
}
