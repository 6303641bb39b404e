//! The `pathweave` program.
fn main() {}
