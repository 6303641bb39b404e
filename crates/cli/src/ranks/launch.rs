//! Detection of a launcher that has started this process as one of several.

use std::fmt;

/// Number of processes according to the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Environment variable with the number of processes.
    variable: &'static str,
    processes: u32,
}

/// Variables of Open MPI; of MPICH, Intel MPI and others with their process manager; and of SLURM, with PMIx in a
/// step.
const VARIABLES: [(&str, Option<&str>); 3] =
    [("OMPI_COMM_WORLD_SIZE", None), ("PMI_SIZE", None), ("SLURM_STEP_NUM_TASKS", Some("PMIX_RANK"))];

/// Determines from the environment how the process was started. Returns `None` if it was started alone, or as the
/// only one of its launch. `variable` returns the value of an environment variable.
pub(crate) fn detect(variable: impl Fn(&str) -> Option<String>) -> Option<Launch> {
    VARIABLES.into_iter().find_map(|(name, beside)| {
        if beside.is_some_and(|beside| variable(beside).is_none()) {
            return None;
        }
        let processes = variable(name)?.trim().parse().ok()?;
        (processes > 1).then_some(Launch { variable: name, processes })
    })
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Launch { variable, processes } = self;
        write!(f, "this is one of {processes} processes that were started together ({variable}={processes})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_launchers_are_read() {
        let with = |set: &'static [(&str, &str)]| {
            detect(move |name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("OMPI_COMM_WORLD_SIZE", "1")]), None);
        assert_eq!(with(&[("PMI_SIZE", "nonsense")]), None);
        assert_eq!(with(&[("OMPI_COMM_WORLD_SIZE", "4")]).map(|launch| launch.processes), Some(4));
        assert_eq!(with(&[("PMI_SIZE", " 2")]).map(|launch| launch.processes), Some(2));
        assert_eq!(with(&[("SLURM_STEP_NUM_TASKS", "8")]), None, "a batch script is one process");
        let step = with(&[("SLURM_STEP_NUM_TASKS", "8"), ("PMIX_RANK", "3")]).expect("a task of a step");
        assert_eq!(
            step.to_string(),
            "this is one of 8 processes that were started together (SLURM_STEP_NUM_TASKS=8)"
        );
    }
}
