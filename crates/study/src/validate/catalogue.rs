//! Collection of cases, embedded in the program or read from a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use include_dir::{Dir, File, include_dir};
use pathweave_scenario::{Changes, Loaded};
use toml::Table;

use crate::text_files::TextFiles;
use crate::validate::error::{ValidateError, in_file, unknown};
use crate::validate::figures::RANKS;
use crate::validate::law::Law;
use crate::validate::model::{CaseFile, Peer, Stat};

static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/validation");

const PEERS: &str = "peers.toml";
const CASES: &str = "cases";
/// Reference of cases that compare flow fidelity with packet fidelity. It also selects them by name.
pub const PACKETS: &str = "packets";
/// Reference of cases that compare several NIC ports with one.
pub const ONE_PORT: &str = "one port";
/// Reference of cases that compare models with measurements of hardware.
pub const HARDWARE: &str = "hardware";
const SCENARIOS: &str = "scenarios";

/// Collection of cases.
#[derive(Clone, Debug)]
pub struct Catalogue {
    peers: BTreeMap<String, Peer>,
    cases: Vec<Case>,
}

/// Case with the text of its scenario.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the case's file.
    pub name: String,
    /// Content of the file.
    pub file: CaseFile,
    /// Text of the scenario.
    text: String,
    /// File of the scenario, for error messages.
    source: String,
    /// Folder to which file names in the scenario are relative.
    base_dir: PathBuf,
}

impl Catalogue {
    /// Returns the cases that are embedded in the program. Some can run only after [`Catalogue::write_scenario_files`] has written
    /// the files to which their scenarios refer.
    ///
    /// # Errors
    /// If the cases are inconsistent, which a test excludes.
    pub fn embedded() -> Result<Self, ValidateError> {
        Self::new(&TextFiles::embedded("validation", &EMBEDDED), Path::new(""))
    }

    /// Writes the files to which embedded scenarios refer to `folder`, which is created. The cases then use them
    /// there.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_scenario_files(&mut self, folder: &Path) -> Result<(), ValidateError> {
        let others = |file: &&File<'_>| file.path().extension().is_some_and(|extension| extension != "toml");
        for file in EMBEDDED.get_dir(SCENARIOS).into_iter().flat_map(Dir::files).filter(others) {
            let path = folder.join(file.path().file_name().unwrap_or_default());
            let written =
                std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, file.contents()));
            written.map_err(|why| in_file(path.display().to_string(), why.to_string()))?;
        }
        self.cases.iter_mut().for_each(|case| folder.clone_into(&mut case.base_dir));
        Ok(())
    }

    /// Reads the cases of a folder: its `peers.toml`, `cases/*.toml` and `scenarios/*.toml`.
    ///
    /// # Errors
    /// If a file cannot be read or is invalid.
    pub fn read(folder: &Path) -> Result<Self, ValidateError> {
        let root = folder.display().to_string();
        let wanted = |name: &str| name.ends_with(".toml");
        let files = TextFiles::read(&root, folder, &["", CASES, SCENARIOS], wanted)?;
        Self::new(&files, &folder.join(SCENARIOS))
    }

    fn new(files: &TextFiles, base_dir: &Path) -> Result<Self, ValidateError> {
        let peers: BTreeMap<String, Peer> = files.parse(PEERS)?;
        let mut cases = Vec::new();
        for (case_file, _) in files.within(CASES) {
            let Some(name) = case_file.strip_suffix(".toml") else { continue };
            let path = format!("{CASES}/{case_file}");
            let file: CaseFile = files.parse(&path)?;
            check(&file, &peers).map_err(|message| in_file(files.place(&path), message))?;
            if file.measured.is_some() {
                let (text, source) = (String::new(), files.place(&path));
                cases.push(Case { name: name.to_owned(), text, source, file, base_dir: base_dir.to_owned() });
                continue;
            }
            let scenarios = files.within(SCENARIOS);
            let Some((scenario, text)) = scenarios.clone().find(|(name, _)| *name == file.scenario) else {
                let why = unknown("scenario", &file.scenario, scenarios.map(|(name, _)| name));
                return Err(in_file(files.place(&path), why.to_string()));
            };
            cases.push(Case {
                name: name.to_owned(),
                text: text.to_owned(),
                source: files.place(&format!("{SCENARIOS}/{scenario}")),
                file,
                base_dir: base_dir.to_owned(),
            });
        }
        // Laws come first. If they do not hold, the other comparisons mean little.
        cases.sort_by_key(|case| {
            let group = (case.file.measured.is_some(), case.file.packets.is_some());
            (case.peer().map(str::to_owned), group, case.name.clone())
        });
        Ok(Catalogue { peers, cases })
    }

    /// Returns the cases: laws first, then by peer, then by name.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Returns the peers by name.
    pub fn peers(&self) -> &BTreeMap<String, Peer> {
        &self.peers
    }

    /// Returns the cases selected by names of cases or peers, or all cases without names. With `quick`, returns only
    /// those that belong to `--quick`.
    ///
    /// # Errors
    /// If a name is neither a case nor a peer.
    pub fn select(&self, names: &[String], quick: bool) -> Result<Vec<&Case>, ValidateError> {
        let known = || {
            self.cases
                .iter()
                .map(|case| case.name.as_str())
                .chain(self.peers.keys().map(String::as_str))
                .chain([PACKETS])
        };
        // `law-planes` selects all cases whose names begin with it.
        let begins =
            |case: &str, name: &str| case.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
        let is_known = |name: &str| known().any(|known| known == name || begins(known, name));
        if let Some(name) = names.iter().find(|name| !is_known(name)) {
            return Err(unknown("case or peer", name, known()));
        }
        let is = |case: &Case, name: &String| {
            let group = case.peer().or(case.file.packets.is_some().then_some(PACKETS));
            case.name == *name || begins(&case.name, name) || group == Some(name.as_str())
        };
        let wanted = |case: &&Case| names.is_empty() || names.iter().any(|name| is(case, name));
        Ok(self.cases.iter().filter(wanted).filter(|case| !quick || case.file.quick).collect())
    }
}

