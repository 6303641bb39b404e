//! Topology that is selected by the name of a preset.

use std::path::Path;

use pathweave_units::closest_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;
use crate::error::TopoError;
use crate::graph::Topology;
use crate::info::presets;

/// A preset, selected by its name, such as "udmp-320". `pathweave list presets` lists all presets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PresetName {
    /// Name of the preset.
    pub name: String,
}

impl Build for PresetName {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        match presets().iter().find(|preset| preset.name == self.name) {
            Some(preset) => preset.config.build(base_dir),
            None => Err(TopoError::UnknownName {
                kind: "topology preset",
                name: self.name.clone(),
                nearest: closest_name(&self.name, presets().iter().map(|preset| preset.name))
                    .map(str::to_owned),
                known: String::new(),
            }),
        }
    }
}
