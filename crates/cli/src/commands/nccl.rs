//! `pathweave nccl`: the columns of nccl-tests, simulated and from NCCL's cost model.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pathweave_scenario::nccl::{
    Algorithm, Channels, Choice, Choices, Cpu, DEFAULT_MESSAGES, Gpu, Nccl, NcclAlgorithm, NcclProtocol,
    Operation, Protocol, Sharp, System, Tuner, bus_factor,
};
use pathweave_scenario::units::{Bytes, Rate};
use pathweave_scenario::{Changes, Loaded};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::options::whole;
use crate::scenario_input;
use crate::terminal;

/// The sizes of a collective as nccl-tests lists them, with the algorithm that NCCL 2.30.7 (for MI300X RCCL) chooses. The
/// messages that it sends are simulated by flows, alone on the network. Beside them is the time of the library's cost
/// model, by which it chooses. The GPUs, servers and NICs are those of a scenario with `kind = "cluster"`, or those of the
/// options.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct NcclArgs {
    #[command(subcommand)]
    pub(crate) command: Option<crate::real::nccl::NcclCommand>,
    /// Scenario file (TOML) with a cluster; - is standard input [default: the servers that the options describe]
    #[arg(conflicts_with_all = ["servers", "gpus", "nics", "nic"])]
    pub(crate) scenario: Option<PathBuf>,
    /// Set a field of the scenario: topology.servers=4
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "scenario")]
    pub(crate) set: Vec<String>,
    /// Model of GPU: v100, a100, a800, h100, h200, h800, h20, b200, b300, gb200, gb300, mi300x [default: that of the
    /// scenario's server model; h100 without a scenario]
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<Gpu>,
    /// Number of servers [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) servers: Option<u32>,
    /// GPUs of a server [default: 8]
    #[arg(long, value_name = "N")]
    pub(crate) gpus: Option<u32>,
    /// NICs of a server [default: as many as GPUs]
    #[arg(long, value_name = "N")]
    pub(crate) nics: Option<u32>,
    /// Rate of a NIC [default: 400Gbps; 200Gbps for A100 and V100]
    #[arg(long, value_name = "RATE")]
    pub(crate) nic: Option<Rate>,
    /// Processor of the servers [default: intel; arm for GB200 and GB300]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) cpu: Option<CpuName>,
    /// Let switches of the network reduce (SHARP, CollNet)
    #[arg(long)]
    pub(crate) sharp: bool,
    /// Operation
    #[arg(long, value_enum, default_value_t = Collective::AllReduce, value_name = "NAME")]
    pub(crate) collective: Collective,
    /// Smallest size: 8, 64KiB, 1MB, or K, M, G for powers of 1024, as in nccl-tests
    #[arg(long, value_name = "SIZE", default_value = "8", value_parser = size)]
    pub(crate) min: u64,
    /// Largest size
    #[arg(long, value_name = "SIZE", default_value = "16G", value_parser = size)]
    pub(crate) max: u64,
    /// Factor between sizes
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole(2..=1024))]
    pub(crate) factor: u64,
    /// Algorithms that may be chosen, as in NCCL_ALGO, separated by commas: tree, ring, collnetdirect, collnetchain,
    /// nvls, nvlstree, pat [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) algorithm: Vec<Algorithm>,
    /// Protocols that may be chosen, as in NCCL_PROTO, separated by commas: LL, LL128, Simple [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) protocol: Vec<Protocol>,
    /// Print the cost model only, without a simulation
    #[arg(long)]
    pub(crate) model_only: bool,
    /// Messages of a collective above which its loops are merged
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MESSAGES, value_parser = whole(1..=1_048_576))]
    pub(crate) messages: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Operations. An all-to-all has no cost model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
    Reduce,
    AllToAll,
}

/// Names of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CpuName {
    Intel,
    Amd,
    Arm,
}

/// Largest size, 1 TiB.
const MOST_BYTES: u64 = 1 << 40;
/// Bytes of an element: nccl-tests use `float` by default.
const ELEMENT_BYTES: u64 = 4;

