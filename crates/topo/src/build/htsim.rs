//! Import of htsim's topology files, `.topo`: a folded Clos of two or three tiers.
//!
//! A header (`Nodes`, `Tiers`, `Podsize`) is followed, for each tier, by `Tier i` and its settings, each on a line
//! with name and number separated by blanks. Lines that begin with `#` are comments. Names are case-insensitive, as
//! in htsim. htsim ignores unknown lines; here they are errors.

use std::path::{Path, PathBuf};

use pathweave_units::{Duration, Rate, closest_name, suggestion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, FatTree, LeafSpine};
use crate::error::{Location, TopoError};
use crate::graph::{MAX_NODES, Topology};
use crate::read::read_text;

/// A `.topo` file of htsim: a folded Clos of two or three tiers.
///
/// Half of a switch's `Switch_Latency_ns` is added to the link before it and half to the link behind it. Cores are
/// numbered as in pathweave's fat tree. Queue sizes are not imported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HtsimFile {
    /// The file, relative to the scenario file.
    pub path: PathBuf,
}

impl Build for HtsimFile {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        let (file, text) = read_text(base_dir, &self.path)?;
        parse_htsim_topology(&file, &text)
    }

    fn file(&mut self) -> Option<&mut PathBuf> {
        Some(&mut self.path)
    }
}

/// Names of the settings in the header and in a tier.
const HEADER: [&str; 3] = ["nodes", "tiers", "podsize"];
const TIER_SETTINGS: [&str; 9] = [
    "downlink_speed_gbps",
    "radix_down",
    "radix_up",
    "downlink_latency_ns",
    "switch_latency_ns",
    "oversubscribed",
    "bundle",
    "queue_up",
    "queue_down",
];

/// Value of a setting and its line, if the setting is present.
type Setting = Option<(u64, u32)>;

/// Settings of the file.
struct Settings<'a> {
    file: &'a str,
    header: [Setting; HEADER.len()],
    /// Line where each tier begins, and the settings of the tier.
    tiers: Vec<Option<(u32, [Setting; TIER_SETTINGS.len()])>>,
}

/// Parses the text of a `.topo` file. `file` is its name in errors.
pub fn parse_htsim_topology(file: &str, text: &str) -> Result<Topology, TopoError> {
    let settings = Settings::read(file, text)?;
    let topology = settings.build()?;
    let has_queues = settings.tiers.iter().flatten().any(|(_, tier)| tier[7..].iter().any(Option::is_some));
    Ok(if has_queues {
        topology.with_note(format!(
            "{file}: Queue_Up and Queue_Down are not taken over; set the buffer of [switch]"
        ))
    } else {
        topology
    })
}

impl<'a> Settings<'a> {
    fn read(file: &'a str, text: &str) -> Result<Self, TopoError> {
        let mut settings = Settings { file, header: Default::default(), tiers: vec![None; 3] };
        let mut current: Option<usize> = None;
        for (line, content) in (1u32..).zip(text.lines()) {
            let words: Vec<&str> = content.split_whitespace().take(9).collect();
            if words.first().is_none_or(|first| first.starts_with('#')) {
                continue;
            }
            let [name, value] = words[..] else {
                let what = format!("{} words; expected a name and a number", words.len());
                return Err(settings.refuse(line, what));
            };
            let number: u64 = value.parse().ok().filter(|_| value.len() < 16).ok_or_else(|| {
                let shown: String = value.chars().take(40).collect();
                settings.refuse(line, format!("{name} = {shown}: expected a whole number at or above 0"))
            })?;
            let lower = name.to_lowercase();
            if lower == "tier" {
                if number > 2 {
                    return Err(settings.refuse(line, format!("Tier {number}: tiers are 0 to 2")));
                }
                let tier = &mut settings.tiers[number as usize];
                if let Some((first, _)) = tier {
                    let what = format!("Tier {number}: described from line {first} on already");
                    return Err(settings.refuse(line, what));
                }
                *tier = Some((line, Default::default()));
                current = Some(number as usize);
                continue;
            }
            let known: &[&str] = if current.is_none() { &HEADER } else { &TIER_SETTINGS };
            let slot = known.iter().position(|known| *known == lower).ok_or_else(|| {
                let hint = suggestion(closest_name(&lower, known.iter().copied()));
                let place = if current.is_none() { "the header" } else { "a tier" };
                let shown: String = name.chars().take(40).collect();
                let what =
                    format!("\"{shown}\" is no name of {place}{hint} (known are {})", known.join(", "));
                settings.refuse(line, what)
            })?;
            let set = match current {
                None => &mut settings.header[slot],
                Some(tier) => &mut settings.tiers[tier].as_mut().expect("it is being described").1[slot],
            };
            if let Some((_, first)) = set.replace((number, line)) {
                return Err(
                    settings.refuse(line, format!("{name} is given twice; line {first} has it already"))
                );
            }
        }
        Ok(settings)
    }

