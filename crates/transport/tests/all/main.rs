//! All integration tests of this crate in one program, so that it is linked once.

mod agree;
mod contract;
mod credit;
mod dead_path;
mod four_paths;
mod garbage;
mod memory_order;
mod order;
#[path = "../pair/mod.rs"]
mod pair;
mod path_order;
mod placement;
mod properties;
mod recovers;
mod services;
mod shared;
mod sleek;
mod timed;
