//! Cluster plans: one workload over several fabrics, rates and schemes, and the cost of each fabric.

use std::collections::BTreeMap;
use std::path::Path;

use pathweave_scenario::units::Rate;
use pathweave_scenario::{Changes, Diagnostic, Diagnostics, Document, Fidelity, FieldPath, Loaded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::sweep::error::SweepError;
use crate::sweep::model::{GridAxis, NamedCell, ReportConfig, Seeds, StoredOutput, SweepFile, TableName};
use crate::sweep::plan::Plan;

/// A cluster to be planned: its workload, the fabrics to choose from, and the prices of their parts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PlanFile")]
pub struct ClusterFile {
    /// Name of the plan. Default: the file's name without ".toml".
    pub name: Option<String>,
    /// The scenario without its topology: the path of a file, relative to this one, or a table in the format of a
    /// scenario file.
    #[schemars(with = "serde_json::Value")]
    pub scenario: Value,
    /// Fabrics to choose from.
    pub fabric: Vec<FabricChoice>,
    /// Schemes to choose from. Default: the scheme of the scenario.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub schemes: Vec<Value>,
    /// Fidelities of the simulation: "packet", "flow", or both. With both, the error of "flow" is known where
    /// "packet" ran. Default: the fidelity of the scenario.
    #[serde(default)]
    pub fidelity: Vec<String>,
    /// Seeds of each choice: a number, which is counted from 1, or a list. Default: 1.
    #[serde(default)]
    pub seeds: Seeds,
    /// Prices of the parts of a fabric, by rate.
    pub prices: Prices,
}

/// A fabric to choose from.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FabricChoice {
    /// Name of the fabric.
    pub name: String,
    /// Topology of the fabric, in the format of a scenario file.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub topology: Table,
    /// Rates to choose from. Each makes a fabric of its own. Default: the rate in the topology.
    #[serde(default)]
    pub rates: Vec<Rate>,
    /// Field of the topology that holds the rate. Default: "host_rate".
    #[serde(default = "host_rate")]
    pub rate_field: String,
    /// Cost of the fabric in addition to its ports and links. Default: 0.
    #[serde(default)]
    pub extra_cost: f64,
}

/// A price list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Currency of the prices. Default: "USD".
    #[serde(default = "usd")]
    pub currency: String,
    /// Prices for each rate of a fabric's links.
    pub of: Vec<RatePrices>,
}

/// Prices of the parts for one rate.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatePrices {
    /// Rate of the link.
    pub rate: Rate,
    /// Price of a switch port.
    pub switch_port: f64,
    /// Price of an optical transceiver. A link between switches has two.
    pub optics: f64,
    /// Price of a host port: its share of a network adapter. Default: 0.
    #[serde(default)]
    pub host_port: f64,
    /// Price of a host's link: a copper cable, or two transceivers. Default: 0.
    #[serde(default)]
    pub host_link: f64,
}

fn host_rate() -> String {
    "host_rate".to_owned()
}
fn usd() -> String {
    "USD".to_owned()
}

/// Components of a fabric and their cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Number of hosts.
    pub hosts: u32,
    /// Number of switches.
    pub switches: u32,
    /// Number of switch ports with a link.
    pub switch_ports: u64,
    /// Number of transceivers on links between switches.
    pub optics: u64,
    /// Number of links of hosts.
    pub host_links: u64,
    /// Total cost in the currency of the prices.
    pub cost: f64,
}

/// Plan of a cluster: the runs, and the cost of each fabric.
#[derive(Clone, Debug)]
pub struct ClusterPlan {
    /// Runs, with a cell for each fabric, rate and scheme.
    pub plan: Plan,
    /// Cost of each value on the first axis, which is a fabric at a rate.
    pub costs: Vec<Cost>,
    /// Currency of the costs.
    pub currency: String,
    /// Fidelity of the runs, if the plan has no axis of it.
    pub(crate) fidelity: &'static str,
}

impl ClusterPlan {
    /// Reads a cluster file, checks every choice, and computes its cost.
    ///
    /// # Errors
    /// If the file is invalid, if no scheme can run on a fabric, or if a rate has no price.
    pub fn read(path: &Path) -> Result<Self, SweepError> {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Self::of(&Document::read(path)?, &name.unwrap_or_default())
    }

    /// Parses a cluster plan from a text. Errors call it `source_name`. Its file names are relative to `base_dir`.
    pub fn parse(text: &str, source_name: &str, base_dir: &Path) -> Result<Self, SweepError> {
        Self::of(&Document::parse(text, source_name, base_dir)?, source_name.trim_end_matches(".toml"))
    }

