//! Parquet files of records, written from the column tables.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use pathweave_records::{
    ACTIVITIES, COLLECTIVES, CRITICAL, Column, EVENTS, FLOWS, Get, JOBS, LAYERS, LINKS, ROWS_A_GROUP,
    RunInfo, RunResult, SCHEMA_VERSION, SERIES, WAITS, collectives, layers,
};

/// A table of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunTable {
    /// One row a flow.
    Flows,
    /// One row a job.
    Jobs,
    /// One row an activity of a host: a computation, a part in a collective, or overlapping messages of one label.
    Activities,
    /// One row a collective.
    Collectives,
    /// One row a layer of a job and kind of activity.
    Layers,
    /// One row a step of a job's critical path.
    Critical,
    /// One row a link or cause on which one of the slowest flows spent time.
    Waits,
    /// One row a directed link.
    Links,
    /// Samples over time.
    Series,
    /// Drops, pauses, retransmissions, faults.
    Events,
}

impl RunTable {
    /// Every table of a run.
    pub const ALL: [RunTable; 10] = [
        RunTable::Flows,
        RunTable::Jobs,
        RunTable::Activities,
        RunTable::Collectives,
        RunTable::Layers,
        RunTable::Critical,
        RunTable::Waits,
        RunTable::Links,
        RunTable::Series,
        RunTable::Events,
    ];

    /// Returns the file name of the table in the folder of a run.
    pub const fn file(self) -> &'static str {
        match self {
            RunTable::Flows => "flows.parquet",
            RunTable::Jobs => "jobs.parquet",
            RunTable::Activities => "activities.parquet",
            RunTable::Collectives => "collectives.parquet",
            RunTable::Layers => "layers.parquet",
            RunTable::Critical => "critical.parquet",
            RunTable::Waits => "waits.parquet",
            RunTable::Links => "links.parquet",
            RunTable::Series => "series.parquet",
            RunTable::Events => "events.parquet",
        }
    }
}

/// Encodes a table of a run as a Parquet file.
pub fn table_bytes(run: &RunResult, table: RunTable) -> Result<Vec<u8>, ParquetError> {
    write_table_to(Vec::new(), run, table)
}

/// Writes a table to a new file at `path`.
pub(crate) fn write_table(path: &Path, run: &RunResult, table: RunTable) -> Result<(), ParquetError> {
    let file = write_table_to(new_file(path)?, run, table)?;
    finish_file(file)
}

/// Creates a file with a write buffer.
pub(crate) fn new_file(path: &Path) -> io::Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(1 << 20, File::create(path)?))
}

/// Flushes a file to disk.
pub(crate) fn finish_file(file: BufWriter<File>) -> Result<(), ParquetError> {
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}

fn write_table_to<W: io::Write + Send>(out: W, run: &RunResult, table: RunTable) -> Result<W, ParquetError> {
    match table {
        RunTable::Flows => write_to(out, run, FLOWS, &run.flows),
        RunTable::Jobs => write_to(out, run, JOBS, &run.jobs),
        RunTable::Activities => write_to(out, run, ACTIVITIES, &run.activities),
        RunTable::Collectives => write_to(out, run, COLLECTIVES, &collectives(run)),
        RunTable::Layers => write_to(out, run, LAYERS, &layers(run)),
        RunTable::Critical => write_to(out, run, CRITICAL, &run.critical),
        RunTable::Waits => write_to(out, run, WAITS, &run.waits),
        RunTable::Links => write_to(out, run, LINKS, &run.links),
        RunTable::Series => write_to(out, run, SERIES, &run.series),
        RunTable::Events => write_to(out, run, EVENTS, &run.events),
    }
}

fn write_to<W: io::Write + Send, R>(
    out: W,
    run: &RunResult,
    columns: &'static [Column<R>],
    records: &[R],
) -> Result<W, ParquetError> {
    let mut table = Table::new(out, run, columns)?;
    for rows in records.chunks(ROWS_A_GROUP) {
        table.add(run, rows)?;
    }
    table.finish(&run.info)
}

/// A table that is being written to a file.
pub(crate) struct Table<W: io::Write + Send, R: 'static> {
    writer: SerializedFileWriter<W>,
    columns: &'static [Column<R>],
    /// Texts that the rows of each column share.
    labels: Vec<Vec<ByteArray>>,
}

impl<W: io::Write + Send, R> Table<W, R> {
    /// Creates a table without rows. `run` provides the names for labels.
    pub(crate) fn new(out: W, run: &RunResult, columns: &'static [Column<R>]) -> Result<Self, ParquetError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("pathweave {}", run.info.version))
            .build();
        Ok(Table {
            writer: SerializedFileWriter::new(out, schema(columns)?, Arc::new(properties))?,
            columns,
            labels: columns.iter().map(|column| labels_of(column, run)).collect(),
        })
    }

    /// Adds these rows as one row group.
    pub(crate) fn add(&mut self, run: &RunResult, rows: &[R]) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (column, labels) in self.columns.iter().zip(&self.labels) {
            let mut out = group.next_column()?.expect("as many columns as the schema was made from");
            write_column(&mut out, run, column, labels, rows)?;
            out.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Completes the file with the metadata of the run, which is over now.
    pub(crate) fn finish(mut self, info: &RunInfo) -> Result<W, ParquetError> {
        for (key, value) in [
            ("schema_version", SCHEMA_VERSION.to_string()),
            ("name", info.name.clone()),
            ("seed", info.seed.to_string()),
            ("digest", info.digest_hex()),
            ("fidelity", info.fidelity.name().to_owned()),
            ("ended", info.ended.name().to_owned()),
        ] {
            self.writer.append_key_value_metadata(KeyValue::new(format!("pathweave.{key}"), value));
        }
        self.writer.into_inner()
    }
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

/// Returns the texts of a label column, shared by all its rows.
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
    // Parquet has signed integers only. The logical type marks the bits as unsigned.
    match column.get {
        Get::U32(get) => {
            let (values, levels) = collect(column, rows.iter().map(|r| get(run, r).map(u32::cast_signed)));
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

/// Returns the values that are present and, for a nullable column, a definition level a row (1: present).
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
