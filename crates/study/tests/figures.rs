//! Checks that the table of every published figure, in `docs/papers.md` and on the first page of the documents,
//! equals the recorded results. `UPDATE_DOCS=1 cargo test -p pathweave-study --test figures` rewrites the documents.
//! `pathweave paper NAME --figure ID --record papers/NAME/results.json` records results.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pathweave_study::paper::{
    Catalogue, RowState, claims_table, figures_text, overview_html, overview_text, rows,
};

/// Number of figures and tables in the five publications that show a result. Drawings of a design and tables of
/// parameters do not count.
const PUBLISHED: usize = 47;

#[test]
fn every_published_figure_has_a_state() {
    let rows = rows(&Catalogue::embedded()).unwrap();
    assert_eq!(rows.len(), PUBLISHED);
    for row in &rows {
        let name = format!("{} {}", row.paper, row.name);
        assert_ne!(row.state, RowState::NotRun, "{name}: {}", row.grounds);
        assert_eq!(row.state == RowState::NoCounterpart, row.options.is_empty(), "{name}");
        assert!(row.grounds.ends_with('.'), "{name}: {}", row.grounds);
    }
    let mut names: Vec<_> = rows.iter().map(|row| (&row.paper, &row.name)).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), PUBLISHED, "a figure stands twice");
}

/// Claims change without a new run. The states in the records must follow the current claims.
#[test]
fn records_are_judged_by_the_claims_as_they_are() {
    let catalogue = catalogue();
    for name in catalogue.names() {
        let paper = catalogue.paper(name).unwrap();
        let record = paper.record().unwrap();
        let judged = record.clone().rejudge(&paper).unwrap();
        assert!(judged == record, "papers/{name}/results.json is out of date; UPDATE_DOCS=1 judges it anew");
    }
}

#[test]
fn the_documents_have_the_table() {
    let catalogue = catalogue();
    let rows = rows(&catalogue).unwrap();
    let overview = overview_text(&catalogue, &rows, "papers.md").unwrap();
    check("README.md", "figures", &overview);
    check("papers.md", "figures", &figures_text(&catalogue, &rows).unwrap());
}

#[test]
fn the_pages_of_results_have_every_claim() {
    let catalogue = catalogue();
    for name in catalogue.names() {
        let paper = catalogue.paper(name).unwrap();
        if !paper.file.shown.is_empty() {
            check(&format!("{name}-results.md"), "claims", &claims_table(&paper).unwrap());
        }
    }
}

#[test]
fn the_overview_is_that_of_the_records() {
    let page = overview_html(&catalogue()).unwrap();
    let path = root().join("docs/papers-overview.html");
    if updates() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(old == page, "docs/papers-overview.html is out of date; UPDATE_DOCS=1 writes it anew");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn updates() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some()
}

/// Returns the papers of this checkout. Records are judged anew before the first test reads them if documents are
/// updated, so that every document shows the same states.
fn catalogue() -> Catalogue {
    static JUDGED: LazyLock<()> = LazyLock::new(judge_records);
    if updates() {
        LazyLock::force(&JUDGED);
    }
    Catalogue::read(&root().join("papers")).unwrap()
}

fn judge_records() {
    let papers = root().join("papers");
    let catalogue = Catalogue::read(&papers).unwrap();
    for name in catalogue.names() {
        let paper = catalogue.paper(name).unwrap();
        let record = paper.record().unwrap();
        let judged = record.clone().rejudge(&paper).unwrap();
        if judged != record {
            let mut text = Vec::new();
            judged.write(&mut text).unwrap();
            std::fs::write(papers.join(name).join("results.json"), text).unwrap();
        }
    }
}

/// Compares the part of a document in `docs/` between two marker comments with `text`.
fn check(file: &str, part: &str, text: &str) {
    let path = root().join("docs").join(file);
    let document = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {part}: written by a test -->\n"), format!("<!-- end of {part} -->"));
    let (head, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("{file} has no \"{begin}\""));
    let (old, tail) = rest.split_once(&end).unwrap_or_else(|| panic!("{file} has no \"{end}\""));
    let text = format!("\n{}\n\n", text.trim());
    if updates() {
        std::fs::write(&path, format!("{head}{begin}{text}{end}{tail}")).unwrap();
        return;
    }
    assert!(old == text, "docs/{file} is out of date; UPDATE_DOCS=1 writes its table anew");
}
