//! Bytes that crossed each link.

use pathweave_fabric::PortId;
use pathweave_units::{Duration, HostId, Rate};

use crate::lane::SendQueue;
use crate::network::Network;

/// Bytes that crossed each link.
#[derive(Debug)]
pub(crate) struct LinkBytes {
    /// Bytes by egress port.
    pub(crate) by_port: Vec<f64>,
    /// Bytes by pair of the network: sprayed bytes that are not yet distributed over the links between switches, and
    /// the bytes of their acknowledgements.
    by_pair: Vec<(f64, f64)>,
    /// Bytes by egress port until the network was last built anew, and the time in picoseconds that their
    /// transmission took. Empty if it never was.
    pub(crate) earlier: Vec<(f64, f64)>,
}

impl LinkBytes {
    pub(crate) fn new(network: &Network<'_>) -> Self {
        LinkBytes {
            by_port: vec![0.0; network.resource_of.len()],
            by_pair: vec![(0.0, 0.0); network.pairs.len()],
            earlier: Vec::new(),
        }
    }

    /// Adds bytes sent by a lane, with the number of acknowledgement bytes for each. Those that are lost count up to
    /// the dead link.
    pub(crate) fn add(
        &mut self,
        network: &Network<'_>,
        lane: &SendQueue,
        (src, dst): (HostId, HostId),
        (bytes, acks): (f64, f64),
    ) {
        let mut cross = |port: PortId, bytes: f64| {
            self.by_port[port as usize] += bytes;
            self.by_port[network.other_end(port) as usize] += bytes * acks;
        };
        match &lane.single {
            Some(single) => single.route.iter().for_each(|&port| cross(port, bytes)),
            None => {
                let pair = &network.pairs[lane.pair as usize];
                let first = network.routes.ports().ports(src.0).start;
                pair.first.iter().for_each(|&(port, share)| cross(first + PortId::from(port), bytes * share));
                pair.last.iter().for_each(|&(port, share)| cross(network.port_to(dst, port), bytes * share));
                let (there, back) = &mut self.by_pair[lane.pair as usize];
                *there += bytes;
                *back += bytes * acks;
            }
        }
    }

    /// Distributes sprayed bytes over the links of the network as it was last built.
    pub(crate) fn flush(&mut self, network: &mut Network<'_>) {
        let pairs = std::mem::take(&mut self.by_pair);
        network.each_crossing(&pairs, |port, back, (bytes, acks)| {
            self.by_port[port as usize] += bytes;
            self.by_port[back as usize] += acks;
        });
        self.by_pair = vec![(0.0, 0.0); pairs.len()];
    }

    /// Completes the account of the network as it was last built, before its links change.
    pub(crate) fn close(&mut self, network: &mut Network<'_>) {
        self.flush(network);
        self.earlier.resize(self.by_port.len(), (0.0, 0.0));
        for ((bytes, (known, busy_ps)), rate) in
            self.by_port.iter().zip(&mut self.earlier).zip(&network.rates)
        {
            *busy_ps += transmission(*bytes - *known, *rate).as_ps() as f64;
            *known = *bytes;
        }
    }

    /// Returns the time in which each egress port transmitted its bytes.
    pub(crate) fn busy(&self, network: &Network<'_>) -> Vec<Duration> {
        let ports = self.by_port.iter().zip(&network.rates).enumerate();
        let busy = ports.map(|(port, (bytes, rate))| {
            let (known, busy_ps) = self.earlier.get(port).copied().unwrap_or_default();
            transmission(bytes - known, *rate) + Duration::from_ps(busy_ps as u64)
        });
        busy.collect()
    }
}

/// Returns the time in which a port of this rate transmits bytes.
fn transmission(bytes: f64, rate: Rate) -> Duration {
    rate.time_for((bytes + 0.5) as u64)
}
