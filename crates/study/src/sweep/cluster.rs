//! Cluster plans: one workload over several fabrics, rates and schemes, and the cost of each fabric.

use std::collections::BTreeMap;
use std::path::Path;

use pathweave_scenario::units::Rate;
use pathweave_scenario::{
    Diagnostic, Diagnostics, Document, FieldPath, FileKind, TrainingMemory, TrainingOutlook,
};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use crate::sweep::cost::{Cost, Prices};
use crate::sweep::error::SweepError;
use crate::sweep::judge::Judge;
use crate::sweep::model::{GridAxis, NamedCell, ReportConfig, Seeds, StoredOutput, SweepFile, TableName};
use crate::sweep::parallelism::ParallelismAxes;
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
    /// Degrees of parallelism of the scenario's transformer to choose from. Default: those of the workload.
    pub parallelism: Option<ParallelismAxes>,
    /// Further fields of the scenario to choose from, each with its values.
    #[serde(default)]
    pub grid: Vec<GridAxis>,
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
    /// Candidates that run. Default: "best" with `parallelism`, otherwise "all".
    pub search: Option<Search>,
    /// Relative difference up to which two candidates count as equally fast. The cheaper one is then the better one.
    /// Default: 0.005.
    #[serde(default = "tolerance")]
    pub tolerance: f64,
    /// Prices of the parts of a fabric, by rate.
    pub prices: Prices,
}

/// Candidates that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// All of them.
    All,
    /// All that can be the best of their fabric and scheme: a candidate stays out if a lower bound of its time exceeds
    /// the time of another one. With fidelities "flow" and "packet", packets run only for those that are the best of
    /// their cost by flows.
    Best,
    /// All that can be the best of their cost: a candidate stays out, too, if one of a fabric that costs no more is as
    /// fast. Other fabrics then lack their best candidate.
    Front,
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
    /// Field of the topology that takes the rate. Default: "host_rate" ("rate" of a star), and of a cluster both that of
    /// `scale_out` and "server.port_rate", so that NICs have the rate of the network.
    #[serde(default)]
    pub rate_field: Option<String>,
    /// Cost of the fabric in addition to its ports and links. Default: 0.
    #[serde(default)]
    pub extra_cost: f64,
}

impl FabricChoice {
    /// Returns the fields of the topology that take a rate.
    fn rate_fields(&self) -> Vec<&str> {
        let kind = |table: &Table| table.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let scale_out = self.topology.get("scale_out").and_then(Value::as_table).map(kind);
        match (&self.rate_field, kind(&self.topology).as_str(), scale_out.as_deref()) {
            (Some(field), ..) => vec![field],
            (None, "cluster", Some("star")) => vec!["scale_out.rate", "server.port_rate"],
            (None, "cluster", _) => vec!["scale_out.host_rate", "server.port_rate"],
            (None, "star", _) => vec!["rate"],
            (None, ..) => vec!["host_rate"],
        }
    }
}

fn tolerance() -> f64 {
    0.005
}

/// Candidate of a plan: a fabric with everything else that the plan varies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Facts of its training, if it trains a transformer.
    pub outlook: Option<TrainingOutlook>,
    /// Reason why it does not run.
    pub strike: Option<Strike>,
}

/// Reason why a candidate does not run.
#[derive(Clone, Debug, PartialEq)]
pub enum Strike {
    /// The training needs more memory than a GPU has.
    Memory(TrainingMemory),
    /// The model, the GPUs or the plan do not allow its parallelism.
    Refused {
        /// Name of the field.
        field: String,
        /// Value and what is allowed.
        why: String,
    },
}

