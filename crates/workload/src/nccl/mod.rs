//! NVIDIA's NCCL as a model: channels, the cost of each algorithm and protocol, and the choice among them.
//!
//! [`System`] describes GPUs, servers and NICs. [`Channels::of`] computes the channels that NCCL's search finds on
//! them. [`Tuner`] holds latency and bandwidth of each algorithm and protocol for one operation. [`Tuner::choose`]
//! returns the one that takes least time for a size, as the library does. [`Plan`] executes it as messages. The tables are those of NCCL 2.30.7 (commit
//! 5067397c), and for MI300X those of RCCL (rocm-systems, commit 03a89144).
//!
//! ```
//! use pathweave_workload::Operation;
//! use pathweave_workload::nccl::{Algorithm, Choices, Gpu, Protocol, System, Tuner};
//!
//! let server = System::new(Gpu::H100, 1, 8);
//! let tuner = Tuner::new(&server, Operation::AllReduce).expect("eight GPUs have a cost model");
//! let choice = tuner.choose(1 << 30, &Choices::default()).expect("nothing is excluded");
//! assert_eq!((choice.algorithm, choice.protocol), (Algorithm::Nvls, Protocol::Simple));
//! // 25 us, and 1 GiB at 272 GB/s.
//! assert!((choice.time_us() - 3_972.6).abs() < 0.1);
//! ```

mod algorithm;
mod bus;
mod channels;
mod collnet;
mod error;
mod fitted;
mod gpu;
mod hops;
mod local_nics;
mod measured;
mod mesh;
mod rccl;
mod run;
mod system;
mod tables;
mod team;
#[cfg(test)]
mod tests;
mod tuner;
mod used;

pub use algorithm::{Algorithm, Choices, Protocol};
pub use bus::bus_factor;
pub use channels::{Channels, Graph};
pub use error::NcclError;
pub use fitted::Fitted;
pub use gpu::{Generation, Gpu};
pub use measured::{NcclTests, NcclTestsRow, parse_nccl_tests};
pub use run::DEFAULT_MESSAGES;
pub(crate) use run::{MOST_MESSAGES, Plan, Wanted};
pub use run::{NcclAlgorithm, NcclProtocol};
pub use system::{Cpu, NicPath, Sharp, System};
pub(crate) use team::{Site, Team};
pub use tuner::{Choice, Tuner};
