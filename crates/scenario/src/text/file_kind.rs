//! Kinds of files that the program reads, told apart by their first fields.

use std::fmt;

use super::{Diagnostic, FieldPath, Node, Value};

/// Kind of a TOML file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A scenario: network and traffic.
    Scenario,
    /// A sweep: a scenario over values of its fields.
    Sweep,
    /// A plan: a scenario on several fabrics, with prices.
    Plan,
    /// A topology: hosts, switches and links.
    Topology,
}

impl FileKind {
    /// Returns the kind that the first fields of a file tell, if they do.
    fn of(tree: &Node) -> Option<Self> {
        let Value::Table(fields) = &tree.value else { return None };
        let has = |name: &str| fields.contains_key(name);
        match (has("scenario"), has("workload")) {
            (true, false) if has("fabric") || has("prices") => Some(FileKind::Plan),
            (true, false) => Some(FileKind::Sweep),
            (false, true) => Some(FileKind::Scenario),
            (false, false) if has("link") && has("hosts") => Some(FileKind::Topology),
            _ => None,
        }
    }

    /// Returns the reader of such a file.
    fn reader(self) -> &'static str {
        match self {
            FileKind::Scenario => "`pathweave run` reads it",
            FileKind::Sweep => "`pathweave sweep` reads it",
            FileKind::Plan => "`pathweave plan` reads it",
            FileKind::Topology => "a scenario names it: topology = { kind = \"file\", path = \"...\" }",
        }
    }

    /// Returns an error if a file is of another kind.
    pub(crate) fn check(self, tree: &Node, name: &str) -> Result<(), Diagnostic> {
        match FileKind::of(tree) {
            Some(found) if found != self => {
                let message = format!("{name} is a {found} file; expected a {self} file");
                Err(Diagnostic::new(FieldPath::root(), message).help(found.reader()))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Scenario => "scenario",
            FileKind::Sweep => "sweep",
            FileKind::Plan => "plan",
            FileKind::Topology => "topology",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Source, parse_document};
    use super::*;

    #[test]
    fn first_fields_tell_kinds_apart() {
        let of = |text: &str| FileKind::of(&parse_document(&Source::new("a.toml", text)).unwrap());
        assert_eq!(of("[[workload]]\n[topology]\n"), Some(FileKind::Scenario));
        assert_eq!(of("seeds = 3\nscenario = 'a.toml'\n"), Some(FileKind::Sweep));
        assert_eq!(of("scenario = 'a.toml'\n[[fabric]]\n"), Some(FileKind::Plan));
        assert_eq!(of("hosts = 8\nlink = []\n"), Some(FileKind::Topology));
        assert_eq!(of("naem = 'x'\n"), None);
        let tree = parse_document(&Source::new("a.toml", "scenario = 'b.toml'")).unwrap();
        let why = FileKind::Scenario.check(&tree, "a.toml").unwrap_err();
        assert_eq!(why.message, "a.toml is a sweep file; expected a scenario file");
        assert_eq!(why.help.last().map(String::as_str), Some("`pathweave sweep` reads it"));
        assert!(FileKind::Sweep.check(&tree, "a.toml").is_ok());
    }
}
