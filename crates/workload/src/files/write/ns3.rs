//! Writer of `flow.txt` of HPCC and ConWeave.

use std::fmt::Write;

use super::{count, decimal, shared_connections, start_ps};
use crate::files::ns3::{Ns3Dialect, usual};
use crate::files::{FlowFile, FlowRecord};

/// Writes a `flow.txt` with flows in order of their starts. Priority group and port have the usual values of
/// these tools.
pub fn write_ns3(flows: &FlowFile, dialect: Ns3Dialect, lost: &mut Vec<String>) -> Result<String, String> {
    let waiting = count(flows, |flow| !flow.after.is_empty());
    lost.extend(waiting.map(|some| format!("the order of {some} behind others")));
    let shared = shared_connections(flows);
    if shared > 0 {
        lost.push(format!("that {shared} flows share connections"));
    }
    let mut sorted: Vec<&FlowRecord> = flows.flows.iter().collect();
    sorted.sort_by_key(|flow| start_ps(flow));
    let mut text = format!("{}\n", sorted.len());
    for flow in sorted {
        for (i, &column) in dialect.columns().iter().enumerate() {
            let value = match column {
                "src" => flow.src.to_string(),
                "dst" => flow.dst.to_string(),
                "bytes" => flow.size_bytes.to_string(),
                "start_seconds" => decimal(start_ps(flow), 1_000_000_000_000),
                other => usual(other).to_string(),
            };
            let end = if i + 1 == dialect.columns().len() { '\n' } else { ' ' };
            let _ = write!(text, "{value}{end}");
        }
    }
    Ok(text)
}
