//! The simulator as a WebAssembly module, for the page in `web/play`.
//!
//! A caller puts a request (JSON) at the address that [`abi`] returns, calls a function, and reads an answer (JSON) and
//! columns of numbers. [`Session`] is the same for Rust. A run is executed as a whole. The page plays its [`film`]
//! afterwards, forwards and backwards, so that a view of an instant costs no simulation.

pub mod abi;
mod catalogue;
mod film;
mod instant;
mod progress;
mod request;
mod session;

pub use session::{COLUMNS, Session};
