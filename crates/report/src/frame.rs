//! A table whose columns are determined at run time: figures beside the settings of a sweep.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// Named columns of the same length. Every value may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataFrame {
    columns: Vec<(String, Series)>,
}

/// Values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Series {
    /// Texts.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Whole(Vec<Option<u64>>),
    /// Double precision.
    Real(Vec<Option<f64>>),
}

impl Series {
    fn len(&self) -> usize {
        match self {
            Series::Text(values) => values.len(),
            Series::Whole(values) => values.len(),
            Series::Real(values) => values.len(),
        }
    }
}

impl DataFrame {
    /// Adds a column. A number is appended to a name that exists already.
    ///
    /// # Panics
    /// Panics if the length differs from that of the columns before.
    pub fn add(&mut self, name: &str, values: Series) {
        if let Some((_, first)) = self.columns.first() {
            assert_eq!(first.len(), values.len(), "column {name}");
        }
        let taken = |name: &str| self.columns.iter().any(|(known, _)| known == name);
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken(name));
        self.columns.push((free.expect("the numbers do not run out"), values));
    }

    /// Encodes the table as a Parquet file. `metadata` is stored in its footer, each key with the prefix
    /// "pathweave.".
    pub fn parquet(&self, metadata: &[(&str, String)]) -> Result<Vec<u8>, ParquetError> {
        let mut fields = Vec::with_capacity(self.columns.len());
        for (name, values) in &self.columns {
            let (physical, logical) = match values {
                Series::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
                Series::Whole(_) => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
                Series::Real(_) => (PhysicalType::DOUBLE, None),
            };
            let field = Type::primitive_type_builder(name, physical).with_logical_type(logical);
            fields.push(Arc::new(field.with_repetition(Repetition::OPTIONAL).build()?));
        }
        let schema = Arc::new(Type::group_type_builder("record").with_fields(fields).build()?);
        let pairs =
            metadata.iter().map(|(key, value)| KeyValue::new(format!("pathweave.{key}"), value.clone()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("pathweave {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(pairs.collect()))
            .build();
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (_, values) in &self.columns {
            let mut out = group.next_column()?.expect("as many columns as the schema was made from");
            match values {
                Series::Text(values) => {
                    let bytes = |text: &String| ByteArray::from(text.as_bytes().to_vec());
                    let (there, levels) = split(values, bytes);
                    out.typed::<ByteArrayType>().write_batch(&there, Some(&levels), None)?;
                }
                // Parquet has signed integers only. The logical type marks the bits as unsigned.
                Series::Whole(values) => {
                    let (there, levels) = split(values, |value| value.cast_signed());
                    out.typed::<Int64Type>().write_batch(&there, Some(&levels), None)?;
                }
                Series::Real(values) => {
                    let (there, levels) = split(values, |value| *value);
                    out.typed::<DoubleType>().write_batch(&there, Some(&levels), None)?;
                }
            }
            out.close()?;
        }
        group.close()?;
        writer.into_inner()
    }
}

/// Returns the values that are present, and a definition level a row (1: present).
fn split<V, T>(values: &[Option<V>], of: impl Fn(&V) -> T) -> (Vec<T>, Vec<i16>) {
    (values.iter().flatten().map(of).collect(), values.iter().map(|v| i16::from(v.is_some())).collect())
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    #[test]
    fn written_frames_read_back() {
        let mut frame = DataFrame::default();
        frame.add("scheme", Series::Text(vec![Some("rps".into()), None]));
        frame.add("seed", Series::Whole(vec![Some(7), Some(u64::MAX >> 1)]));
        frame.add("seed", Series::Real(vec![None, Some(0.5)]));
        let bytes = frame.parquet(&[("digest", "ab".into())]).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        let names: Vec<_> = reader
            .metadata()
            .file_metadata()
            .schema()
            .get_fields()
            .iter()
            .map(|f| f.name().to_owned())
            .collect();
        assert_eq!(names, ["scheme", "seed", "seed_2"]);
        let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert!(pairs.iter().any(|p| p.key == "pathweave.digest" && p.value.as_deref() == Some("ab")));
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!((rows[0].get_string(0).unwrap().as_str(), rows[0].get_ulong(1).unwrap()), ("rps", 7));
        let missing = |row: &parquet::record::Row, column: usize| {
            matches!(row.get_column_iter().nth(column), Some((_, parquet::record::Field::Null)))
        };
        assert!(missing(&rows[0], 2) && missing(&rows[1], 0), "{rows:?}");
        assert_eq!(rows[1].get_double(2).unwrap(), 0.5);
    }
}
