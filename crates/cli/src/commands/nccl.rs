//! `pathweave nccl`: the columns of nccl-tests, from NCCL's cost model.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pathweave_scenario::nccl::{
    Algorithm, Channels, Choices, Cpu, Gpu, Operation, Protocol, Sharp, System, Tuner, bus_factor,
};
use pathweave_scenario::units::{Bytes, Rate};
use pathweave_scenario::{Changes, Loaded};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::terminal;

/// The sizes of a collective as nccl-tests lists them, with the time and the algorithm that NCCL 2.30.7 (for MI300X
/// RCCL) expects. Times are those of the library's cost model, by which it chooses. The GPUs, servers and NICs are
/// those of a scenario with `kind = "cluster"`, or those of the options.
#[derive(Args, Debug)]
pub(crate) struct NcclArgs {
    /// Scenario file (TOML) with a cluster [default: the servers that the options describe]
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
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..=1024))]
    pub(crate) factor: u64,
    /// Algorithms that may be chosen, as in NCCL_ALGO, separated by commas: tree, ring, collnetdirect, collnetchain,
    /// nvls, nvlstree, pat [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) algorithm: Vec<Algorithm>,
    /// Protocols that may be chosen, as in NCCL_PROTO, separated by commas: LL, LL128, Simple [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) protocol: Vec<Protocol>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Operations with a cost model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
    Reduce,
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
    time_us: f64,
    algbw_gbs: f64,
    busbw_gbs: f64,
    algorithm: Algorithm,
    protocol: Protocol,
    channels: u32,
    latency_us: f64,
}

pub(crate) fn nccl(args: &NcclArgs) -> Result<Outcome, Failure> {
    let system = system(args)?;
    let answer = answer(args, &system)?;
    terminal::out(&if args.json { super::json(&answer) } else { text(&answer) });
    Ok(Outcome::Done)
}

fn system(args: &NcclArgs) -> Result<System, Failure> {
    let base = match &args.scenario {
        Some(path) => {
            let changes = Changes { set: args.set.clone(), ..Changes::default() };
            Loaded::read(path, &changes)?.nccl_system(args.gpu)?
        }
        None => {
            let gpu = args.gpu.unwrap_or(Gpu::H100);
            let base = System::new(gpu, args.servers.unwrap_or(1), args.gpus.unwrap_or(8));
            System {
                nics: args.nics.unwrap_or(base.nics),
                nic_rate: args.nic.unwrap_or(base.nic_rate),
                ..base
            }
        }
    };
    let cpu = args.cpu.map_or(base.cpu, |cpu| match cpu {
        CpuName::Intel => Cpu::Intel,
        CpuName::Amd => Cpu::Amd,
        CpuName::Arm => Cpu::Arm,
    });
    Ok(System { cpu, sharp: if args.sharp { Sharp::On } else { Sharp::Off }, ..base })
}

fn operation(collective: Collective) -> Operation {
    match collective {
        Collective::AllReduce => Operation::AllReduce,
        Collective::AllGather => Operation::AllGather,
        Collective::ReduceScatter => Operation::ReduceScatter,
        Collective::Broadcast => Operation::Broadcast,
        Collective::Reduce => Operation::Reduce,
    }
}

fn answer(args: &NcclArgs, system: &System) -> Result<Answer, Failure> {
    if args.min > args.max {
        let why =
            format!("--min is {} bytes, above --max, {} bytes; allowed: at most --max", args.min, args.max);
        return Err(Failure::Input(why));
    }
    let operation = operation(args.collective);
    let tuner = Tuner::new(system, operation).map_err(|why| Failure::Input(why.to_string()))?;
    let choices = Choices { algorithms: args.algorithm.clone(), protocols: args.protocol.clone() };
    let sizes = std::iter::successors(Some(args.min), |size| size.checked_mul(args.factor));
    let row = |bytes: u64| row(&tuner, operation, system.ranks(), bytes, &choices);
    let rows: Option<Vec<Row>> = sizes.take_while(|&size| size <= args.max).map(row).collect();
    let rows = rows.ok_or_else(|| Failure::Input(nothing_allowed(&tuner, operation)))?;
    Ok(Answer { system: *system, operation: operation.name(), channels: *tuner.channels(), rows })
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

fn row(tuner: &Tuner, operation: Operation, ranks: u32, bytes: u64, choices: &Choices) -> Option<Row> {
    let choice = tuner.choose(bytes, choices)?;
    let parts = match operation {
        Operation::AllGather | Operation::ReduceScatter => u64::from(ranks),
        _ => 1,
    };
    let (redop, root) = match operation {
        Operation::AllReduce | Operation::ReduceScatter => ("sum", -1),
        Operation::Reduce => ("sum", 0),
        Operation::Broadcast => ("none", 0),
        _ => ("none", -1),
    };
    let time_us = choice.time_us();
    let algbw_gbs = bytes as f64 / time_us / 1e3;
    Some(Row {
        size_bytes: bytes,
        count: bytes / ELEMENT_BYTES / parts,
        element: "float",
        redop,
        root,
        time_us,
        algbw_gbs,
        busbw_gbs: algbw_gbs * bus_factor(operation, ranks),
        algorithm: choice.algorithm,
        protocol: choice.protocol,
        channels: choice.channels,
        latency_us: choice.latency_us,
    })
}

fn text(answer: &Answer) -> String {
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
        "# {}: servers: {}, each {} {}{nics}\n# time of {library}'s cost model\n# channels: rings and trees {} x {} GB/s, of which \
         {} are opened{nvls}\n#\n",
        answer.operation,
        system.servers,
        system.gpus,
        system.gpu.name(),
        ring.channels,
        speeds(ring.intra_gbs, ring.inter_gbs),
        channels.used,
    );
    text.push_str(
        "#      size        count   type redop root       time   algbw   busbw algorithm     proto  channels\n\
         #       (B)   (elements)                         (us)  (GB/s)  (GB/s)\n",
    );
    for row in &answer.rows {
        let _ = writeln!(
            text,
            "{:>11} {:>12} {:>6} {:>5} {:>4} {:>10.2} {:>7.2} {:>7.2} {:<13} {:<6} {:>8}",
            row.size_bytes,
            row.count,
            row.element,
            row.redop,
            row.root,
            row.time_us,
            row.algbw_gbs,
            row.busbw_gbs,
            row.algorithm,
            row.protocol,
            row.channels
        );
    }
    text
}

