//! Checkers that are independent of the code they check.

use std::collections::BTreeMap;

use pathweave_records::{EventKind, FlowStatus, RunResult};
use pathweave_transport::Placement;

/// Remote address of a flow's first byte. Each flow has 8 GiB, so an address identifies the flow and the offset in
/// it.
pub(crate) fn flow_address(flow: u32) -> u64 {
    u64::from(flow) << 33
}

/// Ledger of all placed bytes. It verifies that each byte of each message is placed exactly once.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Placed intervals by flow, start to end, merged where they touch.
    placed: BTreeMap<u32, BTreeMap<u64, u64>>,
}

impl Ledger {
    /// Records a placement. Panics if a byte is placed twice.
    pub(crate) fn placed(&mut self, placement: &Placement) {
        let flow = u32::try_from(placement.offset >> 33).expect("an address of a flow");
        let (mut start, mut end) = {
            let start = placement.offset & ((1 << 33) - 1);
            (start, start + u64::from(placement.len))
        };
        if start == end {
            return;
        }
        let intervals = self.placed.entry(flow).or_default();
        if let Some((&before, &before_end)) = intervals.range(..=start).next_back() {
            assert!(before_end <= start, "flow {flow}: bytes from {start} were placed twice");
            if before_end == start {
                intervals.remove(&before);
                start = before;
            }
        }
        if let Some((&after, &after_end)) = intervals.range(start..).next() {
            assert!(after >= end, "flow {flow}: bytes up to {end} were placed twice");
            if after == end {
                intervals.remove(&after);
                end = after_end;
            }
        }
        intervals.insert(start, end);
    }

    /// Checks that a delivered flow has all its bytes placed. Panics otherwise.
    pub(crate) fn delivered(&mut self, flow: u32, size_bytes: u64) {
        let placed = self.placed.remove(&flow).unwrap_or_default();
        let whole = BTreeMap::from([(0, size_bytes)]);
        assert_eq!(placed, whole, "flow {flow} counts as delivered, but these intervals were placed");
    }
}

/// Checks the invariants of a result. Returns a description of each violation.
pub fn violations(result: &RunResult, lossless: bool) -> Vec<String> {
    let mut found = Vec::new();
    for flow in &result.flows {
        if flow.status == FlowStatus::Finished && flow.finish_ps.is_none() {
            found.push(format!("flow {} finished without a time", flow.flow));
        }
    }
    if lossless {
        let buffer_drops = result
            .events
            .iter()
            .filter(|e| {
                e.kind == EventKind::Drop && e.reason == Some(pathweave_records::DropReason::BufferFull)
            })
            .count();
        if buffer_drops > 0 {
            found.push(format!("{buffer_drops} packets were dropped because buffers were full, with PFC on"));
        }
    }
    for link in &result.links {
        if u128::from(link.tx_bytes) * 8 * 1_000_000_000_000
            > u128::from(link.rate_bps) * u128::from(result.info.simulated_ps)
                + u128::from(link.rate_bps) * 10_000_000
            && !result.events.iter().any(|e| e.kind == EventKind::Fault)
        {
            found.push(format!("link {} carried more than its rate allows", link.name));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_transport::Buffer;

    fn place(ledger: &mut Ledger, offset: u64, len: u16) {
        ledger.placed(&Placement { buffer: Buffer(0), offset: flow_address(7) + offset, len });
    }

    #[test]
    fn out_of_order_bytes_add_up() {
        let mut ledger = Ledger::default();
        place(&mut ledger, 200, 100);
        place(&mut ledger, 0, 100);
        place(&mut ledger, 100, 100);
        ledger.delivered(7, 300);
    }

    #[test]
    #[should_panic(expected = "placed twice")]
    fn a_byte_twice_is_caught() {
        let mut ledger = Ledger::default();
        place(&mut ledger, 0, 100);
        place(&mut ledger, 99, 1);
    }

    #[test]
    #[should_panic(expected = "counts as delivered")]
    fn a_missing_byte_is_caught() {
        let mut ledger = Ledger::default();
        place(&mut ledger, 0, 99);
        ledger.delivered(7, 100);
    }
}
