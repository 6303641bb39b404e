//! Errors of systems that have no cost model.

/// Reason why a collective on a system has no cost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NcclError {
    /// A number is out of its range.
    #[error("{field} = {value}: {allowed}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Value found.
        value: String,
        /// Values allowed.
        allowed: String,
    },
    /// The operation consists of sends and receives, which no cost model chooses.
    #[error(
        "the operation {0} has no cost model, because NCCL sends its blocks one by one; known: all-reduce, all-gather, \
         reduce-scatter, broadcast, reduce"
    )]
    Operation(&'static str),
}

pub(crate) fn refuse(
    field: &'static str,
    value: impl std::fmt::Display,
    allowed: impl Into<String>,
) -> NcclError {
    NcclError::Field { field, value: value.to_string(), allowed: allowed.into() }
}
