//! From the state at the end of a run to its records.

use pathweave_fabric::ForwardingStats;
use pathweave_results::{BalancingTotals, EndReason, LinkTotals, RunInfo, RunResult};
use pathweave_units::{Rate, Time};

use crate::central::Central;
use crate::departures;
use crate::digest::digest;
use crate::edge;
use crate::groups::GroupSums;
use crate::spec::RouteChoice;
use crate::whole::Whole;

impl Central<'_> {
    /// The records of a run that has come to its end.
    pub(crate) fn into_result<const C: usize>(
        mut self,
        whole: &mut Whole<'_, '_, C>,
        (ended, ended_detail, end): (EndReason, String, Time),
    ) -> RunResult {
        let spec = whole.shards[0].spec;
        whole.shards.iter_mut().for_each(|shard| shard.settle_open());
        let links = links(whole, end);
        let joined = whole.join(end);
        let sets = match &spec.routing {
            RouteChoice::Switches | RouteChoice::SenderSwitches(_) | RouteChoice::NextHops(_) => None,
            RouteChoice::Sources(sets) => Some(&**sets),
        };
        let (events, events_not_recorded) = std::mem::take(&mut self.recorder.events).into_list();
        let logs = whole.hosts().filter_map(|host| Some((host.nic.host, host.departures.as_deref()?)));
        let departures = departures::totals(logs, sets);
        let first_switch = spec.topology.hosts();
        let middlebox = |index| whole.fabric_of(first_switch + index).middlebox_stats(index);
        RunResult {
            info: RunInfo {
                digest: digest(whole.hosts().map(|host| host.delivered).chain([self.lost])),
                simulated_ps: end.as_ps(),
                events: whole.events(),
                packet_hops: whole.packet_hops(),
                ended,
                ended_detail,
                ..spec.run_info()
            },
            groups: self.group_sums.iter().map(GroupSums::totals).collect(),
            series: self.recorder.samples.into_list(),
            events,
            events_not_recorded,
            nodes: spec.node_infos(),
            links,
            jobs: joined.jobs,
            labels: joined.labels,
            activities: joined.activities,
            critical: joined.critical,
            balancing: balancing(whole),
            middleboxes: edge::totals(&spec.topology, middlebox),
            departures,
            flows: joined.flows,
        }
    }
}

fn balancing<const C: usize>(whole: &Whole<'_, '_, C>) -> BalancingTotals {
    let mut stats = ForwardingStats::default();
    whole.shards.iter().for_each(|shard| stats += shard.network.fabric.forwarding());
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
fn links<const C: usize>(whole: &mut Whole<'_, '_, C>, end: Time) -> Vec<LinkTotals> {
    let spec = whole.shards[0].spec;
    let ports = whole.shards[0].network.map.len();
    let mut rates = vec![Rate::from_bps(0); ports as usize];
    for (index, link) in spec.topology.links().iter().enumerate() {
        let (a, b) = whole.shards[0].network.map.ends(index);
        rates[a as usize] = link.rate;
        rates[b as usize] = link.rate;
    }
    let totals = |port: u32| {
        // What is lost on the link is noticed at its far end.
        let dropped = whole.shards.iter().map(|shard| shard.network.fabric.stats(port).dropped_packets);
        let dropped_packets = dropped.sum();
        let fabric = &mut whole.at_port(port).network.fabric;
        fabric.settle(end, port);
        let (from, to) = fabric.ends(port);
        let stats = fabric.stats(port);
        let (rate, _) = fabric.link(port);
        LinkTotals {
            tx_bytes: stats.tx_bytes,
            tx_packets: stats.tx_packets,
            busy_ps: rate.time_for(stats.tx_bytes).as_ps().min(end.as_ps()),
            dropped_packets,
            ecn_marked_packets: stats.marked_packets,
            pfc_pauses: stats.pauses,
            paused_ps: fabric.paused_time(port, end).as_ps(),
            max_queue_bytes: stats.max_queue_bytes,
            ..spec.link_totals(port, from, to, rates[port as usize])
        }
    };
    (0..ports).map(totals).collect()
}
