//! Values with their source locations.

use std::collections::BTreeMap;

use serde::Serialize;

use super::path::{FieldPath, StepRef};
use super::{Diagnostic, Span};

/// Fields by name.
pub(crate) type Table = BTreeMap<String, Node>;

/// Value with its source locations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// The value itself.
    pub(crate) value: Value,
    /// Location of the key; `None` for items of arrays and for values without a source (presets).
    pub(crate) key: Option<Span>,
    /// Location of the value.
    pub(crate) span: Option<Span>,
}

/// TOML value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Array(Vec<Node>),
    Table(Table),
}

impl Value {
    /// Returns the type as TOML names it, with an article.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number with a fraction",
            Value::Bool(_) => "a boolean",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }
    /// Returns the value in TOML syntax, if it is short enough for a message.
    pub(crate) fn short(&self) -> Option<String> {
        let text = match self {
            Value::Text(text) => format!("\"{text}\""),
            Value::Integer(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Bool(value) => value.to_string(),
            Value::Array(_) | Value::Table(_) => return None,
        };
        (text.chars().count() <= 60).then_some(text)
    }
}

impl Node {
    /// Creates a node without a source location.
    pub(crate) fn without_location(value: Value) -> Self {
        Node { value, key: None, span: None }
    }
    pub(crate) fn as_table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }
    pub(crate) fn as_table_mut(&mut self) -> Option<&mut Table> {
        if let Value::Table(table) = &mut self.value { Some(table) } else { None }
    }
    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }
    /// Returns the value one step below.
    fn child(&self, step: StepRef<'_>) -> Option<&Node> {
        match (step, &self.value) {
            (StepRef::Key(name), Value::Table(table)) => table.get(name),
            (StepRef::Index(index), Value::Array(items)) => items.get(index),
            _ => None,
        }
    }
    /// Returns the node at `path`, if there is one.
    pub(crate) fn find(&self, path: &FieldPath) -> Option<&Node> {
        path.steps().try_fold(self, |node, step| node.child(step))
    }
    /// Returns the location for errors at `path`: that of the value, or of the innermost table that exists.
    pub(crate) fn locate(&self, path: &FieldPath) -> Option<Span> {
        let mut node = self;
        let mut best = None;
        for step in path.steps() {
            let Some(child) = node.child(step) else { break };
            node = child;
            best = child.span.clone().or(child.key.clone()).or(best);
        }
        best
    }
    /// Adds the source location of its field to an error.
    pub(crate) fn place(&self, mut finding: Diagnostic) -> Diagnostic {
        if finding.span.is_none() {
            finding.span = self.locate(&finding.field);
        }
        finding
    }

    /// Merges `over` into this node. Tables are merged field by field; other values are replaced. A table of another
    /// `kind` is replaced, too, because its fields would have no meaning.
    pub(crate) fn merge(&mut self, over: Node) {
        self.merge_if(over, same_kind);
    }

    /// Merges settings of a scheme. A table whose only field is another table is one of several choices, and another
    /// choice replaces it: `picker = { recycled = {} }` replaces `picker = { mixed = {} }`.
    pub(crate) fn merge_scheme(&mut self, over: Node) {
        self.merge_if(over, |base, over| same_kind(base, over) && same_choice(base, over));
    }

    fn merge_if(&mut self, over: Node, same: fn(&Table, &Table) -> bool) {
        match (&mut self.value, over) {
            (Value::Table(base), Node { value: Value::Table(over), key, span }) if same(base, &over) => {
                for (name, node) in over {
                    match base.get_mut(&name) {
                        Some(below) => below.merge_if(node, same),
                        None => drop(base.insert(name, node)),
                    }
                }
                self.key = key.or(self.key.take());
                self.span = span.or(self.span.take());
            }
            (_, over) => *self = over,
        }
    }

    /// Converts the node to a plain value for serde.
    pub(crate) fn to_toml(&self) -> toml::Value {
        match &self.value {
            Value::Text(text) => toml::Value::String(text.clone()),
            Value::Integer(value) => toml::Value::Integer(*value),
            Value::Float(value) => toml::Value::Float(*value),
            Value::Bool(value) => toml::Value::Boolean(*value),
            Value::Array(items) => toml::Value::Array(items.iter().map(Node::to_toml).collect()),
            Value::Table(table) => {
                toml::Value::Table(table.iter().map(|(name, node)| (name.clone(), node.to_toml())).collect())
            }
        }
    }
    /// Converts a value of serde to a node without source locations. Scenarios have no dates; a date becomes a text.
    pub(crate) fn from_toml(value: toml::Value) -> Self {
        Node::without_location(match value {
            toml::Value::String(text) => Value::Text(text),
            toml::Value::Integer(value) => Value::Integer(value),
            toml::Value::Float(value) => Value::Float(value),
            toml::Value::Boolean(value) => Value::Bool(value),
            toml::Value::Datetime(value) => Value::Text(value.to_string()),
            toml::Value::Array(items) => Value::Array(items.into_iter().map(Node::from_toml).collect()),
            toml::Value::Table(table) => {
                Value::Table(table.into_iter().map(|(name, value)| (name, Node::from_toml(value))).collect())
            }
        })
    }
}