/// Plan of a cluster: the runs, and the cost of each fabric.
#[derive(Clone, Debug)]
pub struct ClusterPlan {
    /// Runs, with a cell for each fabric, parallelism, rate and scheme.
    pub plan: Plan,
    /// Cost of each value on the first axis, which is a fabric at a rate.
    pub costs: Vec<Cost>,
    /// Currency of the costs.
    pub currency: String,
    /// Candidates by cell.
    pub candidates: Vec<Candidate>,
    /// Notes on settings by which the order of candidates may be wrong.
    pub notes: Vec<String>,
    /// Years over which costs are spread.
    pub years: f64,
    /// Relative difference up to which two candidates count as equally fast.
    pub tolerance: f64,
    pub(crate) search: Search,
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
        Self::of(&Document::read(path, FileKind::Plan)?, &name.unwrap_or_default())
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
        let own = [(SCHEME, &file.schemes), (FIDELITY, &fidelity)]
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(key, values)| GridAxis { key: key.to_owned(), values: values.clone() });
        let sweep = SweepFile {
            name: file.name.clone(),
            scenario: file.scenario.clone(),
            set: BTreeMap::new(),
            seeds: file.seeds.clone(),
            grid: file.grid.iter().cloned().chain(own).collect(),
            list,
            latin_hypercube: None,
            tables: vec![TableName::Jobs],
            report: ReportConfig {
                metric: Some(TIME.to_owned()),
                compare: (file.schemes.len() > 1).then(|| SCHEME.to_owned()),
                runs: StoredOutput::Figures,
            },
            bundles: file.parallelism.iter().map(ParallelismAxes::bundle).collect(),
        };
        let mut judge = Judge::new(file.parallelism.as_ref(), extra.len());
        let plan = Plan::of_chosen(&sweep, document, name, |cell, loaded| judge.judge(cell, loaded))?;
        judge.check().map_err(|why| Diagnostics::from(document.place(why)))?;
        let mut costs = Vec::new();
        for (fabric, extra) in extra.into_iter().enumerate() {
            let name = plan.axes[0].values[fabric].as_str();
            let cost = judge.topology(fabric).and_then(|topology| match topology {
                Some(topology) => file.prices.cost(topology, name, extra),
                None => Ok(Cost::default()),
            });
            costs.push(cost.map_err(|why| SweepError::from(Diagnostics::from(document.place(why))))?);
        }
        Ok(ClusterPlan {
            costs,
            currency: file.prices.currency,
            candidates: (0..plan.cells.len()).map(|cell| judge.candidate(&plan.cells[cell])).collect(),
            notes: judge.notes().to_vec(),
            years: file.prices.years,
            tolerance: file.tolerance,
            search: file.search.unwrap_or(match file.parallelism {
                Some(_) => Search::Best,
                None => Search::All,
            }),
            fidelity: judge.fidelity(),
            plan,
        })
    }
}

/// Axis of schemes.
pub(crate) const SCHEME: &str = "scheme";
/// Axis of fidelities.
pub(crate) const FIDELITY: &str = "run.fidelity";
/// Figure that plans compare: the mean time of an iteration.
pub(crate) const TIME: &str = "job_completion_mean_ns";
/// Figures of training: tokens a second, and the share of the peak rate of GPUs that serves the model.
pub(crate) const TOKENS_PER_S: &str = "tokens_per_second";
pub(crate) const TOKENS_PER_S_PER_GPU: &str = "tokens_per_second_and_gpu";
pub(crate) const MFU: &str = "mfu_ratio";
/// Figure for the share of that time that is latency.
pub(crate) const LATENCY: &str = "latency_of_jobs_ratio";

