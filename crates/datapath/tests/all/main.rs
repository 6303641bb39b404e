//! The integration tests of this crate as one program, so that they are linked once.

mod closed_memory;
mod domains;
mod fewer_paths;
mod hostile;
mod lines;
mod loops;
mod peers;
mod rails;
mod rdm;
mod reflection;
mod room;
mod several;
mod silence;
mod standby;
#[path = "../support/mod.rs"]
mod support;
mod verbs;
