//! Scenario files: one TOML schema composed of every crate's configuration, validated
