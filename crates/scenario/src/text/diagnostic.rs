//! Errors in the input: the message, the source location, and advice.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{FieldPath, Span};

/// Error in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error message with the offending value: "unknown field `podz`".
    pub message: String,
    /// Field concerned; the root if there is none.
    pub field: FieldPath,
    /// Source location, if the field was written in a source.
    pub span: Option<Span>,
    /// Allowed values, shown next to the caret.
    pub allowed: Option<String>,
    /// Further advice, most useful first: "did you mean `pods`?".
    pub help: Vec<String>,
}

/// Style of rendered errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Plain text.
    Plain,
    /// Text with ANSI colours.
    Coloured,
}

impl Diagnostic {
    /// Creates an error about `field` without a source location.
    pub fn new(field: FieldPath, message: impl Into<String>) -> Self {
        Diagnostic { message: message.into(), field, span: None, allowed: None, help: Vec::new() }
    }
    /// Sets the source location.
    pub fn at(mut self, span: Option<Span>) -> Self {
        self.span = span;
        self
    }
    /// Sets the allowed values.
    pub fn allowed(mut self, what: impl Into<String>) -> Self {
        self.allowed = Some(what.into());
        self
    }
    /// Adds advice.
    pub fn help(mut self, advice: impl Into<String>) -> Self {
        self.help.push(advice.into());
        self
    }
    /// Adds "did you mean" advice if there is a similar name.
    pub fn suggest(self, nearest: Option<&str>) -> Self {
        match nearest {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// Renders the error as text, with the line concerned and a caret.
    pub fn render(&self, style: Style) -> String {
        /// Largest length of a label beside the caret. A longer one would push the caret's line out of sight.
        const LABEL_CHARS: usize = 90;
        /// Longest line that is shown, in bytes.
        const LINE_BYTES: usize = 1_000;
        let field = self.field.to_string();
        let is_shown = self.span.as_ref().is_some_and(|span| span.line_bytes() <= LINE_BYTES);
        let fits = |text: &&str| is_shown && text.chars().count() <= LABEL_CHARS;
        let beside = self.allowed.as_deref().filter(fits);
        let below = self.allowed.as_deref().filter(|text| !fits(text));
        let mut group = Group::with_title(Level::ERROR.primary_title(self.message.as_str()));
        if let Some(span) = self.span.as_ref().filter(|_| !is_shown) {
            let (line, column) = span.line_and_column();
            let origin = Origin::path(span.source().name.as_str()).line(line).char_column(column);
            group = group.element(origin);
        } else if let Some(span) = &self.span {
            let mut annotation = AnnotationKind::Primary.span(span.range());
            if let Some(allowed) = beside {
                annotation = annotation.label(allowed);
            }
            let source = span.source();
            group = group.element(
                Snippet::source(source.text.as_str()).path(source.name.as_str()).annotation(annotation),
            );
        }
        if let Some(allowed) = below {
            group = group.element(Level::NOTE.message(allowed));
        }
        for advice in &self.help {
            group = group.element(Level::HELP.message(advice.as_str()));
        }
        if !field.is_empty() {
            group = group.element(Level::NOTE.with_name(Some("field")).message(field));
        }
        let renderer = match style {
            Style::Plain => Renderer::plain(),
            Style::Coloured => Renderer::styled(),
        };
        renderer.render(&[group]).to_string()
    }
}

/// All errors in one input, in source order. Never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Returns `Ok` if `found` is empty, and otherwise the errors in source order without duplicates.
    pub fn check(mut found: Vec<Diagnostic>) -> Result<(), Diagnostics> {
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by_key(|d| d.span.as_ref().map_or((true, 0), |span| (false, span.range().start)));
        found.dedup();
        Err(Diagnostics(found))
    }
    /// Iterates over the errors.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }
    /// Renders all errors as text. Only the first ten are shown in full.
    pub fn render(&self, style: Style) -> String {
        const SHOWN: usize = 10;
        let mut texts: Vec<_> = self.0.iter().take(SHOWN).map(|d| d.render(style)).collect();
        if self.0.len() > SHOWN {
            texts.push(format!("and {} more", self.0.len() - SHOWN));
        }
        texts.join("\n\n")
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Diagnostics(vec![one])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain))
    }
}
impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain))
    }
}
impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::*;

    #[test]
    fn shows_the_line_with_a_caret() {
        let source = Source::new("demo.toml", "[topology]\npodz = 8\n");
        let finding = Diagnostic::new(FieldPath::root().key("topology.podz"), "unknown field `podz`")
            .at(Some(Span::new(&source, 11..15)))
            .allowed("expected pods or hosts")
            .suggest(Some("pods"));
        let expected = "\
error: unknown field `podz`
 --> demo.toml:2:1
  |
2 | podz = 8
  | ^^^^ expected pods or hosts
  |
  = help: did you mean `pods`?
  = field: topology.podz";
        assert_eq!(finding.render(Style::Plain), expected);
    }

    /// A very long line is named but not shown.
    #[test]
    fn a_line_beyond_all_bounds_is_not_shown() {
        let source = Source::new("one.toml", format!("a = 1\nb = [{}\n", "1, ".repeat(1 << 20)));
        let finding = Diagnostic::new(FieldPath::root(), "too many")
            .at(Some(Span::new(&source, 10..12)))
            .allowed("at most one");
        let text = finding.render(Style::Plain);
        assert!(
            text.contains("one.toml:2:5") && text.contains("at most one"),
            "{}",
            &text[..text.len().min(500)]
        );
        assert!(text.len() < 500, "an error of {} bytes", text.len());
    }

    #[test]
    fn findings_come_in_the_order_of_the_text() {
        let source = Source::new("a.toml", "abc");
        let at =
            |i| Diagnostic::new(FieldPath::root(), format!("{i}")).at(Some(Span::new(&source, i..i + 1)));
        let all =
            Diagnostics::check(vec![Diagnostic::new(FieldPath::root(), "x"), at(2), at(0)]).unwrap_err();
        assert_eq!(all.iter().map(|d| d.message.as_str()).collect::<Vec<_>>(), ["0", "2", "x"]);
    }
}
