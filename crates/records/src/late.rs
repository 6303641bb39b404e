//! Late flows of a run: the time that they lost, and how much of it inside scale-up networks.

use std::collections::BTreeMap;

/// Slowdown from which flows are late.
pub const LATE_SLOWDOWN: f64 = 1.3;

/// End of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageEnd {
    /// The host that gets it.
    Receiver,
    /// The host that sends it.
    Sender,
}

/// Late messages inside scale-up networks that have one end in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedEnd {
    /// Number of messages.
    pub flows: u64,
    /// Time beyond that on an idle network, picoseconds.
    pub lost_ps: u64,
}

/// A flow that finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTimes {
    /// Sending host.
    pub src_host: u32,
    /// Receiving host.
    pub dst_host: u32,
    /// Time from post to completion.
    pub fct_ps: u64,
    /// The same on an idle network.
    pub ideal_fct_ps: u64,
    /// The same to the last acknowledgement, if there are any.
    pub ideal_acked_ps: Option<u64>,
}

/// Sums over late flows. A flow inside a scale-up network is fluid: its sender needs no acknowledgement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateFlows {
    /// Time that late flows lost against an idle network, picoseconds.
    pub lost_ps: u64,
    /// Late flows inside scale-up networks.
    pub inside: SharedEnd,
    /// Late flows inside scale-up networks by each of their ends.
    ends: BTreeMap<(u32, MessageEnd), SharedEnd>,
}

impl LateFlows {
    /// Adds a flow, if it is late.
    pub fn add(&mut self, flow: FlowTimes) {
        let lost_ps = flow.fct_ps.saturating_sub(flow.ideal_fct_ps);
        if flow.ideal_fct_ps == 0 || (flow.fct_ps as f64) < LATE_SLOWDOWN * flow.ideal_fct_ps as f64 {
            return;
        }
        self.lost_ps += lost_ps;
        if flow.ideal_acked_ps != Some(flow.ideal_fct_ps) {
            return;
        }
        self.inside.add(lost_ps);
        for end in [(flow.dst_host, MessageEnd::Receiver), (flow.src_host, MessageEnd::Sender)] {
            self.ends.entry(end).or_default().add(lost_ps);
        }
    }

    /// Returns the end at which flows inside scale-up networks lost most; of equal ones a receiver.
    pub fn worst_end(&self) -> Option<(u32, MessageEnd, SharedEnd)> {
        let most = self
            .ends
            .iter()
            .max_by(|a, b| a.1.lost_ps.cmp(&b.1.lost_ps).then(b.0.1.cmp(&a.0.1)).then(b.0.0.cmp(&a.0.0)));
        most.map(|(&(host, end), &shared)| (host, end, shared))
    }
}

impl SharedEnd {
    fn add(&mut self, lost_ps: u64) {
        self.flows += 1;
        self.lost_ps += lost_ps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_flows_are_summed_by_their_ends() {
        let flow = |src_host, dst_host, fct_ps, ideal_acked_ps| FlowTimes {
            src_host,
            dst_host,
            fct_ps,
            ideal_fct_ps: 100,
            ideal_acked_ps,
        };
        let mut late = LateFlows::default();
        // One is not late, one goes over the network, and three are inside: two of them end at host 5.
        for flow in [
            flow(0, 5, 129, Some(100)),
            flow(1, 5, 200, Some(120)),
            flow(2, 5, 130, Some(100)),
            flow(3, 5, 170, Some(100)),
            flow(3, 6, 150, Some(100)),
        ] {
            late.add(flow);
        }
        assert_eq!((late.lost_ps, late.inside), (250, SharedEnd { flows: 3, lost_ps: 150 }));
        // Host 3 sends two with 120 lost; host 5 receives two with 100.
        assert_eq!(late.worst_end(), Some((3, MessageEnd::Sender, SharedEnd { flows: 2, lost_ps: 120 })));
    }
}