/// Returns the speeds of a channel: inside a server, and between servers if it differs.
fn speeds(intra_gbs: f64, inter_gbs: f64) -> String {
    match intra_gbs == inter_gbs {
        true => intra_gbs.to_string(),
        false => format!("{intra_gbs} ({inter_gbs} between servers)"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: NcclArgs,
    }

    fn ask(options: &[&str]) -> Result<Answer, String> {
        let parsed = Line::try_parse_from(["nccl"].iter().chain(options)).map_err(|why| why.to_string())?;
        let system = system(&parsed.args).map_err(message)?;
        answer(&parsed.args, &system).map_err(message)
    }

    fn message(failure: Failure) -> String {
        match failure {
            Failure::Input(text) => text,
            other => panic!("{other:?}"),
        }
    }

    /// Eight H100, 1 GiB: 3,972.6 us and 473.0 GB/s; sixteen servers: 6,045.8 us.
    #[test]
    fn the_columns_by_hand() {
        let one = ask(&["--gpu", "h100", "--min", "1G", "--max", "1G"]).unwrap();
        let [row] = &one.rows[..] else { panic!("one size") };
        assert_eq!((row.size_bytes, row.count, row.redop, row.root), (1 << 30, 1 << 28, "sum", -1));
        assert!((row.time_us - 3_972.6).abs() < 0.1 && (row.busbw_gbs - 473.0).abs() < 0.1, "{row:?}");
        assert_eq!((row.algorithm, row.protocol), (Algorithm::Nvls, Protocol::Simple));
        let many = ask(&["--servers", "16", "--nic", "400Gbps", "--min", "8", "--max", "16G"]).unwrap();
        assert_eq!((many.rows.len(), many.rows[0].size_bytes, many.rows[31].size_bytes), (32, 8, 1 << 34));
        let gib = many.rows.iter().find(|row| row.size_bytes == 1 << 30).unwrap();
        assert!((gib.time_us - 6_045.8).abs() < 0.1, "{gib:?}");
        let gather = ask(&["--collective", "all-gather", "--min", "1M", "--max", "1M"]).unwrap();
        assert_eq!((gather.rows[0].count, gather.rows[0].redop), (32_768, "none"));
    }

    #[test]
    fn the_text_has_a_line_for_each_size() {
        let answer = ask(&["--servers", "2", "--min", "1M", "--max", "16M", "--factor", "4"]).unwrap();
        let text = text(&answer);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6 + 3, "{text}");
        assert_eq!(lines[0], "# all-reduce: servers: 2, each 8 h100, 8 NICs of 400Gbps");
        assert!(
            lines[2].contains("rings and trees 8 x 45 GB/s, of which 16 are opened; NVLS 8 x 40 (48"),
            "{text}"
        );
        assert!(lines[6].ends_with("tree          LL128        16"), "{text}");
    }

    #[test]
    fn sizes_are_read_as_by_nccl_tests_and_with_units() {
        assert_eq!(
            ["8", "64K", "1m", "16G", "1MB", "64KiB"].map(|text| size(text).unwrap()),
            [8, 65_536, 1 << 20, 1 << 34, 1_000_000, 65_536]
        );
        for (text, why) in [("0", "allowed are 1 byte"), ("2048G", "1 TiB"), ("8x", "unit"), ("", "number")] {
            assert!(size(text).unwrap_err().contains(why), "{text}: {:?}", size(text));
        }
    }

    #[test]
    fn wrong_options_are_named() {
        for (options, text) in [
            (&["--min", "2M", "--max", "1M"][..], "--min is 2097152 bytes, above --max, 1048576 bytes"),
            (&["--gpu", "h10"], "did you mean \"h100\"?"),
            (&["--servers", "0"], "servers = 0: must be at least 1"),
            (
                &["--algorithm", "pat"],
                "leave nothing that can do all-reduce on these servers; possible are tree/LL",
            ),
            (&["--algorithm", "rnig"], "no algorithm is named \"rnig\"; did you mean \"ring\"?"),
            (&["a.toml", "--servers", "2"], "cannot be used with"),
            (&["--set", "a=1"], "required"),
        ] {
            let why = ask(options).expect_err("refused");
            assert!(why.contains(text), "{options:?}: {why}");
        }
    }
}
