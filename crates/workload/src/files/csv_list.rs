//! Flow list of pathweave: comma-separated values with a line of column names.

use pathweave_units::{Time, closest_name, suggestion};

use super::{FlowDependency, FlowFile, FlowRecord, exact_time};
use crate::error::{FileError, shorten};
use crate::graph::Moment;

/// Columns, each with true if it is required.
const COLUMNS: &[(&str, bool)] = &[
    ("src", true),
    ("dst", true),
    ("size_bytes", true),
    ("start_ns", false),
    ("id", false),
    ("after", false),
    ("after_delays_ns", false),
    ("after_moments", false),
    ("after_count", false),
    ("delay_ns", false),
    ("connection", false),
];

/// Parses a comma-separated flow list. The first line names the columns, in any order:
///
/// | Column | Meaning | If left out |
/// |---|---|---|
/// | `src`, `dst` | host numbers | required |
/// | `size_bytes` | payload, bytes | required |
/// | `start_ns` | earliest start, ns since the start of the workload, up to three decimals | 0 |
/// | `id` | name of the flow, unique in the file | none |
/// | `after` | ids of the flows that must end before this one, separated by blanks | none |
/// | `after_delays_ns` | delay after each flow in `after`, ns, separated by blanks | 0 |
/// | `after_moments` | moment of each flow in `after`, separated by blanks | delivery |
/// | `after_count` | number of flows in `after` that suffice | all |
/// | `delay_ns` | delay between the last of these moments and this flow, ns | 0 |
/// | `connection` | number of the connection, shared by flows with the same number and hosts | one of its own |
///
/// A moment is `delivery`, when the receiver has all bytes, or `completion`, when the sender has the last
/// acknowledgement. `after_delays_ns` and `after_moments` have one value for each id in `after`.
///
/// Lines that begin with `#` are skipped. Rows may be in any order.
pub fn parse_csv(text: &str, file: &str) -> Result<FlowFile, FileError> {
    let mut reader =
        csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
    let mut lines = Lines { text: text.as_bytes(), byte: 0, line: 1 };
    let header = reader.headers().map_err(|e| csv_error(file, &mut lines, &e))?;
    let head_line = lines.of(header.position());
    let columns = read_header(header).map_err(|what| FileError::at(file, head_line, what))?;
    let mut flows = Vec::new();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|e| csv_error(file, &mut lines, &e))? {
        let line = lines.of(record.position());
        let mut flow = FlowRecord { line, ..FlowRecord::default() };
        let fields = || columns.iter().copied().zip(&record);
        for (column, value) in fields() {
            set(&mut flow, column, value)
                .map_err(|why| FileError::at(file, line, format!("{column} = {}: {why}", shorten(value))))?;
        }
        // These columns need `after`, which is set now.
        for (column, value) in fields() {
            set_of_after(&mut flow, column, value)
                .map_err(|why| FileError::at(file, line, format!("{column} = {}: {why}", shorten(value))))?;
        }
        flows.push(flow);
    }
    Ok(FlowFile { flows, ..FlowFile::default() })
}

/// Returns the columns in the order of the file.
fn read_header(header: &csv::StringRecord) -> Result<Vec<&'static str>, String> {
    let mut columns: Vec<&'static str> = Vec::new();
    for name in header {
        let Some(&(column, _)) = COLUMNS.iter().find(|(c, _)| *c == name) else {
            let hint = suggestion(closest_name(name, COLUMNS.iter().map(|c| c.0)));
            let known: Vec<&str> = COLUMNS.iter().map(|c| c.0).collect();
            return Err(format!(
                "unknown column \"{}\"{hint} (known are {})",
                shorten(name),
                known.join(", ")
            ));
        };
        if columns.contains(&column) {
            return Err(format!("column \"{column}\" appears twice"));
        }
        columns.push(column);
    }
    match COLUMNS.iter().find(|(c, required)| *required && !columns.contains(c)) {
        Some((missing, _)) => {
            Err(format!("column \"{missing}\" is missing; the first line names the columns"))
        }
        None => Ok(columns),
    }
}

