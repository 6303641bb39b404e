//! `pathweave nccl env`: variables for NCCL's network plug-in.

// Doc comments of arguments are their help texts, in which brackets are plain text.
#![allow(rustdoc::broken_intra_doc_links)]

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ofi::env::{key_line, text};
use super::ofi::shell::Shell;
use crate::failure::{Failure, Outcome};
use crate::real::libraries::PLUGIN;
use crate::terminal;

#[derive(Debug, Subcommand)]
pub(crate) enum NcclCommand {
    /// Print the shell variables that make NCCL use pathweave's network plug-in: eval "$(pathweave nccl env)"
    Env(EnvArgs),
}

/// Prints the variables by which NCCL finds and selects the plug-in: NCCL_NET_PLUGIN, NCCL_NET, LD_LIBRARY_PATH and, if
/// there is a key, PATHWEAVE_KEY_FILE. Prints nothing on standard output unless all values are valid.
#[derive(Args, Debug)]
pub(crate) struct EnvArgs {
    /// Folder with libnccl-net-pathweave.so [default: the one installed with this program, or /usr/local/lib]
    #[arg(long, value_name = "DIR")]
    plugin: Option<PathBuf>,
    /// Key of the cluster: a file with 64 hexadecimal digits that only its owner can read [default:
    /// PATHWEAVE_KEY_FILE]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Shell language of the output
    #[arg(long, value_enum, default_value_t)]
    shell: Shell,
}

pub(crate) fn run(command: &NcclCommand) -> Result<Outcome, Failure> {
    let NcclCommand::Env(args) = command;
    let folder = PLUGIN.folder(args.plugin.as_deref())?;
    let variable = std::env::var_os("LD_LIBRARY_PATH").filter(|value| !value.is_empty());
    let set = variable.as_deref().map(text).transpose()?;
    let mut lines = args.shell.export("LD_LIBRARY_PATH", &search_path(text(&folder)?, set)?);
    lines.push_str(&args.shell.export("NCCL_NET_PLUGIN", "pathweave"));
    lines.push_str(&args.shell.export("NCCL_NET", "pathweave"));
    lines.push_str(&key_line(args.shell, args.key.as_deref())?);
    terminal::out(&lines);
    Ok(Outcome::Done)
}

/// Returns the loader's search path with the folder first, before those that the variable already contains.
fn search_path(folder: &str, set: Option<&str>) -> Result<String, Failure> {
    if folder.contains([':', ';']) {
        return Err(Failure::Input(format!(
            "{folder}: LD_LIBRARY_PATH cannot contain this folder, because a colon or a semicolon separates folders in it"
        )));
    }
    Ok(match set {
        None => folder.to_owned(),
        Some(set) if set.split([':', ';']).any(|entry| entry == folder) => set.to_owned(),
        Some(set) => format!("{folder}:{set}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_comes_first_and_once() {
        let with = |set| search_path("/p", set).unwrap();
        assert_eq!([with(None), with(Some("/a:/b")), with(Some("/a:/p"))], ["/p", "/p:/a:/b", "/a:/p"]);
        assert!(search_path("/p:q", None).is_err() && search_path("/p;q", None).is_err());
    }
}
