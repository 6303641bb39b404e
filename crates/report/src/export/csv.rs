//! Flows as comma-separated values (RFC 4180), with the columns of `flows.parquet`.

use std::io::{self, Write};

use pathweave_records::{FLOWS, Get, RunResult};

/// Writes a header line and one line a flow. Missing values are empty.
pub fn flows_csv(run: &RunResult, out: &mut impl Write) -> io::Result<()> {
    let labels: Vec<Vec<String>> = FLOWS
        .iter()
        .map(|column| match column.get {
            Get::Label(labels, _) => labels(run).iter().map(|text| quoted(text)).collect(),
            _ => Vec::new(),
        })
        .collect();
    let names: Vec<&str> = FLOWS.iter().map(|column| column.name).collect();
    writeln!(out, "{}", names.join(","))?;
    for flow in &run.flows {
        for (i, (column, labels)) in FLOWS.iter().zip(&labels).enumerate() {
            if i > 0 {
                out.write_all(b",")?;
            }
            match column.get {
                Get::U32(get) => number(out, get(run, flow))?,
                Get::U64(get) => number(out, get(run, flow))?,
                Get::F64(get) => number(out, get(run, flow))?,
                Get::Label(_, get) => {
                    out.write_all(get(flow).map_or("", |label| &labels[label]).as_bytes())?;
                }
            }
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn number(out: &mut impl Write, value: Option<impl std::fmt::Display>) -> io::Result<()> {
    value.map_or(Ok(()), |value| write!(out, "{value}"))
}

/// Quotes a text that may contain a comma, a quote or a line break. A text that spreadsheets would take for a formula
/// gets an apostrophe.
pub(crate) fn quoted(text: &str) -> String {
    let plain = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{plain}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{plain}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{FlowRecord, FlowStatus};

    #[test]
    fn no_text_is_a_formula() {
        assert_eq!(quoted("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(quoted("-1,2"), "\"'-1,2\"");
        assert_eq!([quoted("a=b"), quoted("rps"), quoted("")], ["a=b", "rps", ""]);
    }

    #[test]
    fn values_stand_under_their_names() {
        let mut run = RunResult::default();
        run.info.groups = vec!["a,\"b\"".into()];
        run.info.schemes = vec!["rps".into()];
        let done = FlowRecord {
            size_bytes: 1_000,
            finish_ps: Some(2_500),
            ideal_fct_ps: 1_000,
            status: FlowStatus::Finished,
            ..FlowRecord::default()
        };
        run.flows = vec![done, FlowRecord { flow: 1, start_ps: 7, ..FlowRecord::default() }];
        let mut out = Vec::new();
        flows_csv(&run, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0]
                .starts_with("flow,group,role,scheme,job,src_host,dst_host,size_bytes,start_ns,finish_ns")
        );
        assert!(
            lines[1].starts_with("0,\"a,\"\"b\"\"\",foreground,rps,,0,0,1000,0,2.5,,2.5,1,2.5,"),
            "{}",
            lines[1]
        );
        assert!(lines[1].ends_with(",finished") && lines[2].ends_with(",unfinished"));
        // What was never posted has no ideal time.
        assert!(lines[2].contains(",0,0.007,,,,,,,"), "{}", lines[2]);
    }
}
