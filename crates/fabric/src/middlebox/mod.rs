//! Middleboxes: functions of an external switch, at the edge of a site, beyond forwarding.
//!
//! A switch with a middlebox processes every packet at its arrival and at the begin of its transmission. It may hold
//! packets in queues of its own, rewrite them, and emit new ones. The contents of packets are opaque to the fabric; a
//! middlebox reads and changes them only through a [`ContentAccess`]. Such a switch is simulated strictly in order of time,
//! with every service as an event. Other switches do not pay for it.
//!
//! A new middlebox consists of a file with its algorithm, configuration and counters, a field in [`ExternalConfig`]
//! and [`Middlebox`], and calls in `run.rs`.

mod ndt;
mod nsf;
mod run;
mod table;

use std::collections::VecDeque;
use std::sync::Arc;

use pathweave_units::{Bytes, Duration, HostId, Time};

use crate::config_error::{ConfigError, out_of_range};
use crate::packet::{Header, PortId};

pub use ndt::{HostStamp, NdtConfig, NdtStats, OrderGuards};
pub use nsf::{CoolMode, NsfConfig, NsfStats};

pub(crate) use ndt::{Ndt, PauseChange, SiteQueue};
pub(crate) use nsf::Nsf;
use table::FlowKey;

/// External switches, which join data centres.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExternalConfig {
    /// Packet memory that all ports of an external switch share, 64 KB to 4.29 GB. Default 512 MB: a pause of 500 us
    /// at 400 Gb/s is 25 MB, and by default nothing is paused across the WAN.
    pub buffer: Bytes,
    /// Near-source feedback. Absent: off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nsf: Option<NsfConfig>,
    /// Near-destination throttling. Absent: off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ndt: Option<NdtConfig>,
}

impl Default for ExternalConfig {
    fn default() -> Self {
        ExternalConfig { buffer: Bytes::from_mb(512), nsf: None, ndt: None }
    }
}

impl ExternalConfig {
    /// Returns true if external switches have a middlebox.
    pub fn has_middlebox(&self) -> bool {
        self.nsf.is_some() || self.ndt.is_some()
    }

    /// Checks every field, and returns an error with the first one that is out of range.
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

/// View of a packet's content for a middlebox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentView {
    /// A data packet.
    Data {
        /// Identifies the flow among those of a pair of hosts.
        flow: u64,
        /// Time at which the packet left its host, or the time stamped into it since.
        sent_at: Time,
    },
    /// A probe that follows the data of its flow through the same queues.
    Probe {
        /// The flow that the probe follows.
        flow: u64,
    },
    /// An acknowledgement of data.
    Ack {
        /// The flow of the data.
        flow: u64,
        /// The `sent_at` of the data as the receiver read it.
        echo: Time,
    },
    /// Any other content.
    Other,
}

/// Access of a middlebox to contents of type `P`.
#[derive(Clone, Copy, Debug)]
pub struct ContentAccess<P> {
    /// Returns the view of a content.
    pub look: fn(&P) -> ContentView,
    /// Writes another `sent_at` into data, or another `echo` into an acknowledgement.
    pub restamp: fn(&mut P, Time),
    /// Makes the answer to data that is sent back to its host in place of the receiver's.
    pub answer: fn(&P) -> P,
    /// Size of an answer in bytes on a link.
    pub answer_bytes: u32,
}

/// Delay thresholds, between an external switch and the farthest host of its site, above which a full packet has met
/// a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueingThresholds {
    /// Delay from the host to the switch, first bit out to last bit in.
    pub one_way: Duration,
    /// Delay from the switch to the host, and back for the acknowledgement.
    pub round_trip: Duration,
}

/// Position of an external switch.
#[derive(Clone, Debug)]
pub struct SwitchPosition {
    /// Site of the switch.
    pub site: u32,
    /// Default thresholds, for middleboxes that configure none.
    pub queued: QueueingThresholds,
    /// Site of each host.
    pub of_host: Arc<[u32]>,
}

/// Counters of a switch's middlebox. Each part is `None` if it is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct MiddleboxStats {
    /// Near-source feedback.
    pub nsf: Option<NsfStats>,
    /// Near-destination throttling.
    pub ndt: Option<NdtStats>,
}

/// Reason why the middlebox of a marked port exists.
const BOXED_SWITCH: &str = "ports are marked where their switch has a middlebox";

/// Middleboxes of all switches, indexed by switch; empty if no switch has one.
pub(crate) struct Middleboxes<P> {
    boxes: Vec<Option<Box<Middlebox<P>>>>,
}

impl<P: Copy> Middleboxes<P> {
    pub(crate) fn none() -> Self {
        Middleboxes { boxes: Vec::new() }
    }

    /// Attaches a middlebox to a switch.
    pub(crate) fn attach(&mut self, switch: u32, middlebox: Middlebox<P>) {
        let switches = self.boxes.len().max(switch as usize + 1);
        self.boxes.resize_with(switches, || None);
        self.boxes[switch as usize] = Some(Box::new(middlebox));
    }

    #[inline]
    pub(crate) fn get(&self, switch: u32) -> Option<&Middlebox<P>> {
        self.boxes.get(switch as usize)?.as_deref()
    }

