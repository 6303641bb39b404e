//! A Parquet file of ours, as far as it is needed: some columns, read back.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

/// Columns by name; all of one length.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) rows: usize,
    numbers: BTreeMap<String, Vec<f64>>,
    texts: BTreeMap<String, Vec<String>>,
}

impl Table {
    /// Reads the columns of `wanted` that the file has. What is missing in a row is not a number.
    pub(super) fn read(path: &Path, wanted: &[&str]) -> Result<Table, ParquetError> {
        let reader = SerializedFileReader::new(File::open(path)?)?;
        let mut table = Table::default();
        for row in reader.get_row_iter(None)? {
            for (name, field) in row?.get_column_iter().filter(|(name, _)| wanted.contains(&name.as_str())) {
                match field {
                    Field::Str(text) => table.texts.entry(name.clone()).or_default().push(text.clone()),
                    other => table.numbers.entry(name.clone()).or_default().push(number(other)),
                }
            }
            table.rows += 1;
        }
        // A column of another length has rows without a text: of no use here.
        let rows = table.rows;
        table.texts.retain(|_, column| column.len() == rows);
        table.numbers.retain(|_, column| column.len() == rows);
        Ok(table)
    }

    /// The number of a column in a row; not a number where there is none.
    pub(super) fn number(&self, column: &str, row: usize) -> f64 {
        self.numbers.get(column).and_then(|values| values.get(row)).copied().unwrap_or(f64::NAN)
    }

    /// The text of a column in a row.
    pub(super) fn text(&self, column: &str, row: usize) -> &str {
        self.texts.get(column).and_then(|values| values.get(row)).map_or("", String::as_str)
    }

    /// The sum of what is there.
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
