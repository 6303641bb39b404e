//! Settings of fields from outside the document: by `--set key=value`, or by another file such as a sweep.

use super::path::{FieldPath, StepRef};
use super::{Diagnostic, Diagnostics, Node, Source, Span, Table, Value, parse_document};

/// Largest number of levels in a field name. No field is that deep.
const MOST_LEVELS: usize = 32;

/// Field, the value to set it to, and where the setting was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Field to set.
    field: FieldPath,
    value: Node,
    key: Option<Span>,
}

impl Setting {
    /// Parses `key=value`. The key is dotted and may index arrays (`workload[0].size`, from 0). The value is TOML, or
    /// a text if it is not valid TOML (`run.until=10ms` needs no quotes).
    pub(crate) fn parse(text: &str) -> Result<Setting, Diagnostics> {
        const FLAG: &str = "--set ";
        let source = Source::new("command line", format!("{FLAG}{text}"));
        let span = |from: usize, to: usize| Span::new(&source, FLAG.len() + from..FLAG.len() + to);
        let Some((key, value)) = text.split_once('=') else {
            let message = format!("--set needs key=value, not `{}`", shortened(text));
            let finding = Diagnostic::new(FieldPath::root(), message)
                .at(Some(span(0, text.len())))
                .help("for example --set run.until=10ms or --set workload[0].size=2MB");
            return Err(finding.into());
        };
        let value_span = span(key.len() + 1, text.len());
        let key_span = Some(span(0, key.len()));
        let field =
            field_named(key.trim()).map_err(|finding| Diagnostics::from(finding.at(key_span.clone())))?;
        let value = parse_value(value.trim());
        let value = value.map_err(|finding| Diagnostics::from(finding.at(Some(value_span.clone()))))?;
        let node = Node { value, key: None, span: Some(value_span) };
        Ok(Setting { field, value: node, key: key_span })
    }

    /// Creates a setting that another document makes, with the source locations of key and value.
    pub(crate) fn written(
        key: &str,
        at: Option<Span>,
        mut value: Node,
        value_at: Option<Span>,
    ) -> Result<Setting, Diagnostics> {
        let field = field_named(key).map_err(|finding| Diagnostics::from(finding.at(at.clone())))?;
        value.span = value_at.or_else(|| at.clone());
        Ok(Setting { field, value: Node { key: None, ..value }, key: at })
    }

    /// Returns true if the setting is for exactly this field.
    pub(crate) fn is_of(&self, field: &FieldPath) -> bool {
        self.field == *field
    }

    /// Returns true if the setting is for this top-level field or a field within it.
    pub(crate) fn is_within(&self, name: &str) -> bool {
        matches!(self.field.steps().next(), Some(StepRef::Key(first)) if first == name)
    }

    /// Returns the error that the setting is refused.
    pub(crate) fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.field.clone(), message).at(self.key.clone())
    }

    /// Sets the field in `root`. Missing tables on the path are created; missing array items are not.
    pub(crate) fn apply(&self, root: &mut Node) -> Result<(), Diagnostic> {
        let mut at = root;
        let mut walked = FieldPath::root();
        for step in self.field.steps() {
            match step {
                StepRef::Key(name) => {
                    let below = walked.to_string();
                    // A text on the path is a shorthand (`scheme = "rps"`), which is expanded.
                    if let Value::Text(text) = &at.value
                        && walked.last_key() == Some("scheme")
                    {
                        let base =
                            Node { value: Value::Text(text.clone()), key: None, span: at.span.clone() };
                        at.value = Value::Table(Table::from([("base".to_owned(), base)]));
                    }
                    let kind = at.value.type_name();
                    let is_array = matches!(at.value, Value::Array(_));
                    let Some(table) = at.as_table_mut() else {
                        let finding = self.error(format!("`{below}` is {kind}, it has no field `{name}`"));
                        let by_index = format!("its items are {below}[0], {below}[1], ...");
                        return Err(if is_array { finding.help(by_index) } else { finding });
                    };
                    at = table.entry(name.to_owned()).or_insert_with(|| Node {
                        value: Value::Table(Table::new()),
                        key: self.key.clone(),
                        span: self.key.clone(),
                    });
                    walked = walked.key(name);
                }
                StepRef::Index(index) => {
                    let name = walked.to_string();
                    let Value::Array(items) = &mut at.value else {
                        return Err(self.error(format!("`{name}` is not an array")));
                    };
                    let count = items.len();
                    at = items.get_mut(index).ok_or_else(|| {
                        self.error(format!("`{name}` has no item {index}"))
                            .help(format!("it has {count}, counted from 0"))
                    })?;
                    walked = walked.index(index);
                }
            }
        }
        *at = Node { key: self.key.clone(), ..self.value.clone() };
        Ok(())
    }
}

