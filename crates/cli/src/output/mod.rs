//! Files that are there as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file that appears under its name when it is whole.
pub(crate) struct Output {
    path: PathBuf,
    partial: PathBuf,
    file: File,
}

impl Output {
    /// Makes the file under another name, so that what cannot be written is known before there is anything to write.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = path.with_file_name(format!(".{name}.partial-{}", std::process::id()));
        if path.is_dir() {
            return Err(Failure::Input(format!("cannot write {}: it is a folder", path.display())));
        }
        let file = File::create(&partial)
            .map_err(|why| Failure::Input(format!("cannot write {}: {why}", path.display())))?;
        Ok(Output { path: path.to_owned(), partial, file })
    }

    /// Writes it and gives it its name.
    pub(crate) fn write(
        &self,
        content: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut out = BufWriter::with_capacity(1 << 20, &self.file);
        let written = content(&mut out).and_then(|()| out.flush());
        written
            .and_then(|()| fs::rename(&self.partial, &self.path))
            .map_err(|why| Failure::Input(format!("cannot write {}: {why}", self.path.display())))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // After a success it is gone already.
        let _ = fs::remove_file(&self.partial);
    }
}