    fn of(document: &Document, name: &str) -> Result<Self, SweepError> {
        let file: ClusterFile = document.to()?;
        Diagnostics::check(check(&file).into_iter().map(|finding| document.place(finding)).collect())?;
        let (list, extra): (Vec<NamedCell>, Vec<f64>) = file.fabric.iter().flat_map(choices).unzip();
        let fidelity: Vec<Value> = file.fidelity.iter().cloned().map(Value::String).collect();
        let grid = [(SCHEME, &file.schemes), (FIDELITY, &fidelity)]
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(key, values)| GridAxis { key: key.to_owned(), values: values.clone() });
        let sweep = SweepFile {
            name: file.name.clone(),
            scenario: file.scenario.clone(),
            set: BTreeMap::new(),
            seeds: file.seeds.clone(),
            grid: grid.collect(),
            list,
            latin_hypercube: None,
            tables: vec![TableName::Jobs, TableName::Layers, TableName::Collectives, TableName::Critical],
            report: ReportConfig { metric: TIME.to_owned(), compare: None, runs: StoredOutput::Figures },
        };
        let plan = Plan::from_file(&sweep, document, name)?;
        let (mut costs, mut fidelity) = (Vec::new(), None);
        for (number, extra) in extra.into_iter().enumerate() {
            let (cost, of_runs) = cost_of(&plan, number, &file.prices)
                .map_err(|why| SweepError::from(Diagnostics::from(document.place(why))))?;
            costs.push(Cost { cost: cost.cost + extra, ..cost });
            fidelity = fidelity.or(of_runs);
        }
        let fidelity = match fidelity {
            Some(Fidelity::Flow) => "flow",
            _ => "packet",
        };
        Ok(ClusterPlan { plan, costs, currency: file.prices.currency, fidelity })
    }
}

/// Axis of schemes.
pub(crate) const SCHEME: &str = "scheme";
/// Axis of fidelities.
pub(crate) const FIDELITY: &str = "run.fidelity";
/// Figure that plans compare: the mean time of an iteration.
pub(crate) const TIME: &str = "job_completion_mean_ns";
/// Figure for the share of that time that is latency.
pub(crate) const LATENCY: &str = "latency_of_jobs_ratio";

/// Returns a fabric at each of its rates, with its extra cost.
fn choices(fabric: &FabricChoice) -> Vec<(NamedCell, f64)> {
    let cell = |name: String, topology: Table| {
        let set = BTreeMap::from([("topology".to_owned(), Value::Table(topology))]);
        (NamedCell { name, set }, fabric.extra_cost)
    };
    if fabric.rates.is_empty() {
        return vec![cell(fabric.name.clone(), fabric.topology.clone())];
    }
    let at = |rate: &Rate| {
        let mut topology = fabric.topology.clone();
        topology.insert(fabric.rate_field.clone(), Value::String(rate.to_string()));
        cell(format!("{} at {rate}", fabric.name), topology)
    };
    fabric.rates.iter().map(at).collect()
}

/// Checks rules that the schema cannot express.
fn check(file: &ClusterFile) -> Vec<Diagnostic> {
    let root = FieldPath::root();
    let mut found = Vec::new();
    let amount = |value: f64| value.is_finite() && value >= 0.0;
    if file.fabric.is_empty() {
        found.push(Diagnostic::new(root.key("fabric"), "a plan needs a fabric to choose: give [[fabric]]"));
    }
    for (i, fabric) in file.fabric.iter().enumerate() {
        let place = root.key("fabric").index(i);
        if file.fabric[..i].iter().any(|other| other.name == fabric.name) {
            let message = format!("a fabric \"{}\" is there twice", fabric.name);
            found.push(Diagnostic::new(place.key("name"), message));
        }
        if !amount(fabric.extra_cost) {
            let message = format!("`extra_cost` cannot be {}: expected 0 or more", fabric.extra_cost);
            found.push(Diagnostic::new(place.key("extra_cost"), message));
        }
    }
    for (i, price) in file.prices.of.iter().enumerate() {
        let place = root.key("prices").key("of").index(i);
        if file.prices.of[..i].iter().any(|other| other.rate == price.rate) {
            let message = format!("{} has prices twice", price.rate);
            found.push(Diagnostic::new(place.key("rate"), message));
        }
        for (field, value) in [
            ("switch_port", price.switch_port),
            ("optics", price.optics),
            ("host_port", price.host_port),
            ("host_link", price.host_link),
        ] {
            if !amount(value) {
                let message = format!("`{field}` cannot be {value}: expected 0 or more");
                found.push(Diagnostic::new(place.key(field), message));
            }
        }
    }
    found
}

