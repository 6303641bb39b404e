//! Time that messages lose inside scale-up networks. Where these are fluid, their links are not among those of the run.

use pathweave_records::{FlowTimes, LateFlows, MessageEnd};

use super::causes::{FAULT_WORTH, WORTH};
use super::findings::Run;
use super::settings::Fault;
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
    /// Returns the parts of the time of late flows that those inside scale-up networks lost, by cause, with the GPU at
    /// which most of it was lost, in words.
    pub(super) fn in_scale_up(&self) -> Vec<(f64, String)> {
        let Some((host, end, shared)) = self.late.worst_end() else { return Vec::new() };
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
        let faults = self.facts.faults.iter().filter(|fault| {
            self.facts.was_in_force(fault) && of_server(&fault.on) && !self.facts.is_on_a_link(fault)
        });
        let part = |fault: &Fault| self.most_of_those_inside(fault);
        let mut found: Vec<(f64, String)> = faults
            .filter(|fault| part(fault) >= FAULT_WORTH)
            .map(|fault| {
                (part(fault), format!("{} {}, in the scale-up network{place}", fault.name(), fault.on))
            })
            .collect();
        let all: f64 = found.iter().map(|(part, _)| part).sum();
        found.iter_mut().for_each(|(part, _)| *part *= share / all.max(1.0));
        let rest = share * (1.0 - all.min(1.0));
        if all <= 1.0 - WORTH {
            found.push((rest, format!("the scale-up network, whose links late flows share{place}")));
        }
        found
    }

    /// Returns an upper bound of the share of the late flows' lost time that a fault in a scale-up network can have cost; 0 for
    /// a fault on a link of the run.
    pub(super) fn bound_in_scale_up(&self, fault: &Fault) -> f64 {
        if self.late.inside.flows == 0 || self.facts.is_on_a_link(fault) {
            return 0.0;
        }
        let share = self.late.inside.lost_ps as f64 / self.late.lost_ps as f64;
        share * self.most_of_those_inside(fault)
    }

    /// Returns an upper bound of the part of the lost time of late flows inside scale-up networks that a fault can have cost.
    fn most_of_those_inside(&self, fault: &Fault) -> f64 {
        let inside = self.late.inside;
        let lost_ns = inside.lost_ps as f64 / 1e3 / inside.flows as f64;
        (self.most_in_scale_up_ns(fault) / lost_ns).min(1.0)
    }

    /// Returns the longest time that a fault in a scale-up network can have cost a flow. A flow is spread over all chips.
    fn most_in_scale_up_ns(&self, fault: &Fault) -> f64 {
        let run_ns = if self.facts.run_ns > 0.0 { self.facts.run_ns } else { f64::INFINITY };
        let chips = self.facts.settings.number("topology.server.scale_up.chips").unwrap_or(1.0).max(1.0);
        fault.overlap_ns(0.0, run_ns) / if fault.takes_down() { chips } else { 1.0 }
    }
}
