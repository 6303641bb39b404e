//! Facts about the training of a scenario that are known before its messages are.

use std::sync::Arc;

use pathweave_topo::Topology;
use pathweave_workload::TrainingOutlook;

use crate::load::Loaded;
use crate::prepare::workload_error;
use crate::text::{Diagnostics, FieldPath};
use crate::workload_env::workload_env;

impl Loaded {
    /// Checks the transformer of the scenario against its network, and returns its facts. Returns `None` if no workload
    /// is a transformer, or several are.
    ///
    /// # Errors
    ///
    /// A transformer cannot run on these hosts.
    pub fn training_outlook(&self, topology: &Arc<Topology>) -> Result<Option<TrainingOutlook>, Diagnostics> {
        let scenario = &self.scenario;
        let env = workload_env(&scenario.topology, topology, scenario.seed, &self.base_dir);
        let (pools, _) = self.pools(topology, &env)?;
        let mut found = Vec::new();
        for (i, workload) in scenario.workload.iter().enumerate() {
            let env = workload.pool.as_ref().map_or(&env, |pool| &pools[pool]);
            let outlook = workload.to_config().outlook(env, topology).map_err(|why| {
                let path = FieldPath::root().key("workload").index(i);
                self.add_location(workload_error(&path, workload, &why))
            })?;
            found.extend(outlook);
        }
        let Ok([outlook]) = <[TrainingOutlook; 1]>::try_from(found) else { return Ok(None) };
        // A fault may make links faster than the topology has them.
        let bound = outlook.bound.filter(|_| scenario.fault.is_empty());
        Ok(Some(TrainingOutlook { bound, ..outlook }))
    }
}