fn set(flow: &mut FlowRecord, column: &str, value: &str) -> Result<(), String> {
    let whole = || value.parse::<u64>().map_err(|_| "expected a whole number at or above 0".to_owned());
    let is_given = !value.is_empty();
    match column {
        "src" => flow.src = whole()?,
        "dst" => flow.dst = whole()?,
        "size_bytes" => flow.size_bytes = whole()?,
        "start_ns" if is_given => flow.start = Time::ZERO + exact_time(value, "ns")?,
        "delay_ns" if is_given => flow.delay = exact_time(value, "ns")?,
        "id" if is_given => {
            if value.contains(char::is_whitespace) {
                return Err("expected a name without blanks".to_owned());
            }
            flow.id = Some(value.to_owned());
        }
        "after" => flow.after = value.split_whitespace().map(FlowDependency::from).collect(),
        "connection" if is_given => {
            let number = u32::try_from(whole()?).ok().filter(|&n| n < 1 << 31);
            flow.connection = Some(number.ok_or("expected a number below 2147483648")?);
        }
        _ => {}
    }
    Ok(())
}

/// Sets the columns about a flow's predecessors, in the order of `after`.
fn set_of_after(flow: &mut FlowRecord, column: &str, value: &str) -> Result<(), String> {
    let ids = flow.after.len();
    let words: Vec<&str> = value.split_whitespace().collect();
    if words.is_empty() {
        return Ok(());
    }
    let one_each = |what: &str| match words.len() {
        n if n == ids => Ok(()),
        n => Err(format!("{n} {what}; expected {ids}, one for each id of after")),
    };
    match column {
        "after_delays_ns" => {
            one_each("times")?;
            for (after, delay) in flow.after.iter_mut().zip(words) {
                after.delay = exact_time(delay, "ns")?;
            }
        }
        "after_moments" => {
            one_each("words")?;
            for (after, word) in flow.after.iter_mut().zip(words) {
                after.moment = moment(word)?;
            }
        }
        "after_count" => {
            let count = value.parse::<u32>().ok().filter(|&count| count > 0 && count as usize <= ids);
            flow.needs = Some(count.ok_or(format!("expected 1 to {ids}, the ids of after"))?);
        }
        _ => {}
    }
    Ok(())
}

/// Moments of a flow that another flow can wait for, by their names.
pub(super) const MOMENTS: [(&str, Moment); 2] =
    [("delivery", Moment::Delivery), ("completion", Moment::Completion)];

fn moment(word: &str) -> Result<Moment, String> {
    let found = MOMENTS.iter().find(|(name, _)| *name == word);
    found.map(|&(_, moment)| moment).ok_or_else(|| {
        let hint = suggestion(closest_name(word, MOMENTS.map(|(name, _)| name)));
        format!("expected delivery or completion{hint}")
    })
}

/// Line numbers of rows in ascending order. The position that the reader gives a row is the end of the row before, ahead
/// of blank lines, comments and the second character of a CRLF.
struct Lines<'a> {
    text: &'a [u8],
    byte: usize,
    /// Line of `byte`, from 1.
    line: u64,
}

impl Lines<'_> {
    /// Returns the line of the row whose position the reader gives.
    fn of(&mut self, position: Option<&csv::Position>) -> u64 {
        let begin = position.and_then(|position| usize::try_from(position.byte()).ok()).unwrap_or(self.byte);
        let rest = self.text.get(begin..).unwrap_or_default().split_inclusive(|&byte| byte == b'\n');
        let is_skipped = |line: &&[u8]| line[0] == b'#' || line.iter().all(|byte| b"\r\n".contains(byte));
        let row = begin + rest.take_while(is_skipped).map(<[u8]>::len).sum::<usize>();
        let passed = self.text.get(self.byte..row).unwrap_or_default();
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.byte = self.byte.max(row);
        self.line
    }
}

