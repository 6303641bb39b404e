//! `flow.txt` of HPCC and ConWeave (ns-3): the number of flows, then one flow per line.

use pathweave_units::Time;

use super::{FlowFile, FlowRecord, exact_time};
use crate::error::FileError;

/// Columns of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ns3Dialect {
    /// `src dst pg dport BYTES START_SECONDS`
    Hpcc,
    /// `src dst pg BYTES START_SECONDS`
    Conweave,
}

impl Ns3Dialect {
    pub(crate) const fn columns(self) -> &'static [&'static str] {
        match self {
            Ns3Dialect::Hpcc => &["src", "dst", "pg", "dport", "bytes", "start_seconds"],
            Ns3Dialect::Conweave => &["src", "dst", "pg", "bytes", "start_seconds"],
        }
    }
    const fn name(self) -> &'static str {
        match self {
            Ns3Dialect::Hpcc => "HPCC",
            Ns3Dialect::Conweave => "ConWeave",
        }
    }
    const fn of_columns(count: usize) -> Option<Self> {
        match count {
            6 => Some(Ns3Dialect::Hpcc),
            5 => Some(Ns3Dialect::Conweave),
            _ => None,
        }
    }
}

/// Parses a `flow.txt`. Without a dialect, the first flow determines it.
///
/// The rules are those of the tools that write the format: lines after the announced number of flows are not
/// read (with a note), starts must ascend, and priority group and destination port are not used.
pub fn parse_ns3(text: &str, file: &str, dialect: Option<Ns3Dialect>) -> Result<FlowFile, FileError> {
    let mut lines = (1u64..).zip(text.lines()).filter(|(_, l)| !l.trim().is_empty());
    let Some((line, head)) = lines.next() else {
        return Err(FileError::whole(file, "empty; expected the number of flows and then one flow a line"));
    };
    let Ok(announced) = head.trim().parse::<u64>() else {
        let shown: String = head.trim().chars().take(40).collect();
        return Err(FileError::at(file, line, format!("number of flows = {shown}: expected a whole number")));
    };
    let mut found = FlowFile::default();
    let mut dialect = dialect;
    let mut end = line;
    let mut unusual = 0u64;
    while (found.flows.len() as u64) < announced {
        let Some((line, content)) = lines.next() else {
            let n = found.flows.len();
            return Err(FileError::at(file, end, format!("ends after {n} of {announced} flows; truncated?")));
        };
        let columns: Vec<&str> = content.split_whitespace().take(8).collect();
        let Some(known) = dialect.or_else(|| Ns3Dialect::of_columns(columns.len())) else {
            let what = format!("{} columns; a flow has 6 (HPCC) or 5 (ConWeave)", columns.len());
            return Err(FileError::at(file, line, what));
        };
        dialect = Some(known);
        let mut is_unusual = false;
        let flow =
            parse_flow(&columns, known, &mut is_unusual).map_err(|what| FileError::at(file, line, what))?;
        found.flows.push(flow);
        unusual += u64::from(is_unusual);
        let flows = &mut found.flows;
        let n = flows.len();
        flows[n - 1].line = line;
        if n > 1 && flows[n - 1].start < flows[n - 2].start {
            let (now, before) = (flows[n - 1].start, flows[n - 2].start);
            let what =
                format!("start_seconds: {now} is before {before} of the flow above; starts must ascend");
            return Err(FileError::at(file, line, what));
        }
        end = line;
    }
    if unusual > 0 {
        found.unused.push(format!(
            "{file}: the priority group or destination port of {unusual} flows, others than 3 and 100, are not used"
        ));
    }
    let unread = lines.count();
    if unread > 0 {
        found.notes.push(format!(
            "{file}: {unread} further lines are not read, as line 1 announces {announced} flows"
        ));
    }
    Ok(found)
}

