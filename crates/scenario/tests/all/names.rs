//! The page of names, `docs/schemes.md`, is generated from the catalogue and compared with it. To regenerate it:
//! `UPDATE_DOCS=1 cargo test -p pathweave-scenario --test all names`.

use std::fmt::Write as _;
use std::path::Path;

use pathweave_scenario::catalogue::{Entry, Section, presets, schemes, workload_kinds};

const MARK: &str = "<!-- From here on written by";

#[test]
fn the_page_of_names_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemes.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let mark = written.find(MARK).expect("the document has the mark");
    let by_hand = &written[..mark + written[mark..].find('\n').unwrap() + 1];
    let text = format!("{by_hand}{}", page());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    } else {
        assert!(written == text, "docs/schemes.md is out of date; UPDATE_DOCS=1 writes it anew");
    }
}

fn page() -> String {
    let mut text = String::new();
    for section in schemes() {
        list(&mut text, "Schemes", &section);
        writeln!(text, "\n## What each scheme is made of").unwrap();
        for entry in &section.entries {
            writeln!(text, "\n### {}\n\n{}.\n\n| Field | Value |\n|---|---|", entry.name, entry.help)
                .unwrap();
            for field in &entry.fields {
                writeln!(text, "| `{}` | `{}` |", field.name, field.default).unwrap();
            }
        }
    }
    // Kinds of workloads are in the reference of scenario files; this page lists the distributions and files they can
    // name.
    for section in presets().iter().chain(&workload_kinds()[1..]) {
        list(&mut text, section.title, section);
    }
    text
}

fn list(text: &mut String, title: &str, section: &Section) {
    let sourced = section.entries.iter().any(|entry| !entry.source.is_empty());
    let (from, rule) = if sourced { (" From |", "---|") } else { ("", "") };
    writeln!(text, "\n## {title}\n\n| Name | What it is |{from}\n|---|---|{rule}").unwrap();
    for entry in &section.entries {
        let source = if sourced { format!(" {} |", cell(&entry.source)) } else { String::new() };
        writeln!(text, "| {} | {} |{source}", names(entry), cell(&entry.help)).unwrap();
    }
}

fn names(entry: &Entry) -> String {
    let all = [&entry.name].into_iter().chain(&entry.aliases);
    all.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