    fn refuse(&self, line: u32, what: impl Into<String>) -> TopoError {
        let at = Location { file: self.file.to_owned(), line, column: 0 };
        TopoError::File { at, what: what.into() }
    }

    fn of_header(&self, slot: usize, least: u64, most: u64) -> Result<(u32, u32), TopoError> {
        let name = ["Nodes", "Tiers", "Podsize"][slot];
        let (value, line) =
            self.header[slot].ok_or_else(|| self.refuse(0, format!("{name} is missing in the header")))?;
        if !(least..=most).contains(&value) {
            return Err(self.refuse(line, format!("{name} = {value}: expected {least} to {most}")));
        }
        Ok((value as u32, line))
    }

    fn build(&self) -> Result<Topology, TopoError> {
        let (nodes, _) = self.of_header(0, 1, u64::from(MAX_NODES))?;
        let (tiers, _) = self.of_header(1, 2, 3)?;
        let (pod, pod_line) = self.of_header(2, 1, u64::from(nodes))?;
        let all = (0..tiers as usize)
            .map(|tier| Tier::read(self, tier, tiers as usize))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some((line, _)) = self.tiers.get(tiers as usize).copied().flatten() {
            return Err(
                self.refuse(line, format!("Tier {tiers}: the header has {tiers} tiers, 0 to {}", tiers - 1))
            );
        }
        if !nodes.is_multiple_of(pod) || (tiers == 2 && pod != nodes) {
            let expected = if tiers == 2 {
                "the same, as every leaf has a link to every spine"
            } else {
                "a number that divides it"
            };
            return Err(
                self.refuse(pod_line, format!("Podsize = {pod} of {nodes} nodes: expected {expected}"))
            );
        }
        let [tor, agg, ..] = &all[..] else { unreachable!("two tiers at least") };
        if !pod.is_multiple_of(tor.down) {
            let what = format!("Radix_Down = {}: Podsize {pod} is no multiple of it", tor.down);
            return Err(self.refuse(tor.line, what));
        }
        if tor.bundle > 1 {
            return Err(
                self.refuse(tor.line, format!("Bundle = {} in tier 0: a host has one link", tor.bundle))
            );
        }
        let tors = pod / tor.down;
        let aggs = self.switches_above(tor, agg, 0, tors)?;
        self.check_oversubscription(tor, agg, 0)?;
        let Some(core) = all.get(2) else {
            return LeafSpine {
                leaves: tors,
                spines: aggs,
                hosts_per_leaf: tor.down,
                leaf_spine_links: agg.bundle,
                host_rate: tor.rate,
                spine_rate: Some(agg.rate),
                host_delay: tor.delay(&[tor]),
                spine_delay: Some(agg.delay(&[tor, agg])),
                error_rate: 0.0,
            }
            .build(Path::new(""))
            .map_err(|why| self.refuse(0, why.to_string()));
        };
        let pods = nodes / pod;
        let cores_per_agg = self.switches_above(agg, core, 1, pods)?;
        self.check_oversubscription(agg, core, 1)?;
        FatTree {
            pods: Some(pods),
            tors_per_pod: Some(tors),
            hosts_per_tor: Some(tor.down),
            aggs_per_pod: Some(aggs),
            cores: Some(aggs.saturating_mul(cores_per_agg)),
            tor_agg_links: agg.bundle,
            agg_core_links: core.bundle,
            host_rate: tor.rate,
            tor_agg_rate: Some(agg.rate),
            agg_core_rate: Some(core.rate),
            host_delay: tor.delay(&[tor]),
            tor_agg_delay: Some(agg.delay(&[tor, agg])),
            agg_core_delay: Some(core.delay(&[agg, core])),
            ..FatTree::default()
        }
        .build(Path::new(""))
        .map_err(|why| self.refuse(0, why.to_string()))
    }

