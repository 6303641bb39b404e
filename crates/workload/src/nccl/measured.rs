//! Output of nccl-tests, as text.

use crate::collective::Operation;
use crate::error::{FileError, shorten};

/// Measurements of one run of nccl-tests or rccl-tests.
#[derive(Clone, Debug, PartialEq)]
pub struct NcclTests {
    /// Operation, if the output names it.
    pub operation: Option<Operation>,
    /// Number of ranks, if the output lists them.
    pub ranks: Option<u32>,
    /// Sizes in the order of the output.
    pub rows: Vec<NcclTestsRow>,
    /// Rows that are left out as they are no measurement, each with its line, the value, and the reason.
    pub left_out: Vec<String>,
}

/// Measurement of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NcclTestsRow {
    /// Line of the file, from 1.
    pub line: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Time out of place, in microseconds.
    pub time_us: f64,
    /// Algorithm bandwidth out of place, in GB/s.
    pub algbw_gbs: f64,
    /// Bus bandwidth out of place, in GB/s.
    pub busbw_gbs: f64,
}

/// Names of the programs of nccl-tests.
const PROGRAMS: [(&str, Operation); 6] = [
    ("all_reduce", Operation::AllReduce),
    ("all_gather", Operation::AllGather),
    ("reduce_scatter", Operation::ReduceScatter),
    ("alltoall", Operation::AllToAll),
    ("broadcast", Operation::Broadcast),
    ("reduce", Operation::Reduce),
];
/// Types of nccl-tests and rccl-tests.
const TYPES: [&str; 16] = [
    "int8", "char", "uint8", "int32", "int", "uint32", "int64", "uint64", "half", "float", "double",
    "bfloat16", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2",
];
const COLUMNS: [&str; 4] = ["size", "time", "algbw", "busbw"];
/// Largest time of a row, a day.
const MOST_US: f64 = 86_400e6;

/// Largest relative difference between the printed algorithm bandwidth and size over time.
const ROUNDING: f64 = 0.01;
/// Largest difference between them, GB/s: half of the last digit that is printed.
const LAST_DIGIT_GBS: f64 = 0.0051;

/// Columns of a table, by their places.
#[derive(Clone, Copy, Debug)]
struct Columns {
    places: [usize; 4],
    /// Place of the number of wrong values out of place, if the table has it.
    wrong: Option<usize>,
    /// Place of the type of values, likewise.
    kind: Option<usize>,
}

/// Parses the output of nccl-tests. Other lines than those of its tables are skipped, and so is what mpirun or srun
/// write before each line.
///
/// # Errors
/// If there is no table, or a row of one is not as its heading says.
pub fn parse_nccl_tests(text: &str, file: &str) -> Result<NcclTests, FileError> {
    let mut found = NcclTests { operation: None, ranks: None, rows: Vec::new(), left_out: Vec::new() };
    let mut columns: Option<Columns> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = without_prefix(line);
        if let Some(comment) = line.strip_prefix('#') {
            heading(comment, &mut found);
            let words: Vec<&str> = comment.split_whitespace().collect();
            if words.contains(&"size") && words.contains(&"time") {
                columns = Some(columns_of(&words).map_err(|why| FileError::at(file, number, why))?);
            }
            continue;
        }
        if !line.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        let Some(columns) = columns else {
            let what = "a row before the heading of a table, which begins with \"#\" and has size and time";
            return Err(FileError::at(file, number, what));
        };
        let row = row(line, number, columns).map_err(|why| FileError::at(file, number, why))?;
        match doubt(line, &row, columns) {
            None => found.rows.push(row),
            Some(why) => {
                found
                    .left_out
                    .push(FileError::at(file, number, format!("{why}; the row is left out")).to_string());
            }
        }
    }
    if let (true, Some(first)) = (found.rows.is_empty(), found.left_out.first()) {
        let what = format!("none of its {} rows is a measurement: {first}", found.left_out.len());
        return Err(FileError::whole(file, what));
    }
    if found.rows.is_empty() {
        let what = "no rows of nccl-tests: expected its table, such as all_reduce_perf prints it";
        return Err(FileError::whole(file, what));
    }
    Ok(found)
}

/// Returns a line without the rank that mpirun (`[1,0]<stdout>:`) or srun (`0: `) writes before it.
fn without_prefix(line: &str) -> &str {
    let line = line.split_once("]<stdout>:").map_or(line, |(_, rest)| rest).trim_start();
    match line.split_once(": ") {
        Some((rank, rest)) if !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()) => {
            rest.trim_start()
        }
        _ => line,
    }
}

