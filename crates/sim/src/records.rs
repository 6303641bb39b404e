//! From the state at the end of a run to its records.

use pathweave_results::{BalancingTotals, EndReason, LinkTotals, RunInfo, RunResult};
use pathweave_units::{Rate, Time};

use crate::departures;
use crate::digest::digest;
use crate::edge;
use crate::groups::GroupSums;
use crate::runner::Runner;
use crate::spec::RouteChoice;

impl<const C: usize> Runner<'_, C> {
    pub(crate) fn into_result(mut self, ended: EndReason, ended_detail: String, end: Time) -> RunResult {
        let spec = self.spec;
        self.settle_open();
        let jobs = self.traffic.execution.job_records();
        let links = self.links(end);
        let nodes = spec.node_infos();
        let balancing = self.balancing();
        let flows = self.traffic.execution.flow_records();
        let groups = self.observers.group_sums.iter().map(GroupSums::totals).collect();
        let sets = match &spec.routing {
            RouteChoice::Switches | RouteChoice::SenderSwitches(_) | RouteChoice::NextHops(_) => None,
            RouteChoice::Sources(sets) => Some(&**sets),
        };
        let (events, events_not_recorded) = std::mem::take(&mut self.observers.recorder.events).into_list();
        let logs = self.hosts.iter().filter_map(|host| Some((host.nic.host, host.departures.as_deref()?)));
        let departures = departures::totals(logs, sets);
        RunResult {
            info: RunInfo {
                digest: digest(self.hosts.iter().map(|host| host.delivered).chain([self.observers.lost])),
                simulated_ps: end.as_ps(),
                events: self.events(),
                packet_hops: self.network.fabric.packet_hops(),
                ended,
                ended_detail,
                ..spec.run_info()
            },
            flows,
            groups,
            series: self.observers.recorder.samples.into_list(),
            events,
            events_not_recorded,
            nodes,
            links,
            jobs,
            balancing,
            middleboxes: edge::totals(&self.network.fabric, &spec.topology),
            departures,
        }
    }

    fn balancing(&self) -> BalancingTotals {
        let stats = self.network.fabric.forwarding();
        BalancingTotals {
            flowlets: stats.flowlets,
            reroutes: stats.reroutes,
            held_packets: stats.held_packets,
            unheld_packets: stats.unheld_packets,
            late_flushes: stats.late_flushes,
            untracked_packets: stats.untracked_packets,
            message_packets: stats.messages,
        }
    }

    /// One a direction of a link; its number is that of its egress port.
    fn links(&mut self, end: Time) -> Vec<LinkTotals> {
        let mut rates = vec![Rate::from_bps(0); self.network.map.len() as usize];
        for (index, link) in self.spec.topology.links().iter().enumerate() {
            let (a, b) = self.network.map.ends(index);
            rates[a as usize] = link.rate;
            rates[b as usize] = link.rate;
        }
        (0..self.network.map.len())
            .map(|port| {
                self.network.fabric.settle(end, port);
                let (from, to) = self.network.fabric.ends(port);
                let stats = self.network.fabric.stats(port);
                let (rate, _) = self.network.fabric.link(port);
                LinkTotals {
                    tx_bytes: stats.tx_bytes,
                    tx_packets: stats.tx_packets,
                    busy_ps: rate.time_for(stats.tx_bytes).as_ps().min(end.as_ps()),
                    dropped_packets: stats.dropped_packets,
                    ecn_marked_packets: stats.marked_packets,
                    pfc_pauses: stats.pauses,
                    paused_ps: self.network.fabric.paused_time(port, end).as_ps(),
                    max_queue_bytes: stats.max_queue_bytes,
                    ..self.spec.link_totals(port, from, to, rates[port as usize])
                }
            })
            .collect()
    }
}
