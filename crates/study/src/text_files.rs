//! Text files of a catalogue, embedded in the program or read from a folder.

use std::collections::BTreeMap;
use std::path::Path;

use include_dir::Dir;
use pathweave_scenario::read_text_file;
use serde::de::DeserializeOwned;

/// Largest accepted file, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Text files of a folder and of the folders in it.
#[derive(Clone, Debug)]
pub(crate) struct TextFiles {
    /// Name of the folder, for error messages.
    root: String,
    /// Texts by path within the folder, with slashes.
    texts: BTreeMap<String, String>,
}

/// File that is invalid or cannot be read, and the mistake.
#[derive(Debug)]
pub(crate) struct FileError {
    pub(crate) file: String,
    pub(crate) message: String,
}

impl TextFiles {
    /// Returns the texts of an embedded folder, which messages call `root`.
    pub(crate) fn embedded(root: &str, dir: &Dir<'_>) -> Self {
        let files = dir.files().chain(dir.dirs().flat_map(Dir::files));
        let text = |file: &include_dir::File<'_>| {
            Some((file.path().to_string_lossy().into_owned(), file.contents_utf8()?.to_owned()))
        };
        TextFiles { root: root.to_owned(), texts: files.filter_map(text).collect() }
    }

    /// Reads the files with a wanted name in each of the `parts` of a folder, which messages call `root`. A part that
    /// does not exist has no files.
    pub(crate) fn read(
        root: &str,
        folder: &Path,
        parts: &[impl AsRef<str>],
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, FileError> {
        let mut texts = BTreeMap::new();
        for part in parts.iter().map(AsRef::as_ref).filter(|part| folder.join(part).is_dir()) {
            for name in names(&folder.join(part))?.into_iter().filter(|name| wanted(name)) {
                let path = folder.join(part).join(&name);
                if path.is_file() {
                    let text = read_text_file(&path, MAX_FILE_BYTES);
                    texts.insert(joined(part, &name), text.map_err(|message| in_file(&path, message))?);
                }
            }
        }
        Ok(TextFiles { root: root.to_owned(), texts })
    }

    /// Returns the path of a file for error messages.
    pub(crate) fn place(&self, path: &str) -> String {
        joined(&self.root, path)
    }

    /// Returns the paths of all files, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> + Clone {
        self.texts.keys().map(String::as_str)
    }

    /// Returns the names and texts of the files in a folder.
    pub(crate) fn within(&self, folder: &str) -> impl Iterator<Item = (&str, &str)> + Clone {
        let folder = format!("{folder}/");
        self.texts
            .iter()
            .filter_map(move |(path, text)| Some((path.strip_prefix(folder.as_str())?, text.as_str())))
    }

    /// Reads a file as TOML.
    ///
    /// # Errors
    /// There is no such file, or it is invalid.
    pub(crate) fn parse<T: DeserializeOwned>(&self, path: &str) -> Result<T, FileError> {
        let wrong =
            |message: &str| FileError { file: self.place(path), message: message.trim_end().to_owned() };
        let text = self.texts.get(path).ok_or_else(|| wrong("there is no such file"))?;
        toml::from_str(text).map_err(|why| wrong(&why.to_string()))
    }
}

/// Returns the names of the entries of a folder.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, FileError> {
    let failed = |why: std::io::Error| in_file(folder, why.to_string());
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    std::fs::read_dir(folder).map_err(failed)?.map(|entry| entry.map(name).map_err(failed)).collect()
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn in_file(path: &Path, message: String) -> FileError {
    FileError { file: path.display().to_string(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_files_are_read_and_named_in_errors() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join("part")).unwrap();
        write("top.toml", "a = 1");
        write("part/one.toml", "a = 2");
        write("part/two.csv", "3");
        let wanted = |name: &str| name.ends_with(".toml");
        let files = TextFiles::read("root", folder.path(), &["", "part"], wanted).unwrap();
        assert_eq!(files.paths().collect::<Vec<_>>(), ["part/one.toml", "top.toml"]);
        assert_eq!(files.within("part").collect::<Vec<_>>(), [("one.toml", "a = 2")]);
        let a = |path: &str| files.parse::<BTreeMap<String, u32>>(path).map(|table| table["a"]);
        assert_eq!(a("top.toml").unwrap(), 1);
        let why = a("part/two.csv").unwrap_err();
        assert_eq!((why.file.as_str(), why.message.as_str()), ("root/part/two.csv", "there is no such file"));
        assert_eq!(TextFiles::read("root", folder.path(), &["none"], wanted).unwrap().paths().count(), 0);
    }
}
