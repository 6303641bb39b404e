//! Names that the page offers: schemes, and the situations of `pathweave demo` with their scenarios.

use pathweave_records::scheme_colours;
use pathweave_scenario::catalogue::schemes;
use serde::{Deserialize, Serialize};

/// Scenarios of the demo, by name.
const SCENARIOS: &[(&str, &str)] = &[
    ("slow-links", include_str!("../demo/slow-links.toml")),
    ("all-to-all", include_str!("../demo/all-to-all.toml")),
    ("many-processes", include_str!("../demo/many-processes.toml")),
    ("two-sites", include_str!("../demo/two-sites.toml")),
    ("websearch", include_str!("../demo/websearch.toml")),
];

/// Everything that the page offers by name.
#[derive(Serialize)]
pub(crate) struct Catalogue {
    version: &'static str,
    schemes: Vec<SchemeEntry>,
    demo: Vec<Situation>,
}

#[derive(Serialize)]
struct SchemeEntry {
    name: String,
    help: String,
    /// Number of its colour if no other scheme has taken it.
    colour: usize,
}

/// A situation of the demo, as `demo.toml` describes it.
#[derive(Deserialize, Serialize)]
struct Situation {
    scenario: String,
    title: String,
    says: String,
    schemes: Vec<String>,
    /// Text of the scenario.
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct Demo {
    situation: Vec<Situation>,
}

impl Catalogue {
    pub(crate) fn new() -> Self {
        let of_section = schemes().into_iter().flat_map(|section| section.entries);
        let entry = |entry: pathweave_scenario::catalogue::Entry| SchemeEntry {
            colour: scheme_colours(&[&entry.name])[0],
            name: entry.name,
            help: entry.help,
        };
        Catalogue {
            version: env!("CARGO_PKG_VERSION"),
            schemes: of_section.map(entry).collect(),
            demo: situations(),
        }
    }
}

fn situations() -> Vec<Situation> {
    let demo: Demo = toml::from_str(include_str!("../demo/demo.toml")).expect("a test reads the table");
    let with_text = |situation: Situation| {
        let text = SCENARIOS.iter().find(|(name, _)| *name == situation.scenario);
        let text = text.expect("a test finds each scenario").1.to_owned();
        Situation { text, ..situation }
    };
    demo.situation.into_iter().map(with_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_offers_each_situation_and_each_scheme_of_it() {
        let Catalogue { schemes, demo, .. } = Catalogue::new();
        assert_eq!(demo.len(), SCENARIOS.len());
        for situation in demo {
            assert!(situation.text.contains(&format!("name = \"{}\"", situation.scenario)));
            for name in &situation.schemes {
                assert!(schemes.iter().any(|scheme| scheme.name == *name), "{name}");
            }
        }
    }
}
