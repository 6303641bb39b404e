//! Records to a Parquet file, driven by the column tables.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::columns::{self, Column, Get};
use crate::records::RunResult;

/// Records a row group: what is held in memory beside the records themselves is one column of these plus the
/// compressed row group.
const ROWS_A_GROUP: usize = 1 << 18;

/// Version of the columns; rises when one is renamed, removed or changes meaning.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// A table of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunTable {
    /// One row a flow.
    Flows,
    /// One row a job.
    Jobs,
    /// One row a computation, part in a collective, or run of messages of a host.
    Activities,
    /// One row a directed link.
    Links,
    /// Samples over time.
    Series,
    /// Drops, pauses, retransmissions, faults.
    Events,
}

impl RunTable {
    /// Every table of a run.
    pub const ALL: [RunTable; 6] = [
        RunTable::Flows,
        RunTable::Jobs,
        RunTable::Activities,
        RunTable::Series,
        RunTable::Events,
        RunTable::Links,
    ];

    /// The name of its file in the folder of a run.
    pub fn file(self) -> &'static str {
        match self {
            RunTable::Flows => "flows.parquet",
            RunTable::Jobs => "jobs.parquet",
            RunTable::Activities => "activities.parquet",
            RunTable::Links => "links.parquet",
            RunTable::Series => "series.parquet",
            RunTable::Events => "events.parquet",
        }
    }
}

/// A table of a run as the bytes of its Parquet file.
pub fn table_bytes(run: &RunResult, table: RunTable) -> Result<Vec<u8>, ParquetError> {
    write_table(Vec::new(), run, table)
}

fn write_table<W: io::Write + Send>(out: W, run: &RunResult, table: RunTable) -> Result<W, ParquetError> {
    match table {
        RunTable::Flows => write_to(out, run, columns::FLOWS, &run.flows),
        RunTable::Jobs => write_to(out, run, columns::JOBS, &run.jobs),
        RunTable::Activities => write_to(out, run, columns::ACTIVITIES, &run.activities),
        RunTable::Links => write_to(out, run, columns::LINKS, &run.links),
        RunTable::Series => write_to(out, run, columns::SERIES, &run.series),
        RunTable::Events => write_to(out, run, columns::EVENTS, &run.events),
    }
}

/// Writes a table of a run to a new file at `path`.
pub(crate) fn write(path: &Path, run: &RunResult, table: RunTable) -> Result<(), ParquetError> {
    let file = io::BufWriter::with_capacity(1 << 20, File::create(path)?);
    let file = write_table(file, run, table)?.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(())
}

fn write_to<W: io::Write + Send, R>(
    out: W,
    run: &RunResult,
    columns: &[Column<R>],
    records: &[R],
) -> Result<W, ParquetError> {
    let mut writer = SerializedFileWriter::new(out, schema(columns)?, Arc::new(properties(run)))?;
    let labels: Vec<Vec<ByteArray>> = columns.iter().map(|c| labels_of(c, run)).collect();
    for rows in records.chunks(ROWS_A_GROUP) {
        let mut group = writer.next_row_group()?;
        for (column, labels) in columns.iter().zip(&labels) {
            let mut out = group.next_column()?.expect("as many columns as the schema was made from");
            write_column(&mut out, run, column, labels, rows)?;
            out.close()?;
        }
        group.close()?;
    }
    writer.into_inner()
}

fn schema<R>(columns: &[Column<R>]) -> Result<Arc<Type>, ParquetError> {
    let unsigned = |bit_width| Some(LogicalType::integer(bit_width, false));
    let mut fields = Vec::with_capacity(columns.len());
    for column in columns {
        let (physical, logical) = match column.get {
            Get::U32(_) => (PhysicalType::INT32, unsigned(32)),
            Get::U64(_) => (PhysicalType::INT64, unsigned(64)),
            Get::F64(_) => (PhysicalType::DOUBLE, None),
            Get::Label(..) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(column.name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()?;
        fields.push(Arc::new(field));
    }
    Ok(Arc::new(Type::group_type_builder("record").with_fields(fields).build()?))
}

fn properties(run: &RunResult) -> WriterProperties {
    let info = &run.info;
    let pair = |key: &str, value: String| KeyValue::new(format!("pathweave.{key}"), value);
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("pathweave {}", info.version))
        .set_key_value_metadata(Some(vec![
            pair("schema_version", SCHEMA_VERSION.to_string()),
            pair("name", info.name.clone()),
            pair("seed", info.seed.to_string()),
            pair("digest", info.digest_hex()),
            pair("ended", info.ended.name().to_owned()),
        ]))
        .build()
}

/// The texts of a label column, shared by all its rows.
fn labels_of<R>(column: &Column<R>, run: &RunResult) -> Vec<ByteArray> {
    match column.get {
        Get::Label(labels, _) => labels(run).into_iter().map(|s| ByteArray::from(s.into_bytes())).collect(),
        _ => Vec::new(),
    }
}

fn write_column<R>(
    out: &mut SerializedColumnWriter<'_>,
    run: &RunResult,
    column: &Column<R>,
    labels: &[ByteArray],
    rows: &[R],
) -> Result<(), ParquetError> {
    // Parquet has signed integers only; the logical type says that the bits are unsigned.
    match column.get {
        Get::U32(get) => {
            let (values, levels) = collect(column, rows.iter().map(|r| get(r).map(u32::cast_signed)));
            out.typed::<Int32Type>().write_batch(&values, levels.as_deref(), None)?;
        }
        Get::U64(get) => {
            let (values, levels) = collect(column, rows.iter().map(|r| get(run, r).map(u64::cast_signed)));
            out.typed::<Int64Type>().write_batch(&values, levels.as_deref(), None)?;
        }
        Get::F64(get) => {
            let (values, levels) = collect(column, rows.iter().map(|r| get(run, r)));
            out.typed::<DoubleType>().write_batch(&values, levels.as_deref(), None)?;
        }
        Get::Label(_, get) => {
            let (values, levels) = collect(column, rows.iter().map(|r| Some(labels[get(r)?].clone())));
            out.typed::<ByteArrayType>().write_batch(&values, levels.as_deref(), None)?;
        }
    }
    Ok(())
}

/// The values that are there and, for a nullable column, a definition level a row (1: there is a value).
fn collect<R, T>(
    column: &Column<R>,
    rows: impl ExactSizeIterator<Item = Option<T>>,
) -> (Vec<T>, Option<Vec<i16>>) {
    let mut values = Vec::with_capacity(rows.len());
    if !column.nullable {
        values.extend(rows.map(|v| v.unwrap_or_else(|| panic!("{} is never missing", column.name))));
        return (values, None);
    }
    let mut levels = Vec::with_capacity(rows.len());
    for value in rows {
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    (values, Some(levels))
}
