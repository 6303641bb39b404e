//! Records of a run.

use pathweave_records::{EndReason, LinkTotals, RunInfo, RunResult};
use pathweave_topo::LinkId;
use pathweave_units::{Time, mix64};

use crate::engine::Engine;

/// Start of digests, so that digests of the fluid model differ from those of packets.
const OF_FLOWS: u64 = 0x666c_6f77;

impl Engine<'_> {
    /// Returns the records of a run that has ended.
    pub(crate) fn into_result(mut self, (ended, end): (EndReason, Time)) -> RunResult {
        let spec = self.spec;
        self.count_all(end);
        self.ledger.flush(&mut self.network);
        self.network.unfold(&mut self.ledger.by_port);
        let mut outside = self.validity.reasons(end);
        if self.solver.cut_short > 0 {
            outside.push(format!(
                "rates were left unfinished at {} instants, because their changes affected too many links",
                self.solver.cut_short
            ));
        }
        let labels = self.execution.labels();
        let activities = self.execution.activity_records(end);
        let critical = self.execution.critical_steps();
        let jobs = self.execution.job_records();
        let flows = self.execution.flow_records();
        let mut digest = mix64(OF_FLOWS);
        for flow in &flows {
            digest = mix64(digest ^ flow.start_ps) ^ flow.finish_ps.unwrap_or(u64::MAX);
        }
        RunResult {
            info: RunInfo {
                digest: mix64(digest),
                simulated_ps: end.as_ps(),
                events: self.events,
                ended,
                model_limits_exceeded: outside,
                ..spec.run_info()
            },
            nodes: spec.node_infos(),
            links: self.links(end),
            flows,
            jobs,
            labels,
            activities,
            critical,
            ..RunResult::default()
        }
    }

    fn links(&self, end: Time) -> Vec<LinkTotals> {
        let ways = &self.network.routes;
        let mut directions = vec![(LinkId(0), true); self.ledger.by_port.len()];
        for link in (0..self.spec.topology.links().len() as u32).map(LinkId) {
            let (a, b) = ways.ports().ends(link.index());
            (directions[a as usize], directions[b as usize]) = ((link, true), (link, false));
        }
        let busy = self.ledger.busy(&self.network);
        let totals = |(port, &(link, from_a)): (usize, &(LinkId, bool))| LinkTotals {
            tx_bytes: (self.ledger.by_port[port] + 0.5) as u64,
            busy_ps: busy[port].as_ps().min(end.as_ps()),
            ..self.spec.link_totals(port as u32, link, from_a)
        };
        directions.iter().enumerate().map(totals).collect()
    }
}
