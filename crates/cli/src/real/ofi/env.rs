//! `pathweave ofi env`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Args;
use pathweave_datapath::secure::ClusterKey;

use super::shell::Shell;
use crate::failure::{Failure, Outcome};
use crate::real::libraries::PROVIDER;
use crate::terminal;

/// Prints the variables by which libfabric finds and selects the provider: FI_PROVIDER_PATH, FI_PROVIDER and, if
/// there is a key, PATHWEAVE_KEY_FILE. Prints nothing on standard output unless all values are valid.
#[derive(Args, Debug)]
pub(crate) struct EnvArgs {
    /// Folder with libpathweave-fi.so [default: the one installed with this program, or
    /// /usr/local/lib/libfabric]
    #[arg(long, value_name = "DIR")]
    provider: Option<PathBuf>,
    /// Key of the cluster: a file with 64 hexadecimal digits that only its owner can read [default:
    /// PATHWEAVE_KEY_FILE]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Shell language of the output
    #[arg(long, value_enum, default_value_t)]
    shell: Shell,
}

pub(super) fn env(args: &EnvArgs) -> Result<Outcome, Failure> {
    let folder = PROVIDER.folder(args.provider.as_deref())?;
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let mut lines =
        args.shell.export("FI_PROVIDER_PATH", &search_path(&folder, variable("FI_PROVIDER_PATH"))?);
    lines.push_str(&args.shell.export("FI_PROVIDER", "pathweave"));
    lines.push_str(&key_line(args.shell, args.key.as_deref())?);
    terminal::out(&lines);
    Ok(Outcome::Done)
}

/// Returns the line that sets the file of the cluster's key, if there is one.
///
/// # Errors
/// The file has no key, or others can read it.
pub(in crate::real) fn key_line(shell: Shell, given: Option<&Path>) -> Result<String, Failure> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let key = given.map(PathBuf::from).or_else(|| variable("PATHWEAVE_KEY_FILE").map(PathBuf::from));
    if let Some(key) = key {
        ClusterKey::read(&key).map_err(|why| {
            let from = if given.is_some() { "--key" } else { "PATHWEAVE_KEY_FILE" };
            Failure::Input(format!("{from}: {why}"))
        })?;
        // Programs may start in other folders than this one.
        let key = std::path::absolute(&key).unwrap_or(key);
        return Ok(shell.export("PATHWEAVE_KEY_FILE", text(&key)?));
    }
    if variable("PATHWEAVE_PROTECTION").is_none_or(|mode| mode != "insecure") {
        terminal::note(
            "note: there is no key, without which nothing is offered: --key FILE, or on a closed network \
             PATHWEAVE_PROTECTION=insecure",
        );
    }
    Ok(String::new())
}

/// Returns the search path with the folder first, before those that the variable already contains. The variable
/// replaces libfabric's own path.
fn search_path(folder: &Path, set: Option<OsString>) -> Result<String, Failure> {
    let folder = text(folder)?;
    if folder.contains(':') {
        return Err(Failure::Input(format!(
            "{folder}: FI_PROVIDER_PATH cannot contain this folder, because a colon separates folders in it"
        )));
    }
    let Some(set) = set else { return Ok(folder.to_owned()) };
    let set = text(&set)?;
    if set.split(':').any(|entry| entry.trim_start_matches('@') == folder) {
        return Ok(set.to_owned());
    }
    // A prefix of the variable determines the meaning of the rest.
    Ok(match set.strip_prefix('@') {
        Some(rest) => format!("@{folder}:{rest}"),
        None => format!("{folder}:{set}"),
    })
}

pub(in crate::real) fn text<S: AsRef<OsStr> + ?Sized>(value: &S) -> Result<&str, Failure> {
    let value = value.as_ref();
    value.to_str().ok_or_else(|| Failure::Input(format!("{}: not UTF-8", value.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_are_there_stay_and_none_comes_twice() {
        let with = |set: Option<&str>| search_path(Path::new("/p"), set.map(OsString::from)).unwrap();
        assert_eq!(with(None), "/p");
        assert_eq!(with(Some("/a:/b")), "/p:/a:/b");
        assert_eq!(with(Some("@/a")), "@/p:/a");
        assert_eq!(with(Some("/a:/p")), "/a:/p");
        assert_eq!(with(Some("@/p")), "@/p");
        assert!(search_path(Path::new("/p:q"), None).is_err());
    }
}