/// Reads a size as nccl-tests does, or with a unit.
fn size(text: &str) -> Result<u64, String> {
    let (digits, power) = match text.char_indices().last() {
        Some((at, letter)) if "kKmMgG".contains(letter) => {
            (&text[..at], 10 * (1 + "kmg".find(letter.to_ascii_lowercase()).unwrap_or(0) as u32))
        }
        _ => (text, 0),
    };
    let bytes = match digits.parse::<u64>() {
        Ok(count) => count.checked_mul(1 << power),
        Err(_) => {
            let with_unit = text.parse::<Bytes>();
            Some(with_unit.map_err(|why| format!("{why}, or K, M, G for powers of 1024"))?.get())
        }
    };
    match bytes {
        Some(bytes @ 1..=MOST_BYTES) => Ok(bytes),
        _ => Err("allowed are 1 byte to 1 TiB (1024G)".to_owned()),
    }
}

#[derive(Debug, Serialize)]
struct Answer {
    system: System,
    operation: &'static str,
    channels: Channels,
    rows: Vec<Row>,
    /// Reason why a size is not simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_simulated: Option<String>,
}

/// Line of nccl-tests.
#[derive(Debug, PartialEq, Serialize)]
struct Row {
    size_bytes: u64,
    count: u64,
    #[serde(rename = "type")]
    element: &'static str,
    redop: &'static str,
    root: i32,
    /// Choice of the library. An all-to-all has none.
    #[serde(flatten)]
    choice: Option<Choice>,
    #[serde(flatten)]
    model: Option<Model>,
    #[serde(flatten)]
    simulated: Option<Simulated>,
}

/// Time of the cost model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Model {
    time_us: f64,
    algbw_gbs: f64,
    busbw_gbs: f64,
}

/// Time of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Simulated {
    simulated_us: f64,
    simulated_algbw_gbs: f64,
    simulated_busbw_gbs: f64,
    messages: u64,
}

/// Collective on servers.
struct Question<'a> {
    args: &'a NcclArgs,
    system: System,
    operation: Operation,
    /// The network, unless nothing is simulated.
    network: Option<Loaded>,
}

pub(crate) fn nccl(args: &NcclArgs) -> Result<Outcome, Failure> {
    if let Some(command) = &args.command {
        return crate::real::nccl::run(command);
    }
    let answer = answer(args)?;
    terminal::out(&if args.json { super::json(&answer) } else { text(&answer, args.messages) });
    Ok(Outcome::Done)
}

/// Returns the servers, and the network of a scenario.
fn system(args: &NcclArgs) -> Result<(System, Option<Loaded>), Failure> {
    let (base, loaded) = match &args.scenario {
        Some(path) => {
            let changes = Changes { set: args.set.clone(), ..Changes::default() };
            let loaded = scenario_input::read(path, &changes)?;
            (loaded.nccl_system(args.gpu)?, Some(loaded))
        }
        None => {
            let gpu = args.gpu.unwrap_or(Gpu::H100);
            let base = System::new(gpu, args.servers.unwrap_or(1), args.gpus.unwrap_or(8));
            let nics = args.nics.unwrap_or(base.nics);
            (System { nics, nic_rate: args.nic.unwrap_or(base.nic_rate), ..base }, None)
        }
    };
    let cpu = args.cpu.map_or(base.cpu, |cpu| match cpu {
        CpuName::Intel => Cpu::Intel,
        CpuName::Amd => Cpu::Amd,
        CpuName::Arm => Cpu::Arm,
    });
    let sharp = if args.sharp { Sharp::On } else { Sharp::Off };
    Ok((System { cpu, sharp, ..base }, loaded))
}

pub(crate) fn operation(collective: Collective) -> Operation {
    match collective {
        Collective::AllReduce => Operation::AllReduce,
        Collective::AllGather => Operation::AllGather,
        Collective::ReduceScatter => Operation::ReduceScatter,
        Collective::Broadcast => Operation::Broadcast,
        Collective::Reduce => Operation::Reduce,
        Collective::AllToAll => Operation::AllToAll,
    }
}

