//! Engine for Python, as the module `pathweave._pathweave`. Users import the package in `python/pathweave`, which is
//! built on this module: scenarios, runs, and records as Arrow streams.

mod arguments;
mod catalogue;
#[cfg(target_os = "linux")]
mod collective;
mod contract;
mod control;
mod error;
mod picker;
mod program;
mod result;
mod run;
mod scenario;
mod signals;
mod sweep;
mod table;

use pyo3::prelude::*;

/// Engine of pathweave. Use the package `pathweave` instead.
#[pymodule]
mod _pathweave {
    #[pymodule_export]
    use crate::arguments::settings;
    #[pymodule_export]
    use crate::catalogue::{presets, schema, schemes, topologies, workloads};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::collective::{CollectiveGroup, CollectiveProcess, CollectiveQueue, CollectiveTicket};
    #[pymodule_export]
    use crate::contract::{check_control, check_picker};
    #[pymodule_export]
    use crate::error::ScenarioError;
    #[pymodule_export]
    use crate::program::program;
    #[pymodule_export]
    use crate::result::{
        RunResult, comparison_brief, comparison_table, diff, scheme_colours, write_comparison,
    };
    #[pymodule_export]
    use crate::run::{Cancel, Progress, run};
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::signals::{Feedback, Packet, Path, QueuePair};
    #[pymodule_export]
    use crate::sweep::{Sweep, SweepFolder, SweepRun, sweep_run};
    #[pymodule_export]
    use crate::table::Table;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
