//! The tests of this crate as one program: it is linked once.

mod docs;
mod explain;
mod folder;
mod parquet;
mod report;
mod summary;
mod support;
