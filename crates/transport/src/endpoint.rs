//! The endpoint.

use alloc::vec::Vec;

use pathweave_policy::{PathView, Policy};
use pathweave_units::{HostId, QpNum, Time};
use pathweave_wire::Segment;

use crate::config::{EndpointConfig, QpConfig};
use crate::counters::Counters;
use crate::events::Event;
use crate::memory::{MemoryError, MemoryRegion};
use crate::transmit::{Gate, Placement, Transmit};
use crate::work::{PostError, RecvRequest, WorkRequest};

/// All queue pairs of a host.
pub struct Endpoint<P> {
    config: EndpointConfig,
    policies: Vec<P>,
}

#[allow(unused_variables, missing_docs, clippy::unimplemented)]
impl<P: Policy> Endpoint<P> {
    pub fn new(config: EndpointConfig) -> Self {
        Endpoint { config, policies: Vec::new() }
    }
    pub fn config(&self) -> &EndpointConfig {
        &self.config
    }
    pub fn create_qp(&mut self, now: Time, config: QpConfig<'_, P>) -> QpNum {
        self.policies.push(config.policy);
        unimplemented!()
    }
    /// Names the queue pair at the other end; data flows from now on.
    pub fn connect(&mut self, qp: QpNum, remote: QpNum) -> Result<(), PostError> {
        unimplemented!()
    }
    pub fn destroy_qp(&mut self, qp: QpNum) -> Result<(), PostError> {
        unimplemented!()
    }
    pub fn set_paths(&mut self, now: Time, qp: QpNum, paths: &[PathView]) -> Result<(), PostError> {
        unimplemented!()
    }
    pub fn post(&mut self, now: Time, qp: QpNum, request: WorkRequest) -> Result<(), PostError> {
        unimplemented!()
    }
    pub fn post_recv(&mut self, qp: QpNum, request: RecvRequest) -> Result<(), PostError> {
        unimplemented!()
    }
    pub fn register(&mut self, region: MemoryRegion) -> Result<u32, MemoryError> {
        unimplemented!()
    }
    pub fn deregister(&mut self, rkey: u32) -> Result<(), MemoryError> {
        unimplemented!()
    }
    /// A packet has arrived; `ce`: marked Congestion Experienced. The answer says where its payload goes.
    pub fn on_packet(&mut self, now: Time, from: HostId, segment: &Segment, ce: bool) -> Option<Placement> {
        unimplemented!()
    }
    /// The next packet to send now.
    pub fn poll_transmit(&mut self, now: Time, gate: Gate) -> Option<Transmit> {
        unimplemented!()
    }
    pub fn poll_event(&mut self) -> Option<Event> {
        unimplemented!()
    }
    /// When [`Endpoint::on_timer`] wants to be called; may be earlier than anything really happens.
    pub fn poll_timer(&self) -> Option<Time> {
        unimplemented!()
    }
    pub fn on_timer(&mut self, now: Time) {
        unimplemented!()
    }
    /// Counts of all queue pairs, destroyed ones included. O(queue pairs).
    pub fn counters(&self) -> Counters {
        unimplemented!()
    }
    /// Counts of one queue pair.
    pub fn qp_counters(&self, qp: QpNum) -> Option<&Counters> {
        unimplemented!()
    }
    /// The policy of a queue pair, for observers.
    pub fn policy(&self, qp: QpNum) -> Option<&P> {
        unimplemented!()
    }
}
