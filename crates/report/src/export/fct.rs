//! Export of `fct.txt` in the format of simulators of the ns-3 RDMA family: one line a finished flow, in order of
//! finishing.
//!
//! `source destination source_port destination_port bytes start_ns fct_ns standalone_fct_ns`, separated by blanks.

use std::collections::BTreeMap;
use std::io::{self, Write};

use pathweave_records::RunResult;

/// Format of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FctFormat {
    /// Addresses in eight hexadecimal digits, 11.x.y.1 with x and y from the host's number: HPCC.
    #[default]
    Hpcc,
    /// Numbers: ConWeave.
    ConWeave,
}

/// Event at which the time of a flow ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FctEnd {
    /// The receiver has the last byte. The standalone time ends likewise, on an idle network.
    #[default]
    Delivered,
    /// The sender has the last acknowledgement, as in these simulators. The standalone time includes the
    /// acknowledgement.
    Acknowledged,
}

/// First port number in these simulators. Each further flow of a pair of hosts takes the next one.
const FIRST_PORT: u32 = 10_000;
const DESTINATION_PORT: u32 = 100;

/// Writes the flows of `run` that have reached `end`. The standalone time is pathweave's: that of the same flow on an
/// idle network. Times are rounded to nanoseconds.
pub fn fct(run: &RunResult, format: FctFormat, end: FctEnd, out: &mut impl Write) -> io::Result<()> {
    let times = |flow: &pathweave_records::FlowRecord| match end {
        FctEnd::Delivered => Some((flow.finish_ps?, flow.ideal_fct_ps)),
        FctEnd::Acknowledged => Some((flow.acked_ps?, flow.ideal_acked_ps?)),
    };
    let mut flows: Vec<_> = run.flows.iter().filter_map(|flow| Some((times(flow)?, flow))).collect();
    let mut of_pair: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    // Ports follow the order of starts, as the numbers of flows do.
    let port = |flow: &pathweave_records::FlowRecord, of_pair: &mut BTreeMap<(u32, u32), u32>| {
        let count = of_pair.entry((flow.src_host, flow.dst_host)).or_default();
        *count += 1;
        FIRST_PORT + (*count - 1) % (65_536 - FIRST_PORT)
    };
    let ports: BTreeMap<u32, u32> =
        run.flows.iter().map(|flow| (flow.flow, port(flow, &mut of_pair))).collect();
    flows.sort_by_key(|((end_ps, _), flow)| (*end_ps, flow.flow));
    let host = |id: u32| match format {
        FctFormat::Hpcc => format!("{:08x}", 0x0b00_0001 + ((id / 256) << 16) + ((id % 256) << 8)),
        FctFormat::ConWeave => id.to_string(),
    };
    for ((end_ps, alone_ps), flow) in flows {
        writeln!(
            out,
            "{} {} {} {DESTINATION_PORT} {} {} {} {}",
            host(flow.src_host),
            host(flow.dst_host),
            ports[&flow.flow],
            flow.size_bytes,
            round_ns(flow.start_ps),
            round_ns(end_ps - flow.start_ps),
            round_ns(alone_ps),
        )?;
    }
    Ok(())
}

fn round_ns(ps: u64) -> u64 {
    (ps + 500) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::FlowRecord;

    #[test]
    fn lines_by_hand() {
        let flow = |flow, src_host, start_ps, finish_ps| FlowRecord {
            flow,
            src_host,
            dst_host: 258,
            size_bytes: 5_000,
            start_ps,
            finish_ps,
            // The last acknowledgement arrives 3 ns after the last byte, and 1 ns after it on an idle network.
            acked_ps: finish_ps.map(|ps| ps + 3_000),
            ideal_fct_ps: 1_499,
            ideal_acked_ps: Some(2_499),
            ..FlowRecord::default()
        };
        let flows = vec![flow(0, 1, 0, Some(9_000_500)), flow(1, 1, 2_000, Some(4_000)), flow(2, 1, 0, None)];
        let run = RunResult { flows, ..RunResult::default() };
        let text = |format, end| {
            let mut out = Vec::new();
            fct(&run, format, end, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            text(FctFormat::Hpcc, FctEnd::Delivered),
            "0b000101 0b010201 10001 100 5000 2 2 1\n0b000101 0b010201 10000 100 5000 0 9001 1\n"
        );
        assert_eq!(
            text(FctFormat::ConWeave, FctEnd::Delivered),
            "1 258 10001 100 5000 2 2 1\n1 258 10000 100 5000 0 9001 1\n"
        );
        assert_eq!(
            text(FctFormat::ConWeave, FctEnd::Acknowledged),
            "1 258 10001 100 5000 2 5 2\n1 258 10000 100 5000 0 9004 2\n"
        );
    }
}
