//! Streaming of flow records into `flows.parquet` during a run.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use pathweave_records::{FLOWS, FlowRecord, ROWS_A_GROUP, RunInfo, RunResult};

use crate::folder::OutputError;
use crate::parquet_file::{RunTable, Table, finish_file, new_file};

/// `flows.parquet` of a running run. The bytes are the same as if all records were written at the end.
pub struct FlowFile {
    path: PathBuf,
    table: Table<BufWriter<File>, FlowRecord>,
    /// The part of the run that is known before it begins: version, fidelity, labels, groups and schemes.
    run: RunResult,
    /// Records that do not fill a row group yet.
    waiting: Vec<FlowRecord>,
}

impl FlowFile {
    /// Creates the file in the folder of a run. `run` must have version, fidelity, labels, names of groups and
    /// schemes, and roles.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(folder: &Path, run: RunResult) -> Result<Self, OutputError> {
        let path = folder.join(RunTable::Flows.file());
        let table =
            new_file(&path).map_err(ParquetError::from).and_then(|file| Table::new(file, &run, FLOWS));
        match table {
            Ok(table) => Ok(FlowFile { path, table, run, waiting: Vec::new() }),
            Err(source) => Err(OutputError::Parquet { path, source }),
        }
    }

    /// Adds the next records, in the order of their numbers.
    ///
    /// # Errors
    /// The records cannot be written.
    pub fn add(&mut self, mut records: &[FlowRecord]) -> Result<(), OutputError> {
        while !records.is_empty() {
            let (now, later) = records.split_at(records.len().min(ROWS_A_GROUP - self.waiting.len()));
            self.waiting.extend_from_slice(now);
            records = later;
            if self.waiting.len() == ROWS_A_GROUP {
                self.write()?;
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), OutputError> {
        let written = self.table.add(&self.run, &self.waiting);
        self.waiting.clear();
        written.map_err(|source| OutputError::Parquet { path: self.path.clone(), source })
    }

    /// Completes the file after the end of the run.
    ///
    /// # Errors
    /// The remaining records cannot be written.
    pub fn finish(mut self, info: &RunInfo) -> Result<(), OutputError> {
        if !self.waiting.is_empty() {
            self.write()?;
        }
        let FlowFile { path, table, .. } = self;
        table.finish(info).and_then(finish_file).map_err(|source| OutputError::Parquet { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parquet_file::table_bytes;
    use pathweave_records::FlowStatus;

    /// Two row groups and a rest, in portions that do not align with them.
    #[test]
    fn records_written_during_the_run_equal_those_at_its_end() {
        let mut run = RunResult::default();
        run.info.groups = vec!["g".to_owned()];
        run.info.schemes = vec!["s".to_owned()];
        let folder = tempfile::tempdir().unwrap();
        let mut file = FlowFile::create(folder.path(), run.clone()).unwrap();
        run.flows = (0..2 * ROWS_A_GROUP as u32 + 5)
            .map(|flow| FlowRecord {
                flow,
                start_ps: u64::from(flow) * 1_000,
                finish_ps: (flow % 7 > 0).then_some(u64::from(flow) * 1_001 + 5),
                status: if flow % 7 > 0 { FlowStatus::Finished } else { FlowStatus::Unfinished },
                ..FlowRecord::default()
            })
            .collect();
        run.flows.chunks(50_000).for_each(|records| file.add(records).unwrap());
        run.info.digest = 7;
        file.finish(&run.info).unwrap();
        let written = std::fs::read(folder.path().join("flows.parquet")).unwrap();
        assert!(written == table_bytes(&run, RunTable::Flows).unwrap(), "the bytes differ");
    }
}
