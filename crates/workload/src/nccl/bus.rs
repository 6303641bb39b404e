//! Bus bandwidth.

use crate::collective::Operation;

/// Returns the bus bandwidth over the algorithm bandwidth of an operation on `ranks` GPUs, as in nccl-tests
/// (doc/PERFORMANCE.md). The bus bandwidth compares with the rate of a link.
pub fn bus_factor(operation: Operation, ranks: u32) -> f64 {
    let n = f64::from(ranks);
    match operation {
        Operation::AllReduce => 2.0 * (n - 1.0) / n,
        Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => (n - 1.0) / n,
        Operation::Broadcast | Operation::Reduce => 1.0,
    }
}