/// Sets a field of a table, or of a table within it: "scale_out.host_rate". What is no table on the way becomes one, so
/// that reading it reports the field.
fn insert_at(table: &mut Table, path: &str, value: Value) {
    let Some((name, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return;
    };
    let inner = table.entry(name.to_owned()).or_insert_with(|| Value::Table(Table::new()));
    if !inner.is_table() {
        *inner = Value::Table(Table::new());
    }
    if let Value::Table(inner) = inner {
        insert_at(inner, rest, value);
    }
}

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
        for field in fabric.rate_fields() {
            insert_at(&mut topology, field, Value::String(rate.to_string()));
        }
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
    if !(file.tolerance.is_finite() && (0.0..1.0).contains(&file.tolerance)) {
        let message = format!(
            "`tolerance` cannot be {}: expected 0 or more, and below 1, such as 0.005",
            file.tolerance
        );
        found.push(Diagnostic::new(root.key("tolerance"), message));
    }
    for (i, axis) in file.grid.iter().enumerate() {
        // A fabric has one cost, which is that of its topology.
        if axis.key == "topology" || axis.key.starts_with("topology.") {
            let message = format!("`{}` is no axis beside fabrics", axis.key);
            let place = root.key("grid").index(i).key("key");
            found.push(Diagnostic::new(place, message).allowed("expected [[fabric]] with another topology"));
        }
    }
    found.extend(file.prices.check());
    found.extend(file.parallelism.iter().flat_map(ParallelismAxes::check));
    found
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
    fn a_rate_may_lie_in_a_table_of_the_topology() {
        let nested = BASE.replace(
            "topology = { kind = 'star', hosts = 4 }",
            "topology = { kind = 'cluster', servers = 2, server = { gpus = 2, nics = 2, port_rate = '50Gbps' }, \
             attach = 'server', scale_out = { kind = 'star', hosts = 4 } }",
        );
        let nested = nested.replace("rate_field = 'rate'", "rate_field = 'server.port_rate'");
        let plan = parse(&nested).unwrap();
        assert!(plan.plan.runs_of.iter().all(Result::is_ok), "{:?}", plan.plan.runs_of);
        // As the star of the next test: four ports of hosts, at 100 and at 200 Gb/s.
        let costs: Vec<f64> = plan.costs.iter().take(2).map(|cost| cost.cost).collect();
        assert_eq!(costs, [1280.0, 600.0]);
        // Without a field, network and NICs of a cluster have the rate, whatever its server says.
        let plan = parse(&nested.replace("rate_field = 'server.port_rate'\n", "")).unwrap();
        let costs: Vec<f64> = plan.costs.iter().take(2).map(|cost| cost.cost).collect();
        assert_eq!(costs, [1280.0, 600.0]);
        for (cell, rate) in ["100Gbps", "200Gbps"].into_iter().enumerate() {
            let run = &plan.plan.runs[plan.plan.runs_of[cell].as_ref().unwrap()[0]];
            assert!(run.scenario.contains(&format!("port_rate = \"{rate}\"")), "{}", run.scenario);
        }
        let mut table: Table = "a = 'text'".parse().unwrap();
        insert_at(&mut table, "a.b.c", Value::Integer(1));
        assert_eq!(table.to_string().trim(), "[a.b]\nc = 1");
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

    /// 16 GPUs and a model of 8 heads and 4 layers.
    const TRAINING: &str = "\
[scenario.run]
fidelity = 'flow'
[[scenario.workload]]
kind = 'transformer'
layers = 4
hidden = 1024
feed_forward_hidden = 4096
heads = 8
vocabulary = 32000
sequence = 2048
gpu = 'h100'
global_batch = 16
[[prices.of]]
rate = '100Gbps'
switch_port = 100
optics = 50
[[fabric]]
name = 'star'
topology = { kind = 'star', hosts = 16, rate = '100Gbps' }
";

    fn verdicts(text: &str) -> Vec<(String, Option<String>)> {
        let plan = parse(text).unwrap();
        let strike = |candidate: &Candidate| candidate.strike.as_ref().map(ToString::to_string);
        let names = plan.plan.cells.iter().map(|cell| cell.label.clone());
        names.zip(plan.candidates.iter().map(strike)).collect()
    }

    /// TP divides 8 heads, TP x PP divides 16 GPUs, PP x VP is at most the 4 layers and both ends, replicas divide 16
    /// sequences, and microbatches are a multiple of PP if a stage has chunks: TP 4 x PP 2 leaves 2 replicas with 8 of
    /// them.
    #[test]
    fn parallelism_that_model_or_gpus_do_not_allow_is_refused_with_a_reason() {
        let found =
            verdicts(&format!("{TRAINING}[parallelism]\ntp = [1, 3, 4, 16]\npp = [2, 3, 8]\nvp = [1, 2]\n"));
        let open: Vec<&str> =
            found.iter().filter(|(_, why)| why.is_none()).map(|(name, _)| name.as_str()).collect();
        // PP 8 exceeds 4 layers and both ends. PP 2 x VP 2 with TP 1 has 8 replicas and 2 microbatches.
        assert_eq!(
            open,
            ["star, TP1 PP2 VP1", "star, TP1 PP2 VP2", "star, TP4 PP2 VP1", "star, TP4 PP2 VP2"],
            "{found:?}"
        );
        let why = |name: &str| {
            let (_, why) = found.iter().find(|(of, _)| of == name).unwrap();
            why.clone().unwrap()
        };
        assert!(
            why("star, TP3 PP2 VP1")
                .contains("`workload[0].tp` cannot be 3: expected a divisor of the 8 heads, such as 2")
        );
        assert!(
            why("star, TP4 PP3 VP1").contains("expected a multiple of 12"),
            "{}",
            why("star, TP4 PP3 VP1")
        );
        assert!(why("star, TP1 PP8 VP1").contains("at most 6"), "{}", why("star, TP1 PP8 VP1"));
        assert!(why("star, TP16 PP2 VP1").contains("divisor of the 8 heads"));
        let flat = verdicts(&format!("{TRAINING}[parallelism]\ntp = [4, 8]\nvp = [1, 2]\ndp = [2]\n"));
        let reasons: Vec<&str> = flat.iter().filter_map(|(_, why)| why.as_deref()).collect();
        assert_eq!(flat[2], ("star, TP8 VP1".to_owned(), None));
        assert!(
            reasons[0].contains("DP is 4 on 16 GPUs, which is not listed; the nearest is 2"),
            "{reasons:?}"
        );
        assert!(reasons[2].contains("VP 2 divides stages, and PP is 1"), "{reasons:?}");
    }

    /// A layer of 4 h^2 + 3 h f = 16,777,216 parameters with h = 1,024 takes 2 + 2 bytes of weights and gradients, and
    /// 12 bytes over 16 replicas. With h = 32,768 and f = 131,072, four layers are 68.7 x 10^9 parameters.
    #[test]
    fn a_job_that_does_not_fit_is_struck_out_with_its_terms() {
        let large = TRAINING.replace("hidden = 1024", "hidden = 32768").replace("4096", "131072");
        let found = verdicts(&format!("{large}[parallelism]\ntp = [1, 8]\npp = [1, 2]\n"));
        let why = found[0].1.clone().unwrap();
        // 68,719,476,736 + 2 x 1,048,576,000 parameters at two bytes.
        assert!(
            why.starts_with("does not fit: ")
                && why.contains("of 80.00 GB (h100, stage 0): weights 141.6 GB"),
            "{why}"
        );
        assert!(why.contains("gradients 141.6 GB, optimizer 53.11 GB, activations"), "{why}");
        assert_eq!(found[3], ("star, TP8 PP2".to_owned(), None));
        let none = parse(&format!("{large}[parallelism]\ntp = [1]\n")).unwrap_err();
        assert!(none.contains("none of 1 candidates can run") && none.contains("does not fit: "), "{none}");
    }

    #[test]
    fn mistakes_in_axes_are_named() {
        let why = |rest: &str| parse(&format!("{TRAINING}{rest}")).unwrap_err();
        assert!(why("[parallelism]\ntp = [4, 0]\n").contains("`tp` cannot be 0: expected 1 or more"));
        assert!(why("[parallelism]\ntp = [4, 4]\n").contains("`tp` has 4 twice"));
        assert!(why("[parallelism]\ndp = [4]\n").contains("give tp, pp, cp, ep or vp"));
        assert!(why("[parallelism]\nworkload = 1\ntp = [4]\n").contains("has no item 1"));
        let unknown = why("[parallelism]\ntpp = [4]\n");
        assert!(unknown.contains("did you mean `pp`?"), "{unknown}");
        assert!(unknown.contains("fields here: cp, dp, ep, pp, tp, vp, workload"), "{unknown}");
        let text = TRAINING.replace("[scenario.run]", "tolerance = 1.5\n[scenario.run]");
        assert!(
            parse(&text).unwrap_err().contains("`tolerance` cannot be 1.5: expected 0 or more, and below 1")
        );
        let years = TRAINING.replace("[[prices.of]]", "[prices]\nyears = 0.0\n[[prices.of]]");
        assert!(parse(&years).unwrap_err().contains("`years` cannot be 0"), "{years}");
    }

    /// The workload's own fields are axes, too, and beside schemes.
    #[test]
    fn any_field_is_an_axis() {
        let grid = "[[grid]]\nkey = 'workload[0].recompute'\nvalues = ['none', 'full']\n";
        let plan = parse(&format!("schemes = ['ecmp', 'rps']\n{TRAINING}{grid}")).unwrap();
        let labels: Vec<&str> = plan.plan.cells.iter().map(|cell| cell.label.as_str()).collect();
        assert_eq!((labels.len(), labels[1]), (4, "star, workload[0].recompute=none, scheme=rps"));
        assert_eq!(plan.search, Search::All);
    }
}
