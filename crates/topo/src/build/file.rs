//! Pathweave's own topology file (TOML). `docs/topology-file.md` describes the format for users.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pathweave_units::{Duration, Rate, closest_name, suggestion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::Build;
use crate::error::TopoError;
use crate::graph::{Link, MAX_LINKS, MAX_NODES, NodeId, Switch, Topology};
use crate::import::ParsedTopology;
use crate::read::{SourceText, read_text};

/// A topology file of pathweave (TOML); see `docs/topology-file.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopologyFile {
    /// The file, relative to the scenario file.
    pub path: PathBuf,
}

impl Build for TopologyFile {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        let (file, text) = read_text(base_dir, &self.path)?;
        parse_topology_file(&file, &text)
    }

    fn file(&mut self) -> Option<&mut PathBuf> {
        Some(&mut self.path)
    }
}

/// Parses the text of a topology file. `file` is its name in errors.
pub fn parse_topology_file(file: &str, text: &str) -> Result<Topology, TopoError> {
    let source = SourceText { file, text };
    let parsed: FileText = toml::from_str(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        source.refuse(at, error.message().trim())
    })?;
    parsed.into_topology(&source)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    name: Option<String>,
    hosts: Option<Spanned<u32>>,
    host_names: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    switch: Vec<SwitchText>,
    #[serde(default)]
    link: Vec<LinkText>,
    rate: Option<Spanned<Rate>>,
    delay: Option<Spanned<Duration>>,
    error_rate: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchText {
    name: Spanned<String>,
    tier: Option<u8>,
    group: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkText {
    a: Spanned<String>,
    b: Spanned<String>,
    rate: Option<Spanned<Rate>>,
    delay: Option<Spanned<Duration>>,
    error_rate: Option<Spanned<f64>>,
    count: Option<Spanned<u32>>,
}

impl FileText {
    fn into_topology(self, source: &SourceText<'_>) -> Result<Topology, TopoError> {
        let hosts = self.host_count(source)?;
        if hosts as usize + self.switch.len() > MAX_NODES as usize {
            let what = format!("more than {MAX_NODES} hosts and switches");
            return Err(source.refuse(0..0, what));
        }
        for switch in &self.switch {
            check_name(source, &switch.name)?;
        }
        let links = self.links(source, &self.node_ids(source, hosts)?)?;
        let tiers = self.switch.iter().map(|switch| switch.tier).collect();
        let switch =
            |switch: SwitchText| Switch { name: switch.name.into_inner(), tier: 0, group: switch.group };
        let host_names =
            self.host_names.map(|names| names.into_inner().into_iter().map(Spanned::into_inner).collect());
        ParsedTopology {
            file: source.file,
            name: self.name.unwrap_or_else(|| source.file.to_owned()),
            hosts,
            host_names,
            switches: self.switch.into_iter().map(switch).collect(),
            tiers,
            links,
        }
        .finish()
    }

    fn host_count(&self, source: &SourceText<'_>) -> Result<u32, TopoError> {
        let (count, at) = match (&self.hosts, &self.host_names) {
            (Some(count), None) => (u64::from(*count.get_ref()), count.span()),
            (None, Some(names)) => {
                for name in names.get_ref() {
                    check_name(source, name)?;
                }
                (names.get_ref().len() as u64, names.span())
            }
            (Some(count), Some(_)) => {
                return Err(source.refuse(count.span(), "give `hosts` or `host_names`, not both"));
            }
            (None, None) => {
                let what = "field `hosts` (their number) or `host_names` (a list) is missing";
                return Err(source.refuse(0..0, what));
            }
        };
        if !(1..=u64::from(MAX_NODES)).contains(&count) {
            return Err(source.refuse(at, format!("{count} hosts; expected 1 to {MAX_NODES}")));
        }
        Ok(count as u32)
    }

    /// Returns the nodes by name. Two nodes with the same name are an error.
    fn node_ids(&self, source: &SourceText<'_>, hosts: u32) -> Result<HashMap<String, NodeId>, TopoError> {
        let mut ids = HashMap::new();
        if self.host_names.is_none() {
            ids.extend((0..hosts).map(|host| (format!("host{host}"), NodeId(host))));
        }
        let host_names = self.host_names.iter().flat_map(Spanned::get_ref);
        let switch_names = self.switch.iter().map(|switch| &switch.name);
        for (id, name) in (0..).zip(host_names).chain((hosts..).zip(switch_names)) {
            if ids.insert(name.get_ref().clone(), NodeId(id)).is_some() {
                return Err(
                    source.refuse(name.span(), format!("\"{}\" is the name of two nodes", name.get_ref()))
                );
            }
        }
        Ok(ids)
    }

    fn links(&self, source: &SourceText<'_>, ids: &HashMap<String, NodeId>) -> Result<Vec<Link>, TopoError> {
        let mut links = Vec::new();
        for text in &self.link {
            let find = |name: &Spanned<String>| {
                ids.get(name.get_ref()).copied().ok_or_else(|| {
                    let hint = suggestion(nearest_name(name.get_ref(), ids).as_deref());
                    source.refuse(name.span(), format!("no node is named \"{}\"{hint}", name.get_ref()))
                })
            };
            let (a, b) = (find(&text.a)?, find(&text.b)?);
            let missing = |field: &str| {
                let what =
                    format!("its link has no `{field}`; give one here, or a default at the top of the file");
                source.refuse(text.a.span(), what)
            };
            if a == b {
                return Err(source.refuse(text.b.span(), "a link cannot connect a node to itself"));
            }
            let rate = text.rate.as_ref().or(self.rate.as_ref()).ok_or_else(|| missing("rate"))?;
            if *rate.get_ref() == Rate::ZERO {
                return Err(source.refuse(rate.span(), "rates must be above 0"));
            }
            let delay = text.delay.as_ref().or(self.delay.as_ref()).ok_or_else(|| missing("delay"))?;
            let error_rate = match text.error_rate.as_ref().or(self.error_rate.as_ref()) {
                Some(p) if !(0.0..=1.0).contains(p.get_ref()) => {
                    return Err(source.refuse(p.span(), "expected a probability from 0.0 to 1.0"));
                }
                p => p.map_or(0.0, |p| *p.get_ref()),
            };
            let link = Link { a, b, rate: *rate.get_ref(), delay: *delay.get_ref(), error_rate };
            let count = match &text.count {
                Some(count)
                    if *count.get_ref() == 0 || links.len() + *count.get_ref() as usize > MAX_LINKS =>
                {
                    let what = format!("expected at least 1, and at most {MAX_LINKS} links in all");
                    return Err(source.refuse(count.span(), what));
                }
                count => count.as_ref().map_or(1, |count| *count.get_ref()),
            };
            links.extend((0..count).map(|_| link.clone()));
        }
        Ok(links)
    }
}

/// Returns the name of the node most similar to `name`. Names are sorted first, because the map has no order.
fn nearest_name(name: &str, ids: &HashMap<String, NodeId>) -> Option<String> {
    let mut names: Vec<_> = ids.iter().map(|(name, &id)| (id, name.as_str())).collect();
    names.sort_unstable();
    closest_name(name, names.into_iter().map(|(_, name)| name)).map(str::to_owned)
}

fn check_name(source: &SourceText<'_>, name: &Spanned<String>) -> Result<(), TopoError> {
    const LONGEST: usize = 64;
    let text = name.get_ref();
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '/');
    if text.is_empty() || text.chars().count() > LONGEST || !text.chars().all(allowed) {
        let what = format!("a name is 1 to {LONGEST} letters, digits or any of . _ - : /");
        return Err(source.refuse(name.span(), what));
    }
    Ok(())
}
