//! `pathweave fit`: two numbers of NCCL's collectives, fitted to measurements of a real cluster.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use pathweave_scenario::nccl::{Gpu, parse_nccl_tests};
use pathweave_scenario::{Changes, Loaded, read_text_file};
use pathweave_study::fit::{FitError, FitRole, UserFit, fit_measurements, snippet};

use super::nccl::{Collective, operation};
use crate::failure::{Failure, Outcome};
use crate::inputs::Inputs;
use crate::output::Output;
use crate::scenario_input;
use crate::terminal;

/// Rise of the error of held out sizes from which a fit is worse than none.
const WORSE: f64 = 0.01;
/// Largest size of a file with measurements.
const MOST_BYTES: u64 = 16 << 20;

/// Fits the latency and the bandwidth of simulated NCCL collectives to the output of nccl-tests on a real cluster. Of the
/// sizes that use the protocol Simple, every second one determines the numbers. All others are held out, and their
/// errors say how well the numbers hold.
#[derive(Args, Debug)]
pub(crate) struct FitArgs {
    /// Output of nccl-tests or rccl-tests, as text
    pub(crate) measured: PathBuf,
    /// Scenario file (TOML), or - for standard input, with a cluster of the servers that were measured
    #[arg(long)]
    pub(crate) scenario: PathBuf,
    /// Set a field of the scenario: topology.servers=4
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Model of GPU [default: that of the scenario's server model]
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<Gpu>,
    /// Operation [default: the one that the output names]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) collective: Option<Collective>,
    /// File for the numbers, as a workload of a scenario [default: they are printed]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn fit(args: &FitArgs) -> Result<Outcome, Failure> {
    let loaded =
        scenario_input::read(&args.scenario, &Changes { set: args.set.clone(), ..Changes::default() })?;
    // A place that cannot be written is found before the simulations.
    let output = args.out.as_deref().map(|path| {
        let inputs = Inputs::default().with(&args.measured).with_scenario(&args.scenario, &loaded);
        inputs.check_output("--out", path)?;
        Output::create(path)
    });
    let output = output.transpose()?;
    let found = fitted(args, &loaded)?;
    found.left_out.iter().for_each(|why| terminal::note(&format!("note: {why}")));
    let toml = snippet(&found);
    if let Some(output) = output {
        output.write(|to| to.write_all(toml.as_bytes()))?;
    }
    terminal::out(&match (args.json, &args.out) {
        (true, _) => super::json(&found),
        (false, Some(path)) => format!("{}written to {}\n", text(&found), path.display()),
        (false, None) => format!("{}\n{toml}", text(&found)),
    });
    Ok(Outcome::Done)
}

fn fitted(args: &FitArgs, loaded: &Loaded) -> Result<UserFit, Failure> {
    let measured = read_text_file(&args.measured, MOST_BYTES)
        .map_err(|why| Failure::Input(format!("{}: cannot read it: {why}", args.measured.display())))?;
    let tests = parse_nccl_tests(&measured, &args.measured.display().to_string())
        .map_err(|why| Failure::Input(why.to_string()))?;
    fit_measurements(loaded, &tests, args.collective.map(operation), args.gpu).map_err(|why| match why {
        FitError::Scenario(findings) => Failure::Scenario(findings),
        FitError::Input(text) => Failure::Input(text),
    })
}

fn text(found: &UserFit) -> String {
    let mut text = format!(
        "# {} on {} {}: fitted to every second size of Simple\n\
         #      size   measured  simulated   busbw   error  algorithm\n\
         #       (B)       (us)       (us)  (GB/s)  (busbw)\n",
        found.operation,
        found.ranks,
        found.gpu.name()
    );
    for row in &found.rows {
        let role = if row.role == FitRole::Fit { "  fitted" } else { "" };
        let _ = writeln!(
            text,
            "{:>11} {:>10.2} {:>10.2} {:>7.2} {:>+5.1} %  {}{role}",
            row.bytes,
            row.measured_us,
            row.simulated_us,
            row.busbw_gbs,
            100.0 * row.error,
            row.algorithm
        );
    }
    let numbers = found.numbers;
    let why = if numbers.latency_fitted { "" } else { " (not fitted: too small a part of these times)" };
    let _ = writeln!(
        text,
        "latency {:.4}{why}, bandwidth {:.4}",
        numbers.fitted.latency, numbers.fitted.bandwidth
    );
    if let (Some(error), Some(before)) = (found.held_out_error, found.held_out_error_before) {
        let _ = writeln!(
            text,
            "mean error of the sizes that are held out: {:.1} %; before the fit {:.1} %",
            100.0 * error,
            100.0 * before
        );
        if error > before + WORSE {
            text.push_str(
                "warning: the sizes that are held out are described worse than before the fit; measure more sizes of Simple, \
                 up to 1 GiB or more\n",
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: FitArgs,
    }

    fn asked(measured: &str, options: &[&str]) -> Result<UserFit, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.txt");
        std::fs::write(&file, measured).unwrap();
        let scenario = format!("{}/../../scenarios/clusters/superpod.toml", env!("CARGO_MANIFEST_DIR"));
        let name = file.display().to_string();
        let line = ["fit", &name, "--scenario", &scenario, "--set", "topology.servers=32"];
        let parsed = Line::try_parse_from(line.iter().chain(options)).map_err(|why| why.to_string())?;
        let changes = Changes { set: parsed.args.set.clone(), ..Changes::default() };
        let loaded = Loaded::read(&parsed.args.scenario, &changes).map_err(|why| why.to_string())?;
        fitted(&parsed.args, &loaded).map_err(|why| match why {
            Failure::Input(text) => text,
            Failure::Scenario(findings) => findings.to_string(),
            other => panic!("{other:?}"),
        })
    }

    /// Rows C004 to C013 of data/truth: the published all-reduce of a DGX H100. Every second one determines the numbers.
    #[test]
    fn a_published_measurement_is_fitted() {
        let head = "# Collective test starting: all_reduce_perf\n#  Rank  7 Group  0 Pid 1\n\
                    # size count type redop root time algbw busbw #wrong\n";
        let rows = [
            (2, 42.21),
            (4, 54.19),
            (8, 83.04),
            (16, 123.8),
            (32, 199.3),
            (64, 324.7),
            (128, 586.4),
            (256, 1_112.5),
            (512, 2_151.0),
            (1_024, 4_029.4),
        ];
        let row = |&(mib, us): &(u64, f64)| {
            format!("{} 1 float sum -1 {us} {} 0 0\n", mib << 20, (mib << 20) as f64 / us / 1e3)
        };
        let measured: String = std::iter::once(head.to_owned()).chain(rows.iter().map(row)).collect();
        let found = asked(&measured, &[]).unwrap();
        assert_eq!((found.operation, found.ranks, found.rows.len()), ("all-reduce", 8, 10));
        assert!(found.numbers.latency_fitted && found.held_out_error.unwrap() < 0.15, "{found:?}");
        let text = text(&found);
        assert!(text.contains("nvls/Simple  fitted") && text.contains("held out"), "{text}");
        assert!(snippet(&found).contains("kind = \"nccl\""));
    }

    #[test]
    fn wrong_input_is_named() {
        let table = "# size time algbw busbw\n1048576 30 34.95 0\n";
        assert!(asked("nothing\n", &[]).unwrap_err().contains("out.txt: no rows of nccl-tests"));
        assert!(asked(table, &[]).unwrap_err().contains("give --collective"));
        let why = asked(table, &["--collective", "all-gathr"]).unwrap_err();
        assert!(why.contains("all-gather"), "{why}");
    }
}