/// Returns the cost of the fabric at this value of the first axis, and the fidelity of its runs. The fidelity is
/// `None` if no scheme can run on the fabric.
fn cost_of(plan: &Plan, fabric: usize, prices: &Prices) -> Result<(Cost, Option<Fidelity>), Diagnostic> {
    let runs = plan.cells.iter().zip(&plan.runs_of).filter(|(cell, _)| cell.value_indices[0] == fabric);
    // A fabric on which no scheme can run was refused earlier.
    let run = runs.filter_map(|(_, runs)| runs.as_ref().ok()?.first()).next();
    let Some(&run) = run else { return Ok((Cost::default(), None)) };
    let loaded = Loaded::parse(&plan.runs[run].scenario, "scenario.toml", "", &Changes::default());
    let built = loaded.and_then(|loaded| Ok((loaded.topology()?, loaded.scenario.run.fidelity)));
    let field = FieldPath::root().key("fabric");
    let (topology, fidelity) = built.map_err(|why| Diagnostic::new(field, why.to_string()))?;
    let mut cost =
        Cost { hosts: topology.hosts(), switches: topology.switches().len() as u32, ..Cost::default() };
    for link in topology.links() {
        let Some(price) = prices.of.iter().find(|price| price.rate == link.rate) else {
            let known: Vec<String> = prices.of.iter().map(|price| price.rate.to_string()).collect();
            let name = plan.axes[0].values[fabric].as_str();
            let message = format!("links of {} have no price, and fabric \"{name}\" has some", link.rate);
            let place = FieldPath::root().key("prices").key("of");
            return Err(
                Diagnostic::new(place, message).allowed(format!("prices are of {}", known.join(", ")))
            );
        };
        let hosts = [link.a, link.b].into_iter().filter(|&node| topology.is_host(node)).count();
        if hosts == 0 {
            cost.switch_ports += 2;
            cost.optics += 2;
            cost.cost += 2.0 * (price.switch_port + price.optics);
        } else {
            let switch_ports = 2 - hosts;
            cost.switch_ports += switch_ports as u64;
            cost.host_links += 1;
            cost.cost += switch_ports as f64 * price.switch_port;
            cost.cost += hosts as f64 * price.host_port + price.host_link;
        }
    }
    Ok((cost, Some(fidelity)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "\
[[scenario.workload]]
kind = 'collective'
operation = 'all-reduce'
size = '64KB'
[[prices.of]]
rate = '100Gbps'
switch_port = 100
optics = 50
host_port = 200
host_link = 20
[[prices.of]]
rate = '200Gbps'
switch_port = 150
optics = 90
[[fabric]]
name = 'star'
topology = { kind = 'star', hosts = 4 }
rates = ['100Gbps', '200Gbps']
rate_field = 'rate'
[[fabric]]
name = 'two tiers'
topology = { kind = 'leaf-spine', leaves = 2, spines = 2, hosts_per_leaf = 2, host_rate = '100Gbps' }
extra_cost = 1000
";

    fn parse(text: &str) -> Result<ClusterPlan, String> {
        ClusterPlan::parse(text, "c.toml", Path::new("")).map_err(|why| why.to_string())
    }

    #[test]
    fn fabrics_rates_and_schemes_are_cells_and_cost_what_their_parts_do() {
        let plan = parse(&format!("schemes = ['ecmp', 'rps']\n{BASE}")).unwrap();
        let labels: Vec<&str> = plan.plan.cells.iter().map(|cell| cell.label.as_str()).collect();
        assert_eq!(labels[..2], ["star at 100Gbps, scheme=ecmp", "star at 100Gbps, scheme=rps"]);
        assert_eq!((labels.len(), labels[4]), (6, "two tiers, scheme=ecmp"));
        assert!(plan.plan.runs_of.iter().all(Result::is_ok));
        let costs: Vec<f64> = plan.costs.iter().map(|cost| cost.cost).collect();
        // Each host costs its link and the ports at both ends: 4 x (100 + 200 + 20), and 4 x 150. The four links
        // between switches have two ports and two transceivers each.
        assert_eq!(costs, [1280.0, 600.0, 1280.0 + 4.0 * 2.0 * 150.0 + 1000.0]);
        let two = &plan.costs[2];
        assert_eq!((two.switches, two.switch_ports, two.optics, two.host_links), (4, 12, 8, 4));
    }

    #[test]
    fn packets_and_flows_are_cells_beside_each_other() {
        let plan = parse(&format!("schemes = ['rps']\nfidelity = ['packet', 'flow']\n{BASE}")).unwrap();
        let labels: Vec<&str> = plan.plan.cells.iter().map(|cell| cell.label.as_str()).collect();
        assert_eq!((labels.len(), plan.fidelity), (6, "packet"));
        assert_eq!(labels[1], "star at 100Gbps, scheme=rps, run.fidelity=flow");
        let error = parse(&format!("fidelity = ['fluid']\n{BASE}")).unwrap_err();
        assert!(error.contains("fluid") && error.contains("flow"), "{error}");
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let missing = parse(&BASE.replace("'200Gbps'\nswitch_port", "'400Gbps'\nswitch_port")).unwrap_err();
        assert!(
            missing.contains("links of 200Gbps have no price, and fabric \"star at 200Gbps\""),
            "{missing}"
        );
        assert!(missing.contains("prices are of 100Gbps, 400Gbps"), "{missing}");
        let twice = parse(&BASE.replace("'two tiers'", "'star'")).unwrap_err();
        assert!(twice.contains("a fabric \"star\" is there twice"), "{twice}");
        let negative = parse(&BASE.replace("optics = 50", "optics = -50")).unwrap_err();
        assert!(negative.contains("`optics` cannot be -50: expected 0 or more"), "{negative}");
        let same = parse(&BASE.replace("rate = '200Gbps'\n", "rate = '100Gbps'\n")).unwrap_err();
        assert!(same.contains("100Gbps has prices twice"), "{same}");
        let kind = parse(&BASE.replace("leaf-spine", "leaf-spin")).unwrap_err();
        assert!(kind.contains("leaf-spin") && kind.contains("did you mean"), "{kind}");
    }
}
