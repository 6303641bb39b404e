//! Any text in a file or on the command line gives a result or an error, never a panic.

use std::path::Path;

use pathweave_scenario::{Changes, Loaded, Style};
use proptest::prelude::*;

fn shipped() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn answer(text: &str, set: Vec<String>) {
    let changes = Changes { set, ..Changes::default() };
    if let Err(findings) = Loaded::parse(text, "any.toml", "", &changes) {
        let plain = findings.render(Style::Plain);
        assert!(plain.starts_with("error: "), "{plain}");
        assert!(!findings.render(Style::Coloured).is_empty());
    }
}

/// Small change to a text: a typing error or a truncated file.
#[derive(Clone, Debug)]
enum TextEdit {
    Cut(usize),
    Drop(usize),
    Swap(usize, usize),
    Insert(usize, String),
    DropLine(usize),
    DoubleLine(usize),
}

fn slip() -> impl Strategy<Value = TextEdit> {
    let word = prop_oneof![
        "[\\[\\]{}=\",.'#\n -]",
        "[a-z0-9é]{1,3}",
        Just("-1".to_owned()),
        Just("1e400".to_owned()),
        Just("99999999999999999999".to_owned()),
        Just("\"0B\"".to_owned()),
    ];
    prop_oneof![
        any::<usize>().prop_map(TextEdit::Cut),
        any::<usize>().prop_map(TextEdit::Drop),
        any::<(usize, usize)>().prop_map(|(a, b)| TextEdit::Swap(a, b)),
        (any::<usize>(), word).prop_map(|(at, word)| TextEdit::Insert(at, word)),
        any::<usize>().prop_map(TextEdit::DropLine),
        any::<usize>().prop_map(TextEdit::DoubleLine),
    ]
}

fn apply(text: &str, slip: &TextEdit) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let mut lines: Vec<&str> = text.lines().collect();
    if chars.is_empty() || lines.is_empty() {
        return text.to_owned();
    }
    let (char_count, line_count) = (chars.len(), lines.len());
    match slip {
        TextEdit::Cut(at) => chars.truncate(at % char_count),
        TextEdit::Drop(at) => drop(chars.remove(at % char_count)),
        TextEdit::Swap(a, b) => chars.swap(a % char_count, b % char_count),
        TextEdit::Insert(at, word) => {
            let at = at % char_count;
            chars.splice(at..at, word.chars());
        }
        TextEdit::DropLine(at) => {
            lines.remove(at % line_count);
            return lines.join("\n");
        }
        TextEdit::DoubleLine(at) => {
            let line = lines[at % line_count];
            lines.insert(at % line_count, line);
            return lines.join("\n");
        }
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn slips_in_good_scenarios(which: prop::sample::Index, slips in prop::collection::vec(slip(), 1..5)) {
        let texts = shipped();
        let mut text = texts[which.index(texts.len())].clone();
        for slip in &slips {
            text = apply(&text, slip);
        }
        answer(&text, Vec::new());
    }

    #[test]
    fn any_text(text in "\\PC{0,80}(\n\\PC{0,40}){0,4}") {
        answer(&text, Vec::new());
    }

    #[test]
    fn any_setting(key in "[a-z_.\\[\\]0-9]{0,20}|(topology|workload\\[0\\]|scheme|switch\\.ecn)\\.[a-z]{1,9}",
                   value in "\\PC{0,20}") {
        let texts = shipped();
        answer(&texts[0], vec![format!("{key}={value}")]);
        answer(&texts[0], vec![key]);
    }
}
