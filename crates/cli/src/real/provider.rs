//! Search for the library of the libfabric provider.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use pathweave_lab::PROVIDER_LIBRARY;

use crate::failure::Failure;
use crate::self_command;

/// Folders searched, in order, and the first match.
#[derive(Debug)]
pub(crate) struct Search {
    looked_into: Vec<PathBuf>,
    found: Option<PathBuf>,
}

impl Search {
    /// Returns the given folder.
    ///
    /// # Errors
    /// The library is not in the folder.
    pub(crate) fn given(folder: &Path) -> Result<PathBuf, Failure> {
        let folder = std::path::absolute(folder).unwrap_or(folder.to_owned());
        if has_it(&folder) {
            Ok(folder)
        } else {
            Err(Failure::Input(format!("--provider {}: there is no {PROVIDER_LIBRARY}", folder.display())))
        }
    }

    /// Searches beside this program: in its folder, and in the library folder of the same PREFIX.
    ///
    /// # Errors
    /// The file of this program cannot be found.
    pub(crate) fn beside_the_program() -> Result<Search, Failure> {
        let program = self_command::file()?;
        let beside = program.parent().unwrap_or(Path::new("/"));
        let above = beside.parent().unwrap_or(Path::new("/"));
        Ok(Search::over(vec![beside.to_owned(), above.join("lib/libfabric")]))
    }

    /// Searches beside this program, and in the folder used by `make install-provider` without a PREFIX.
    ///
    /// # Errors
    /// The file of this program cannot be found.
    pub(crate) fn installed() -> Result<Search, Failure> {
        let mut folders = Search::beside_the_program()?.looked_into;
        folders.push("/usr/local/lib/libfabric".into());
        folders.dedup();
        Ok(Search::over(folders))
    }

    /// Searches like libfabric if FI_PROVIDER_PATH has this value: a list of folders, and of libraries with a leading
    /// plus sign.
    pub(crate) fn as_libfabric(variable: &OsStr) -> Search {
        let text = variable.to_string_lossy();
        let entries = text.trim_start_matches('@').split(':').filter(|entry| !entry.is_empty());
        Search::over(entries.map(|entry| PathBuf::from(entry.trim_start_matches('+'))).collect())
    }

    fn over(folders: Vec<PathBuf>) -> Search {
        let found = folders.iter().find(|folder| has_it(folder) || is_it(folder)).cloned();
        Search { looked_into: folders, found }
    }

    /// Returns the first folder that contains the library.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let found = self.found.as_deref()?;
        Some(if is_it(found) { found.parent()?.to_owned() } else { found.to_owned() })
    }
}

/// Formats the folders searched, for an error.
impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folders: Vec<_> = self.looked_into.iter().map(|folder| folder.display().to_string()).collect();
        write!(f, "there is no {PROVIDER_LIBRARY} in {}", folders.join(", "))
    }
}

fn has_it(folder: &Path) -> bool {
    folder.join(PROVIDER_LIBRARY).is_file()
}

fn is_it(file: &Path) -> bool {
    file.file_name() == Some(OsStr::new(PROVIDER_LIBRARY)) && file.is_file()
}
