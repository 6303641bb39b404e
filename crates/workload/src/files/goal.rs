//! Schedules in the text form of GOAL, which LogGOPSim and ATLAHS execute. A schedule lists the computations,
//! sends and receives of each rank, and their dependencies.

use std::collections::HashMap;

use pathweave_units::{Duration, closest_name, suggestion};

use crate::error::FileError;

/// A schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoalFile {
    /// Operations of each rank.
    pub ranks: Vec<GoalRank>,
}

/// Operations of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoalRank {
    /// Operations in the order of the file.
    pub ops: Vec<GoalOp>,
    /// Dependencies between the operations.
    pub waits: Vec<GoalDependency>,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoalOp {
    /// Line of the operation, from 1.
    pub line: u64,
    /// Action of the operation.
    pub act: GoalAction,
    /// Core that executes the operation. Operations of a core take turns.
    pub cpu: u32,
    /// Network interface that the operation uses.
    pub nic: u32,
}

/// Action of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalAction {
    /// Sends to a rank.
    Send {
        /// Receiving rank.
        to: u32,
        /// Size, bytes.
        bytes: u64,
        /// Tag, equal to that of the matching receive.
        tag: u32,
    },
    /// Waits for a message of another rank.
    Receive {
        /// Sending rank.
        from: u32,
        /// Size, bytes.
        bytes: u64,
        /// Tag, equal to that of the matching send.
        tag: u32,
    },
    /// Computes for this duration.
    Compute(Duration),
}

/// A dependency between two operations of a rank, both given by their index in [`GoalRank::ops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoalDependency {
    /// Line of the dependency, from 1.
    pub line: u64,
    /// Operation that waits.
    pub op: u32,
    /// Operation that is waited for.
    pub on: u32,
    /// State of the other operation that ends the wait.
    pub until: GoalDependencyKind,
}

/// State that the other operation must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalDependencyKind {
    /// The other operation may begin, too (`irequires`).
    Begun,
    /// The other operation has ended (`requires`).
    Over,
}

/// Parses a schedule. `file` is its name in error messages.
///
/// Labels may be used before their operation. Receives from any rank or with any tag (-1) are rejected: the
/// send they match is known only while the schedule runs.
pub fn parse_goal(text: &str, file: &str) -> Result<GoalFile, FileError> {
    let mut parser = Parser { file, ranks: Vec::new(), announced: None, open: None };
    let mut in_comment = None;
    let mut code = String::new();
    let mut line = 0;
    for content in text.lines() {
        line += 1;
        strip_comments(content, line, &mut in_comment, &mut code);
        parser.line(line, &code)?;
    }
    match in_comment {
        Some(begun) => Err(FileError::at(file, begun, "this comment has no end; expected */")),
        None => parser.finish(line),
    }
}

/// Writes the part of a line that is not a comment to `code`. `in_comment` is the line at which an open
/// comment began.
fn strip_comments(content: &str, line: u64, in_comment: &mut Option<u64>, code: &mut String) {
    code.clear();
    let mut rest = content;
    loop {
        if in_comment.is_some() {
            let Some((_, behind)) = rest.split_once("*/") else { return };
            (rest, *in_comment) = (behind, None);
            code.push(' ');
        }
        let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() else {
            code.push_str(rest);
            return;
        };
        code.push_str(&rest[..at]);
        if rest[at..].starts_with("//") {
            return;
        }
        (rest, *in_comment) = (&rest[at + 2..], Some(line));
    }
}

/// Block of a rank that is being read.
struct Open {
    rank: usize,
    line: u64,
    /// Operations by label, with the line of each. Iterated only for a hint in an error.
    labels: HashMap<String, (u32, u64)>,
    /// Dependencies by label: line, waiting operation, other operation, and the state that ends the wait.
    waits: Vec<(u64, String, String, GoalDependencyKind)>,
}

