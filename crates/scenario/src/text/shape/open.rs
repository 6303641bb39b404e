//! Names in place of tables: a text that names a table whose fields all have defaults.

use serde_json::Value as Json;

use super::super::{Node, Table, Value};
use super::{allowed_types, branches, fields, resolve};

/// Returns the key of a table that is one of several choices, distinguished by its only key.
pub(super) fn only_key(branch: &Json) -> Option<&str> {
    let [key] = branch["required"].as_array()?.as_slice() else { return None };
    let only = branch["properties"].as_object().is_some_and(|properties| properties.len() == 1);
    // A constant is the tag of a table.
    let property = &branch["properties"][key.as_str()?];
    let is_tag = property.get("const").is_some() || property.get("enum").is_some();
    (only && !is_tag).then(|| key.as_str()).flatten()
}

/// Returns true for a table of which no field is required.
pub(super) fn has_defaults(content: &Json) -> bool {
    content["type"] == "object"
        && content.get("properties").is_some()
        && content["required"].as_array().is_none_or(Vec::is_empty)
}

/// Replaces names by tables in `node` and everything in it.
pub(super) fn names(root: &Json, schema: &Json, node: &mut Node) {
    let schema = resolve(root, schema);
    let choices: Vec<&Json> = branches(schema).into_iter().map(|branch| resolve(root, branch)).collect();
    let free = |branch: &&Json| allowed_types(branch) == ["string"] && fields::names(branch).is_empty();
    if let Value::Text(text) = &node.value {
        // Where any text is allowed, none is a name.
        if choices.iter().any(free) {
            return;
        }
        if let Some(branch) = choices.iter().find(|branch| only_key(branch) == Some(text.as_str()))
            && has_defaults(resolve(root, &branch["properties"][text.as_str()]))
        {
            let content =
                Node { value: Value::Table(Table::new()), key: node.key.clone(), span: node.span.clone() };
            node.value = Value::Table(Table::from([(text.clone(), content)]));
        }
    }
    match &mut node.value {
        Value::Table(table) => {
            for (name, child) in table.iter_mut() {
                let property = &schema["properties"][name];
                if property.is_object() {
                    names(root, property, child);
                } else if let Some(items) =
                    schema.get("additionalProperties").filter(|items| items.is_object())
                {
                    names(root, items, child);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items").filter(|items| items.is_object()) {
                items.iter_mut().for_each(|item| names(root, schema, item));
            }
        }
        // An optional choice is one of the alternatives.
        Value::Text(_) => {}
        Value::Integer(_) | Value::Float(_) | Value::Bool(_) => return,
    }
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let fitting = choices.iter().copied().filter(|branch| is_tagged_so(branch, node)).collect::<Vec<_>>();
    parts.chain(fitting).for_each(|part| names(root, part, node));
}

/// Returns false if the tag of an alternative differs from that of the table.
fn is_tagged_so(branch: &Json, node: &Node) -> bool {
    let Some(table) = node.as_table() else { return true };
    let properties = branch["properties"].as_object().into_iter().flatten();
    let mut tags = properties.filter_map(|(name, property)| Some((name, property["const"].as_str()?)));
    tags.all(|(name, tag)| table.get(name).and_then(Node::as_text) == Some(tag))
}
