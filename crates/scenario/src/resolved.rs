//! The scenario as it goes into results: complete, and able to run again from anywhere.

use std::path::Path;

use pathweave_topo::{PathSetConfig, RoutingConfig, TopologyConfig};
use pathweave_workload::{Traffic, builtin_cdfs};

use crate::model::Scenario;

/// The scenario as TOML, every default filled in, files named by absolute paths.
pub(crate) fn to_toml(scenario: &Scenario, base_dir: &Path) -> String {
    let mut scenario = scenario.clone();
    let absolute =
        |path: &Path| std::path::absolute(base_dir.join(path)).unwrap_or_else(|_| base_dir.join(path));
    match &mut scenario.topology {
        TopologyConfig::TopologyFile(file) => file.path = absolute(&file.path),
        TopologyConfig::HpccFile(file) => file.path = absolute(&file.path),
        _ => {}
    }
    if let RoutingConfig::Source(source) = &mut scenario.routing
        && let PathSetConfig::File(file) = &mut source.paths
    {
        file.path = absolute(&file.path);
    }
    let name = |file: &str| absolute(Path::new(file)).display().to_string();
    for workload in &mut scenario.workload {
        match &mut workload.traffic {
            Traffic::Poisson(poisson) if !builtin_cdfs().iter().any(|cdf| cdf.name == poisson.sizes) => {
                poisson.sizes = name(&poisson.sizes);
            }
            Traffic::Flows(flows) => flows.file = flows.file.as_deref().map(name),
            _ => {}
        }
    }
    toml::to_string(&scenario).expect("configurations are structs, enums and numbers, which TOML can express")
}
