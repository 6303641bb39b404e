//! Simulation of rows: the messages that NCCL sends, by flows on an idle network.

use std::collections::BTreeMap;

use pathweave_scenario::Loaded;
use pathweave_scenario::nccl::{
    Algorithm, Choice, Fitted, Nccl, NcclAlgorithm, NcclProtocol, Operation, Protocol, System,
};
use pathweave_scenario::units::Bytes;

use crate::validate::error::{ValidateError, in_file};

/// Collective of a row.
#[derive(Clone, Debug)]
pub(super) struct Executed {
    pub(super) system: System,
    pub(super) operation: Operation,
    pub(super) bytes: u64,
    /// Choice of NCCL's tuner. An all-to-all has none.
    pub(super) choice: Option<Choice>,
}

/// Scenarios of systems that have been built.
#[derive(Default)]
pub(super) struct Loads(BTreeMap<String, Loaded>);

impl Executed {
    /// Returns true if the numbers of a fit change its time.
    pub(super) fn is_simple(&self) -> bool {
        self.choice.is_some_and(|choice| choice.protocol == Protocol::Simple) && self.is_executed()
    }

    /// Returns true if GPUs do the collective, and not switches of the network.
    pub(super) fn is_executed(&self) -> bool {
        self.choice.is_none_or(|choice| {
            let nvls_over_network = choice.algorithm == Algorithm::Nvls && self.system.servers > 1;
            NcclAlgorithm::of(choice.algorithm).is_some() && !nvls_over_network
        })
    }

    fn nccl(&self, numbers: Fitted) -> Nccl {
        let algorithm =
            self.choice.and_then(|choice| NcclAlgorithm::of(choice.algorithm)).unwrap_or_default();
        let protocol = self.choice.map(|choice| NcclProtocol::of(choice.protocol)).unwrap_or_default();
        Nccl {
            algorithm,
            protocol,
            cpu: Some(self.system.cpu),
            gpu: Some(self.system.gpu),
            latency: Some(numbers.latency),
            bandwidth: Some(numbers.bandwidth),
            ..Nccl::new(self.operation, Bytes::new(self.bytes))
        }
    }

    /// Returns the simulated time in microseconds.
    pub(super) fn time_us(&self, numbers: Fitted, loads: &mut Loads) -> Result<f64, ValidateError> {
        let wrong = |why: String| in_file("data/truth/systems.toml", format!("{:?}: {why}", self.system));
        let key = format!("{:?}", self.system);
        let loaded = match loads.0.entry(key) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                let loaded = Loaded::of_system(&self.system).map_err(|why| wrong(why.to_string()))?;
                new.insert(loaded)
            }
        };
        let simulated = loaded.simulate_nccl(self.nccl(numbers)).map_err(|why| wrong(why.to_string()))?;
        Ok(simulated.time_us)
    }
}
