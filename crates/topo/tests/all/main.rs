//! Tests of this crate in one program, so that it is linked only once.

mod astra;
mod config;
mod direct_networks;
mod explicit_paths;
mod files;
mod imports;
mod laps;
mod routing;
mod simai_shapes;
