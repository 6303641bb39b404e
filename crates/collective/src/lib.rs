//! Engine of collectives between ranks, for `torch.distributed`: plans of steps for each rank, matching of transfers,
//! reductions. It does no I/O and knows no clock. The caller moves [frames](Frame) and bytes, and carries out
//! [orders](Output).
//!
//! | module | subject |
//! |---|---|
//! | [`plans`] | steps of each collective, as each rank computes them alone |
//! | `engine` | [`Engine`]: groups, matching, failures |
//! | `op` | executor of a plan |
//! | `messages` | messages between two ranks, matched by tag |
//! | `frame` | frames between two engines |
//! | `reduce` | [`combine`]: reductions of all types |
//!
//! # Transfers
//!
//! Up to 16 KiB go with their frame. For more, the receiver announces memory, and the sender writes into it: into the
//! result itself, or into a place whose content is combined with own values. A frame carries the sender's [`Call`], so
//! ranks that call different things, or with different sizes, get an error that names them.
//!
//! # Equal bits
//!
//! All ranks get the same bits: each element is combined by one rank, or by several with the operands in one order.

mod call;
mod dtype;
mod engine;
mod frame;
mod half;
mod messages;
mod op;
mod output;
mod plan;
pub mod plans;
mod presence;
mod reduce;
mod shared;

pub use call::{Call, Kind};
pub use dtype::{Dtype, ReduceOp};
pub use engine::Engine;
pub use frame::{Frame, HEAD_BYTES, Key, Lane, Target};
pub use output::{Landing, OpId, Output, PeerId, Received};
pub use plan::{Plan, SEGMENT_BYTES, Span, TEMPORARY};
pub use plans::{EAGER_BYTES, Place, Reduction};
pub use presence::Overdue;
pub use reduce::{Order, combine, divide};