fn answer(args: &NcclArgs) -> Result<Answer, Failure> {
    if args.min > args.max {
        let why =
            format!("--min is {} bytes, above --max, {} bytes; allowed: at most --max", args.min, args.max);
        return Err(Failure::Input(why));
    }
    let (system, loaded) = system(args)?;
    let operation = operation(args.collective);
    let input = |why: pathweave_scenario::nccl::NcclError| Failure::Input(why.to_string());
    let channels = Channels::of(&system).map_err(input)?;
    let tuner = match operation {
        Operation::AllToAll => None,
        _ => Some(Tuner::new(&system, operation).map_err(input)?),
    };
    let network = match (args.model_only, loaded) {
        (true, _) => None,
        (false, Some(loaded)) => Some(loaded),
        (false, None) => {
            let servers = Loaded::of_system(&system)?;
            servers.topology()?;
            Some(servers)
        }
    };
    if args.model_only && tuner.is_none() {
        let why = "--model-only with --collective all-to-all: NCCL has no cost model for sends; leave --model-only out";
        return Err(Failure::Input(why.to_owned()));
    }
    let question = Question { args, system, operation, network };
    let sizes = std::iter::successors(Some(args.min), |size| size.checked_mul(args.factor));
    let (mut rows, mut not_simulated) = (Vec::new(), None);
    for bytes in sizes.take_while(|&size| size <= args.max) {
        rows.push(question.row(tuner.as_ref(), bytes, &mut not_simulated)?);
    }
    Ok(Answer { system, operation: operation.name(), channels, rows, not_simulated })
}

/// Returns the error for algorithms and protocols that cannot do the operation here.
fn nothing_allowed(tuner: &Tuner, operation: Operation) -> String {
    let can: Vec<String> =
        tuner.all(ELEMENT_BYTES).map(|choice| format!("{}/{}", choice.algorithm, choice.protocol)).collect();
    format!(
        "--algorithm and --protocol leave nothing that can do {} on these servers; possible are {}",
        operation.name(),
        can.join(", ")
    )
}

impl Question<'_> {
    fn row(
        &self,
        tuner: Option<&Tuner>,
        bytes: u64,
        not_simulated: &mut Option<String>,
    ) -> Result<Row, Failure> {
        let (args, operation, ranks) = (self.args, self.operation, self.system.ranks());
        let choices = Choices { algorithms: args.algorithm.clone(), protocols: args.protocol.clone() };
        let choice = match tuner {
            None => None,
            Some(tuner) => match tuner.choose(bytes, &choices) {
                Some(choice) => Some(choice),
                None => return Err(Failure::Input(nothing_allowed(tuner, operation))),
            },
        };
        let simulated = self.simulated(choice, bytes).unwrap_or_else(|why| {
            not_simulated.get_or_insert(why);
            None
        });
        let parts = match operation {
            Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => u64::from(ranks),
            _ => 1,
        };
        let (redop, root) = match operation {
            Operation::AllReduce | Operation::ReduceScatter => ("sum", -1),
            Operation::Reduce => ("sum", 0),
            Operation::Broadcast => ("none", 0),
            _ => ("none", -1),
        };
        let count = bytes / ELEMENT_BYTES / parts;
        let model = choice.map(|choice| {
            let (time_us, algbw_gbs) = (choice.time_us(), bytes as f64 / choice.time_us() / 1e3);
            Model { time_us, algbw_gbs, busbw_gbs: algbw_gbs * bus_factor(operation, ranks) }
        });
        Ok(Row { size_bytes: bytes, count, element: "float", redop, root, choice, model, simulated })
    }

    /// Simulates a size. The error is the reason why it cannot be.
    fn simulated(&self, choice: Option<Choice>, bytes: u64) -> Result<Option<Simulated>, String> {
        let Some(network) = &self.network else { return Ok(None) };
        let algorithm = match choice {
            None => NcclAlgorithm::Auto,
            Some(choice) => NcclAlgorithm::of(choice.algorithm)
                .filter(|_| choice.algorithm != Algorithm::Nvls || self.system.servers == 1)
                .ok_or_else(|| format!("{}: switches of the network reduce", choice.algorithm))?,
        };
        let collective = Nccl {
            algorithm,
            protocol: choice.map(|choice| NcclProtocol::of(choice.protocol)).unwrap_or_default(),
            cpu: Some(self.system.cpu),
            gpu: Some(self.system.gpu),
            most_messages: self.args.messages,
            ..Nccl::new(self.operation, Bytes::new(bytes))
        };
        let found = network.simulate_nccl(collective).map_err(|why| why.to_string())?;
        let algbw_gbs = bytes as f64 / found.time_us / 1e3;
        Ok(Some(Simulated {
            simulated_us: found.time_us,
            simulated_algbw_gbs: algbw_gbs,
            simulated_busbw_gbs: algbw_gbs * bus_factor(self.operation, self.system.ranks()),
            messages: found.messages,
        }))
    }
}

