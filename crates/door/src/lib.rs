//! Parts that all doors of the datapath share: libraries that other programs load, such as the libfabric provider and
//! the network plug-in of NCCL. They read the same variables, choose interfaces by the same rules, and do nothing in
//! the child of a fork.
#![cfg(target_os = "linux")]

mod bonding;
mod interfaces;
mod list;
mod log;
mod open;
mod process;
pub mod settings;
pub mod sockaddr;
mod unknown;

pub use interfaces::{Interface, Link, Subnet, file_text};
pub use list::{interfaces, interfaces_from};
pub use log::say_once;
pub use open::{DeviceError, include_keepalive_in_timeout};
pub use process::Process;
pub use settings::{Backend, Progress, SettingError, Settings, SharedMemory, Where};
