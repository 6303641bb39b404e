//! Folder of files that appears complete or not at all.

use std::fs;
use std::io;
use std::path::Path;

use pathweave_report::PartialFolder;

use super::creation_error;
use crate::failure::Failure;

/// Creates the folder `path` with these files, given by name and content. An existing empty folder is used; anything
/// else at `path` is an error.
pub(crate) fn write_new_folder(path: &Path, files: &[(String, Vec<u8>)]) -> Result<(), Failure> {
    let failed = |why: String| Failure::Input(format!("cannot write {}: {why}", path.display()));
    if path.as_os_str() == "-" {
        return Err(failed("standard output takes one file, and this is a folder".to_owned()));
    }
    match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
        Ok(false) => return Err(failed("the folder exists and is not empty".to_owned())),
        Err(why) if why.kind() == io::ErrorKind::NotADirectory => {
            return Err(failed("a file of this name exists; expected a folder or a new name".to_owned()));
        }
        Ok(true) | Err(_) => {}
    }
    let unfinished = PartialFolder::beside(path).map_err(|why| failed(creation_error(path, &why)))?;
    for (name, content) in files {
        let written = fs::write(unfinished.path().join(name), content);
        written.map_err(|why| failed(format!("{name}: {why}")))?;
    }
    let renamed = unfinished.complete().and_then(|()| fs::rename(unfinished.path(), path));
    renamed.map_err(|why| failed(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_there_as_a_whole_or_not_at_all() {
        let at = tempfile::tempdir().unwrap();
        let folder = at.path().join("new");
        let files = [("one".to_owned(), vec![1]), ("two".to_owned(), vec![2, 3])];
        write_new_folder(&folder, &files).unwrap();
        assert_eq!(fs::read(folder.join("two")).unwrap(), [2, 3]);
        let refused = |path: &Path, files: &[(String, Vec<u8>)]| match write_new_folder(path, files) {
            Err(Failure::Input(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(refused(&folder, &files).ends_with("the folder exists and is not empty"));
        assert!(
            refused(&folder.join("one"), &files)
                .ends_with("a file of this name exists; expected a folder or a new name")
        );
        assert!(refused(&at.path().join("not/there"), &files).contains("there is no folder"));
        assert!(refused(Path::new("-"), &files).contains("standard output takes one file"));
        let wrong = [("one".to_owned(), vec![]), ("no/such/place".to_owned(), vec![])];
        assert!(refused(&at.path().join("half"), &wrong).contains("no/such/place"));
        let names = fs::read_dir(at.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["new"]);
        fs::create_dir(at.path().join("empty")).unwrap();
        write_new_folder(&at.path().join("empty"), &files).unwrap();
    }
}
