//! Patterns of names: "srv3.gpu*", "srv[0-15].gpu0", "p?.leaf[0-3,8]".
//!
//! `*` stands for any characters, `?` for one. `[a-b]` stands for a whole number from a to b, in decimal without
//! leading zeros; numbers and ranges are separated by commas. Everything else stands for itself.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Pattern of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: String,
    elements: Vec<Element>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Element {
    Letter(char),
    One,
    Any,
    /// Number in one of these ranges, both ends included.
    Number(Vec<(u64, u64)>),
}

/// Error in the text of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobError {
    /// Text of the pattern.
    pub pattern: String,
    /// Part that is wrong, and what is allowed.
    pub what: String,
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pattern \"{}\": {}", self.pattern, self.what)
    }
}

impl core::error::Error for GlobError {}

/// Returns true if `name` matches the whole `pattern` ([`Glob`]); false if the pattern is malformed.
pub fn matches_glob(pattern: &str, name: &str) -> bool {
    Glob::parse(pattern).is_ok_and(|glob| glob.matches(name))
}

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// A bracket is not closed, or its content is not a list of numbers and ranges.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        let wrong = |what: String| GlobError { pattern: text.to_owned(), what };
        let mut elements = Vec::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            elements.push(match letter {
                '*' => Element::Any,
                '?' => Element::One,
                '[' => {
                    let Some((inside, after)) = rest.split_once(']') else {
                        return Err(wrong("\"[\" has no \"]\"".to_owned()));
                    };
                    rest = after;
                    let ranges: Option<Vec<_>> = inside.split(',').map(range).collect();
                    let expected = "expected numbers and ranges, such as [0-15] or [0-3,8]";
                    Element::Number(ranges.ok_or_else(|| wrong(format!("[{inside}]: {expected}")))?)
                }
                letter => Element::Letter(letter),
            });
        }
        Ok(Glob { text: text.to_owned(), elements })
    }

    /// Returns true if the pattern stands for itself only.
    pub fn is_plain(&self) -> bool {
        self.elements.iter().all(|element| matches!(element, Element::Letter(_)))
    }

    /// Returns true if the pattern stands for this name.
    pub fn matches(&self, name: &str) -> bool {
        // A mismatch can only be repaired by the last "*", which then stands for one more letter.
        let (mut at, mut place) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let step = match self.elements.get(place) {
                None => (at == name.len()).then_some(0),
                Some(Element::Any) => {
                    retry = Some((at, place));
                    Some(0)
                }
                Some(element) => self.width(element, place, name, at),
            };
            match (step, retry) {
                (Some(_), _) if place == self.elements.len() => return true,
                (Some(width), _) => (at, place) = (at + width, place + 1),
                (None, Some((from, star))) => {
                    let Some(letter) = name[from..].chars().next() else { return false };
                    retry = Some((from + letter.len_utf8(), star));
                    (at, place) = (from + letter.len_utf8(), star + 1);
                }
                (None, None) => return false,
            }
        }
    }

    /// Returns the number of bytes at `at` that an element stands for, or `None` if it does not stand for any.
    fn width(&self, element: &Element, place: usize, name: &str, at: usize) -> Option<usize> {
        let rest = &name[at..];
        match element {
            Element::Any => None,
            Element::One => rest.chars().next().map(char::len_utf8),
            Element::Letter(letter) => rest.starts_with(*letter).then(|| letter.len_utf8()),
            Element::Number(ranges) => {
                let wild = place > 0 && matches!(self.elements[place - 1], Element::Any | Element::One);
                if wild && name[..at].ends_with(|c: char| c.is_ascii_digit()) {
                    return None;
                }
                let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                let number = number(&rest[..digits])?;
                ranges.iter().any(|&(low, high)| (low..=high).contains(&number)).then_some(digits)
            }
        }
    }

    /// Returns a name for which the pattern stands: the nearest one to it is what was probably meant.
    pub fn example(&self) -> String {
        let mut name = String::new();
        for element in &self.elements {
            match element {
                Element::Letter(letter) => name.push(*letter),
                Element::One | Element::Any => name.push('0'),
                Element::Number(ranges) => name.push_str(&ranges[0].0.to_string()),
            }
        }
        name
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parses "3" or "0-15".
fn range(text: &str) -> Option<(u64, u64)> {
    let (low, high) = text.trim().split_once('-').unwrap_or((text.trim(), text.trim()));
    let (low, high) = (number(low.trim())?, number(high.trim())?);
    (low <= high).then_some((low, high))
}

/// Parses a decimal number without leading zeros.
fn number(digits: &str) -> Option<u64> {
    let canonical = digits == "0" || digits.starts_with(|c: char| ('1'..='9').contains(&c));
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    number.filter(|_| canonical)
}

/// Returns a name with `*` in place of each number: the pattern of names like it.
pub fn name_kind(name: &str) -> String {
    let mut kind = String::with_capacity(name.len());
    for letter in name.chars() {
        let letter = if letter.is_ascii_digit() { '*' } else { letter };
        if letter != '*' || !kind.ends_with('*') {
            kind.push(letter);
        }
    }
    kind
}

/// Returns the kinds of names ([`name_kind`]) in the order of their first names, at most eight, for a message.
pub fn name_kinds<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Vec<String> {
    const MOST: usize = 8;
    let mut kinds: Vec<String> = Vec::new();
    for name in names {
        let kind = name_kind(name.as_ref());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
        if kinds.len() == MOST {
            break;
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_by_hand() {
        for (pattern, name) in [
            ("leaf0", "leaf0"),
            ("*", ""),
            ("*", "leaf0"),
            ("p*.leaf*", "p0.leaf12"),
            ("leaf?", "leaf7"),
            ("*-spine1", "leaf0-spine1"),
            ("srv3.gpu*-p2.leaf*", "srv3.gpu7-p2.leaf0"),
            ("a*b*c", "abbcbc"),
            ("**x", "x"),
        ] {
            assert!(matches_glob(pattern, name), "{pattern} matches {name}");
        }
        for (pattern, name) in [
            ("leaf", "leaf0"),
            ("leaf?", "leaf"),
            ("leaf?", "leaf12"),
            ("p*.leaf*", "p0-leaf12"),
            ("a*b*c", "abbcb"),
            ("", "x"),
        ] {
            assert!(!matches_glob(pattern, name), "{pattern} does not match {name}");
        }
    }

    #[test]
    fn kinds_of_names_have_no_numbers() {
        assert_eq!(name_kind("srv12.gpu3"), "srv*.gpu*");
        assert_eq!(name_kind("p*.leaf1*"), "p*.leaf*");
        assert_eq!(name_kinds(["tor0", "tor1", "agg0.1", "core"]), ["tor*", "agg*.*", "core"]);
    }

    fn matches(pattern: &str, name: &str) -> bool {
        Glob::parse(pattern).unwrap().matches(name)
    }

    #[test]
    fn stars_stand_for_any_letters() {
        for name in ["srv3.gpu0", "srv3.gpu12", "srv3.gpu"] {
            assert!(matches("srv3.gpu*", name), "{name}");
        }
        assert!(!matches("srv3.gpu*", "srv31.gpu0"));
        assert!(matches("*", "") && matches("**", "a-b") && matches("*gpu0", "srv3.gpu0"));
        assert!(matches("p*.leaf*-*spine?", "p0.leaf12-p0.spine3"));
        assert!(!matches("p*.leaf*-*spine?", "p0.leaf12-p0.spine13"));
        assert!(!matches("", "a") && matches("", "") && !matches("ab", "a"));
        assert!(matches("a*b*c", "abbcbc") && !matches("a*b*c", "abbcb"));
    }

    #[test]
    fn brackets_stand_for_numbers() {
        let within: Vec<u32> =
            (0..40).filter(|n| matches("srv[2-4,9-11].gpu0", &format!("srv{n}.gpu0"))).collect();
        assert_eq!(within, [2, 3, 4, 9, 10, 11]);
        assert!(!matches("srv[0-15]", "srv07") && !matches("srv[0-15]", "srv"));
        // A number is whole, unless the pattern itself writes its first digits.
        assert!(!matches("*[0-3]", "gpu12") && matches("*[0-12]", "gpu12") && matches("srv1[0-9]", "srv17"));
        assert!(matches("[7]", "7") && !matches("[7]", "77"));
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        let error = |text: &str| Glob::parse(text).unwrap_err().to_string();
        assert_eq!(error("srv[0-3"), "pattern \"srv[0-3\": \"[\" has no \"]\"");
        for wrong in ["srv[]", "srv[3-1]", "srv[a-c]", "srv[01]", "srv[1-]", "srv[99999999999999999999]"] {
            assert!(error(wrong).contains("expected numbers and ranges, such as [0-15]"), "{wrong}");
        }
    }

    #[test]
    fn an_example_is_one_of_the_names() {
        let glob = Glob::parse("srv[4-7].gpu*").unwrap();
        assert_eq!(glob.example(), "srv4.gpu0");
        assert!(
            glob.matches(&glob.example()) && !glob.is_plain() && Glob::parse("srv4.gpu0").unwrap().is_plain()
        );
    }
}
