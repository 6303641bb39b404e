//! Where the libfabric provider's library is.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use pathweave_lab::PROVIDER_LIBRARY;

use crate::failure::Failure;
use crate::itself;

/// Folders that were looked into, in this order, and what was in them.
#[derive(Debug)]
pub(crate) struct Search {
    looked_into: Vec<PathBuf>,
    found: Option<PathBuf>,
}

impl Search {
    /// In the folder given, and nowhere else.
    ///
    /// # Errors
    /// The library is not there.
    pub(crate) fn given(folder: &Path) -> Result<PathBuf, Failure> {
        let folder = std::path::absolute(folder).unwrap_or(folder.to_owned());
        if has_it(&folder) {
            Ok(folder)
        } else {
            Err(Failure::Input(format!("--provider {}: there is no {PROVIDER_LIBRARY}", folder.display())))
        }
    }

    /// Where it is beside this program: in its folder, or where the same PREFIX has it.
    ///
    /// # Errors
    /// This program cannot find itself.
    pub(crate) fn beside_the_program() -> Result<Search, Failure> {
        let program = itself::file()?;
        let beside = program.parent().unwrap_or(Path::new("/"));
        let above = beside.parent().unwrap_or(Path::new("/"));
        Ok(Search::over(vec![beside.to_owned(), above.join("lib/libfabric")]))
    }

    /// There, and where `make install-provider` puts it without a PREFIX.
    ///
    /// # Errors
    /// This program cannot find itself.
    pub(crate) fn installed() -> Result<Search, Failure> {
        let mut folders = Search::beside_the_program()?.looked_into;
        folders.push("/usr/local/lib/libfabric".into());
        folders.dedup();
        Ok(Search::over(folders))
    }

    /// Where libfabric looks when FI_PROVIDER_PATH has this value: folders, and with a plus before them libraries.
    pub(crate) fn as_libfabric(variable: &OsStr) -> Search {
        let text = variable.to_string_lossy();
        let entries = text.trim_start_matches('@').split(':').filter(|entry| !entry.is_empty());
        Search::over(entries.map(|entry| PathBuf::from(entry.trim_start_matches('+'))).collect())
    }

    fn over(folders: Vec<PathBuf>) -> Search {
        let found = folders.iter().find(|folder| has_it(folder) || is_it(folder)).cloned();
        Search { looked_into: folders, found }
    }

    /// The first folder that has it.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let found = self.found.as_deref()?;
        Some(if is_it(found) { found.parent()?.to_owned() } else { found.to_owned() })
    }
}

/// What was looked for in vain, for an error.
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
