//! TOML files other than scenarios, read with the same care: places, near names, every mistake at once.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::shape::Shape;
use super::{Diagnostic, Diagnostics, FieldPath, Node, Setting, Source, parse_document, read_document};
use crate::load::{Changes, Loaded};

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
        // The text may begin with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let tree = parse_document(&Source::new(name, text))?;
        Ok(Document { name: name.to_owned(), base_dir: base_dir.into(), tree })
    }

    /// Its fields as a `T`. Where `T`'s schema does not fit, every place that does not is named.
    pub fn to<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, Diagnostics> {
        Diagnostics::check(Shape::for_type::<T>().check(&self.tree))?;
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

    /// The setting of a scenario's field that this document makes: its name is the value of the field `key_at`, its value
    /// is written at `value_at`, or where nothing is there, where the name is.
    pub fn setting(
        &self,
        key: &str,
        key_at: &FieldPath,
        value: &toml::Value,
        value_at: &FieldPath,
    ) -> Result<Setting, Diagnostics> {
        let written = self.tree.find(value_at).filter(|node| node.to_toml() == *value);
        let value_span = written.and_then(|node| node.span.clone());
        let node = written.cloned().unwrap_or_else(|| Node::from_toml(value.clone()));
        Setting::written(key, self.tree.locate(key_at), node, value_span)
    }

    /// The same where name and value are an entry of the table at `table`.
    pub fn setting_of(
        &self,
        table: &FieldPath,
        key: &str,
        value: &toml::Value,
    ) -> Result<Setting, Diagnostics> {
        let at = table.literal_key(key);
        let entry = self.tree.find(&at);
        let node = entry.cloned().unwrap_or_else(|| Node::from_toml(value.clone()));
        let key_span = entry.and_then(|node| node.key.clone()).or_else(|| self.tree.locate(table));
        Setting::written(key, key_span, node, entry.and_then(|node| node.span.clone()))
    }

    /// Reads the scenario that this document names at `field`. Where there is none, the field is what is wrong.
    pub fn scenario(&self, field: &FieldPath, path: &str, changes: &Changes) -> Result<Loaded, Diagnostics> {
        Loaded::read(&self.base_dir.join(path), changes).map_err(|found| {
            // What has no place of its own is about the file as a whole: it cannot be read.
            let whole: Vec<Diagnostic> = found
                .iter()
                .map(|finding| match finding.span {
                    None if finding.field.is_root() => {
                        self.place(Diagnostic { field: field.clone(), ..finding.clone() })
                    }
                    _ => finding.clone(),
                })
                .collect();
            Diagnostics::check(whole).expect_err("as many findings as before")
        })
    }

    /// The table at `field`, if there is one.
    pub(crate) fn table(&self, field: &FieldPath) -> Option<&Node> {
        let node = self.tree.find(field)?;
        node.as_table().map(|_| node)
    }
}