struct Parser<'a> {
    file: &'a str,
    /// Blocks of ranks; `None` for ranks without a block so far.
    ranks: Vec<Option<GoalRank>>,
    /// Number of ranks, and the line that states it.
    announced: Option<(u64, u64)>,
    open: Option<Open>,
}

/// Largest number of ranks, equal to the largest number of hosts of a topology.
const MAX_RANKS: u64 = 1 << 20;

impl Parser<'_> {
    fn line(&mut self, line: u64, code: &str) -> Result<(), FileError> {
        let mut words = Words(code);
        while let Some(first) = words.peek() {
            let done = match (first, self.open.is_some()) {
                ("num_ranks", false) => self.announce(line, &mut words),
                ("rank", false) => self.open_rank(line, &mut words),
                ("}", true) => {
                    words.next();
                    self.close_rank()?;
                    Ok(())
                }
                (_, true) => self.statement(line, &mut words),
                (other, false) => Err(format!("\"{}\": expected num_ranks N or rank R {{", cut(other))),
            };
            done.map_err(|what| FileError::at(self.file, line, what))?;
        }
        Ok(())
    }

    fn announce(&mut self, line: u64, words: &mut Words<'_>) -> Result<(), String> {
        words.next();
        let ranks = words.number("num_ranks", MAX_RANKS)?;
        if let Some((_, before)) = self.announced.replace((ranks, line)) {
            return Err(format!("num_ranks is given a second time; line {before} has it already"));
        }
        if ranks == 0 {
            return Err("num_ranks = 0: expected 1 or more".to_owned());
        }
        self.ranks = vec![None; ranks as usize];
        Ok(())
    }

    fn open_rank(&mut self, line: u64, words: &mut Words<'_>) -> Result<(), String> {
        words.next();
        let Some((ranks, _)) = self.announced else {
            return Err("a rank before num_ranks, the number of ranks".to_owned());
        };
        let rank = words.number("rank", u64::from(u32::MAX))?;
        if rank >= ranks {
            return Err(format!("rank = {rank}: {}", crate::error::valid_ranks(ranks)));
        }
        words.expect("{")?;
        let slot = &mut self.ranks[rank as usize];
        if slot.is_some() {
            return Err(format!("rank {rank} has a block already; there is one for each"));
        }
        *slot = Some(GoalRank::default());
        self.open = Some(Open { rank: rank as usize, line, labels: HashMap::new(), waits: Vec::new() });
        Ok(())
    }

    /// Resolves labels to operations at the end of a block.
    fn close_rank(&mut self) -> Result<(), FileError> {
        let Open { rank, labels, waits, .. } = self.open.take().expect("called with an open block");
        let of_rank = self.ranks[rank].as_mut().expect("made when the block was opened");
        let file = self.file;
        let find = |line: u64, label: &str| {
            labels.get(label).map(|&(op, _)| op).ok_or_else(|| {
                let mut known: Vec<&str> = labels.keys().map(String::as_str).collect();
                known.sort_unstable();
                let hint = suggestion(closest_name(label, known));
                let what = format!("no operation of rank {rank} is labelled \"{}\"{hint}", cut(label));
                FileError::at(file, line, what)
            })
        };
        for (line, op, on, until) in waits {
            of_rank.waits.push(GoalDependency { line, op: find(line, &op)?, on: find(line, &on)?, until });
        }
        Ok(())
    }

    /// Parses an operation or a dependency. Either one ends with its line.
    fn statement(&mut self, line: u64, words: &mut Words<'_>) -> Result<(), String> {
        let open = self.open.as_mut().expect("called with an open block");
        let first = words.next().expect("called before a word");
        let (label, verb) = if is_verb(first) {
            (None, first)
        } else {
            if !is_label(first) {
                return Err(format!("\"{}\": expected a label, send, recv, calc or }}", cut(first)));
            }
            match words.next() {
                Some(":") => {
                    let what = "send, recv or calc";
                    (
                        Some(first),
                        words.next().ok_or_else(|| format!("the line ends where {what} is expected"))?,
                    )
                }
                Some(kind @ ("requires" | "irequires")) => {
                    let on = words.next().ok_or("the line ends where a label is expected")?;
                    let until =
                        if kind == "requires" { GoalDependencyKind::Over } else { GoalDependencyKind::Begun };
                    open.waits.push((line, first.to_owned(), on.to_owned(), until));
                    return words.end();
                }
                other => {
                    let other = other.map_or("the end of the line".to_owned(), |o| format!("\"{}\"", cut(o)));
                    return Err(format!(
                        "{other} behind \"{}\": expected :, requires or irequires",
                        cut(first)
                    ));
                }
            }
        };
        let ranks = self.announced.map_or(0, |(ranks, _)| ranks);
        let op = operation(line, verb, words, ranks)?;
        let of_rank = self.ranks[open.rank].as_mut().expect("made when the block was opened");
        if let Some(label) = label
            && let Some((_, first)) = open.labels.insert(label.to_owned(), (of_rank.ops.len() as u32, line))
        {
            return Err(format!("label \"{}\": that of line {first} already", cut(label)));
        }
        of_rank.ops.push(op);
        Ok(())
    }

    fn finish(self, last: u64) -> Result<GoalFile, FileError> {
        if let Some(open) = self.open {
            let what = format!("the block of rank {} has no end; expected }}", open.rank);
            return Err(FileError::at(self.file, open.line, what));
        }
        let Some((ranks, line)) = self.announced else {
            return Err(FileError::whole(
                self.file,
                "num_ranks N is missing; is this GOAL in its text form?",
            ));
        };
        if let Some(missing) = self.ranks.iter().position(Option::is_none) {
            let what = format!(
                "num_ranks = {ranks}: the block of rank {missing} is missing; truncated at line {last}?"
            );
            return Err(FileError::at(self.file, line, what));
        }
        Ok(GoalFile { ranks: self.ranks.into_iter().flatten().collect() })
    }
}

