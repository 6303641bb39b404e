//! Result schema, Parquet and JSON writers, summaries and the report
