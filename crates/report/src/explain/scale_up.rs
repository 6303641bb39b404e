//! Time that messages lose inside scale-up networks. Where these are fluid, their links are not among those of the run.

use std::collections::BTreeMap;

use super::findings::Run;
use super::verdict::LATE_SLOWDOWN;

/// End of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Receiver,
    Sender,
}

/// Late messages that have one end in common.
#[derive(Clone, Copy, Debug, Default)]
struct Common {
    flows: usize,
    lost_ns: f64,
}

impl Run {
    /// Returns the part of the time of late flows that those inside scale-up networks lost, with the GPU at which most
    /// of it was lost, in words.
    pub(super) fn in_scale_up(&self) -> Option<(f64, String)> {
        let is_late = |row: &usize| self.flows.number("slowdown", *row) >= LATE_SLOWDOWN;
        let lost = |row: usize| self.flows.number("fct_ns", row) - self.flows.number("ideal_fct_ns", row);
        let (mut all_ns, mut inside_ns, mut inside) = (0.0, 0.0, 0usize);
        let mut at: BTreeMap<(u32, End), Common> = BTreeMap::new();
        for row in self.measured().filter(is_late) {
            all_ns += lost(row);
            if !self.is_inside(row) {
                continue;
            }
            inside += 1;
            inside_ns += lost(row);
            for (column, end) in [("dst_host", End::Receiver), ("src_host", End::Sender)] {
                let common = at.entry((self.flows.number(column, row) as u32, end)).or_default();
                common.flows += 1;
                common.lost_ns += lost(row);
            }
        }
        let most = at.iter().max_by(|a, b| a.1.lost_ns.total_cmp(&b.1.lost_ns).then(b.0.1.cmp(&a.0.1)));
        let (&(host, end), common) = most.filter(|_| all_ns > 0.0)?;
        let place = match (end, common.flows) {
            (_, 1) => String::new(),
            (End::Receiver, flows) => format!(": {flows} of {inside} end at {}", self.facts.host_name(host)),
            (End::Sender, flows) => format!(": {flows} of {inside} begin at {}", self.facts.host_name(host)),
        };
        Some((inside_ns / all_ns, format!("the scale-up network, whose links late flows share{place}")))
    }

    /// Returns true if a flow is fluid inside a scale-up network: its sender needs no acknowledgement.
    fn is_inside(&self, row: usize) -> bool {
        self.flows.number("ideal_acked_fct_ns", row) == self.flows.number("ideal_fct_ns", row)
    }
}