/// Converts a configuration to a value. All other conversions start from this value, so that the serialisation code
/// of all configurations is compiled only once.
pub(crate) fn value_of(config: &impl Serialize) -> toml::Value {
    toml::Value::try_from(config)
        .expect("configurations are structs, enums and numbers, which TOML can express")
}

/// Units of a window. A table has one of them.
const UNITS: [&str; 2] = ["bdp", "packets"];

/// Returns true unless `kind` or unit of the two tables differ; a table without either matches any.
fn same_kind(base: &Table, over: &Table) -> bool {
    let kind = |table: &Table| table.get("kind").and_then(|kind| kind.as_text().map(str::to_owned));
    let unit = |table: &Table| match table.len() {
        1 => UNITS.into_iter().find(|unit| table.get(*unit).is_some()),
        _ => None,
    };
    let same_unit = unit(over).is_none_or(|over| unit(base).is_none_or(|base| base == over));
    same_unit && kind(over).is_none_or(|over| kind(base).is_none_or(|base| base == over))
}

/// Returns the only field of a table, if it is a table itself.
pub(crate) fn single_table_key(table: &Table) -> Option<&str> {
    let mut fields = table.iter();
    match (fields.next(), fields.next()) {
        (Some((name, Node { value: Value::Table(_), .. })), None) => Some(name),
        _ => None,
    }
}

/// Returns true unless both tables are choices and differ.
fn same_choice(base: &Table, over: &Table) -> bool {
    single_table_key(base).is_none_or(|base| single_table_key(over).is_none_or(|over| base == over))
}

#[cfg(test)]
mod tests {
    use super::super::{Source, parse_document};
    use super::*;

    fn tree(text: &str) -> Node {
        parse_document(&Source::new("a.toml", text)).unwrap()
    }

    #[test]
    fn a_missing_field_is_placed_at_its_table() {
        let tree = tree("x = 1\n[topology]\nkind = \"star\"\n");
        let at = |path: &str| tree.locate(&FieldPath::root().key(path)).unwrap().line_and_column();
        assert_eq!(at("topology.hosts"), (2, 1));
        assert_eq!(at("topology.kind"), (3, 8));
        assert_eq!(tree.locate(&FieldPath::root().key("nothing")), None);
    }

    #[test]
    fn merging_replaces_leaves_and_keeps_the_rest() {
        let mut base = tree("[s]\na = 1\nb = [1, 2]\n[s.deep]\nc = 1\nd = 2\n");
        base.merge(tree("[s]\nb = [3]\ndeep.c = 9\n"));
        let merged = toml::to_string(&base.to_toml()).unwrap();
        assert_eq!(merged, "[s]\na = 1\nb = [3]\n\n[s.deep]\nc = 9\nd = 2\n");
    }
}
