//! Measured providers, and the programs that measure them, compiled if libfabric's headers are present.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::transport::write_key;

const FABRIC: &str = include_str!("programs/fabric.c");
const RANKS: &str = include_str!("programs/ranks.c");

/// Provider to be measured. Ours is measured with and without protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) provider: &'static str,
    protection: Option<&'static str>,
}

impl Subject {
    pub(super) const INSECURE: Subject =
        Subject { name: "pathweave, insecure", provider: "pathweave", protection: Some("insecure") };
    pub(super) const ENCRYPT: Subject =
        Subject { name: "pathweave, encrypt", provider: "pathweave", protection: Some("encrypt") };
    pub(super) const TCP: Subject = Subject { name: "tcp", provider: "tcp", protection: None };
    pub(super) const TCP_RXM: Subject =
        Subject { name: "tcp;ofi_rxm", provider: "tcp;ofi_rxm", protection: None };
    pub(super) const UDP_RXD: Subject =
        Subject { name: "udp;ofi_rxd", provider: "udp;ofi_rxd", protection: None };
    pub(super) const ALL: [Subject; 5] =
        [Subject::INSECURE, Subject::ENCRYPT, Subject::TCP, Subject::TCP_RXM, Subject::UDP_RXD];

    /// Returns the variables that select the provider in a program. `network` are those of the site.
    pub(super) fn variables(
        &self,
        tools: &Tools,
        network: &[(&'static str, String)],
    ) -> Vec<(String, String)> {
        let Some(protection) = self.protection else { return Vec::new() };
        let mut all: Vec<(String, String)> =
            network.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let own = [
            ("FI_PROVIDER_PATH", path(&tools.provider)),
            ("PATHWEAVE_PROTECTION", protection.to_owned()),
            ("PATHWEAVE_KEY_FILE", path(&tools.key)),
            // The benchmark measures networks, so shared memory is off.
            ("PATHWEAVE_SHARED_MEMORY", "off".to_owned()),
        ];
        all.extend(own.map(|(name, value)| (name.to_owned(), value)));
        all
    }
}

/// Folder with the programs and the provider. It is removed on drop.
pub(super) struct Tools {
    folder: PathBuf,
    pub(super) fabric: PathBuf,
    /// Folder with the provider's library.
    pub(super) provider: PathBuf,
    key: PathBuf,
}

impl Tools {
    /// # Errors
    /// The missing prerequisite, with the way to get it.
    pub(super) fn make() -> Result<Tools, String> {
        let here = std::env::current_exe().map_err(|why| why.to_string())?;
        let built = here.with_file_name("libpathweave_fi.so");
        if !built.exists() {
            return Err(format!("{} is missing; `make provider` makes it", built.display()));
        }
        let folder = std::env::temp_dir().join(format!("pathweave-bench-{}", std::process::id()));
        let tools = Tools {
            fabric: folder.join("fabric"),
            provider: folder.join("provider"),
            key: folder.join("cluster.key"),
            folder,
        };
        let doing = |why: std::io::Error| format!("{}: {why}", tools.folder.display());
        std::fs::create_dir_all(&tools.provider).map_err(doing)?;
        std::fs::copy(&built, tools.provider.join("libpathweave-fi.so")).map_err(doing)?;
        write_key(&tools.key).map_err(doing)?;
        tools.compile("cc", FABRIC, &tools.fabric, &["-lfabric"])?;
        Ok(tools)
    }

    /// Compiles the rank program with an MPI's compiler.
    ///
    /// # Errors
    /// If there is no such compiler, or it fails.
    pub(super) fn ranks(&self, compiler: &str, name: &str) -> Result<PathBuf, String> {
        let program = self.folder.join(format!("ranks-{name}"));
        self.compile(compiler, RANKS, &program, &[])?;
        Ok(program)
    }

    fn compile(&self, compiler: &str, source: &str, to: &Path, libraries: &[&str]) -> Result<(), String> {
        let file = to.with_extension("c");
        std::fs::write(&file, source).map_err(|why| format!("{}: {why}", file.display()))?;
        let mut command = Command::new(compiler);
        command.args(["-O2", "-o"]).arg(to).arg(&file).args(libraries).stdin(Stdio::null());
        let output = command.output().map_err(|why| format!("{compiler}: {why}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().find(|line| line.contains("error")).unwrap_or("it fails");
        Err(format!("{compiler}: {first}"))
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