fn text(answer: &Answer, most_messages: u64) -> String {
    let Answer { system, channels, .. } = answer;
    let ring = channels.ring;
    let nvls = channels.nvls.map_or(String::new(), |nvls| {
        format!("; NVLS {} x {} GB/s", nvls.channels, speeds(nvls.intra_gbs, nvls.inter_gbs))
    });
    let nics = match system.servers {
        1 => String::new(),
        _ => format!(", {} NICs of {}", system.nics, system.nic_rate),
    };
    let library = if system.gpu == Gpu::Mi300x { "RCCL" } else { "NCCL 2.30.7" };
    let mut text = format!(
        "# {}: servers: {}, each {} {}{nics}\n# messages of {library} simulated by flows, loops merged above {most_messages}, and its cost model\n\
         # channels: rings and trees {} x {} GB/s, of which {} are opened{nvls}\n#\n",
        answer.operation,
        system.servers,
        system.gpus,
        system.gpu.name(),
        ring.channels,
        speeds(ring.intra_gbs, ring.inter_gbs),
        channels.used,
    );
    text.push_str(
        "#                                           simulated                     cost model\n\
         #      size        count   type redop root       time   algbw   busbw       time   busbw algorithm     proto  channels\n\
         #       (B)   (elements)                         (us)  (GB/s)  (GB/s)       (us)  (GB/s)\n",
    );
    answer.rows.iter().for_each(|row| line(row, &mut text));
    if let Some(why) = &answer.not_simulated {
        let _ = writeln!(text, "# not simulated: {}", why.trim_end().replace('\n', "\n# "));
    }
    text
}

fn line(row: &Row, text: &mut String) {
    let Row { size_bytes, count, element, redop, root, .. } = row;
    let simulated = row.simulated.map_or_else(
        || format!("{:>10} {:>7} {:>7}", "-", "-", "-"),
        |of| {
            format!(
                "{:>10.2} {:>7.2} {:>7.2}",
                of.simulated_us, of.simulated_algbw_gbs, of.simulated_busbw_gbs
            )
        },
    );
    let model = row.model.map_or_else(
        || format!("{:>10} {:>7}", "-", "-"),
        |of| format!("{:>10.2} {:>7.2}", of.time_us, of.busbw_gbs),
    );
    let chosen = row.choice.map_or_else(
        || "sends".to_owned(),
        |of| format!("{:<13} {:<6} {:>8}", of.algorithm, of.protocol, of.channels),
    );
    let _ = writeln!(
        text,
        "{size_bytes:>11} {count:>12} {element:>6} {redop:>5} {root:>4} {simulated} {model} {chosen}"
    );
}

/// Returns the speeds of a channel: inside a server, and between servers if it differs.
fn speeds(intra_gbs: f64, inter_gbs: f64) -> String {
    match intra_gbs == inter_gbs {
        true => intra_gbs.to_string(),
        false => format!("{intra_gbs} ({inter_gbs} between servers)"),
    }
}

#[cfg(test)]
mod tests;
