//! How a process knows that a launcher has started it as one of several.

use std::fmt;

/// What the launcher says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The variable of the environment that says so.
    variable: &'static str,
    processes: u32,
}

/// Open MPI; MPICH, Intel MPI and others with their process manager; SLURM, with PMIx, of a step.
const VARIABLES: [(&str, Option<&str>); 3] =
    [("OMPI_COMM_WORLD_SIZE", None), ("PMI_SIZE", None), ("SLURM_STEP_NUM_TASKS", Some("PMIX_RANK"))];

/// What `variable` tells of the environment: nothing if the process was started alone, or as one of one.
pub(crate) fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Launch> {
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
    fn what_launchers_say() {
        let with = |set: &'static [(&str, &str)]| {
            of(move |name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
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
