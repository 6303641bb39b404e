//! Writing of flow records to their file during a run, in a separate thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use pathweave_records::{FlowRecord, FlowSink, FlowStats, RunInfo, RunResult};
use pathweave_report::{FlowFile, OutputError, ResultFolder};
use pathweave_sim::{SimSpec, records_can_be_written_singly};

/// Number of batches of records that may wait for the disk. If there are more, the run waits.
const WAITING: usize = 4;

/// Sink for the flow records of a run.
pub(crate) struct FlowStream {
    figures: FlowStats,
    /// Channel to the writer, or `None` after a write error.
    records: Option<SyncSender<Vec<FlowRecord>>>,
    writer: JoinHandle<Result<FlowFile, OutputError>>,
    failed: Arc<AtomicBool>,
}

impl FlowStream {
    /// Creates a stream to the folder of a run, or `None` if records are needed as a whole.
    pub(crate) fn for_run(folder: &ResultFolder, spec: &SimSpec) -> Result<Option<Self>, OutputError> {
        FlowStream::open(spec, |run| folder.flow_file(run).map(Some))
    }

    /// Creates a stream to the folder of a comparison, which holds the records of several runs.
    pub(crate) fn for_comparison(folder: &ResultFolder, spec: &SimSpec) -> Result<Option<Self>, OutputError> {
        FlowStream::open(spec, |run| folder.comparison_flow_file(run))
    }

    fn open(
        spec: &SimSpec,
        file: impl FnOnce(RunResult) -> Result<Option<FlowFile>, OutputError>,
    ) -> Result<Option<Self>, OutputError> {
        if !records_can_be_written_singly(spec) {
            return Ok(None);
        }
        let info = RunInfo { version: env!("CARGO_PKG_VERSION").to_owned(), ..spec.run_info() };
        let labels = spec.labels();
        let known = RunResult { info: info.clone(), labels: labels.clone(), ..RunResult::default() };
        let Some(mut file) = file(known)? else { return Ok(None) };
        let mut counts = vec![0; info.groups.len()];
        spec.graph.messages().iter().for_each(|message| counts[message.group.index()] += 1);
        let groups = (0u16..).zip(counts).map(|(group, flows)| (info.role(group), flows));
        let watched = BTreeSet::from_iter(pathweave_sim::followed(spec));
        let figures = FlowStats::new(groups, watched, &labels).of_run(&info);
        let (records, written) = sync_channel::<Vec<FlowRecord>>(WAITING);
        let failed = Arc::new(AtomicBool::new(false));
        let fails = failed.clone();
        let writer = std::thread::spawn(move || {
            let done = written.into_iter().try_for_each(|records| file.add(&records));
            fails.store(done.is_err(), Ordering::Relaxed);
            done.map(|()| file)
        });
        Ok(Some(FlowStream { figures, records: Some(records), writer, failed }))
    }

    /// Returns a flag that becomes true when a record cannot be written. The run need not continue then.
    pub(crate) fn failed(&self) -> Arc<AtomicBool> {
        self.failed.clone()
    }

    /// Ends the stream and puts the retained figures of the flows into the result of the run.
    ///
    /// # Errors
    /// A record could not be written.
    pub(crate) fn finish(self, run: &mut RunResult) -> Result<(), OutputError> {
        drop(self.records);
        let file = self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        file.finish(&run.info)?;
        run.streamed = Some(Box::new(self.figures));
        Ok(())
    }
}

impl FlowSink for FlowStream {
    fn take(&mut self, records: &[FlowRecord]) {
        records.iter().for_each(|record| self.figures.add(record));
        // If the send fails, `finish` returns the reason.
        self.records = self.records.take().filter(|to| to.send(records.to_vec()).is_ok());
    }
}
