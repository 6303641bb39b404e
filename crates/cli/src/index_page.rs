//! Index page that links to the reports of several comparisons.

use std::fs;
use std::io::Write;
use std::path::Path;

use pathweave_report::{SchemeComparison, landing_html};

use crate::failure::Failure;
use crate::output::Output;

/// Returns an error if the page must not be written into `target`, because a page there is not from pathweave.
pub(crate) fn check(target: &Path) -> Result<(), Failure> {
    let path = target.join("index.html");
    let occupied = |found: &str| {
        Err(Failure::Input(format!(
            "{}: exists and is not a page of ours ({found}); choose another --out or remove it",
            path.display()
        )))
    };
    match fs::symlink_metadata(&path) {
        Err(_) => Ok(()),
        Ok(found) if !found.is_file() => occupied("it is no file"),
        Ok(_) => match fs::read_to_string(&path) {
            Ok(text) if text.contains(TITLE) => Ok(()),
            _ => occupied("it has another title"),
        },
    }
}

/// Writes `index.html` into `target`. The file appears complete or not at all.
pub(crate) fn write(
    target: &Path,
    heading: &str,
    says: &str,
    situations: &[SchemeComparison<'_>],
) -> Result<(), Failure> {
    check(target)?;
    let path = target.join("index.html");
    let made = fs::create_dir_all(target);
    made.map_err(|why| Failure::Input(format!("cannot make {}: {why}", target.display())))?;
    Output::create(&path)?.write(|out| out.write_all(landing_html(heading, says, situations).as_bytes()))
}

/// Text that identifies a page as written by pathweave.
const TITLE: &str = "<title>pathweave</title>";
