//! A slow NIC that sets the end of a run by itself. Its flows are not late: on an idle network they take as long.

use pathweave_records::Quantity;

use super::facts::{Facts, Flow, Link};

/// Factor by which the flows of a NIC must end later than those of others.
const LATER: f64 = 1.2;
/// Share of the run after which its last flow ends.
const AT_END: f64 = 0.9;

impl Facts {
    /// Returns the slow link of the host whose flow ends last, if no other host has a flow that ends about as late.
    /// Also returns the end of that flow and of the last one of others.
    fn last_nic(&self) -> Option<(usize, f64, f64)> {
        let last = self.flows.iter().max_by(|a, b| a.end_ns().total_cmp(&b.end_ns()))?;
        let is_end = |link: &Link| {
            (link.is_from_host() && link.from_node == last.src_host)
                || (link.is_to_host() && link.to_node == last.dst_host)
        };
        let mut ends = (0..self.links.len()).filter(|&link| is_end(&self.links[link]));
        let slow = ends.find(|&link| self.is_slow(link))?;
        let host = self.links[slow].host()?;
        let others = self.flows.iter().filter(|flow| flow.src_host != host && flow.dst_host != host);
        let others_ns = others.map(Flow::end_ns).fold(0.0, f64::max);
        let is_alone = others_ns > 0.0 && last.end_ns() >= (LATER * others_ns).max(AT_END * self.run_ns);
        is_alone.then_some((slow, last.end_ns(), others_ns))
    }

    /// Describes a slow NIC that sets the end of the run, unless one of the causes is this NIC. `all_flows` is the
    /// number of flows of the run, of which some may have no records of waits.
    pub(super) fn slow_nic_at_end(&self, causes: &[String], all_flows: usize) -> Option<String> {
        let (slow, end_ns, others_ns) = self.last_nic()?;
        let at = &self.links[slow];
        let is_named = |words: &String| {
            [(&at.from, &at.to), (&at.to, &at.from)]
                .iter()
                .any(|(from, to)| words.contains(&format!("slow NIC: {from} to {to} has ")))
        };
        if causes.iter().any(is_named) {
            return None;
        }
        let others = if all_flows <= self.flows.len() { "others" } else { "other slow flows" };
        Some(format!(
            "slow NIC: {} has {} where similar links have {}; its flows end at {}, those of {others} at {}",
            at.name(),
            Quantity::RateBps.format(at.rate_bps),
            Quantity::RateBps.format(self.usual_rate_bps(slow)),
            Quantity::TimeNs.format(end_ns),
            Quantity::TimeNs.format(others_ns)
        ))
    }
}
