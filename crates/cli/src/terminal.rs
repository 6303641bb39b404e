//! Standard output and standard error. The only place that writes to them.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use pathweave_scenario::Style;

use crate::failure::NOT_USABLE;
use crate::options::Colour;

/// Writes `text` to standard output. A reader that has gone away (`| head`) ends the program quietly; where it cannot be
/// written for another reason, the program says so and ends.
pub(crate) fn out(text: &str) {
    let mut stdout = io::stdout().lock();
    let Err(why) = stdout.write_all(harmless(text).as_bytes()).and_then(|()| stdout.flush()) else { return };
    if why.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    note(&format!("error: cannot write to standard output: {why}"));
    std::process::exit(i32::from(NOT_USABLE));
}

/// Writes a line to standard error. There is nowhere left to complain if that fails.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(line));
}

/// `text` without what would control a terminal: names of files and words of peers are in it. Lines, tabs and colours stay; a picture
/// (U+2400 and up) stands for any other control character.
fn harmless(text: &str) -> Cow<'_, str> {
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

/// The picture of a control character (Unicode, "Control Pictures"); of those from U+0080 on there is none.
fn picture(control: char) -> char {
    match control {
        '\0'..=' ' => {
            char::from_u32(0x2400 + u32::from(control)).expect("all of U+2400 to U+2420 are characters")
        }
        '\u{7f}' => '\u{2421}',
        _ => '\u{fffd}',
    }
}

/// Bytes of the sequence at the beginning of `text` that sets colours (ECMA-48, SGR), if there is one.
fn colour_len(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(2 + end + 1)
}

/// Columns of what is printed for people.
const WIDTH: usize = 80;

/// `text` in lines of 80 columns, the first of which begins with `first` and the others with `rest`. Nothing of nothing.
pub(crate) fn wrapped(text: &str, first: &str, rest: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    const TOGETHER: &str = "\u{a0}";
    let options = textwrap::Options::new(WIDTH).initial_indent(first).subsequent_indent(rest);
    let options = options.break_words(false).word_splitter(textwrap::WordSplitter::NoHyphenation);
    // A unit stays with its number.
    let bound = UNITS
        .iter()
        .fold(text.to_owned(), |text, unit| text.replace(&format!(" {unit}"), &format!("{TOGETHER}{unit}")));
    textwrap::fill(&bound, options).replace(TOGETHER, " ")
}

/// What follows a number, and what follows it in turn.
const UNITS: [&str; 9] = ["% ", "%)", "ms ", "ms)", "ms;", "us ", "us)", "us;", "us."];

/// How errors are shown.
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
            harmless("a\tb\n\u{e9} \u{1b}[1;31mred\u{1b}[0m"),
            "a\tb\n\u{e9} \u{1b}[1;31mred\u{1b}[0m"
        );
        // A title, a move of the cursor, a bell, a line that is written over, DEL, and one of the second set.
        assert_eq!(harmless("\u{1b}]0;x\u{7}"), "\u{241b}]0;x\u{2407}");
        assert_eq!(harmless("\u{1b}[2Ja\rb\u{7f}\u{9b}"), "\u{241b}[2Ja\u{240d}b\u{2421}\u{fffd}");
        assert_eq!(harmless("\u{1b}["), "\u{241b}[");
    }
}
