//! NCCL's network plug-in: collectives of GPUs run over several paths and interfaces of this host.
//!
//! NCCL opens the shared library and reads one of the tables in [`tables`]. A message is a WRITE with immediate from one
//! of NCCL's buffers into another one: there is no tag matching and no copy besides that of the network. The receiver
//! announces a group of up to 8 receives in a SEND; the sender writes into them.
//!
//! | module | subject |
//! |---|---|
//! | `abi` | structures and constants of NCCL's interface |
//! | [`tables`] | tables of functions for NCCL 2.17 to 2.30 |
//! | `calls`, `older` | these functions: all `unsafe` calls from C |
//! | `plugin`, `lane` | the process's devices, and what they report |
//! | `comm` | a connection as NCCL sees it: one end `send`s, the other one `receive`s |
//! | `connecting` | listeners, and connections that are being opened |
//! | `handle`, `notes` | bytes that the two ends exchange |
#![cfg(target_os = "linux")]

mod abi;
mod calls;
mod comm;
mod connecting;
mod guard;
mod handle;
mod lane;
mod link;
mod memory;
mod notes;
mod older;
mod plugin;
mod properties;
mod receive;
mod send;
pub mod tables;
