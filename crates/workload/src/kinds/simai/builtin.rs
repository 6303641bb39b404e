//! Workload files built into the program, so that a scenario needs no separate file.

use pathweave_units::closest_name;

use crate::error::FileError;

/// A workload file of SimAI built into the program.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinSimAi {
    /// Name in scenario files.
    pub name: &'static str,
    /// Description for users.
    pub help: &'static str,
    pub(super) text: &'static str,
}

const BUILTIN: &[BuiltinSimAi] = &[BuiltinSimAi {
    name: "moe-9216gpu",
    help: "an iteration of a mixture-of-experts model on 9,216 GPUs (TP 2, EP 16, PP 12, 24 microbatches)",
    text: include_str!("../../../moe-9216gpu.txt"),
}];

/// Returns the built-in workload files.
pub fn builtin_simai() -> &'static [BuiltinSimAi] {
    BUILTIN
}

/// Returns true if `file` is a name rather than a path.
pub(super) fn is_name(file: &str) -> bool {
    !file.contains(['.', '/', '\\'])
}

/// Returns the text of the built-in file with this name.
pub(super) fn text(name: &str) -> Result<&'static str, FileError> {
    if let Some(found) = BUILTIN.iter().find(|builtin| builtin.name == name) {
        return Ok(found.text);
    }
    let names = || BUILTIN.iter().map(|builtin| builtin.name);
    let hint =
        closest_name(name, names()).map(|near| format!(" (did you mean \"{near}\"?)")).unwrap_or_default();
    let known = names().collect::<Vec<_>>().join(", ");
    let what = format!(
        "no workload file of that name comes with the program{hint}: there is {known}; a path has a dot or a slash"
    );
    Err(FileError::whole(name, what))
}