/// Parses the name of a field.
fn field_named(key: &str) -> Result<FieldPath, Diagnostic> {
    let refuse = |message: String| {
        Diagnostic::new(FieldPath::root(), message)
            .help("names are dotted and array items counted from 0: topology.pods, workload[0].size")
    };
    let levels = key.bytes().filter(|byte| matches!(byte, b'.' | b'[')).count() + 1;
    if levels > MOST_LEVELS {
        let message = format!(
            "`{}` has {levels} levels; the name of a field has at most {MOST_LEVELS}",
            shortened(key)
        );
        return Err(refuse(message));
    }
    let field = FieldPath::root().key(key);
    if field.to_string() != key || field.is_root() {
        return Err(refuse(format!("`{}` is not the name of a field", shortened(key))));
    }
    Ok(field)
}

/// Shortens a text for an error message.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// Parses a value as TOML, or takes it as a text if that fails. What begins like a table, an array or a quoted text and
/// is none is an error: nobody means it as a text.
fn parse_value(text: &str) -> Result<Value, Diagnostic> {
    let source = Source::new("command line", format!("value = {text}"));
    let parsed = parse_document(&source).ok();
    // `1 \n x = 2` would parse as a document with two fields, which is not a value.
    let single = parsed.filter(|root| root.as_table().is_some_and(|table| table.len() == 1));
    let value = single.and_then(|root| root.as_table().and_then(|table| table.get("value")).cloned());
    let form = match text.chars().next() {
        Some('{') => "a table",
        Some('[') => "an array",
        Some('"' | '\'') => "a text in quotes",
        _ => return Ok(value.map_or_else(|| Value::Text(text.to_owned()), |node| strip(node).value)),
    };
    value.map(|node| strip(node).value).ok_or_else(|| {
        let message = format!("`{}` begins {form}, but is not valid TOML", shortened(text));
        Diagnostic::new(FieldPath::root(), message)
            .help("texts within tables and arrays need quotes, which the shell removes unless the whole setting is quoted: \
                   --set 'pools.a={ hosts = \"srv0.*\" }'")
    })
}

/// Removes source locations that refer to an internal text.
fn strip(node: Node) -> Node {
    Node::from_toml(node.to_toml())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(document: &str, setting: &str) -> Result<String, String> {
        let mut root = parse_document(&Source::new("a.toml", document)).unwrap();
        let setting = Setting::parse(setting).map_err(|e| e.to_string())?;
        setting.apply(&mut root).map_err(|e| Diagnostics::from(e).to_string())?;
        Ok(toml::to_string(&root.to_toml()).unwrap())
    }

    #[test]
    fn values_are_toml_or_bare_texts() {
        assert_eq!(set("", "seed=7").unwrap(), "seed = 7\n");
        assert_eq!(set("", "run.until=10ms").unwrap(), "[run]\nuntil = \"10ms\"\n");
        assert_eq!(set("", "a=[1, 2]").unwrap(), "a = [1, 2]\n");
        assert_eq!(set("", "a=\"7\"").unwrap(), "a = \"7\"\n");
        assert_eq!(set("", "file=a=b.txt").unwrap(), "file = \"a=b.txt\"\n");
    }

    #[test]
    fn arrays_are_indexed_and_shorthands_opened() {
        assert_eq!(set("[[w]]\nx = 1\n", "w[0].x=2").unwrap(), "[[w]]\nx = 2\n");
        assert!(set("[[w]]\nx = 1\n", "w[1].x=2").unwrap_err().contains("no item 1"));
        assert_eq!(
            set("scheme = \"rps\"", "scheme.paths=4").unwrap(),
            "[scheme]\nbase = \"rps\"\npaths = 4\n"
        );
    }

    #[test]
    fn a_bad_flag_is_shown() {
        let text = set("", "until").unwrap_err();
        assert!(text.contains("1 | --set until"), "{text}");
        assert!(set("", "a..b=1").unwrap_err().contains("not the name of a field"));
        assert!(set("seed = 1", "seed.x=1").unwrap_err().contains("it has no field `x`"));
        for (setting, form) in
            [("a={b=c}", "a table"), ("a=[x, y]", "an array"), ("a='b", "a text in quotes")]
        {
            let text = set("", setting).unwrap_err();
            assert!(text.contains(&format!("begins {form}, but is not valid TOML")), "{text}");
        }
    }

    /// Names with many levels are refused before any work that grows with the square of the levels, or any deep tree.
    #[test]
    fn names_of_many_levels_are_refused() {
        let deep = |levels: usize| format!("{}=1", vec!["a"; levels].join("."));
        assert!(set("", &deep(32)).is_ok());
        let error = set("", &deep(20_000)).unwrap_err();
        assert!(error.contains("has 20000 levels; the name of a field has at most 32"), "{error}");
        assert!(error.len() < 1_000, "an error of {} bytes", error.len());
        assert!(set("", &format!("a{}=1", "[0]".repeat(20_000))).unwrap_err().contains("levels"));
    }
}
