//! Standard output and standard error. All output to them goes through this module.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use pathweave_scenario::Style;

use crate::failure::NOT_USABLE;
use crate::options::Colour;

/// Writes `text` to standard output. If the reader has gone away (`| head`), the program ends silently. If writing
/// fails for another reason, the program prints the error and ends.
pub(crate) fn out(text: &str) {
    let mut stdout = io::stdout().lock();
    let Err(why) =
        stdout.write_all(without_control_characters(text).as_bytes()).and_then(|()| stdout.flush())
    else {
        return;
    };
    if why.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    note(&format!("error: cannot write to standard output: {why}"));
    std::process::exit(i32::from(NOT_USABLE));
}

/// Writes a line to standard error. A failure cannot be reported and is ignored.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", without_control_characters(line));
}

/// Returns `text` with control characters replaced, because it may contain names of files and text from peers.
/// Newlines, tabs and colour sequences are kept. Other control characters are replaced by their pictures (U+2400 and
/// up).
fn without_control_characters(text: &str) -> Cow<'_, str> {
    let controls = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(controls) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = colour_len(rest);
        let (shown, after) = rest.split_at(colour.unwrap_or(c.len_utf8()));
        if colour.is_none() && controls(c) {
            out.push(picture(c));
        } else {
            out.push_str(shown);
        }
        rest = after;
    }
    Cow::Owned(out)
}

/// Returns the picture of a control character (Unicode, "Control Pictures"). Characters from U+0080 on have none and
/// become U+FFFD.
fn picture(control: char) -> char {
    match control {
        '\0'..=' ' => {
            char::from_u32(0x2400 + u32::from(control)).expect("all of U+2400 to U+2420 are characters")
        }
        '\u{7f}' => '\u{2421}',
        _ => '\u{fffd}',
    }
}

/// Returns the length in bytes of the colour sequence (ECMA-48, SGR) at the beginning of `text`, if there is one.
fn colour_len(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(2 + end + 1)
}

/// Width in columns of text for users.
const WIDTH: usize = 80;

/// Wraps `text` to 80 columns. The first line begins with `first`, the others with `rest`. Returns an empty string
/// for an empty `text`.
pub(crate) fn wrapped(text: &str, first: &str, rest: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    const TOGETHER: &str = "\u{a0}";
    let options = textwrap::Options::new(WIDTH).initial_indent(first).subsequent_indent(rest);
    let options = options.break_words(false).word_splitter(textwrap::WordSplitter::NoHyphenation);
    // A number and its unit stay on one line.
    let bound = UNITS
        .iter()
        .fold(text.to_owned(), |text, unit| text.replace(&format!(" {unit}"), &format!("{TOGETHER}{unit}")));
    textwrap::fill(&bound, options).replace(TOGETHER, " ")
}

/// Units and the character after each, which follow a number.
const UNITS: [&str; 9] = ["% ", "%)", "ms ", "ms)", "ms;", "us ", "us)", "us;", "us."];

/// Returns the style of error messages.
pub(crate) fn error_style(colour: Colour) -> Style {
    let coloured = match colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            io::stderr().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    };
    if coloured { Style::Coloured } else { Style::Plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_printed_controls_the_terminal() {
        assert_eq!(
            without_control_characters("a\tb\n\u{e9} \u{1b}[1;31mred\u{1b}[0m"),
            "a\tb\n\u{e9} \u{1b}[1;31mred\u{1b}[0m"
        );
        // A title, a cursor movement, a bell, a carriage return, DEL, and a C1 control character.
        assert_eq!(without_control_characters("\u{1b}]0;x\u{7}"), "\u{241b}]0;x\u{2407}");
        assert_eq!(
            without_control_characters("\u{1b}[2Ja\rb\u{7f}\u{9b}"),
            "\u{241b}[2Ja\u{240d}b\u{2421}\u{fffd}"
        );
        assert_eq!(without_control_characters("\u{1b}["), "\u{241b}[");
    }
}
