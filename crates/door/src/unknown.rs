//! Variables with our prefix that nothing reads: mostly misspelt ones, which would otherwise have no effect in silence.

use pathweave_units::{closest_name, suggestion};

const PREFIX: &str = "PATHWEAVE_";

/// Variables of the doors.
const KNOWN: [&str; 17] = [
    "PATHWEAVE_KEY_FILE",
    "PATHWEAVE_PROTECTION",
    "PATHWEAVE_IFACE",
    "PATHWEAVE_ADDRESS",
    "PATHWEAVE_BACKEND",
    "PATHWEAVE_PATHS",
    "PATHWEAVE_SCHEME",
    "PATHWEAVE_LINE_RATE",
    "PATHWEAVE_MTU",
    "PATHWEAVE_PORTS",
    "PATHWEAVE_WAITING",
    "PATHWEAVE_PEER_TIMEOUT",
    "PATHWEAVE_EAGER",
    "PATHWEAVE_SHARED_MEMORY",
    "PATHWEAVE_UNEXPECTED_BYTES",
    "PATHWEAVE_PROGRESS",
    "PATHWEAVE_NCCL_LOOPS",
];

/// Variables and prefixes that tests, benchmarks and recipes of packages set for themselves.
const OF_OTHERS: [&str; 9] = [
    "PATHWEAVE_TEST_",
    "PATHWEAVE_BLESS",
    "PATHWEAVE_FEW_FILES",
    "PATHWEAVE_LIBFABRIC_INCLUDES",
    "PATHWEAVE_MPICH",
    "PATHWEAVE_NCCL_PLUGIN",
    "PATHWEAVE_OPENMPI",
    "PATHWEAVE_PROGRAM",
    "PATHWEAVE_VERSION",
];

/// Returns a line about each of these names that has our prefix and that nothing reads.
pub(crate) fn unread(names: impl Iterator<Item = String>) -> Vec<String> {
    let ours = names.filter(|name| name.starts_with(PREFIX));
    let unknown = ours.filter(|name| {
        !KNOWN.contains(&name.as_str()) && !OF_OTHERS.iter().any(|other| name.starts_with(other))
    });
    unknown
        .map(|name| {
            // The common prefix would make all names alike.
            let rest = name.strip_prefix(PREFIX).unwrap_or(&name);
            let near = closest_name(rest, KNOWN.iter().filter_map(|known| known.strip_prefix(PREFIX)));
            let near = near.map(|near| format!("{PREFIX}{near}"));
            format!("no variable has the name {name}, which has no effect{}", suggestion(near.as_deref()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(names: &[&str]) -> Vec<String> {
        unread(names.iter().map(|name| (*name).to_owned()))
    }

    #[test]
    fn a_misspelt_variable_is_named_with_the_one_that_was_meant() {
        assert_eq!(
            lines(&["PATHWEAVE_PATH", "PATH", "PATHWEAVE_PATHS", "PATHWEAVE_KEYFILE", "PATHWEAVE_COLOUR"]),
            [
                "no variable has the name PATHWEAVE_PATH, which has no effect; did you mean \"PATHWEAVE_PATHS\"?",
                "no variable has the name PATHWEAVE_KEYFILE, which has no effect; did you mean \
                 \"PATHWEAVE_KEY_FILE\"?",
                "no variable has the name PATHWEAVE_COLOUR, which has no effect",
            ]
        );
    }

    #[test]
    fn variables_of_the_document_and_of_tests_are_known() {
        let document = include_str!("../../../docs/mpi.md");
        let table = document.split("## Variables").nth(1).expect("docs/mpi.md has a table of variables");
        let rows = table.lines().filter_map(|line| line.strip_prefix("| `PATHWEAVE_")?.split('`').next());
        let written: Vec<String> = rows.map(|name| format!("{PREFIX}{name}")).collect();
        let mut known: Vec<&str> = KNOWN.iter().copied().filter(|name| !name.contains("NCCL")).collect();
        known.sort_unstable();
        let mut sorted = written.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, known, "docs/mpi.md and this list differ");
        assert_eq!(unread(written.into_iter()), [""; 0]);
        assert_eq!(lines(&["PATHWEAVE_NCCL_LOOPS", "PATHWEAVE_TEST_PEER", "PATHWEAVE_BLESS"]), [""; 0]);
    }
}