impl Case {
    /// Returns the peer of the comparison, or `None` for other references.
    pub fn peer(&self) -> Option<&str> {
        self.file.theirs.as_ref().map(|theirs| theirs.peer.as_str())
    }

    /// Returns the name of the reference, for people.
    pub fn reference_name(&self) -> &str {
        match (&self.file.theirs, &self.file.law) {
            (Some(theirs), _) => &theirs.peer,
            (None, Some(law)) => law.name(),
            (None, None) if self.file.one_port.is_some() => ONE_PORT,
            (None, None) if self.file.measured.is_some() => HARDWARE,
            (None, None) => PACKETS,
        }
    }

    /// Loads the scenario with one of the case's seeds and the case's scheme. Fields are set in this order: scheme,
    /// fields of the case, `more`.
    ///
    /// # Errors
    /// If the scenario is invalid.
    pub fn load(&self, seed: u64, more: &Table) -> Result<Loaded, ValidateError> {
        self.load_under(self.schemes().first().unwrap_or(&self.file.scheme), seed, more)
    }

    /// Returns the schemes of a case that compares under several. Empty for other cases.
    pub fn schemes(&self) -> &[String] {
        match (&self.file.packets, &self.file.one_port) {
            (Some(packets), _) => &packets.schemes,
            (None, Some(one)) => &one.schemes,
            (None, None) => &[],
        }
    }

    /// Loads the scenario with a scheme other than that of the case.
    pub(crate) fn load_under(&self, scheme: &str, seed: u64, more: &Table) -> Result<Loaded, ValidateError> {
        let fields = self.file.set.iter().chain(more).map(|(key, value)| format!("{key}={value}"));
        let set = [format!("scheme={scheme}")].into_iter().chain(fields).collect();
        let changes = Changes { set, seed: Some(seed), ..Changes::default() };
        Loaded::parse(&self.text, &self.source, self.base_dir.clone(), &changes)
            .map_err(|findings| ValidateError::Scenario { case: self.name.clone(), findings })
    }
}