    /// Returns the number of switches above to which each switch of a tier has links. Each of those has links to
    /// `below` switches.
    fn switches_above(
        &self,
        lower: &Tier,
        upper: &Tier,
        number: usize,
        below: u32,
    ) -> Result<u32, TopoError> {
        let Some(up) = lower.up else { unreachable!("only the top tier has no links up") };
        if !up.is_multiple_of(upper.bundle) {
            let what = format!(
                "Radix_Up = {up} in tier {number}: no multiple of the Bundle of {} above",
                upper.bundle
            );
            return Err(self.refuse(lower.line, what));
        }
        let wanted = u64::from(below) * u64::from(upper.bundle);
        if u64::from(upper.down) != wanted {
            let what = format!(
                "Radix_Down = {} in tier {}: expected {wanted}, which is {below} switches below with {} links each",
                upper.down,
                number + 1,
                upper.bundle
            );
            return Err(self.refuse(upper.line, what));
        }
        Ok(up / upper.bundle)
    }

    /// Checks that the oversubscription that a tier states agrees with its rates and radices.
    fn check_oversubscription(&self, lower: &Tier, upper: &Tier, number: usize) -> Result<(), TopoError> {
        let Some((ratio, line)) = lower.oversubscribed else { return Ok(()) };
        let down = u128::from(lower.down) * u128::from(lower.rate.as_bps());
        let up = u128::from(lower.up.unwrap_or(0)) * u128::from(upper.rate.as_bps());
        if down == up * u128::from(ratio) {
            return Ok(());
        }
        let (down, up) = (down / 1_000_000_000, up / 1_000_000_000);
        let what = format!(
            "Oversubscribed = {ratio}: a switch of tier {number} has {down} Gbps down and {up} Gbps up, by its radices and rates"
        );
        Err(self.refuse(line, what))
    }
}

/// Tier, and the line where it begins.
struct Tier {
    line: u32,
    rate: Rate,
    down: u32,
    /// Radix towards the tier above; `None` in the top tier.
    up: Option<u32>,
    link_ns: u64,
    switch_ns: u64,
    bundle: u32,
    oversubscribed: Setting,
}

impl Tier {
    fn read(settings: &Settings<'_>, tier: usize, tiers: usize) -> Result<Self, TopoError> {
        let Some((line, set)) = &settings.tiers[tier] else {
            return Err(settings.refuse(0, format!("Tier {tier} is missing; the header has {tiers} tiers")));
        };
        let bounded = |slot: usize, name: &str, least: u64, most: u64| match set[slot] {
            None => Err(settings.refuse(*line, format!("{name} of tier {tier} is missing"))),
            Some((value, _)) if (least..=most).contains(&value) => Ok(value),
            Some((value, line)) => {
                Err(settings.refuse(line, format!("{name} = {value}: expected {least} to {most}")))
            }
        };
        let or = |slot: usize, name: &str, default: u64, least: u64, most: u64| match set[slot] {
            None => Ok(default),
            Some(_) => bounded(slot, name, least, most),
        };
        let radix = u64::from(MAX_NODES);
        let second = 1_000_000_000;
        let up = match (tier + 1 == tiers, set[2]) {
            (true, Some((_, line))) => {
                let what = format!("Radix_Up in tier {tier}: the top tier has no links up");
                return Err(settings.refuse(line, what));
            }
            (true, None) => None,
            (false, _) => Some(bounded(2, "Radix_Up", 1, radix)? as u32),
        };
        Ok(Tier {
            line: *line,
            rate: Rate::from_gbps(bounded(0, "Downlink_speed_Gbps", 1, 1_000_000)?),
            down: bounded(1, "Radix_Down", 1, radix)? as u32,
            up,
            link_ns: bounded(3, "Downlink_Latency_ns", 0, second)?,
            switch_ns: or(4, "Switch_Latency_ns", 0, 0, second)?,
            bundle: or(6, "Bundle", 1, 1, radix)? as u32,
            oversubscribed: set[5],
        })
    }

    /// Returns the delay of the links below this tier, including half of the latency of the switches at their ends.
    fn delay(&self, ends: &[&Tier]) -> Duration {
        let halves: u64 = ends.iter().map(|end| end.switch_ns * 500).sum();
        Duration::from_ps(self.link_ns * 1_000 + halves)
    }
}
