//! Errors of a lab, with messages that tell the user how to fix them.

use std::io;

use pathweave_linux::netlink::SystemError;
use pathweave_sim::SimError;
use pathweave_topo::TopoError;

/// Reason why a lab cannot be created, found, changed or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A value is not allowed.
    #[error("{what} \"{value}\": {allowed}")]
    Value {
        /// Kind of value: "lab name", "rate scale".
        what: &'static str,
        /// Value that was given.
        value: String,
        /// Description of the allowed values.
        allowed: String,
    },
    /// The topology is too large for one machine.
    #[error("{found} {what}; a lab may have at most {most}: choose a smaller topology")]
    TooLarge {
        /// Kind of items: "hosts and switches", "links".
        what: &'static str,
        /// Number of items in the topology.
        found: usize,
        /// Largest number allowed.
        most: usize,
    },
    /// A lab with this name exists already.
    #[error(
        "lab \"{0}\" exists already: `pathweave lab down {0}` removes it, --name makes another one beside it"
    )]
    Exists(String),
    /// No item has this name.
    #[error("no {kind} is named \"{name}\"{}", hint(.nearest, .all))]
    Unknown {
        /// Kind of item: "lab", "host", "node", "link".
        kind: &'static str,
        /// Name that was given.
        name: String,
        /// Most similar name that exists.
        nearest: Option<String>,
        /// Some of the existing names, if none is similar.
        all: Vec<String>,
    },
    /// A command refers to the only lab, and there is none.
    #[error("there is no lab: `pathweave lab up FILE` makes one (labs of other users are theirs alone)")]
    NoLab,
    /// The lab was not completed, or parts of it were removed.
    #[error("lab \"{lab}\" is incomplete ({what}): `pathweave lab down {lab}` removes what there is")]
    Incomplete {
        /// Name of the lab.
        lab: String,
        /// Description of the missing part.
        what: String,
    },
    /// The process may not create networks and cannot get a user namespace in which it may.
    #[error("{0}")]
    Privileges(String),
    /// The system is not Linux, or the kernel lacks a feature.
    #[error("this kernel cannot do it: {0}")]
    Kernel(String),
    /// The operating system refused an operation.
    #[error("cannot {doing}: {why}")]
    System {
        /// Description of the operation, to follow "cannot".
        doing: String,
        /// Error of the operating system.
        why: SystemError,
    },
    /// Creation of the lab failed, and so did removing its parts.
    #[error("{first}; the lab could not be removed completely: {then}")]
    Rollback {
        /// Error of the creation.
        first: Box<LabError>,
        /// Error of the removal.
        then: Box<LabError>,
    },
    /// The scenario cannot run on the lab, or its run failed.
    #[error("{0}")]
    Run(String),
    /// The user interrupted the command.
    #[error("interrupted; the lab is removed")]
    Interrupted,
    /// The topology, or a name in it, is invalid.
    #[error(transparent)]
    Topology(#[from] TopoError),
    /// A fault has a value out of its range or names a link or node that does not exist.
    #[error(transparent)]
    Fault(#[from] SimError),
}

/// Adds a description of the operation to an error of the operating system.
pub(crate) trait WithContext<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, LabError>;
}

impl<T, E: IntoSystemError> WithContext<T> for Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, LabError> {
        self.map_err(|why| LabError::System { doing: what(), why: why.answer() })
    }
}

/// Conversion of an error of the operating system from any interface.
pub(crate) trait IntoSystemError {
    fn answer(self) -> SystemError;
}

impl IntoSystemError for SystemError {
    fn answer(self) -> SystemError {
        self
    }
}
impl IntoSystemError for io::Error {
    fn answer(self) -> SystemError {
        self.into()
    }
}
impl IntoSystemError for nix::errno::Errno {
    fn answer(self) -> SystemError {
        io::Error::from(self).into()
    }
}

impl LabError {
    pub(crate) fn unknown<'a>(
        kind: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> LabError {
        /// Number of names shown if none is similar.
        const SHOWN: usize = 8;
        let known: Vec<&str> = known.into_iter().collect();
        let nearest = pathweave_units::closest_name(name, known.iter().copied()).map(str::to_owned);
        let all = known.iter().take(SHOWN).map(|&other| other.to_owned()).collect();
        LabError::Unknown { kind, name: name.to_owned(), nearest, all }
    }
}

fn hint(nearest: &Option<String>, all: &[String]) -> String {
    match (nearest, all) {
        (Some(name), _) => pathweave_units::suggestion(Some(name)),
        (None, []) => "; there is none".to_owned(),
        (None, all) => format!("; there are: {}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_suggest_or_list() {
        let known = ["host0", "host1", "leaf0"];
        let text = |name| LabError::unknown("node", name, known).to_string();
        assert_eq!(text("leaf1"), "no node is named \"leaf1\"; did you mean \"leaf0\"?");
        assert_eq!(text("xyz"), "no node is named \"xyz\"; there are: host0, host1, leaf0");
        let none = LabError::unknown("lab", "x", []).to_string();
        assert_eq!(none, "no lab is named \"x\"; there is none");
    }
}
