//! Integration tests of this crate, linked as one program.

mod docs;
mod explain;
mod folder;
mod parquet;
mod report;
mod support;
mod tables;
