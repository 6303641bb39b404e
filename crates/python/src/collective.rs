//! Collectives between processes, for `pathweave.torch`.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pathweave_torch::{
    Buffer, Call, Dtype, Group, Keep, Kind, Plan, Process, ReduceOp, Reduction, Span, plans,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Longest wait between two looks at signals, such as Ctrl-C.
const LOOK_AT_SIGNALS: Duration = Duration::from_millis(100);
/// Longest time that is told apart from for ever.
const FOR_EVER_S: f64 = 1e9;

/// Address and bytes of a tensor's memory.
type Memory = (usize, usize);

fn failed(text: String) -> PyErr {
    PyRuntimeError::new_err(text)
}

fn buffer((address, bytes): Memory) -> Buffer {
    Buffer { address, bytes }
}

/// Device of this process, which carries the collectives of all groups.
#[pyclass(frozen, module = "pathweave._pathweave")]
pub(crate) struct CollectiveProcess(Arc<Process>);

#[pymethods]
impl CollectiveProcess {
    /// Opens the device, as the variables `PATHWEAVE_...` say.
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        py.detach(Process::open).map(CollectiveProcess).map_err(failed)
    }
    /// Text with which this process enters a group.
    fn record(&self) -> String {
        self.0.record()
    }
    /// Joins a group whose members have these records, by rank.
    fn join(&self, py: Python<'_>, rank: u32, records: Vec<String>) -> PyResult<CollectiveGroup> {
        if rank as usize >= records.len() {
            return Err(PyValueError::new_err(format!("rank {rank} of {}", records.len())));
        }
        py.detach(|| self.0.join(rank, &records)).map(CollectiveGroup).map_err(failed)
    }
    /// Transfers with processes of this host so far: `neighbours`, `copies`, `bytes`, `refused` and the last `refusal`.
    fn copies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (copies, dict) = (self.0.copies(), PyDict::new(py));
        dict.set_item("neighbours", copies.neighbours)?;
        dict.set_item("copies", copies.copies)?;
        dict.set_item("bytes", copies.bytes)?;
        dict.set_item("refused", copies.refused)?;
        dict.set_item("refusal", copies.refusal)?;
        Ok(dict)
    }
    /// Waits until peers have what was sent to them, and ends what is in progress.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

/// Group of processes that call the same operations in one order. Each returns a `CollectiveTicket`. Memory is given by
/// address and bytes, and `keep` is an object that keeps it alive.
#[pyclass(frozen, module = "pathweave._pathweave")]
pub(crate) struct CollectiveGroup(Group);

/// Parts of a call.
struct Parts {
    kind: Kind,
    op: Option<ReduceOp>,
    dtype: Dtype,
    root: Option<u32>,
    /// Bytes of the tensor that all ranks have in common; `None` if blocks may differ.
    bytes: Option<usize>,
}

fn dtype_of(name: &str) -> PyResult<Dtype> {
    Dtype::named(name).ok_or_else(|| PyValueError::new_err(format!("tensors of {name} are not supported")))
}

fn reduction(op: &str, dtype: &str) -> PyResult<Reduction> {
    let op = ReduceOp::named(op)
        .ok_or_else(|| PyValueError::new_err(format!("the reduction {op} is not supported")))?;
    let dtype = dtype_of(dtype)?;
    if !dtype.supports(op) {
        return Err(PyValueError::new_err(format!("the reduction {op} has no meaning for {dtype}")));
    }
    Ok(Reduction { dtype, op })
}

impl Parts {
    fn of(kind: Kind, dtype: Dtype, bytes: usize) -> Self {
        Parts { kind, op: None, dtype, root: None, bytes: Some(bytes) }
    }
    fn reducing(kind: Kind, how: Reduction, bytes: usize) -> Self {
        Parts { op: Some(how.op), ..Parts::of(kind, how.dtype, bytes) }
    }
    fn call(&self) -> Call {
        let elements = self.bytes.map_or(0, |bytes| bytes / self.dtype.bytes()) as u64;
        Call { kind: self.kind, op: self.op, dtype: self.dtype, root: self.root, elements }
    }
}

/// Returns spans of whole buffers, the first of which has this number.
fn spans(first: u32, memory: &[Memory]) -> Vec<Span> {
    (first..).zip(memory).map(|(number, (_, bytes))| Span::whole(number, *bytes)).collect()
}

impl CollectiveGroup {
    #[allow(unsafe_code, reason = "lends memory of tensors to the network")]
    fn start(
        &self,
        py: Python<'_>,
        parts: &Parts,
        plan: Plan,
        memory: &[Memory],
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        let keep: Keep = Arc::new(keep);
        let buffers: Vec<Buffer> = memory.iter().copied().map(buffer).collect();
        let call = parts.call();
        // SAFETY: the tensors' memory lives as long as `keep`; `pathweave.torch` documents that nobody may use it before
        // the operation has ended.
        CollectiveTicket::begin(py, || unsafe { self.0.collective(call, plan, &buffers, &keep) })
    }