fn csv_error(file: &str, lines: &mut Lines<'_>, error: &csv::Error) -> FileError {
    let line = error.position().map(|position| lines.of(Some(position)));
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} columns; the first line names {expected_len}")
        }
        _ => error.to_string(),
    };
    FileError { file: file.to_owned(), line, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::Duration;
    use proptest::prelude::*;

    #[test]
    fn every_column() {
        let text = "# two flows\nid,src,dst,size_bytes,start_ns,after,delay_ns,connection\n\
                    a,0,1,1000,1.5,,,\nb, 1, 0, 2000,, a , 30, 7\n";
        let file = parse_csv(text, "flows.csv").unwrap();
        let a = &file.flows[0];
        assert_eq!((a.line, a.src, a.dst, a.size_bytes, a.start), (3, 0, 1, 1000, Time::from_ps(1500)));
        let b = &file.flows[1];
        assert_eq!(
            (b.id.as_deref(), b.after.as_slice()),
            (Some("b"), [FlowDependency::from("a")].as_slice())
        );
        assert_eq!((b.delay, b.connection, b.start), (Duration::from_ns(30), Some(7), Time::ZERO));
    }

    #[test]
    fn delays_of_what_a_flow_waits_for() {
        let text = "src,dst,size_bytes,id,after,after_delays_ns\n0,1,1,a,,\n0,1,1,b,,\n1,0,1,,a b,0.5 70\n1,0,1,,b,\n";
        let file = parse_csv(text, "f.csv").unwrap();
        let after =
            |id: &str, ps| FlowDependency { delay: Duration::from_ps(ps), ..FlowDependency::from(id) };
        assert_eq!(file.flows[2].after, [after("a", 500), after("b", 70_000)]);
        assert_eq!(file.flows[3].after, [after("b", 0)]);
        let error =
            |delays: &str| parse_csv(&text.replace("0.5 70", delays), "f.csv").unwrap_err().to_string();
        assert_eq!(error("7"), "f.csv:4: after_delays_ns = 7: 1 times; expected 2, one for each id of after");
        assert!(error("7 x").starts_with("f.csv:4: after_delays_ns = 7 x: expected a number of ns"));
    }

    #[test]
    fn moments_and_how_many_suffice() {
        let text = "src,dst,size_bytes,id,after,after_moments,after_count\n0,1,1,a,,,\n0,1,1,b,,,\n\
                    1,0,1,,a b,completion delivery,1\n";
        let file = parse_csv(text, "f.csv").unwrap();
        let sent = FlowDependency { moment: Moment::Completion, ..FlowDependency::from("a") };
        assert_eq!(
            (&file.flows[2].after[..], file.flows[2].needs),
            (&[sent, FlowDependency::from("b")][..], Some(1))
        );
        let error = |from, to| parse_csv(&text.replace(from, to), "f.csv").unwrap_err().to_string();
        assert_eq!(
            error("delivery,1", "delivery,3"),
            "f.csv:4: after_count = 3: expected 1 to 2, the ids of after"
        );
        assert_eq!(
            error("completion delivery", "completion"),
            "f.csv:4: after_moments = completion: 1 words; expected 2, one for each id of after"
        );
        assert_eq!(
            error("completion delivery", "completed delivery"),
            "f.csv:4: after_moments = completed delivery: expected delivery or completion; did you mean \"completion\"?"
        );
    }

    #[test]
    fn errors_name_line_field_value_and_what_is_allowed() {
        let error = |text: &str| parse_csv(text, "f.csv").unwrap_err().to_string();
        assert!(error("src,dst,sise_bytes\n").starts_with(
            "f.csv:1: unknown column \"sise_bytes\"; did you mean \"size_bytes\"? (known are src, dst,"
        ));
        assert_eq!(
            error("src,dst\n0,1\n"),
            "f.csv:1: column \"size_bytes\" is missing; the first line names the columns"
        );
        assert_eq!(error("src,src\n"), "f.csv:1: column \"src\" appears twice");
        assert_eq!(
            error("src,dst,size_bytes\n0,1,many\n"),
            "f.csv:2: size_bytes = many: expected a whole number at or above 0"
        );
        assert_eq!(error("src,dst,size_bytes\n0,1\n"), "f.csv:2: 2 columns; the first line names 3");
    }

    #[test]
    fn lines_are_those_of_the_file() {
        let line = |text: &str| parse_csv(text, "f.csv").unwrap_err().line;
        let (lf, head) = ("# a\n\nsrc,dst,size_bytes\n0,1,10\n\n# b\n#c\n", "# a\n\nsrc,dst,size\n");
        for (text, expected) in [(head, 3), (&format!("{lf}0,x,10\n"), 8), (&format!("{lf}0,1\n"), 8)] {
            assert_eq!(line(text), Some(expected), "{text}");
            assert_eq!(line(&text.replace('\n', "\r\n")), Some(expected), "{text}, CRLF");
        }
        let flows = parse_csv(&lf.replace('\n', "\r\n"), "f.csv").unwrap().flows;
        assert_eq!(flows[0].line, 4);
        let quoted = "src,dst,size_bytes,id\n0,1,10,\"a\n\"\n0,x,10,b\n";
        assert_eq!(line(quoted), Some(4), "a value may span lines");
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "(src,dst,size_bytes,start_ns,after\n)?([0-9a-z.,\" #-]{0,20}\n){0,5}") {
            let _ = parse_csv(&text, "any");
        }
    }
}