/// Reads operation and ranks from a comment.
fn heading(comment: &str, found: &mut NcclTests) {
    let comment = comment.trim();
    let program = comment.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    for word in program.filter_map(|word| word.strip_suffix("_perf")) {
        found.operation = PROGRAMS.iter().find(|(name, _)| *name == word).map(|&(_, operation)| operation);
    }
    // The first line of `pathweave nccl`, whose table has the columns of nccl-tests.
    if let Some((name, _)) = comment.split_once(": servers: ") {
        let of_name = PROGRAMS.iter().find(|(_, operation)| operation.name() == name);
        found.operation = of_name.map(|&(_, operation)| operation);
    }
    let mut words = comment.split_whitespace();
    if words.next() == Some("Rank")
        && let Some(rank) = words.next().and_then(|word| word.parse::<u32>().ok())
    {
        let least = rank.saturating_add(1);
        found.ranks = Some(found.ranks.map_or(least, |ranks| ranks.max(least)));
    }
}

fn columns_of(words: &[&str]) -> Result<Columns, String> {
    let mut places = [0; 4];
    for (place, name) in places.iter_mut().zip(COLUMNS) {
        let found = words.iter().position(|word| *word == name);
        *place = found.ok_or_else(|| format!("the heading has no column {name}, as nccl-tests print it"))?;
    }
    // The columns out of place come first.
    let of = |name: &str| words.iter().position(|word| *word == name);
    Ok(Columns { places, wrong: of("#wrong"), kind: of("type") })
}

/// Returns the reason why a row is no measurement.
fn doubt(line: &str, row: &NcclTestsRow, columns: Columns) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let word = |place: Option<usize>| words.get(place?).copied();
    let kind = word(columns.kind).filter(|kind| !TYPES.contains(kind));
    // "N/A" stands for results that were not checked.
    let wrong = word(columns.wrong).filter(|wrong| !["0", "N/A"].contains(wrong));
    if let Some(kind) = kind {
        return Some(format!("type = {}: no type of nccl-tests", shorten(kind)));
    }
    if let Some(wrong) = wrong {
        return Some(format!("#wrong = {}: expected 0, as results were wrong", shorten(wrong)));
    }
    if row.bytes == 0 {
        return Some("size = 0: nothing was sent".to_owned());
    }
    if row.time_us == 0.0 {
        return Some("time = 0: expected a number above 0".to_owned());
    }
    let expected_gbs = row.bytes as f64 / row.time_us / 1e3;
    let apart = (row.algbw_gbs - expected_gbs).abs();
    (apart > LAST_DIGIT_GBS + ROUNDING * expected_gbs)
        .then(|| format!("algbw = {}: expected {expected_gbs:.2}, its size over its time", row.algbw_gbs))
}

fn row(line: &str, number: u64, Columns { places, .. }: Columns) -> Result<NcclTestsRow, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let word = |column: usize| {
        let found = words.get(places[column]).copied();
        found.ok_or_else(|| format!("{} of its columns are missing: {}", COLUMNS[column], shorten(line)))
    };
    let size = word(0)?;
    let bytes: u64 = match size.parse() {
        Ok(bytes) if bytes <= 1 << 40 => bytes,
        _ => return Err(format!("size = {}: expected a whole number of bytes to 1 TiB", shorten(size))),
    };
    let number_of = |column: usize, most: f64| {
        let text = word(column)?;
        match text.parse::<f64>() {
            Ok(value) if (0.0..=most).contains(&value) => Ok(value),
            _ => Err(format!("{} = {}: expected a number from 0 to {most}", COLUMNS[column], shorten(text))),
        }
    };
    let (time_us, algbw_gbs, busbw_gbs) = (number_of(1, MOST_US)?, number_of(2, 1e9)?, number_of(3, 1e9)?);
    Ok(NcclTestsRow { line: number, bytes, time_us, algbw_gbs, busbw_gbs })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
# nccl-tests version 2.17.4 nccl-headers=22707 nccl-library=22707
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 17179869184 step: 2(factor) warmup iters: 1 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid   1234 on    node-a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  7 Group  0 Pid   1241 on    node-a device  7 [0000:dc:00] NVIDIA H100 80GB HBM3
NCCL version 2.27.7+cuda12.9
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    17.02    0.00    0.00       0    16.91    0.00    0.00       0
    16777216       4194304     float     sum      -1   123.80  135.52  237.16       0   124.01  135.29  236.76       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 118.48
