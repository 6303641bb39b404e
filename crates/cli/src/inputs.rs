//! Files that a command reads, which its outputs must not replace.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pathweave_scenario::Loaded;

use crate::failure::Failure;

/// Device and inode of a file, which are the same under all of its names.
type FileId = (u64, u64);

/// Files that a command reads, with the names by which it reads them.
#[derive(Debug, Default)]
pub(crate) struct Inputs(BTreeMap<FileId, PathBuf>);

impl Inputs {
    /// Adds a file. For a folder, adds the files in it. A path at which nothing exists is the prefix of the files of a
    /// trace.
    pub(crate) fn with(mut self, path: &Path) -> Self {
        if path.is_dir() {
            self.add_all(path, "");
        } else if !path.exists()
            && let (Some(folder), Some(name)) = (path.parent(), path.file_name())
        {
            self.add_all(folder, &format!("{}.", name.to_string_lossy()));
        } else {
            self.add(path);
        }
        self
    }

    /// Adds the file of a scenario and the files that the scenario names.
    pub(crate) fn with_scenario(self, path: &Path, scenario: &Loaded) -> Self {
        scenario.files().iter().fold(self.with(path), |inputs, file| inputs.with(file))
    }

    fn add_all(&mut self, folder: &Path, prefix: &str) {
        let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        for entry in fs::read_dir(listed).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                self.add(&folder.join(entry.file_name()));
            }
        }
    }

    fn add(&mut self, path: &Path) {
        if let Some(id) = id_of(path) {
            self.0.entry(id).or_insert_with(|| path.to_owned());
        }
    }

    /// Checks that the output `path` of `option` is none of these files, under any name.
    ///
    /// # Errors
    /// The output would replace an input.
    pub(crate) fn check_output(&self, option: &str, path: &Path) -> Result<(), Failure> {
        match id_of(path).and_then(|id| self.0.get(&id)) {
            None => Ok(()),
            Some(input) => Err(Failure::Input(format!(
                "{option} {}: this would replace {}, which the command reads; name another file",
                path.display(),
                input.display()
            ))),
        }
    }
}

/// Returns the identity of the file to which `path` leads. Devices and pipes have none: they can be read and written.
fn id_of(path: &Path) -> Option<FileId> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_known_by_all_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["a.toml", "b.toml", "trace.0.et", "tracer.0.et"] {
            fs::write(at(name), name).unwrap();
        }
        fs::create_dir(at("x")).unwrap();
        fs::write(at("x/flows.csv"), "").unwrap();
        std::os::unix::fs::symlink("a.toml", at("link")).unwrap();
        fs::hard_link(at("a.toml"), at("hard")).unwrap();
        let inputs = Inputs::default().with(&at("a.toml")).with(&at("x")).with(&at("trace"));
        for name in ["a.toml", "./x/../a.toml", "link", "hard", "x/flows.csv", "trace.0.et"] {
            let Err(Failure::Input(why)) = inputs.check_output("--out", &at(name)) else { panic!("{name}") };
            assert!(why.starts_with("--out ") && why.contains("which the command reads"), "{why}");
        }
        for name in ["b.toml", "new", "tracer.0.et", "x"] {
            inputs.check_output("--out", &at(name)).unwrap();
        }
        let null = Path::new("/dev/null");
        Inputs::default().with(null).check_output("--out", null).unwrap();
    }
}
