//! Time that messages lose inside scale-up networks. Where these are fluid, their links are not among those of the run.

use pathweave_records::{FlowTimes, LateFlows, MessageEnd};

use super::findings::Run;
use super::table::Table;

/// Returns the sums over late flows, of the rows of the foreground.
pub(super) fn late_flows(flows: &Table) -> LateFlows {
    let mut late = LateFlows::default();
    for row in flows.measured() {
        let ps = |column: &str| {
            Some(flows.number(column, row)).filter(|ns| ns.is_finite()).map(|ns| (ns * 1e3).round() as u64)
        };
        let (Some(fct_ps), Some(ideal_fct_ps)) = (ps("fct_ns"), ps("ideal_fct_ns")) else { continue };
        late.add(FlowTimes {
            src_host: flows.number("src_host", row) as u32,
            dst_host: flows.number("dst_host", row) as u32,
            fct_ps,
            ideal_fct_ps,
            ideal_acked_ps: ps("ideal_acked_fct_ns"),
        });
    }
    late
}

impl Run {
    /// Returns the part of the time of late flows that those inside scale-up networks lost, with the GPU at which most
    /// of it was lost, in words.
    pub(super) fn in_scale_up(&self) -> Option<(f64, String)> {
        let (host, end, shared) = self.late.worst_end()?;
        let inside = self.late.inside;
        let name = self.facts.host_name(host);
        let place = match (end, shared.flows) {
            (_, 1) => String::new(),
            // Senders are those that represent others.
            _ if self.times_recorded > 1 => String::new(),
            (MessageEnd::Receiver, flows) => format!(": {flows} of {} end at {name}", inside.flows),
            (MessageEnd::Sender, flows) => format!(": {flows} of {} begin at {name}", inside.flows),
        };
        let share = inside.lost_ps as f64 / self.late.lost_ps as f64;
        // The links of fluid networks are not among those of the run. They are named after their server.
        let of_server =
            |on: &str| name.split_once('.').is_some_and(|(server, _)| on.starts_with(&format!("{server}.")));
        let fault = self.facts.faults.iter().find(|fault| {
            self.facts.was_in_force(fault) && of_server(&fault.on) && !self.facts.is_on_a_link(fault)
        });
        if let Some(fault) = fault {
            return Some((share, format!("{} {}, in the scale-up network{place}", fault.name(), fault.on)));
        }
        Some((share, format!("the scale-up network, whose links late flows share{place}")))
    }
}