/// Parses the rest of a line after `send`, `recv` or `calc`.
fn operation(line: u64, verb: &str, words: &mut Words<'_>, ranks: u64) -> Result<GoalOp, String> {
    let u32_max = u64::from(u32::MAX);
    let mut tag = None;
    let (mut cpu, mut nic) = (None, None);
    let act = match verb {
        "calc" => {
            let ns = words.number("calc", u64::MAX / 1_000)?;
            GoalAction::Compute(Duration::from_ns(ns))
        }
        "send" | "recv" => {
            let bytes = words.bytes(verb)?;
            words.expect(if verb == "send" { "to" } else { "from" })?;
            if verb == "recv" && words.peek() == Some("-1") {
                return Err("from -1: receives from any rank are not supported; name the rank".to_owned());
            }
            let peer = words.number(if verb == "send" { "to" } else { "from" }, u32_max)?;
            if peer >= ranks {
                return Err(format!("rank {peer}: {}", crate::error::valid_ranks(ranks)));
            }
            if words.peek() == Some("tag") {
                words.next();
                if words.peek() == Some("-1") {
                    return Err("tag -1: receives of any tag are not supported; name the tag".to_owned());
                }
                tag = Some(words.number("tag", u32_max - 1)? as u32);
            }
            let (peer, tag) = (peer as u32, tag.unwrap_or(0));
            if verb == "send" {
                GoalAction::Send { to: peer, bytes, tag }
            } else {
                GoalAction::Receive { from: peer, bytes, tag }
            }
        }
        other => return Err(format!("\"{}\": expected send, recv or calc", cut(other))),
    };
    while let Some(name) = words.peek() {
        let slot = match name {
            "cpu" => &mut cpu,
            "nic" if verb != "calc" => &mut nic,
            _ => break,
        };
        words.next();
        if slot.replace(words.number(name, u64::from(u8::MAX))? as u32).is_some() {
            return Err(format!("{name} is given twice"));
        }
    }
    words.end()?;
    Ok(GoalOp { line, act, cpu: cpu.unwrap_or(0), nic: nic.unwrap_or(0) })
}

