//! Environment variables of the provider: those of all doors.

pub(crate) use pathweave_door::settings::from_environment;
pub(crate) use pathweave_door::{Progress, Settings, SharedMemory, Where};

/// Returns true if the environment has a variable for this provider. In that case, errors are printed.
pub(crate) fn is_asked_for() -> bool {
    let ours = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("PATHWEAVE_");
    let chosen = std::env::var("FI_PROVIDER").is_ok_and(|names| names.contains(crate::NAME));
    chosen || std::env::vars_os().any(|(name, _)| ours(&name))
}