/// Loads the scenario of each case, and with `experiments` also of each experiment. Mistakes are found before
/// anything runs.
///
/// # Errors
/// If a scenario is invalid.
pub fn load_all(cases: &[&Case], experiments: bool) -> Result<(), ValidateError> {
    let nothing = Table::new();
    for case in cases.iter().filter(|case| case.file.measured.is_none()) {
        let of_experiments = case.file.experiment.iter().filter(|_| experiments);
        for more in [&nothing].into_iter().chain(of_experiments.map(|experiment| &experiment.set)) {
            case.load(1, more)?;
        }
    }
    Ok(())
}

/// Checks rules that the types cannot express.
fn check(file: &CaseFile, peers: &BTreeMap<String, Peer>) -> Result<(), String> {
    let references = [
        ("theirs", file.theirs.is_some()),
        ("law", file.law.is_some()),
        ("packets", file.packets.is_some()),
        ("one_port", file.one_port.is_some()),
        ("measured", file.measured.is_some()),
    ];
    let given: Vec<&str> = references.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    match given[..] {
        [_] => {}
        [] => {
            return Err(
                "has none of `theirs`, `law`, `packets`, `one_port` and `measured`; give one".to_owned()
            );
        }
        [a, b, ..] => return Err(format!("has both `{a}` and `{b}`; give one")),
    }
    if file.measured.is_some() {
        return match (file.scenario.is_empty(), file.scheme.is_empty()) {
            (true, true) => Ok(()),
            (false, _) => {
                Err("has both `scenario` and `measured`, which runs none; remove `scenario`".to_owned())
            }
            (true, false) => {
                Err("has both `scheme` and `measured`, which has none; remove `scheme`".to_owned())
            }
        };
    }
    let schemes = file.packets.as_ref().map(|packets| ("packets", &packets.schemes));
    let schemes = schemes.or(file.one_port.as_ref().map(|one| ("one_port", &one.schemes)));
    match (schemes, file.scheme.is_empty()) {
        (Some((table, schemes)), true) if schemes.is_empty() => {
            return Err(format!("{table}.schemes is empty: give a scheme or more"));
        }
        (Some((table, _)), false) => {
            return Err(format!(
                "has both `scheme` and `{table}`, which has `schemes`; set only one of them"
            ));
        }
        (None, true) => return Err("has no `scheme`".to_owned()),
        _ => {}
    }
    file.law.as_ref().map_or(Ok(()), Law::check)?;
    for stat in Stat::ALL {
        let bands = file.experiment.iter().map(|experiment| &experiment.band).chain([&file.band]);
        for band in bands.filter_map(|bands| bands.of(stat)) {
            if !(band.low > 0.0 && band.low < band.high && band.high.is_finite()) {
                let [low, high] = <[f64; 2]>::from(band);
                let key = stat.name().to_lowercase();
                return Err(format!(
                    "band.{key} = [{low}, {high}]: expected two ratios above 0, the smaller one first"
                ));
            }
        }
    }
    let Some(theirs) = &file.theirs else { return Ok(()) };
    if !peers.contains_key(&theirs.peer) {
        return Err(format!(
            "theirs.peer: {}",
            unknown("peer", &theirs.peer, peers.keys().map(String::as_str))
        ));
    }
    let curve = &theirs.curve_us;
    if curve.len() != RANKS {
        return Err(format!(
            "theirs.curve_us has {} values; expected {RANKS}: the smallest, percentiles 1 to 99, the largest",
            curve.len()
        ));
    }
    if !curve.iter().all(|us| us.is_finite() && *us > 0.0) || !curve.is_sorted() {
        return Err("theirs.curve_us: expected times above 0, the smaller ones first".to_owned());
    }
    if !(theirs.mean_us >= curve[0] && theirs.mean_us <= curve[RANKS - 1]) {
        let mean = theirs.mean_us;
        return Err(format!("theirs.mean_us = {mean}: expected a value between the ends of theirs.curve_us"));
    }
    for stat in Stat::ALL {
        let wide = file.band.of(stat).is_some_and(|band| !band.within(stat.usual_band()));
        if wide && !file.cause.iter().any(|cause| cause.figures.contains(&stat)) {
            let key = stat.name().to_lowercase();
            return Err(format!(
                "band.{key} is wider than usual, and no `cause` names \"{key}\": state the cause"
            ));
        }
    }
    Ok(())
}