    fn check(&self, blocks: &[Memory], bytes: Option<usize>) -> PyResult<()> {
        let ranks = self.0.place().ranks as usize;
        if blocks.len() != ranks {
            let count = blocks.len();
            return Err(PyValueError::new_err(format!("{count} tensors for {ranks} ranks")));
        }
        let other = bytes.and_then(|bytes| blocks.iter().find(|block| block.1 != bytes).zip(Some(bytes)));
        other.map_or(Ok(()), |((_, other), bytes)| {
            Err(PyValueError::new_err(format!(
                "tensors of {bytes} and {other} bytes; all must have one size"
            )))
        })
    }
}

#[pymethods]
impl CollectiveGroup {
    /// Number of collectives that have begun.
    fn begun(&self) -> u64 {
        self.0.begun()
    }
    /// Fails the group at all ranks.
    fn abort(&self, py: Python<'_>, reason: &str) {
        py.detach(|| self.0.abort(reason));
    }
    /// Combines tensors of all ranks at each rank.
    fn all_reduce(
        &self,
        py: Python<'_>,
        op: &str,
        dtype: &str,
        tensor: Memory,
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        let how = reduction(op, dtype)?;
        let plan = plans::all_reduce(self.0.place(), how, Span::whole(0, tensor.1));
        self.start(py, &Parts::reducing(Kind::AllReduce, how, tensor.1), plan, &[tensor], keep)
    }
    /// Combines tensors of all ranks at the root.
    fn reduce(
        &self,
        py: Python<'_>,
        op: &str,
        dtype: &str,
        root: u32,
        tensor: Memory,
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        let how = reduction(op, dtype)?;
        let plan = plans::reduce(self.0.place(), how, root, Span::whole(0, tensor.1));
        let parts = Parts { root: Some(root), ..Parts::reducing(Kind::Reduce, how, tensor.1) };
        self.start(py, &parts, plan, &[tensor], keep)
    }
    /// Combines blocks of all ranks, one for each.
    fn reduce_scatter(
        &self,
        py: Python<'_>,
        op: &str,
        dtype: &str,
        blocks: Vec<Memory>,
        to: Memory,
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        let how = reduction(op, dtype)?;
        self.check(&blocks, Some(to.1))?;
        let plan = plans::reduce_scatter(self.0.place(), how, &spans(1, &blocks), Span::whole(0, to.1));
        let memory = [vec![to], blocks].concat();
        self.start(py, &Parts::reducing(Kind::ReduceScatter, how, to.1), plan, &memory, keep)
    }
    /// Copies the root's tensor to all ranks.
    fn broadcast(
        &self,
        py: Python<'_>,
        dtype: &str,
        root: u32,
        tensor: Memory,
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        let plan = plans::broadcast(self.0.place(), root, Span::whole(0, tensor.1));
        let parts = Parts { root: Some(root), ..Parts::of(Kind::Broadcast, dtype_of(dtype)?, tensor.1) };
        self.start(py, &parts, plan, &[tensor], keep)
    }
    /// Copies the tensors of all ranks to all ranks.
    fn all_gather(
        &self,
        py: Python<'_>,
        dtype: &str,
        own: Memory,
        all: Vec<Memory>,
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        self.check(&all, Some(own.1))?;
        let plan = plans::all_gather(self.0.place(), Span::whole(0, own.1), &spans(1, &all));
        let memory = [vec![own], all].concat();
        self.start(py, &Parts::of(Kind::AllGather, dtype_of(dtype)?, own.1), plan, &memory, keep)
    }
    /// Sends a tensor to each rank, and receives one from each.
    fn all_to_all(
        &self,
        py: Python<'_>,
        dtype: &str,
        to: Vec<Memory>,
        from_: Vec<Memory>,
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        self.check(&to, None)?;
        self.check(&from_, None)?;
        let received = spans(to.len() as u32, &from_);
        let plan = plans::all_to_all(self.0.place(), &spans(0, &to), &received);
        let parts = Parts { bytes: None, ..Parts::of(Kind::AllToAll, dtype_of(dtype)?, 0) };
        self.start(py, &parts, plan, &[to, from_].concat(), keep)
    }
    /// Copies the tensors of all ranks to the root, the only one with tensors for them.
    fn gather(
        &self,
        py: Python<'_>,
        dtype: &str,
        root: u32,
        own: Memory,
        all: Vec<Memory>,
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        self.rooted(py, Kind::Gather, dtype, root, own, all, keep)
    }
    /// Copies tensors of the root, the only one that has them, to one rank each.
    fn scatter(
        &self,
        py: Python<'_>,
        dtype: &str,
        root: u32,
        own: Memory,
        all: Vec<Memory>,
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        self.rooted(py, Kind::Scatter, dtype, root, own, all, keep)
    }
    /// Waits for all ranks.
    fn barrier(&self, py: Python<'_>) -> PyResult<CollectiveTicket> {
        let parts = Parts::of(Kind::Barrier, Dtype::U8, 0);
        self.start(py, &parts, plans::barrier(self.0.place()), &[], py.None())
    }
    /// Sends a tensor to a rank.
    #[allow(unsafe_code, reason = "lends memory of tensors to the network")]
    fn send(
        &self,
        py: Python<'_>,
        dtype: &str,
        to: u32,
        tag: u64,
        tensor: Memory,
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        let (call, keep) =
            (Parts::of(Kind::Message, dtype_of(dtype)?, tensor.1).call(), Arc::new(keep) as Keep);
        // SAFETY: as in `start`.
        CollectiveTicket::begin(py, || unsafe { self.0.send(to, tag, call, buffer(tensor), &keep) })
    }
    /// Receives a tensor, from any rank if `source` is None.
    #[allow(unsafe_code, reason = "lends memory of tensors to the network")]
    fn receive(
        &self,
        py: Python<'_>,
        dtype: &str,
        source: Option<u32>,
        tag: u64,
        tensor: Memory,
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        let (call, keep) =
            (Parts::of(Kind::Message, dtype_of(dtype)?, tensor.1).call(), Arc::new(keep) as Keep);
        // SAFETY: as in `start`.
        CollectiveTicket::begin(py, || unsafe { self.0.receive(source, tag, call, buffer(tensor), &keep) })
    }
}

