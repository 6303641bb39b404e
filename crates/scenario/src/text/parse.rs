//! Parser from TOML text to a tree.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Diagnostic, Diagnostics, EntryKind, FieldPath, Node, Source, Span, Table, Value, suggest_path};

/// Largest scenario file in bytes. A larger file is not a scenario.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Reads and parses a file.
pub(crate) fn read_document(path: &Path) -> Result<(Node, Arc<Source>), Diagnostics> {
    let name = path.display().to_string();
    let refuse = |message: String| {
        let error = Diagnostic::new(FieldPath::root(), message);
        match scenario_beside(path) {
            Some(scenario) => error.help(format!("{} is a scenario", scenario.display())),
            None => error,
        }
    };
    let text = pathweave_topo::read_text_file(path, MAX_FILE_BYTES).map_err(|why| {
        let near = suggest_path(path, EntryKind::File).map(|near| near.display().to_string());
        refuse(format!("cannot read {name}: {why}")).suggest(near.as_deref())
    })?;
    if let Some(format) = other_format(&text) {
        return Err(refuse(format!("{name} is a file in {format}; expected TOML")).into());
    }
    let source = Source::new(name, text);
    Ok((parse_document(&source)?, source))
}

/// Returns the scenario of the result folder that `path` is, or is in.
fn scenario_beside(path: &Path) -> Option<PathBuf> {
    let folder = if path.is_dir() { path } else { path.parent()? };
    let scenario = folder.join("scenario.toml");
    (folder.join("summary.json").is_file() && scenario.is_file() && path != scenario).then_some(scenario)
}

/// Returns the format of a text that cannot be TOML because of its first character.
fn other_format(text: &str) -> Option<&'static str> {
    match text.trim_start().chars().next()? {
        '{' => Some("JSON"),
        '<' => Some("HTML or XML"),
        _ => None,
    }
}

/// Parses a text. Reports every syntax error, not only the first.
pub(crate) fn parse_document(source: &Arc<Source>) -> Result<Node, Diagnostics> {
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    let mut converter = Converter { source, found: Vec::new() };
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        converter.report(span, error.message());
    }
    let span = document.span();
    let table = converter.table(document.into_inner());
    Diagnostics::check(converter.found)?;
    Ok(Node { value: Value::Table(table), key: None, span: Some(Span::new(source, span)) })
}

struct Converter<'a> {
    source: &'a Arc<Source>,
    found: Vec<Diagnostic>,
}

impl Converter<'_> {
    fn span(&self, range: Range<usize>) -> Option<Span> {
        Some(Span::new(self.source, range))
    }
    fn report(&mut self, range: Range<usize>, message: &str) {
        let finding = Diagnostic::new(FieldPath::root(), format!("not valid TOML: {message}"));
        self.found.push(finding.at(self.span(range)));
    }
    fn table(&mut self, table: DeTable<'_>) -> Table {
        let fields = table.into_iter().map(|(key, value)| {
            let mut node = self.node(value);
            node.key = self.span(key.span());
            (key.into_inner().into_owned(), node)
        });
        fields.collect()
    }
    fn node(&mut self, value: Spanned<DeValue<'_>>) -> Node {
        let range = value.span();
        let value = match value.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Boolean(value) => Value::Bool(value),
            DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
                Ok(value) => Value::Integer(value),
                Err(_) => {
                    self.report(range.clone(), "a whole number must fit 64 bits");
                    Value::Integer(0)
                }
            },
            DeValue::Float(digits) => match digits.as_str().parse::<f64>() {
                Ok(value) if value.is_finite() => Value::Float(value),
                _ => {
                    self.report(range.clone(), "a number must be finite");
                    Value::Float(0.0)
                }
            },
            DeValue::Datetime(_) => {
                self.report(range.clone(), "scenarios have no dates; put texts in quotes");
                Value::Bool(false)
            }
            DeValue::Array(items) => Value::Array(items.into_iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node { value, key: None, span: self.span(range) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> String {
        parse_document(&Source::new("a.toml", text)).unwrap_err().to_string()
    }

    #[test]
    fn syntax_errors_are_shown_where_they_are() {
        let text = findings("name = \"x\"\nseed = \n");
        assert!(text.contains("a.toml:2:"), "{text}");
        let text = findings("a = 1\na = 2\n");
        assert!(text.contains("duplicate key") && text.contains("a.toml:2:1"), "{text}");
    }

    #[test]
    fn files_of_results_lead_to_their_scenario() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        std::fs::write(at("summary.json"), "{}").unwrap();
        let why = |path: &Path| read_document(path).unwrap_err().to_string();
        let alone = why(&at("summary.json"));
        assert!(
            alone.contains("is a file in JSON; expected TOML") && !alone.contains("is a scenario"),
            "{alone}"
        );
        std::fs::write(at("scenario.toml"), "seed = 1").unwrap();
        std::fs::write(at("flows.parquet"), b"PAR1\0").unwrap();
        std::fs::write(at("report.html"), "<!doctype html>").unwrap();
        let hint = format!("{} is a scenario", at("scenario.toml").display());
        for (name, says) in [
            ("", "it is a folder"),
            ("summary.json", "JSON"),
            ("flows.parquet", "not text"),
            ("report.html", "HTML"),
        ] {
            let found = why(&at(name));
            assert!(found.contains(says) && found.contains(&hint), "{found}");
        }
        assert!(read_document(&at("scenario.toml")).is_ok());
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert!(findings("a = 99999999999999999999\n").contains("must fit 64 bits"));
        assert!(findings("a = inf\n").contains("finite"));
        assert!(findings("a = 2026-01-01\n").contains("no dates"));
    }

    #[test]
    fn every_syntax_error_is_reported() {
        let text = findings("a = \nb = 1\nc = [1,, 2]\n");
        assert!(text.contains("a.toml:1:") && text.contains("a.toml:3:"), "{text}");
    }
}
