//! Search for the libraries that are installed with this program, for other programs: the libfabric provider and NCCL's
//! plug-in.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use pathweave_lab::PROVIDER_LIBRARY;

use crate::failure::Failure;
use crate::self_command;

/// Library for other programs.
#[derive(Debug, PartialEq)]
pub(crate) struct Library {
    /// Name of the file.
    pub(crate) file: &'static str,
    /// Folder below `lib`, or nothing.
    below_lib: &'static str,
    /// Option that names another folder.
    option: &'static str,
    /// Command that installs the library.
    install: &'static str,
}

/// Provider, which libfabric loads.
pub(crate) const PROVIDER: Library = Library {
    file: PROVIDER_LIBRARY,
    below_lib: "libfabric",
    option: "--provider",
    install: "`make install-provider PREFIX=DIR` puts it into DIR/lib/libfabric",
};

/// Plug-in, which NCCL loads.
pub(crate) const PLUGIN: Library = Library {
    file: "libnccl-net-pathweave.so",
    below_lib: "",
    option: "--plugin",
    install: "`make nccl PREFIX=DIR` puts it into DIR/lib",
};

impl Library {
    /// Returns the given folder.
    ///
    /// # Errors
    /// The library is not in the folder.
    pub(crate) fn given(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let folder = std::path::absolute(folder).unwrap_or(folder.to_owned());
        if self.is_in(&folder) {
            Ok(folder)
        } else {
            Err(Failure::Input(format!("{} {}: there is no {}", self.option, folder.display(), self.file)))
        }
    }

    /// Returns the given folder, or else the one in which the library is installed.
    ///
    /// # Errors
    /// The library is not there. The error names the folders searched.
    pub(crate) fn folder(&self, given: Option<&Path>) -> Result<PathBuf, Failure> {
        if let Some(folder) = given {
            return self.given(folder);
        }
        let search = self.installed()?;
        search.folder().ok_or_else(|| {
            Failure::Input(format!("{search}: {}, and {} names another folder", self.install, self.option))
        })
    }

    /// Searches where packages, tarballs and source builds have the library: in the folder of the package that
    /// contains this program, beside this program, and in the library folders of the same PREFIX.
    ///
    /// # Errors
    /// The file of this program cannot be found.
    pub(crate) fn beside_the_program(&self) -> Result<Search, Failure> {
        let program = self_command::file()?;
        Ok(self.over(self.folders(self_command::libraries(), &program)))
    }

    /// Searches beside this program, and in the folder that is used without a PREFIX.
    ///
    /// # Errors
    /// The file of this program cannot be found.
    pub(crate) fn installed(&self) -> Result<Search, Failure> {
        let mut folders = self.beside_the_program()?.looked_into;
        let local = self.below(Path::new("/usr/local/lib"));
        if !folders.contains(&local) {
            folders.push(local);
        }
        Ok(self.over(folders))
    }

    fn folders(&self, package: Option<&Path>, program: &Path) -> Vec<PathBuf> {
        let beside = program.parent().unwrap_or(Path::new("/"));
        let lib = beside.parent().unwrap_or(Path::new("/")).join("lib");
        // Debian has libraries in a folder of the processor's.
        let debian = lib.join(debian_folder());
        let mut folders: Vec<PathBuf> = package.map(|lib| self.below(lib)).into_iter().collect();
        folders.push(beside.to_owned());
        folders.extend([lib, debian].map(|lib| self.below(&lib)));
        folders
    }

    /// Returns the library's folder in a folder of libraries.
    fn below(&self, lib: &Path) -> PathBuf {
        // A path that ends in a separator is another text for the same folder.
        lib.join(self.below_lib).components().collect()
    }

    fn over(&self, folders: Vec<PathBuf>) -> Search {
        Search::over(self.file, folders)
    }

    fn is_in(&self, folder: &Path) -> bool {
        folder.join(self.file).is_file()
    }
}

/// Returns the name of Debian's library folder, such as `x86_64-linux-gnu`.
fn debian_folder() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// Folders searched, in order, and the first match.
#[derive(Debug)]
pub(crate) struct Search {
    file: &'static str,
    looked_into: Vec<PathBuf>,
    found: Option<PathBuf>,
}

impl Search {
    /// Searches for the provider like libfabric if FI_PROVIDER_PATH has this value: a list of folders, and of
    /// libraries with a leading plus sign.
    pub(crate) fn as_libfabric(variable: &OsStr) -> Search {
        let text = variable.to_string_lossy();
        let entries = text.trim_start_matches('@').split(':').filter(|entry| !entry.is_empty());
        let folders = entries.map(|entry| PathBuf::from(entry.trim_start_matches('+'))).collect();
        Search::over(PROVIDER.file, folders)
    }

    fn over(file: &'static str, folders: Vec<PathBuf>) -> Search {
        let found = folders.iter().find(|folder| folder.join(file).is_file() || is_it(folder, file)).cloned();
        Search { file, looked_into: folders, found }
    }

    /// Returns the first folder that contains the library.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let found = self.found.as_deref()?;
        Some(if is_it(found, self.file) { found.parent()?.to_owned() } else { found.to_owned() })
    }
}

/// Formats the folders searched, for an error.
impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folders: Vec<_> = self.looked_into.iter().map(|folder| folder.display().to_string()).collect();
        write!(f, "there is no {} in {}", self.file, folders.join(", "))
    }
}

fn is_it(path: &Path, file: &str) -> bool {
    path.file_name() == Some(OsStr::new(file)) && path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(library: &Library, package: Option<&str>, program: &str) -> Vec<String> {
        let folders = library.folders(package.map(Path::new), Path::new(program));
        folders.iter().map(|folder| folder.display().to_string()).collect()
    }

    #[test]
    fn packages_tarballs_and_source_builds_have_their_folders() {
        let debian = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        assert_eq!(
            texts(&PROVIDER, Some("/site/pathweave/lib"), "/usr/bin/python3"),
            [
                "/site/pathweave/lib/libfabric".to_owned(),
                "/usr/bin".to_owned(),
                "/usr/lib/libfabric".to_owned(),
                format!("{debian}/libfabric")
            ]
        );
        assert_eq!(
            texts(&PLUGIN, None, "/usr/bin/pathweave"),
            ["/usr/bin".to_owned(), "/usr/lib".to_owned(), debian]
        );
        assert_eq!(texts(&PLUGIN, Some("/p/lib"), "/bin/python3")[0], "/p/lib");
    }

    #[test]
    fn a_missing_library_is_an_error_with_the_folders() {
        let says = |result: Result<PathBuf, Failure>, said: &[&str]| match result {
            Err(Failure::Input(error)) => assert!(said.iter().all(|said| error.contains(said)), "{error}"),
            other => panic!("{other:?}"),
        };
        let nowhere = Library { file: "libnowhere.so", ..PLUGIN };
        says(nowhere.folder(None), &["there is no libnowhere.so in ", ", /usr/local/lib: ", "make nccl"]);
        says(nowhere.folder(Some(Path::new("/nowhere"))), &["--plugin /nowhere: there is no libnowhere.so"]);
        let search = Search::over(PLUGIN.file, ["/nowhere/a", "/nowhere/b"].map(PathBuf::from).to_vec());
        assert_eq!(search.to_string(), "there is no libnccl-net-pathweave.so in /nowhere/a, /nowhere/b");
    }
}