";

    #[test]
    fn the_table_is_read_with_its_headings() {
        let found = parse_nccl_tests(OUTPUT, "out.txt").unwrap();
        assert_eq!((found.operation, found.ranks), (Some(Operation::AllReduce), Some(8)));
        let last = found.rows[1];
        assert_eq!((found.rows.len(), last.line, last.bytes), (2, 14, 16 << 20));
        assert_eq!((last.time_us, last.algbw_gbs, last.busbw_gbs), (123.8, 135.52, 237.16));
    }

    /// Older tables have no redop and root, and mpirun and srun write the rank before each line.
    #[test]
    fn other_columns_and_prefixes() {
        let old =
            "#   size  count  type  time  algbw  busbw  error\n  1024  64  float  30.5  0.03  0.03  0e+00\n";
        let found = parse_nccl_tests(old, "o").unwrap();
        assert_eq!((found.operation, found.ranks, found.rows[0].time_us), (None, None, 30.5));
        let tagged: String = OUTPUT.lines().map(|line| format!("[1,0]<stdout>:{line}\n")).collect();
        assert_eq!(parse_nccl_tests(&tagged, "o").unwrap().rows.len(), 2);
        let labelled: String = OUTPUT.lines().map(|line| format!("0: {line}\n")).collect();
        assert_eq!(parse_nccl_tests(&labelled, "o").unwrap().operation, Some(Operation::AllReduce));
    }

    /// 1 MiB in 30 us is 34.95 GB/s. A time below 0.005 us is printed as 0.00.
    #[test]
    fn rows_that_are_no_measurement_are_left_out_by_name() {
        let head = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
        let row = |of: &str| {
            format!("{head}{of} 30 34.95 61 0\n1048576 262144 float sum -1 30 34.95 61 0 30 1 1 0\n")
        };
        for (of, why) in [
            ("1048576 262144 float sum -1 30.00 34.95 61.17 3", "out.txt:2: #wrong = 3"),
            ("1048576 262144 float sum -1 30.00 34.95 61.17 1e+00", "out.txt:2: #wrong = 1e+00"),
            ("8 2 float sum -1 0.00 0.00 0.00 0", "out.txt:2: time = 0"),
            ("0 0 float sum -1 5.00 0.00 0.00 0", "out.txt:2: size = 0"),
            ("1048576 262144 float sum -1 30.00 349.5 61.17 0", "out.txt:2: algbw = 349.5: expected 34.95"),
            ("1048576 262144 flaot sum -1 30.00 34.95 61.17 0", "out.txt:2: type = flaot"),
        ] {
            let found = parse_nccl_tests(&row(of), "out.txt").unwrap();
            assert_eq!((found.rows.len(), found.rows[0].line, found.left_out.len()), (1, 3, 1), "{of}");
            assert!(found.left_out[0].starts_with(why), "{of}: {:?}", found.left_out);
            let alone = parse_nccl_tests(&format!("{head}{of} 30 34.95 61 0\n"), "out.txt").unwrap_err();
            assert!(alone.to_string().contains("none of its 1 rows is a measurement"), "{alone}");
        }
        for of in ["8 2 bfloat16 sum -1 17.02 0.00 0.00 0", "1048576 1 fp8_e4m3 sum -1 30.0 34.9 61 N/A"] {
            let found = parse_nccl_tests(&row(of), "out.txt").unwrap();
            assert_eq!((found.rows.len(), found.left_out.len()), (2, 0), "{of}");
        }
    }

    #[test]
    fn our_own_table_names_its_operation() {
        let text = "# all-gather: servers: 2, each 8 h100\n# size time algbw busbw\n1024 30.5 0.03 0.03\n";
        assert_eq!(parse_nccl_tests(text, "o").unwrap().operation, Some(Operation::AllGather));
    }

    #[test]
    fn wrong_files_are_named_with_their_line() {
        let error = |text: &str| parse_nccl_tests(text, "out.txt").unwrap_err().to_string();
        assert!(error("hello\n").starts_with("out.txt: no rows of nccl-tests"), "{}", error("hello\n"));
        assert!(error("8 2 float\n").contains("out.txt:1: a row before the heading"));
        let head = "# size count type time algbw busbw\n";
        for (row, text) in [
            ("8x 2 float 1 1 1", "out.txt:2: size = 8x: expected a whole number of bytes"),
            ("8 2 float", "time of its columns are missing"),
            ("8 2 float N/A 1 1", "time = N/A: expected a number from 0"),
            ("8 2 float -1 1 1", "time = -1"),
            ("8 2 float 1 1 inf", "busbw = inf"),
            ("9999999999999999999999 2 float 1 1 1", "size = 9999999999999999999999"),
        ] {
            let why = error(&format!("{head}{row}\n"));
            assert!(why.contains(text), "{row}: {why}");
        }
        assert!(error("# size time\n8 1\n").contains("the heading has no column algbw"));
    }
}
