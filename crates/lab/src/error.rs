//! What can go wrong with a lab, said so that it can be repaired.

use std::io;

use pathweave_linux::netlink::SystemError;
use pathweave_topo::TopoError;

/// Why a lab cannot be made, found, changed or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A value is not allowed.
    #[error("{what} \"{value}\": {allowed}")]
    Value {
        /// What was given: "lab name", "rate scale".
        what: &'static str,
        /// The value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// The topology is larger than one machine should carry.
    #[error("{found} {what}; a lab may have at most {most}: choose a smaller topology")]
    TooLarge {
        /// "hosts and switches", "links".
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many are allowed.
        most: usize,
    },
    /// A lab of that name is there already.
    #[error(
        "lab \"{0}\" exists already: `pathweave lab down {0}` removes it, --name makes another one beside it"
    )]
    Exists(String),
    /// A name that nothing has.
    #[error("no {kind} is named \"{name}\"{}", hint(.nearest, .all))]
    Unknown {
        /// "lab", "host", "node", "link".
        kind: &'static str,
        /// The name.
        name: String,
        /// The most similar name that exists.
        nearest: Option<String>,
        /// A few of the names that exist, where there is nothing similar.
        all: Vec<String>,
    },
    /// A command is about the only lab, and there is none.
    #[error("there is no lab: `pathweave lab up FILE` makes one (labs of other users are theirs alone)")]
    NoLab,
    /// The lab was not completed, or parts of it were removed.
    #[error("lab \"{lab}\" is incomplete ({what}): `pathweave lab down {lab}` removes what there is")]
    Incomplete {
        /// The lab.
        lab: String,
        /// What is missing.
        what: String,
    },
    /// The process may not make networks, and cannot get a user namespace in which it may.
    #[error("{0}")]
    Privileges(String),
    /// This is not Linux, or the kernel lacks something.
    #[error("this kernel cannot do it: {0}")]
    Kernel(String),
    /// The operating system refused something.
    #[error("cannot {doing}: {why}")]
    System {
        /// What was being done, as the rest of "cannot ...".
        doing: String,
        /// The operating system's answer.
        why: SystemError,
    },
    /// Making the lab failed, and so did removing what was there of it.
    #[error("{first}; what had been made could not all be removed: {then}")]
    Rollback {
        /// Why making it failed.
        first: Box<LabError>,
        /// Why removing it failed.
        then: Box<LabError>,
    },
    /// A scenario cannot run on it, or went wrong there.
    #[error("{0}")]
    Run(String),
    /// The user wanted to stop.
    #[error("interrupted; what had been made is removed")]
    Interrupted,
    /// The topology or a name in it is wrong.
    #[error(transparent)]
    Topology(#[from] TopoError),
}

/// Says what was being done when the operating system refused.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, LabError>;
}

impl<T, E: Answer> Doing<T> for Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, LabError> {
        self.map_err(|why| LabError::System { doing: what(), why: why.answer() })
    }
}

/// What the operating system answers, by whatever way it was asked.
pub(crate) trait Answer {
    fn answer(self) -> SystemError;
}

impl Answer for SystemError {
    fn answer(self) -> SystemError {
        self
    }
}
impl Answer for io::Error {
    fn answer(self) -> SystemError {
        self.into()
    }
}
impl Answer for nix::errno::Errno {
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
        /// Names shown where none is similar.
        const SHOWN: usize = 8;
        let known: Vec<&str> = known.into_iter().collect();
        let nearest = pathweave_units::nearest(name, known.iter().copied()).map(str::to_owned);
        let all = known.iter().take(SHOWN).map(|&other| other.to_owned()).collect();
        LabError::Unknown { kind, name: name.to_owned(), nearest, all }
    }
}

fn hint(nearest: &Option<String>, all: &[String]) -> String {
    match (nearest, all) {
        (Some(name), _) => pathweave_units::did_you_mean(Some(name)),
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
