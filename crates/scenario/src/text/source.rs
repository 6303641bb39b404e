//! Source texts and locations in them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Source text with its name: a file's path, or "command line".
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the source for the user.
    pub name: String,
    /// Complete text.
    pub text: String,
}

/// Location in a [`Source`]. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Span {
    source: Arc<Source>,
    start: usize,
    end: usize,
}

impl Source {
    /// Creates a source with a name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Source { name: name.into(), text: text.into() })
    }
}

impl Span {
    /// Creates the span of the bytes `range` of `source`, clipped to the text and to character boundaries.
    pub fn new(source: &Arc<Source>, range: Range<usize>) -> Self {
        let clip = |mut at: usize| {
            at = at.min(source.text.len());
            while !source.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = clip(range.start);
        Span { source: Arc::clone(source), start, end: clip(range.end).max(start) }
    }
    /// Returns the source of the span.
    pub fn source(&self) -> &Source {
        &self.source
    }
    /// Returns the byte offsets within the text.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }
    /// Returns the length in bytes of the lines in which the span begins and ends.
    pub(crate) fn line_bytes(&self) -> usize {
        let text = &self.source.text;
        let begin = text[..self.start].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[self.end..].find('\n').map_or(text.len(), |newline| self.end + newline);
        end - begin
    }
    /// Returns line and column of the start, both from 1. Columns count characters.
    pub fn line_and_column(&self) -> (usize, usize) {
        let before = &self.source.text[..self.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.line_and_column();
        write!(f, "{}:{line}:{column}", self.source.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_and_in_characters() {
        let source = Source::new("a.toml", "x = 1\nµs = \"é\" # y\n");
        assert_eq!(Span::new(&source, 0..1).line_and_column(), (1, 1));
        let y = source.text.find('y').unwrap();
        assert_eq!(Span::new(&source, y..y + 1).line_and_column(), (2, 12));
    }

    #[test]
    fn a_span_never_splits_a_character_or_leaves_the_text() {
        let source = Source::new("a.toml", "é");
        assert_eq!(Span::new(&source, 1..9).range(), 0..2);
    }
}
