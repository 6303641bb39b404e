//! Third-party programs in a lab, mainly MPI: one command on the first host, whose launcher reaches the other hosts
//! through this program instead of ssh.
//!
//! Launchers find a cluster through a list of host names and an *agent*, called like ssh as `AGENT [options] HOST
//! COMMAND`. Both are files in a folder that lives as long as the application ([`Application`]), and environment
//! variables point to them. The agent calls this program, which becomes the command on that host
//! ([`Lab::exec_on_host`](crate::Lab::exec_on_host)).

mod agent;
mod attend;
mod environment;
mod hosts;

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub use agent::RemoteCommand;
pub use attend::{CommandResult, Signals, wait_for_command};
pub use hosts::{HostName, host_names};

use crate::error::{LabError, WithContext};
use crate::plan::Plan;
use crate::privilege::LabNamespaces;
use environment::Environment;

/// Names of the files in an application's folder.
const HOSTS: &str = "hosts";
const OPEN_MPI_HOSTS: &str = "hosts.openmpi";
const HYDRA_HOSTS: &str = "hosts.hydra";
const AGENT: &str = "agent";
const KEY: &str = "key";
/// File name of the provider's library, by which libfabric finds it.
pub const PROVIDER_LIBRARY: &str = "libpathweave-fi.so";

/// Files that the programs of an application share: a folder with the host names, the agent and a key. Dropping this
/// value removes it.
#[derive(Debug)]
pub struct Application {
    folder: tempfile::TempDir,
    environment: Environment,
}

impl Application {
    /// Prepares the folder. `agent` returns a command that runs a command on another host when ssh's arguments are
    /// appended; it gets the path of the folder. `provider` is the folder of [`PROVIDER_LIBRARY`], if there is one.
    ///
    /// # Errors
    /// The folder or a file in it cannot be created.
    pub fn prepare(
        plan: &Plan,
        workplace: LabNamespaces,
        agent: &dyn Fn(&Path) -> Vec<OsString>,
        provider: Option<PathBuf>,
    ) -> Result<Application, LabError> {
        let folder = tempfile::Builder::new().prefix("pathweave-lab-").tempdir();
        let folder = folder.context(|| format!("make a folder in {}", std::env::temp_dir().display()))?;
        let path = |name: &str| folder.path().join(name);
        let names = host_names(plan);
        let script = script(&agent(folder.path()));
        for (name, mode, content) in [
            (HOSTS, 0o644, hosts::names_and_addresses(&names).into_bytes()),
            (OPEN_MPI_HOSTS, 0o644, hosts::for_open_mpi(&names).into_bytes()),
            (HYDRA_HOSTS, 0o644, hosts::for_hydra(&names).into_bytes()),
            (AGENT, 0o755, script),
            (KEY, 0o600, new_key()?.into_bytes()),
        ] {
            write(&path(name), mode, &content).context(|| format!("write {}", path(name).display()))?;
        }
        let environment = Environment {
            agent: path(AGENT),
            open_mpi_hosts: path(OPEN_MPI_HOSTS),
            hydra_hosts: path(HYDRA_HOSTS),
            sessions: folder.path().to_path_buf(),
            key: path(KEY),
            line_rate: hosts::line_rate(plan),
            provider,
            workplace,
        };
        Ok(Application { folder, environment })
    }

    /// Returns the path of the folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the file in an application's folder that hosts see as `/etc/hosts`.
    pub fn etc_hosts_file(folder: &Path) -> PathBuf {
        folder.join(HOSTS)
    }

    /// Returns the variables that the application's command needs, except those for which `is_set` returns true.
    pub fn variables(&self, is_set: &dyn Fn(&str) -> bool) -> Vec<(&'static str, OsString)> {
        self.environment.variables(is_set)
    }
}

/// Returns a script that runs `command` followed by the script's own arguments. Launchers accept a single path as an
/// agent, and some split it at spaces.
fn script(command: &[OsString]) -> Vec<u8> {
    let mut text = b"#!/bin/sh\nexec".to_vec();
    for word in command {
        text.push(b' ');
        text.extend(quoted(word).into_vec());
    }
    text.extend(b" \"$@\"\n");
    text
}

/// Quotes a word for a shell.
fn quoted(word: &OsStr) -> OsString {
    let mut bytes = vec![b'\''];
    for &byte in word.as_bytes() {
        if byte == b'\'' { bytes.extend(br"'\''") } else { bytes.push(byte) }
    }
    bytes.push(b'\'');
    OsString::from_vec(bytes)
}

/// Writes a new file with this mode, independently of the process's umask.
fn write(path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(content)
}

/// Returns the text of a key file: 32 random bytes in hexadecimal digits.
fn new_key() -> Result<String, LabError> {
    let mut bytes = [0; 32];
    let filled = getrandom::fill(&mut bytes).map_err(|why| io::Error::other(why.to_string()));
    filled.context(|| "draw a random key".to_owned())?;
    let mut text = String::from("# Of one lab, and gone with it.\n");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{RateScale, Settings};
    use pathweave_topo::{Build, LeafSpine};

    fn prepared() -> Application {
        let topology = LeafSpine::new(2, 2, 1).build(Path::new(".")).unwrap();
        let plan = Plan::new("t".parse().unwrap(), topology, Settings::new(RateScale::FULL)).unwrap();
        let agent = |_: &Path| ["printf", "%s\n", "it's", "$HOME"].map(OsString::from).to_vec();
        Application::prepare(&plan, LabNamespaces::Machine, &agent, None).unwrap()
    }

    #[test]
    fn the_key_is_the_owners_alone_and_a_key() {
        let application = prepared();
        let path = application.folder().join(KEY);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let key = pathweave_datapath::secure::ClusterKey::read(&path);
        assert!(key.is_ok(), "{:?}", key.err());
        let other = fs::read(prepared().folder().join(KEY)).unwrap();
        assert_ne!(fs::read(&path).unwrap(), other);
    }

    #[test]
    fn the_agent_hands_on_every_word_as_it_is() {
        let application = prepared();
        let output = std::process::Command::new(application.folder().join(AGENT))
            .args(["-x", "a  b"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "it's\n$HOME\n-x\na  b\n");
    }

    #[test]
    fn the_folder_goes_with_its_application() {
        let application = prepared();
        let folder = application.folder().to_owned();
        assert!(Application::etc_hosts_file(&folder).exists());
        drop(application);
        assert!(!folder.exists());
    }
}
