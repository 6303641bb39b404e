//! Runs the program in a temporary folder.
#![allow(dead_code)] // Not every test file uses all items.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Temporary folder in which the program runs.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
}

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Done {
    /// Exit code.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

/// Four hosts at a switch, each of which sends 100 KB to another.
pub(crate) const SMALL: &str = "\
[topology]
kind = \"star\"
hosts = 4

[[workload]]
kind = \"permutation\"
size = \"100KB\"
";

impl Lab {
    pub(crate) fn new() -> Self {
        Lab { folder: tempfile::tempdir().expect("a temporary folder can be made") }
    }
    /// Creates the folder with `small.toml`.
    pub(crate) fn with_small() -> Self {
        Lab::new().file("small.toml", SMALL)
    }
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.path(name), content).unwrap();
        self
    }
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pathweave"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("NO_COLOR").env("TERM", "dumb");
        command
    }
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        done(&self.command(args).output().expect("the program starts"))
    }
    /// Returns the names in the folder, including result folders of runs in progress.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.folder.path())
    }
    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }
}

pub(crate) fn done(output: &Output) -> Done {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
    Done { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Process that is ended on drop.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    pub(crate) fn start(lab: &Lab, args: &[&str], stderr: Stdio) -> Self {
        let mut command = lab.command(args);
        Running(command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("the program starts"))
    }
}

/// Waits until a running program has reached the state that `is_there` detects.
#[track_caller]
pub(crate) fn half_way(program: &mut Child, is_there: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(120);
    while !is_there() {
        assert!(
            Instant::now() < patience && program.try_wait().unwrap().is_none(),
            "it was to be killed half-way"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The program, executed by a user without privileges.
pub(crate) struct Nobody {
    folder: tempfile::TempDir,
    pub(crate) program: PathBuf,
    id: &'static str,
}

impl Nobody {
    /// Creates a user with this id, and a folder with `fabric.toml`. Prints what is missing if that is impossible.
    #[allow(clippy::print_stderr)]
    pub(crate) fn new(test: &str, id: &'static str, fabric: &str) -> Option<Self> {
        if Command::new("setpriv").arg("--version").output().is_err() {
            eprintln!("\n*** SKIPPED: {test}: the program setpriv is missing ***\n");
            return None;
        }
        // The folder must be readable for the other user.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        Command::new("chmod").arg("755").arg(folder.path()).status().unwrap();
        let program = folder.path().join("pathweave");
        fs::copy(env!("CARGO_BIN_EXE_pathweave"), &program).unwrap();
        fs::write(folder.path().join("fabric.toml"), fabric).unwrap();
        Some(Nobody { folder, program, id })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs `pathweave lab`.
    pub(crate) fn lab(&self, args: &[&str]) -> Done {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", self.id, "--regid", self.id, "--clear-groups"]).arg(&self.program);
        command.arg("lab").args(args).current_dir(self.folder()).stdin(Stdio::null());
        done(&command.output().unwrap())
    }
}

/// Returns true if labs can be created here. Prints a message if not.
#[allow(clippy::print_stderr)]
pub(crate) fn labs_can_be_made(test: &str) -> bool {
    let missing = pathweave_lab::missing_privileges();
    if let Some(missing) = &missing {
        eprintln!("\n*** SKIPPED: {test}: {missing} ***\n");
    }
    missing.is_none()
}

/// Returns the number of network namespaces of the lab with this name.
pub(crate) fn namespaces(lab: &str) -> usize {
    let Ok(entries) = fs::read_dir("/run/netns") else { return 0 };
    let prefix = format!("pw.{lab}.");
    entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(&prefix)).count()
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns the packages of the workspace, as Cargo describes them.
pub(crate) fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    metadata["packages"].as_array().expect("a list of packages").clone()
}

/// Returns the folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
