//! Standard output and standard error. The only place that writes to them.

use std::io::{self, IsTerminal, Write};

use pathweave_scenario::Style;

use crate::failure::NOT_USABLE;
use crate::options::Colour;

/// Writes `text` to standard output. A reader that has gone away (`| head`) ends the program quietly; where it cannot be
/// written for another reason, the program says so and ends.
pub(crate) fn out(text: &str) {
    let mut stdout = io::stdout().lock();
    let Err(why) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) else { return };
    if why.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    note(&format!("error: cannot write to standard output: {why}"));
    std::process::exit(i32::from(NOT_USABLE));
}

/// Writes a line to standard error. There is nowhere left to complain if that fails.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
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