impl CollectiveGroup {
    #[allow(clippy::too_many_arguments, reason = "the arguments of two Python methods")]
    fn rooted(
        &self,
        py: Python<'_>,
        kind: Kind,
        dtype: &str,
        root: u32,
        own: Memory,
        all: Vec<Memory>,
        keep: Py<PyAny>,
    ) -> PyResult<CollectiveTicket> {
        let (place, whole, blocks) = (self.0.place(), Span::whole(0, own.1), spans(1, &all));
        if place.rank == root {
            self.check(&all, Some(own.1))?;
        }
        let plan = match kind {
            Kind::Gather => plans::gather(place, root, whole, &blocks),
            _ => plans::scatter(place, root, whole, &blocks),
        };
        let parts = Parts { root: Some(root), ..Parts::of(kind, dtype_of(dtype)?, own.1) };
        self.start(py, &parts, plan, &[vec![own], all].concat(), keep)
    }
}

/// Operation that has been started.
#[pyclass(frozen, module = "pathweave._pathweave")]
pub(crate) struct CollectiveTicket {
    ticket: Arc<pathweave_torch::Ticket>,
    started: Instant,
}

impl CollectiveTicket {
    /// Starts an operation while other threads of Python run.
    fn begin(
        py: Python<'_>,
        operation: impl FnOnce() -> Result<Arc<pathweave_torch::Ticket>, String> + Send,
    ) -> PyResult<Self> {
        let started = Instant::now();
        Ok(CollectiveTicket { ticket: py.detach(operation).map_err(failed)?, started })
    }
}

#[pymethods]
impl CollectiveTicket {
    /// True once the operation has ended.
    fn is_done(&self) -> bool {
        self.ticket.outcome().is_some()
    }
    /// Reason of the failure, if it has failed.
    fn error(&self) -> Option<String> {
        self.ticket.outcome().and_then(|outcome| outcome.as_ref().err().cloned())
    }
    /// Rank that a message came from.
    fn source(&self) -> Option<u32> {
        self.ticket.outcome().and_then(|outcome| outcome.as_ref().ok().copied().flatten())
    }
    /// Waits for the end. If there is none within so many seconds of this call, the operation fails.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        self.wait_until(py, Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, FOR_EVER_S)))
    }
    /// Waits for the end. If there is none within so many seconds of the start, the operation fails.
    fn wait_in_time(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        self.wait_until(py, self.started + Duration::from_secs_f64(seconds.clamp(0.0, FOR_EVER_S)))
    }
}

impl CollectiveTicket {
    fn wait_until(&self, py: Python<'_>, deadline: Instant) -> PyResult<()> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if py.detach(|| self.ticket.wait(left.min(LOOK_AT_SIGNALS))) {
                break;
            }
            py.check_signals()?;
            if left.is_zero() {
                py.detach(|| self.ticket.expire(self.started));
            }
        }
        self.error().map_or(Ok(()), |text| Err(failed(text)))
    }
}

/// Numbers of tickets in the order in which they end.
#[pyclass(frozen, module = "pathweave._pathweave")]
pub(crate) struct CollectiveQueue {
    sender: Mutex<Sender<u64>>,
    receiver: Mutex<Receiver<u64>>,
}

#[pymethods]
impl CollectiveQueue {
    #[new]
    fn new() -> Self {
        let (sender, receiver) = channel();
        CollectiveQueue { sender: Mutex::new(sender), receiver: Mutex::new(receiver) }
    }
    /// Delivers a number once a ticket has ended.
    fn add(&self, ticket: &CollectiveTicket, number: u64) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ticket.ticket.tell(sender, number);
    }
    /// Delivers a number at once.
    fn put(&self, number: u64) {
        let _ = self.sender.lock().unwrap_or_else(PoisonError::into_inner).send(number);
    }
    /// Waits for the next number; None if there is none within so many seconds.
    fn next(&self, py: Python<'_>, seconds: f64) -> Option<u64> {
        let patience = Duration::from_secs_f64(seconds.clamp(0.0, FOR_EVER_S));
        py.detach(|| self.receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(patience).ok())
    }
}
