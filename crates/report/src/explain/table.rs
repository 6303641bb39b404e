//! Selected columns of a Parquet file of pathweave, read back.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use pathweave_records::figures::Finished;
use pathweave_records::{Column, FlowStats, FlowStatus, Get, RunResult, ns};

/// Key of the digest of the run in the metadata of a file.
const DIGEST: &str = "pathweave.digest";

/// Columns by name, all of the same length.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) rows: usize,
    /// Digest of the run that wrote the file; `None` if it has none.
    pub(super) digest: Option<String>,
    numbers: BTreeMap<String, Vec<f64>>,
    texts: BTreeMap<String, Texts>,
}

/// A column of texts, each stored once.
#[derive(Clone, Debug, Default)]
struct Texts {
    all: Vec<String>,
    /// Index into `all` for each text, while a file is read.
    places: HashMap<String, u32>,
    /// Index into `all` for each row.
    of: Vec<u32>,
}

impl Texts {
    /// Appends rows without a text up to `rows`.
    fn fill(&mut self, rows: usize) {
        while self.of.len() < rows {
            self.push("");
        }
    }

    fn push(&mut self, text: &str) {
        let last = self.of.last().copied().filter(|&last| self.all[last as usize] == text);
        let place = last.or_else(|| self.places.get(text).copied()).unwrap_or_else(|| {
            let new = self.all.len() as u32;
            self.all.push(text.to_owned());
            self.places.insert(text.to_owned(), new);
            new
        });
        self.of.push(place);
    }
}

impl Table {
    /// Reads the columns of `wanted` that the file has. Missing numbers are NaN.
    pub(super) fn read(path: &Path, wanted: &[&str]) -> Result<Table, ParquetError> {
        let reader = SerializedFileReader::new(File::open(path)?)?;
        let metadata = reader.metadata().file_metadata().key_value_metadata();
        let digest = metadata.into_iter().flatten().find(|pair| pair.key == DIGEST);
        let digest = digest.and_then(|pair| pair.value.clone());
        let mut table = Table { digest, ..Table::default() };
        for row in reader.get_row_iter(None)? {
            for (name, field) in row?.get_column_iter().filter(|(name, _)| wanted.contains(&name.as_str())) {
                match field {
                    // A missing text or number. Later values show which.
                    Field::Null => {}
                    Field::Str(text) => {
                        let column = table.texts.entry(name.clone()).or_default();
                        column.fill(table.rows);
                        column.push(text);
                    }
                    other => {
                        let column = table.numbers.entry(name.clone()).or_default();
                        column.resize(table.rows, f64::NAN);
                        column.push(number(other));
                    }
                }
            }
            table.rows += 1;
        }
        let rows = table.rows;
        table.texts.values_mut().for_each(|column| column.fill(rows));
        table.numbers.values_mut().for_each(|column| column.resize(rows, f64::NAN));
        Ok(table)
    }

    /// Creates the columns of `wanted` from records in memory.
    pub(super) fn of<R>(run: &RunResult, columns: &[Column<R>], records: &[R], wanted: &[&str]) -> Table {
        let mut table = Table { rows: records.len(), ..Table::default() };
        for column in columns.iter().filter(|column| wanted.contains(&column.name)) {
            let missing = |value: Option<f64>| value.unwrap_or(f64::NAN);
            let numbers: Vec<f64> = match column.get {
                Get::U32(get) => records.iter().map(|r| missing(get(run, r).map(f64::from))).collect(),
                Get::U64(get) => records.iter().map(|r| missing(get(run, r).map(|v| v as f64))).collect(),
                Get::F64(get) => records.iter().map(|r| missing(get(run, r))).collect(),
                Get::Label(all, get) => {
                    let of = records.iter().map(|r| get(r).map_or(u32::MAX, |place| place as u32)).collect();
                    table
                        .texts
                        .insert(column.name.to_owned(), Texts { all: all(run), of, ..Texts::default() });
                    continue;
                }
            };
            table.numbers.insert(column.name.to_owned(), numbers);
        }
        table
    }

    /// Creates columns of `flows.parquet` from the retained state of measured flows. Timeouts are missing if there
    /// were no packets.
    pub(super) fn of_flows(figures: &FlowStats, of_packets: bool) -> Table {
        let groups = figures.foreground();
        let finished = || groups.iter().flat_map(|group| &group.finished);
        let open: u64 = groups.iter().map(|group| group.unfinished + group.failed).sum();
        let nothing = || std::iter::repeat_n(f64::NAN, open as usize);
        let slowdowns = finished().map(|flow| flow.slowdown().unwrap_or(f64::NAN)).chain(nothing()).collect();
        let timeouts = |flow: &Finished| if of_packets { f64::from(flow.timeouts) } else { f64::NAN };
        let timeouts: Vec<f64> = finished().map(timeouts).chain(nothing()).collect();
        let sizes = finished().map(|flow| flow.size_bytes as f64).chain(nothing()).collect();
        let ideals = finished().map(|flow| ns(flow.ideal_fct_ps)).chain(nothing()).collect();
        let acked = |flow: &Finished| flow.ideal_acked_ps().map_or(f64::NAN, ns);
        let acked = finished().map(acked).chain(nothing()).collect();
        let words = [FlowStatus::Finished, FlowStatus::Unfinished].map(|status| status.name().to_owned());
        let status = finished().map(|_| 0).chain(std::iter::repeat_n(1, open as usize)).collect();
        Table {
            rows: timeouts.len(),
            digest: None,
            numbers: [
                ("slowdown".to_owned(), slowdowns),
                ("timeouts".to_owned(), timeouts),
                ("size_bytes".to_owned(), sizes),
                ("ideal_fct_ns".to_owned(), ideals),
                ("ideal_acked_fct_ns".to_owned(), acked),
            ]
            .into(),
            texts: [("status".to_owned(), Texts { all: words.into(), of: status, ..Texts::default() })]
                .into(),
        }
    }

    /// Returns the number of a column in a row, or NaN if there is none.
    pub(super) fn number(&self, column: &str, row: usize) -> f64 {
        self.numbers.get(column).and_then(|values| values.get(row)).copied().unwrap_or(f64::NAN)
    }

    /// Returns the text of a column in a row.
    pub(super) fn text(&self, column: &str, row: usize) -> &str {
        let Some(texts) = self.texts.get(column) else { return "" };
        texts.of.get(row).and_then(|&place| texts.all.get(place as usize)).map_or("", String::as_str)
    }

    /// Iterates over the rows of foreground flows.
    pub(super) fn measured(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.rows).filter(|&row| self.text("role", row) != "background")
    }

    /// Returns the sum of the values that are not missing.
    pub(super) fn sum(&self, column: &str) -> f64 {
        let values = self.numbers.get(column).map_or(&[][..], Vec::as_slice);
        values.iter().filter(|value| value.is_finite()).sum()
    }
}

fn number(field: &Field) -> f64 {
    match field {
        Field::UInt(v) => f64::from(*v),
        Field::ULong(v) => *v as f64,
        Field::Int(v) => f64::from(*v),
        Field::Long(v) => *v as f64,
        Field::Double(v) => *v,
        _ => f64::NAN,
    }
}
