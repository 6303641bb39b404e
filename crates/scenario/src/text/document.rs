//! TOML documents other than scenarios, with the same error reports: source locations, suggestions, all errors at
//! once.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::shape::SchemaCheck;
use super::{
    Diagnostic, Diagnostics, FieldPath, FileKind, Node, Setting, Source, parse_document, read_document,
};
use crate::load::{Changes, Loaded};

/// TOML document with the source location of each value.
#[derive(Clone, Debug)]
pub struct Document {
    /// Name of the document in error messages.
    pub name: String,
    /// Base folder of relative file names in the document.
    pub base_dir: PathBuf,
    tree: Node,
}

impl Document {
    /// Reads a file of a kind.
    pub fn read(path: &Path, kind: FileKind) -> Result<Self, Diagnostics> {
        let (tree, source) = read_document(path)?;
        kind.check(&tree, &source.name)?;
        let base_dir = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Document { name: source.name.clone(), base_dir, tree })
    }

    /// Parses a text, which error messages call `name`.
    pub fn parse(text: &str, name: &str, base_dir: impl Into<PathBuf>) -> Result<Self, Diagnostics> {
        // The text may begin with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let tree = parse_document(&Source::new(name, text))?;
        Ok(Document { name: name.to_owned(), base_dir: base_dir.into(), tree })
    }

    /// Deserialises the document as `T`. Every value that does not fit the schema of `T` is reported.
    pub fn to<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, Diagnostics> {
        let shape = SchemaCheck::for_type::<T>();
        let mut tree = self.tree.clone();
        shape.open_names(&mut tree);
        Diagnostics::check(shape.check(&tree))?;
        serde_path_to_error::deserialize(tree.to_toml()).map_err(|error| {
            let field = FieldPath::from(error.path());
            let message = error.into_inner().message().trim().to_owned();
            self.place(Diagnostic::new(field, message)).into()
        })
    }

    /// Adds the source location of its field to an error.
    pub fn place(&self, finding: Diagnostic) -> Diagnostic {
        self.tree.place(finding)
    }

    /// Returns the setting of a scenario's field that this document makes. The field `key_at` has the key, and
    /// `value_at` the value. If nothing is written at `value_at`, errors in the value point at the key.
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

    /// Returns the setting whose key and value are an entry of the table at `table`.
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

    /// Reads the scenario whose path this document has in `field`. If it cannot be read, the error is reported at
    /// `field`.
    pub fn scenario(&self, field: &FieldPath, path: &str, changes: &Changes) -> Result<Loaded, Diagnostics> {
        Loaded::read(&self.base_dir.join(path), changes).map_err(|found| {
            // An error without a source location concerns the whole file: it cannot be read.
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

    /// Returns the table at `field`, if there is one.
    pub(crate) fn table(&self, field: &FieldPath) -> Option<&Node> {
        let node = self.tree.find(field)?;
        node.as_table().map(|_| node)
    }
}
