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
const COLUMNS: [&str; 4] = ["size", "time", "algbw", "busbw"];
/// Largest time of a row, a day.
const MOST_US: f64 = 86_400e6;

/// Columns of a table, by their places.
#[derive(Clone, Copy, Debug)]
struct Columns([usize; 4]);

/// Parses the output of nccl-tests. Other lines than those of its tables are skipped, and so is what mpirun or srun
/// write before each line.
///
/// # Errors
/// If there is no table, or a row of one is not as its heading says.
pub fn parse_nccl_tests(text: &str, file: &str) -> Result<NcclTests, FileError> {
    let mut found = NcclTests { operation: None, ranks: None, rows: Vec::new() };
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
        found.rows.push(row(line, number, columns).map_err(|why| FileError::at(file, number, why))?);
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
    Ok(Columns(places))
}

fn row(line: &str, number: u64, Columns(places): Columns) -> Result<NcclTestsRow, String> {
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