fn is_verb(word: &str) -> bool {
    matches!(word, "send" | "recv" | "calc")
}

fn is_label(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Words of a line: runs without blanks. `:`, `{` and `}` are separate words.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        let rest = self.0.trim_start();
        let end = rest.find(|c: char| c.is_whitespace() || ":{}".contains(c)).unwrap_or(rest.len());
        let end = if end == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { end };
        Some(&rest[..end]).filter(|word| !word.is_empty())
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.0 = &self.0.trim_start()[word.len()..];
        Some(word)
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        match self.next() {
            Some(word) if word == wanted => Ok(()),
            Some(word) => Err(format!("\"{}\": expected {wanted}", cut(word))),
            None => Err(format!("the line ends where {wanted} is expected")),
        }
    }

    fn number(&mut self, name: &str, most: u64) -> Result<u64, String> {
        let word =
            self.next().ok_or_else(|| format!("{name}: the line ends where its number is expected"))?;
        let digits = word.bytes().all(|b| b.is_ascii_digit());
        word.parse()
            .ok()
            .filter(|&value: &u64| digits && value <= most)
            .ok_or_else(|| format!("{name} = {}: expected a whole number from 0 to {most}", cut(word)))
    }

    /// Parses a size, `64b` or `64 b`.
    fn bytes(&mut self, verb: &str) -> Result<u64, String> {
        let word = self.peek().unwrap_or_default();
        match word.strip_suffix('b') {
            Some(number) if !number.is_empty() => {
                self.next();
                Words(number).number(verb, u64::MAX)
            }
            _ => {
                let bytes = self.number(verb, u64::MAX)?;
                self.expect("b")?;
                Ok(bytes)
            }
        }
    }

    fn end(&self) -> Result<(), String> {
        match self.peek() {
            Some(word) => Err(format!("\"{}\": expected the end of the line", cut(word))),
            None => Ok(()),
        }
    }
}