    /// Returns the middlebox of a switch that has one.
    fn at(&mut self, switch: u32) -> &mut Middlebox<P> {
        self.boxes[switch as usize].as_mut().expect(BOXED_SWITCH)
    }
}

/// Middlebox of one switch.
pub(crate) struct Middlebox<P> {
    lens: ContentAccess<P>,
    place: SwitchPosition,
    first_port: PortId,
    /// True for each port of the switch that leads to another site.
    wan: Vec<bool>,
    pub(crate) nsf: Option<(Nsf, NsfStats)>,
    pub(crate) ndt: Option<(Ndt, NdtStats)>,
    /// Answers emitted and not yet forwarded, each with the egress port of the data that it answers.
    outbox: VecDeque<(Time, PortId, Header)>,
}

impl<P: Copy> Middlebox<P> {
    pub(crate) fn new(
        config: &ExternalConfig,
        lens: ContentAccess<P>,
        place: SwitchPosition,
        first_port: PortId,
        wan: Vec<bool>,
    ) -> Self {
        let ports = wan.len();
        Middlebox {
            lens,
            first_port,
            wan,
            nsf: config.nsf.as_ref().map(|nsf| (Nsf::new(nsf, place.queued.one_way), NsfStats::default())),
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
    /// Returns true for a packet from another site to this one.
    #[inline]
    fn comes_in(&self, header: &Header) -> bool {
        self.is_local(header.dst()) && !self.is_local(header.src())
    }
    /// Returns true for a packet from this site to another one.
    #[inline]
    fn goes_out(&self, header: &Header) -> bool {
        self.is_local(header.src()) && !self.is_local(header.dst())
    }

    /// Returns the flow and the time stamp of an untrimmed data packet. A trimmed packet reports a loss and is no
    /// data any more.
    #[inline]
    fn data(&self, header: &Header, content: &P) -> Option<(FlowKey, Time)> {
        if header.trimmed_at().is_some() {
            return None;
        }
        match (self.lens.look)(content) {
            ContentView::Data { flow, sent_at } => {
                Some((FlowKey { src: header.src(), dst: header.dst(), flow }, sent_at))
            }
            _ => None,
        }
    }

    /// Returns the flow in whose queue a packet waits: a data packet, or a probe that follows data.
    #[inline]
    fn queued(&self, header: &Header, content: &P) -> Option<FlowKey> {
        match (self.lens.look)(content) {
            // A probe in the class of acknowledgements overtakes data everywhere.
            ContentView::Probe { flow } if header.class() > 0 => {
                Some(FlowKey { src: header.src(), dst: header.dst(), flow })
            }
            _ => self.data(header, content).map(|(key, _)| key),
        }
    }

    /// Returns the flow of an acknowledgement and the time stamp that it echoes.
    #[inline]
    fn ack(&self, header: &Header, content: &P) -> Option<(FlowKey, Time)> {
        match (self.lens.look)(content) {
            ContentView::Ack { flow, echo } => {
                Some((FlowKey { src: header.dst(), dst: header.src(), flow }, echo))
            }
            _ => None,
        }
    }

    /// Handles an acknowledgement that leaves the site. Returns the change of the controlled queues.
    fn on_ack(&mut self, now: Time, header: &Header, content: &mut P) -> PauseChange {
        if !self.goes_out(header) {
            return PauseChange::Nothing;
        }
        let sample = self.ack(header, content);
        match (&mut self.ndt, sample) {
            (Some((ndt, stats)), Some((key, left_at))) => {
                if let Some(sent_at) = ndt.host_stamp(left_at, &key) {
                    (self.lens.restamp)(content, sent_at);
                }
                ndt.on_ack(now, left_at, key, stats)
            }
            _ => PauseChange::Nothing,
        }
    }

    /// Returns the queue that an admitted packet joins.
    fn lane(&mut self, now: Time, egress: PortId, header: &Header, content: &P) -> SiteQueue {
        if self.is_wan(egress) || !self.comes_in(header) {
            return SiteQueue::Normal;
        }
        let queued = self.queued(header, content);
        match (&mut self.ndt, queued) {
            (Some((ndt, stats)), Some(key)) => ndt.on_data(now, key, stats),
            _ => SiteQueue::Normal,
        }
    }

    /// Records that a packet was removed from its queue.
    fn on_left(&mut self, egress: PortId, header: &Header, content: &P, lane: SiteQueue) {
        if self.is_wan(egress) || !self.comes_in(header) {
            return;
        }
        let queued = self.queued(header, content);
        if let (Some((ndt, _)), Some(key)) = (&mut self.ndt, queued) {
            ndt.on_left(&key, lane);
        }
    }

    /// Handles the begin of a transmission. Returns the answer to send, if any.
    fn on_transmit(
        &mut self,
        start: Time,
        egress: PortId,
        header: &Header,
        content: &mut P,
        lane: SiteQueue,
    ) -> Option<P> {
        if !self.is_wan(egress) {
            if self.ndt.is_some() && self.comes_in(header) {
                self.on_left(egress, header, content, lane);
                if let (Some((key, sent_at)), Some((ndt, _))) = (self.data(header, content), &mut self.ndt) {
                    ndt.on_stamped(start, sent_at, &key);
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
