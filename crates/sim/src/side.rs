//! Side channels of datagram queue pairs, beside the fabric or as connections on it.

use std::collections::VecDeque;

use pathweave_policy::{Awaited, PolicyEnv, Scheme, find_scheme};
use pathweave_transport::rd::SideMessage;
use pathweave_transport::{Buffer, Op, QpConfig, Transport, WorkRequest};
use pathweave_units::{Duration, HostId, QpNum, Rng, Time};

use crate::agenda::{Item, Opening, Rank};
use crate::nic::{Channel, SideRoute};
use crate::opening::queue_pair_config;
use crate::paths::PathProfile;
use crate::shard::{FIRST_NUMBER, Shard};
use crate::spec::SimSpec;

/// Number of the work requests of side messages. No flow has it.
pub(crate) const SIDE_MESSAGE: u64 = u64::MAX;

/// Length of the smallest Ethernet frame, with preamble and inter-frame gap.
const MIN_FRAME_BYTES: u32 = 84;

/// Returns the number of the first queue pair of side channels. That of the channel to host h follows h numbers
/// later, at every host.
pub(crate) fn first_side(spec: &SimSpec, queue_pairs: &[[u32; 2]]) -> u32 {
    let last = queue_pairs.iter().flatten().copied().max().unwrap_or(0);
    let most = spec.schemes.iter().map(|named| named.scheme.queue_pairs).max().unwrap_or(1);
    last.saturating_add(u32::from(most)).max(FIRST_NUMBER)
}

/// Returns the transport of a side channel on the fabric.
fn side_scheme() -> Scheme {
    (find_scheme("dctcp").expect("a scheme of this name").make)()
}

impl<const C: usize> Shard<'_, C> {
    /// Returns the delay of a side channel beside the fabric.
    pub(crate) fn side_latency(&self, path: &PathProfile) -> Duration {
        path.one_way(MIN_FRAME_BYTES) + self.spec.network.side_channel.stack * 2
    }

    /// Opens the channel of a host to another one, unless it is open.
    pub(crate) fn open_side(&mut self, now: Time, (own, peer): (HostId, HostId), opening: &Opening) {
        let channels = &mut self.model(own).channels;
        if channels.contains_key(&peer) {
            return;
        }
        channels.insert(peer, Channel { free_at: Time::ZERO, latency: opening.side_latency, sent: 0 });
        if self.spec.network.side_channel.via == SideRoute::Fabric {
            self.connect_side(now, (own, peer), opening);
        }
    }

    /// Creates the host's queue pair of a channel on the fabric.
    fn connect_side(&mut self, now: Time, (own, peer): (HostId, HostId), opening: &Opening) {
        let (spec, scheme) = (self.spec, side_scheme());
        let leading = self.network.routes.leading_ports(&spec.topology, own, peer);
        let paths = scheme.paths_over(leading.count_ones() as u16);
        let env = PolicyEnv { paths: self.network.routes.count(own, peer, paths), ..opening.env };
        let policy = self.network.policy(&scheme, Awaited::Message, opening);
        let stream = u64::from(own.0) << 32 | u64::from(peer.0);
        let mut rng = Rng::for_component(spec.seed, "side-policy", stream);
        let views = self.network.views(spec, (own, peer));
        let base = QpConfig::new(peer, policy.build(&env, &mut rng), &views);
        let config = queue_pair_config(spec, &scheme, (opening, &env, self.network.plan.when_full), base);
        let (qp, remote) = (self.side_queue_pair(peer), self.side_queue_pair(own));
        self.hosts[own.index()].note_leading_ports(now, peer, leading);
        let endpoint = &mut self.hosts[own.index()].endpoint;
        endpoint.create_qp_as(now, qp, config);
        endpoint.connect(qp, remote).expect("just made");
    }

    /// Returns the queue pair of the channel to a host.
    fn side_queue_pair(&self, peer: HostId) -> QpNum {
        QpNum(self.traffic.first_side + peer.0)
    }

    /// Returns the queue pair of the host's channel to another one, if the channel is open and on the fabric.
    pub(crate) fn side_on_fabric(&mut self, own: HostId, peer: HostId) -> Option<QpNum> {
        let is_open = self.spec.network.side_channel.via == SideRoute::Fabric
            && self.hosts[own.index()].model().is_some_and(|model| model.channels.contains_key(&peer));
        is_open.then(|| self.side_queue_pair(peer))
    }

    pub(crate) fn send_side(&mut self, now: Time, from: HostId, to: HostId, message: SideMessage) {
        let config = &self.spec.network.side_channel;
        let bytes = message.encoded_len() as u64;
        let channel = self.model(from).channels.get_mut(&to).expect("its ends have been introduced");
        channel.sent += 1;
        let rank = Rank::Side(from, channel.sent);
        match config.via {
            SideRoute::Beside => {
                channel.free_at = channel.free_at.max(now) + config.rate.time_for(bytes);
                let arrival = channel.free_at + channel.latency;
                let at = arrival + self.side_crossing(&message);
                self.send_to_host(at, to, rank, Item::Side { from, message });
            }
            SideRoute::Fabric => {
                let item = Item::SideSent { from, message };
                self.send_to_host(now + self.windows.longest, to, rank, item);
                let request = WorkRequest { wr_id: SIDE_MESSAGE, op: Op::Send, local: Buffer(0), len: bytes };
                let qp = self.side_queue_pair(to);
                // A connection that has given up carries nothing more, as one of TCP that is reset.
                let _ = self.hosts[from.index()].endpoint.post(now, qp, request);
            }
        }
    }

    /// Returns the time that a message takes beyond its way: a NACK triggers work at the sender's NIC, so it takes the
    /// posting delay besides.
    fn side_crossing(&self, message: &SideMessage) -> Duration {
        match (message, &self.spec.network.nic) {
            (SideMessage::Nack { .. }, Some(nic)) => nic.post_delay(),
            _ => Duration::ZERO,
        }
    }

    /// Registers a side message whose bytes are about to arrive over the fabric.
    pub(crate) fn expect_side(&mut self, host: HostId, from: HostId, message: SideMessage) {
        self.model(host).side_messages.entry(from).or_default().push_back(message);
    }

    /// Handles the arrival of the bytes of a side message at the NIC.
    pub(crate) fn on_side_bytes(&mut self, now: Time, host: HostId, qp: QpNum) {
        let from = HostId(qp.0 - self.traffic.first_side);
        let messages = self.model(host).side_messages.get_mut(&from);
        let message = messages.and_then(VecDeque::pop_front).expect("sent before its bytes");
        let stacks = self.spec.network.side_channel.stack * 2;
        let at = now + stacks + self.side_crossing(&message);
        self.schedule_own(at, host, Item::Side { from, message });
    }

    /// Handles a message that has arrived on the side channel.
    pub(crate) fn on_side(&mut self, now: Time, host: HostId, from: HostId, message: &SideMessage) {
        self.model(host).rd.on_side(now, from, message);
        self.after_input(now, host.index());
    }
}