/// Returns a word shortened to 40 characters for an error message.
fn cut(word: &str) -> &str {
    const LONGEST: usize = 40;
    word.char_indices().nth(LONGEST).map_or(word, |(end, _)| &word[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVERYTHING: &str = "\
num_ranks 2 // of them
/* two
   lines */ rank 1 {
recv 64 b from 0 tag 7 nic 1
}

rank 0 {
c_1: calc 1500 cpu 2
s: send 64b to 1 tag 7 cpu 1 nic 1 /* here */
x: calc 3 // a comment that ends with its line /*
s requires c_1
x irequires s
}
";

    #[test]
    fn every_statement() {
        let file = parse_goal(EVERYTHING, "x").unwrap();
        assert_eq!(file.ranks.len(), 2);
        let [zero, one] = &file.ranks[..] else { panic!("two ranks") };
        let receive = GoalAction::Receive { from: 0, bytes: 64, tag: 7 };
        assert_eq!(one.ops, [GoalOp { line: 4, act: receive, cpu: 0, nic: 1 }]);
        let expected = [
            GoalOp { line: 8, act: GoalAction::Compute(Duration::from_ns(1500)), cpu: 2, nic: 0 },
            GoalOp { line: 9, act: GoalAction::Send { to: 1, bytes: 64, tag: 7 }, cpu: 1, nic: 1 },
            GoalOp { line: 10, act: GoalAction::Compute(Duration::from_ns(3)), cpu: 0, nic: 0 },
        ];
        assert_eq!(zero.ops, expected);
        let waits = [
            GoalDependency { line: 11, op: 1, on: 0, until: GoalDependencyKind::Over },
            GoalDependency { line: 12, op: 2, on: 1, until: GoalDependencyKind::Begun },
        ];
        assert_eq!(zero.waits, waits);
        // The whole schedule is on one line, as far as line breaks do not matter.
        let short = parse_goal("num_ranks 1 rank 0 { }", "x").unwrap();
        assert_eq!(short.ranks, [GoalRank::default()]);
    }

    #[test]
    fn errors_name_the_line_and_what_is_expected() {
        let cases = [
            ("", "g: num_ranks N is missing; is this GOAL in its text form?"),
            ("rank 0 {", "g:1: a rank before num_ranks, the number of ranks"),
            ("num_ranks 0", "g:1: num_ranks = 0: expected 1 or more"),
            (
                "num_ranks 9999999999",
                "g:1: num_ranks = 9999999999: expected a whole number from 0 to 1048576",
            ),
            ("num_ranks 1\nnum_ranks 1", "g:2: num_ranks is given a second time; line 1 has it already"),
            ("num_ranks 1\nrank 1 {", "g:2: rank = 1: there is one rank, 0"),
            ("num_ranks 1\nrank 0\n{", "g:2: the line ends where { is expected"),
            ("num_ranks 1\nrank 0 {\n", "g:2: the block of rank 0 has no end; expected }"),
            (
                "num_ranks 1\nrank 0 {\n}\nrank 0 {\n}",
                "g:4: rank 0 has a block already; there is one for each",
            ),
            (
                "num_ranks 2\nrank 1 {\n}",
                "g:1: num_ranks = 2: the block of rank 0 is missing; truncated at line 3?",
            ),
            ("num_ranks 1\ncalc 3", "g:2: \"calc\": expected num_ranks N or rank R {"),
            ("num_ranks 1 /* a\nb", "g:1: this comment has no end; expected */"),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_goal(text, "g").unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn errors_of_operations() {
        let cases = [
            ("calc", "calc: the line ends where its number is expected"),
            ("calc -3", "calc = -3: expected a whole number from 0 to 18446744073709551"),
            ("calc 3 nic 0", "\"nic\": expected the end of the line"),
            ("calc 3 cpu 256", "cpu = 256: expected a whole number from 0 to 255"),
            ("send 3 to 1", "\"to\": expected b"),
            ("send 3b from 1", "\"from\": expected to"),
            ("recv 3b from 2", "rank 2: ranks are 0 to 1"),
            ("recv 3b from -1", "from -1: receives from any rank are not supported; name the rank"),
            ("recv 3b from 1 tag -1", "tag -1: receives of any tag are not supported; name the tag"),
            ("send 3b to 1 cpu 1 cpu 2", "cpu is given twice"),
            ("send 3b to 1 tag x", "tag = x: expected a whole number from 0 to 4294967294"),
            ("a: wait 3", "\"wait\": expected send, recv or calc"),
            ("a", "the end of the line behind \"a\": expected :, requires or irequires"),
            ("a follows b", "\"follows\" behind \"a\": expected :, requires or irequires"),
            ("9: calc 3", "\"9\": expected a label, send, recv, calc or }"),
            (
                "abc: calc 3\nabc requires abd\n}",
                "no operation of rank 0 is labelled \"abd\"; did you mean \"abc\"?",
            ),
            ("a: calc 3\na: calc 4", "label \"a\": that of line 3 already"),
        ];
        for (text, expected) in cases {
            let error = parse_goal(&format!("num_ranks 2\nrank 0 {{\n{text}"), "g").unwrap_err();
            let line = 3 + u64::from(text.contains('\n'));
            assert_eq!(error.to_string(), format!("g:{line}: {expected}"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "\\PC{0,200}") {
            let _ = parse_goal(&text, "any");
        }

        #[test]
        fn text_close_to_the_grammar_is_answered(words in prop::collection::vec(prop::sample::select(vec![
            "num_ranks", "rank", "{", "}", "a", ":", "send", "8b", "to", "from", "recv", "calc", "0", "1", "tag",
            "cpu", "requires", "irequires", "\n", "\n", "//", "/*", "*/",
        ]), 0..40)) {
            let _ = parse_goal(&format!("num_ranks 2\nrank 0 {{\n{}", words.join(" ")), "any");
        }
    }
}
