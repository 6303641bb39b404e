//! TOML files other than scenarios, read with the same care: places, near names, every mistake at once.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::path::StepRef;
use super::shape::Shape;
use super::{Diagnostic, Diagnostics, FieldPath, Node, Source, Value, parse_document, read_document};

/// A TOML file, and where each of its values was written.
#[derive(Clone, Debug)]
pub struct Document {
    /// What the user calls it.
    pub name: String,
    /// Folder to which file names in it are relative.
    pub base_dir: PathBuf,
    tree: Node,
}

impl Document {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Diagnostics> {
        let (tree, source) = read_document(path)?;
        let base_dir = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Document { name: source.name.clone(), base_dir, tree })
    }

    /// The same for a text, called `name` in errors.
    pub fn parse(text: &str, name: &str, base_dir: impl Into<PathBuf>) -> Result<Self, Diagnostics> {
        // Who read the file for us may have left its byte order mark in.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let tree = parse_document(&Source::new(name, text))?;
        Ok(Document { name: name.to_owned(), base_dir: base_dir.into(), tree })
    }

    /// Its fields as a `T`. Where `T`'s schema does not fit, every place that does not is named.
    pub fn to<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, Diagnostics> {
        Diagnostics::check(Shape::of::<T>().check(&self.tree))?;
        serde_path_to_error::deserialize(self.tree.to_toml()).map_err(|error| {
            let field = FieldPath::from(error.path());
            let message = error.into_inner().message().trim().to_owned();
            self.place(Diagnostic::new(field, message)).into()
        })
    }

    /// Places a finding by its field.
    pub fn place(&self, finding: Diagnostic) -> Diagnostic {
        self.tree.place(finding)
    }

    /// The table at `field`, if there is one.
    pub(crate) fn table(&self, field: &FieldPath) -> Option<&Node> {
        let mut node = &self.tree;
        for step in field.steps() {
            node = match (step, &node.value) {
                (StepRef::Key(name), Value::Table(table)) => table.get(name)?,
                (StepRef::Index(index), Value::Array(items)) => items.get(index)?,
                _ => return None,
            };
        }
        node.as_table().map(|_| node)
    }
}
