//! Resolved scenario for results: complete, and able to run from any folder.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::model::Scenario;
use crate::text::{Diagnostic, FieldPath, value_of};

/// Writes the scenario as TOML with all defaults filled in and absolute file names.
pub(crate) fn to_toml(scenario: &Scenario, base_dir: &Path) -> String {
    let mut scenario = scenario.clone();
    let absolute = |path: &str| -> Result<String, std::convert::Infallible> {
        let path = base_dir.join(path);
        Ok(std::path::absolute(&path).unwrap_or(path).display().to_string())
    };
    let Ok(()) = each_file(&mut scenario, absolute);
    write(&scenario)
}

/// Writes the scenario without its name, and with a digest of each file's content in place of the file name.
pub(crate) fn canonical_text(scenario: &Scenario, base_dir: &Path) -> Result<String, Diagnostic> {
    let mut scenario = Scenario { name: String::new(), ..scenario.clone() };
    each_file(&mut scenario, |path| {
        let path = base_dir.join(path);
        let digest = digest(&path).map_err(|why| {
            Diagnostic::new(FieldPath::root(), format!("cannot read {}: {why}", path.display()))
        })?;
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    })?;
    Ok(write(&scenario))
}

/// Returns the digest of a file, or of all files of a folder. If `path` is neither, it is the prefix of a trace with
/// several files: the digest covers the files whose names begin with it and a dot.
fn digest(path: &Path) -> std::io::Result<Vec<u8>> {
    if path.is_file() {
        return Ok(Sha256::digest(std::fs::read(path)?).to_vec());
    }
    let (folder, prefix) = match (path.is_dir(), path.parent(), path.file_name()) {
        (false, Some(folder), Some(name)) => (folder, format!("{}.", name.to_string_lossy())),
        _ => (path, String::new()),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(rest) = name.strip_prefix(&prefix)
            && entry.path().is_file()
        {
            files.push((rest.to_owned(), entry.path()));
        }
    }
    if files.is_empty() {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    files.sort();
    let mut all = Sha256::new();
    for (name, path) in files {
        all.update(name.as_bytes());
        all.update(Sha256::digest(std::fs::read(path)?));
    }
    Ok(all.finalize().to_vec())
}

fn write(scenario: &Scenario) -> String {
    toml::to_string(&value_of(scenario)).expect("a value is TOML")
}

/// Returns the paths of the files that the scenario names. The path of a trace is that of its folder, or the folder
/// and the prefix of its files.
pub(crate) fn files(scenario: &Scenario, base_dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(()) = each_file(&mut scenario.clone(), |path| {
        files.push(base_dir.join(path));
        Ok::<_, std::convert::Infallible>(path.to_owned())
    });
    files
}

/// Replaces every file name in the scenario.
fn each_file<E>(scenario: &mut Scenario, mut rename: impl FnMut(&str) -> Result<String, E>) -> Result<(), E> {
    let mut rename_path = |path: &mut PathBuf| -> Result<(), E> {
        *path = rename(&path.to_string_lossy())?.into();
        Ok(())
    };
    if let Some(path) = scenario.topology.file() {
        rename_path(path)?;
    }
    if let Some(source) = scenario.routing.explicit_mut()
        && let Some(path) = source.paths.file()
    {
        rename_path(path)?;
    }
    if let Some(path) = &mut scenario.run.partition {
        rename_path(path)?;
    }
    for workload in &mut scenario.workload {
        for (_, file) in workload.files() {
            *file = rename(file)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Changes, Loaded};

    #[test]
    fn the_identity_is_of_what_files_hold_and_not_of_names() {
        let one = tempfile::tempdir().unwrap();
        let two = tempfile::tempdir().unwrap();
        let text =
            "[topology]\nkind = \"star\"\nhosts = 4\n[[workload]]\nkind = \"flows\"\nfile = \"f.csv\"\n";
        let write = |folder: &tempfile::TempDir, flows: &str| {
            std::fs::write(folder.path().join("f.csv"), flows).unwrap();
        };
        let identity = |folder: &tempfile::TempDir, name: &str| {
            Loaded::parse(text, name, folder.path(), &Changes::default()).unwrap().identity()
        };
        write(&one, "src,dst,size\n0,1,1KB\n");
        write(&two, "src,dst,size\n0,1,1KB\n");
        let first = identity(&one, "a.toml").unwrap();
        assert_eq!(first, identity(&two, "b.toml").unwrap());
        write(&two, "src,dst,size\n0,1,2KB\n");
        assert_ne!(first, identity(&two, "a.toml").unwrap());
        std::fs::remove_file(two.path().join("f.csv")).unwrap();
        assert!(identity(&two, "a.toml").unwrap_err().to_string().contains("cannot read"));
    }

    #[test]
    fn a_trace_of_several_files_is_what_they_hold() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (folder, prefix) in [(&one, "a"), (&two, "b")] {
            for rank in 0..2 {
                std::fs::write(folder.path().join(format!("{prefix}.{rank}.et")), [rank; 9]).unwrap();
            }
        }
        let of =
            |folder: &tempfile::TempDir, prefix: &str| super::digest(&folder.path().join(prefix)).unwrap();
        assert_eq!(of(&one, "a"), of(&two, "b"));
        std::fs::write(two.path().join("b.1.et"), "other").unwrap();
        assert_ne!(of(&one, "a"), of(&two, "b"));
        assert_ne!(of(&one, "a"), of(&one, ""));
        assert!(super::digest(&one.path().join("c")).is_err());
    }
}
