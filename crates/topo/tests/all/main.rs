//! The tests of this crate as one program: it is linked once.

mod astra;
mod config;
mod direct_networks;
mod explicit_paths;
mod files;
mod imports;
mod laps;
mod routing;