/// Parses a flow. Sets `unusual` if its priority group or port differs from the usual value.
fn parse_flow(columns: &[&str], dialect: Ns3Dialect, unusual: &mut bool) -> Result<FlowRecord, String> {
    let names = dialect.columns();
    if columns.len() != names.len() {
        let other = Ns3Dialect::of_columns(columns.len()).filter(|&d| d != dialect);
        let hint = other.map_or(String::new(), |d| format!("; that is the {} form", d.name()));
        return Err(format!(
            "{} columns; expected {}: {}{hint}",
            columns.len(),
            names.len(),
            names.join(" ")
        ));
    }
    let mut flow = FlowRecord::default();
    for (&name, &value) in names.iter().zip(columns) {
        if name == "start_seconds" {
            let since = exact_time(value, "s").map_err(|why| format!("{name} = {value}: {why}"))?;
            flow.start = Time::ZERO + since;
            continue;
        }
        let number: u64 =
            value.parse().map_err(|_| format!("{name} = {value}: expected a whole number at or above 0"))?;
        match name {
            "src" => flow.src = number,
            "dst" => flow.dst = number,
            "bytes" => flow.size_bytes = number,
            _ => *unusual |= number != usual(name),
        }
    }
    Ok(flow)
}

/// Returns the usual priority group or destination port in files of the tools that write the format.
pub(crate) fn usual(name: &str) -> u64 {
    if name == "pg" { 3 } else { 100 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HPCC: &str = include_str!("../../../../tests/data/flows/hpcc.txt");
    const CONWEAVE: &str = include_str!("../../../../tests/data/flows/conweave.txt");

    #[test]
    fn a_file_of_hpcc_with_prose_behind_its_flows() {
        let file = parse_ns3(HPCC, "flow.txt", None).unwrap();
        assert_eq!(file.flows.len(), 2);
        let first = FlowRecord {
            line: 2,
            src: 2,
            dst: 1,
            size_bytes: 200_000_000,
            start: Time::from_us(2_000_000),
            ..FlowRecord::default()
        };
        assert_eq!(file.flows[0], first);
        assert!(file.notes[0].contains("further lines are not read, as line 1 announces 2 flows"));
    }

    #[test]
    fn a_file_of_conweave_that_announces_more_than_it_has() {
        let error = parse_ns3(CONWEAVE, "flow.sample.txt", None).unwrap_err();
        assert_eq!(error.to_string(), "flow.sample.txt:5: ends after 4 of 19352 flows; truncated?");
        let file = parse_ns3(&CONWEAVE.replacen("19352", "4", 1), "flow.txt", None).unwrap();
        assert_eq!(file.flows[0].start, Time::from_ns(2_000_000_027));
        assert_eq!((file.flows[3].src, file.flows[3].dst, file.flows[3].size_bytes), (124, 82, 6309));
    }

    #[test]
    fn errors_name_line_field_value_and_what_is_allowed() {
        let error = |text: &str, d| parse_ns3(text, "f", d).unwrap_err().to_string();
        assert_eq!(
            error("1\n0 1 3 100 2.0\n", Some(Ns3Dialect::Hpcc)),
            "f:2: 5 columns; expected 6: src dst pg dport bytes start_seconds; that is the ConWeave form"
        );
        assert_eq!(
            error("2\n0 1 3 100 2.0\n\n0 1 3 -5 2.0\n", None),
            "f:4: bytes = -5: expected a whole number at or above 0"
        );
        assert_eq!(
            error("2\n0 1 3 100 2.0\n0 1 3 100 1.5\n", None),
            "f:3: start_seconds: 1500ms is before 2s of the flow above; starts must ascend"
        );
        assert!(
            error("1\n0 1 3 100 -1\n", None).starts_with("f:2: start_seconds = -1: expected a number of s")
        );
        assert_eq!(error("src dst\n", None), "f:1: number of flows = src dst: expected a whole number");
        assert!(error("", None).starts_with("f: empty"));
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "([0-9a-z. -]{0,20}\n){0,5}") {
            let _ = parse_ns3(&text, "any", None);
        }
    }
}
