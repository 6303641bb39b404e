//! Requests, and the scenario that one is about.

use pathweave_scenario::{Changes, Diagnostics, Loaded};
use serde::Deserialize;

/// Name that error messages give to the text of the page.
const SOURCE: &str = "scenario.toml";

/// A scenario, and changes as the command line makes them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScenarioRequest {
    /// Text of the scenario, TOML.
    text: String,
    /// Scheme in place of that of the text.
    #[serde(default)]
    scheme: Option<String>,
    /// Settings `key=value`, as of `--set`.
    #[serde(default)]
    set: Vec<String>,
    /// Largest number of hops and arrivals to keep for the film.
    #[serde(default)]
    pub(crate) most_hops: usize,
}

impl ScenarioRequest {
    pub(crate) fn load(&self) -> Result<Loaded, Diagnostics> {
        let changes = Changes { scheme: self.scheme.clone(), set: self.set.clone(), ..Changes::default() };
        let mut loaded = Loaded::parse(&self.text, SOURCE, "", &changes)?;
        // A browser gives the module one thread. Results do not depend on the number.
        loaded.scenario.run.threads = Some(1);
        Ok(loaded)
    }
}

/// An instant of the last run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstantRequest {
    pub(crate) time_ps: u64,
    /// Time before the instant over which the use of links is averaged.
    pub(crate) window_ps: u64,
}
