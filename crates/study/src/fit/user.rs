//! Fit of a cluster scenario to the output of nccl-tests on that cluster.

use pathweave_scenario::nccl::{Fitted, Gpu, Nccl, NcclTests, Operation, bus_factor};
use pathweave_scenario::units::Bytes;
use pathweave_scenario::{Diagnostics, Loaded};
use serde::Serialize;

use super::numbers::{Numbers, fit};

/// Reason why measurements cannot be fitted.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The scenario is invalid.
    #[error("{0}")]
    Scenario(Diagnostics),
    /// The measurements do not suit the scenario.
    #[error("{0}")]
    Input(String),
}

impl From<Diagnostics> for FitError {
    fn from(findings: Diagnostics) -> Self {
        FitError::Scenario(findings)
    }
}

/// Use of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitRole {
    /// The row determines the numbers.
    Fit,
    /// The row is held out.
    HeldOut,
}

/// Measured and simulated time of a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FitRow {
    /// Size as nccl-tests count it.
    pub bytes: u64,
    /// Algorithm and protocol that are simulated.
    pub algorithm: String,
    /// Use of the row.
    pub role: FitRole,
    /// Measured time in microseconds.
    pub measured_us: f64,
    /// Time before the fit, with the numbers of the GPU's generation.
    pub before_us: f64,
    /// Simulated time with the fitted numbers.
    pub simulated_us: f64,
    /// Error of the bus bandwidth, as validations have it: simulated less measured, over measured. Bandwidths are over
    /// times, so that a simulation that is too slow has a negative error.
    pub error: f64,
    /// Simulated bus bandwidth.
    pub busbw_gbs: f64,
}

/// Outcome of a fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UserFit {
    /// Operation.
    pub operation: &'static str,
    /// Number of ranks.
    pub ranks: u32,
    /// Model of GPU.
    pub gpu: Gpu,
    /// The numbers.
    #[serde(flatten)]
    pub numbers: Numbers,
    /// All sizes.
    pub rows: Vec<FitRow>,
    /// Rows of the measurements that are left out, each with its line and the reason.
    pub left_out: Vec<String>,
    /// Mean of the absolute errors of the rows that are held out.
    pub held_out_error: Option<f64>,
    /// Likewise with the numbers of the GPU's generation.
    pub held_out_error_before: Option<f64>,
}

/// Collective of the measurements on a scenario.
struct Setup<'a> {
    loaded: &'a Loaded,
    operation: Operation,
    ranks: u32,
    gpu: Gpu,
}

impl Setup<'_> {
    fn simulate(&self, bytes: u64, numbers: Fitted) -> Result<(f64, String), FitError> {
        let collective = Nccl {
            gpu: Some(self.gpu),
            latency: Some(numbers.latency),
            bandwidth: Some(numbers.bandwidth),
            groups: vec![(0..self.ranks).collect::<Vec<u32>>().into()],
            ..Nccl::new(self.operation, Bytes::new(bytes))
        };
        let found = self.loaded.simulate_nccl(collective)?;
        Ok((found.time_us, found.algorithm.to_owned()))
    }
}

/// Fits latency and bandwidth to the output of nccl-tests. Of the sizes that use the protocol Simple, every second one
/// determines the numbers. All others are held out.
///
/// # Errors
/// The scenario has no servers with GPUs, or fewer hosts than there are ranks, or no size uses Simple.
pub fn fit_measurements(
    loaded: &Loaded,
    tests: &NcclTests,
    operation: Option<Operation>,
    gpu: Option<Gpu>,
) -> Result<UserFit, FitError> {
    let Some(operation) = operation.or(tests.operation) else {
        let what = "the output does not name its operation (\"# Collective test starting: all_reduce_perf\"); give \
                    --collective";
        return Err(FitError::Input(what.to_owned()));
    };
    let gpu = loaded.nccl_system(gpu)?.gpu;
    let hosts = loaded.topology()?.hosts();
    let ranks = tests.ranks.unwrap_or(hosts);
    if !(2..=hosts).contains(&ranks) {
        let what = format!(
            "the output has {ranks} ranks, the scenario {hosts} GPUs; expected a scenario with the servers that were measured"
        );
        return Err(FitError::Input(what));
    }
    let setup = Setup { loaded, operation, ranks, gpu };
    let known = Fitted::of(gpu.generation());
    let mut rows = Vec::new();
    let mut simple = 0;
    for row in &tests.rows {
        let (before_us, algorithm) = setup.simulate(row.bytes, known)?;
        let mut role = FitRole::HeldOut;
        if algorithm.ends_with("/Simple") {
            simple += 1;
            if simple % 2 == 1 {
                role = FitRole::Fit;
            }
        }
        let (bytes, measured_us) = (row.bytes, row.time_us);
        let (simulated_us, error, busbw_gbs) = (before_us, 0.0, 0.0);
        rows.push(FitRow { bytes, algorithm, role, measured_us, before_us, simulated_us, error, busbw_gbs });
    }
    let chosen: Vec<(u64, f64)> =
        rows.iter().filter(|row| row.role == FitRole::Fit).map(|row| (row.bytes, row.measured_us)).collect();
    if chosen.is_empty() {
        let what = "no size uses the protocol Simple, whose latency and bandwidth are fitted; measure up to 1 GiB or more";
        return Err(FitError::Input(what.to_owned()));
    }
    let measured: Vec<f64> = chosen.iter().map(|&(_, us)| us).collect();
    let numbers =
        fit(&measured, known, &mut |row, numbers| setup.simulate(chosen[row].0, numbers).map(|(us, _)| us))?;
    for row in &mut rows {
        row.simulated_us = setup.simulate(row.bytes, numbers.fitted)?.0;
        row.error = row.measured_us / row.simulated_us - 1.0;
        row.busbw_gbs = row.bytes as f64 * bus_factor(operation, ranks) / row.simulated_us / 1e3;
    }
    let mean = |error: fn(&FitRow) -> f64| {
        let held: Vec<f64> =
            rows.iter().filter(|row| row.role == FitRole::HeldOut).map(|row| error(row).abs()).collect();
        (!held.is_empty()).then(|| held.iter().sum::<f64>() / held.len() as f64)
    };
    Ok(UserFit {
        operation: operation.name(),
        ranks,
        gpu,
        numbers,
        held_out_error: mean(|row| row.error),
        held_out_error_before: mean(|row| row.measured_us / row.before_us - 1.0),
        rows,
        left_out: tests.left_out.clone(),
    })
}

/// Returns the numbers as a workload of a scenario.
pub fn snippet(fit: &UserFit) -> String {
    let Fitted { latency, bandwidth } = fit.numbers.fitted;
    format!(
        "# Fitted to nccl-tests: {}, {} ranks. Also for `algorithms` of transformer, simai and chakra:\n\
         # algorithms = {{ library = \"nccl\", gpu = \"{gpu}\", latency = {latency:.4}, bandwidth = {bandwidth:.4} }}\n\
         [[workload]]\nkind = \"nccl\"\noperation = \"{}\"\nsize = \"1GiB\"\ngpu = \"{gpu}\"\nlatency = {latency:.4}\n\
         bandwidth = {bandwidth:.4}\n",
        fit.operation,
        fit.ranks,
        fit.operation,
        gpu = fit.gpu.name(),
    )
}

#[cfg(test)]
mod tests {
    use pathweave_scenario::nccl::{System, parse_nccl_tests};

    use super::*;

    fn loaded() -> Loaded {
        Loaded::of_system(&System::new(Gpu::H100, 1, 8)).unwrap()
    }

    fn row(bytes: u64, us: f64) -> String {
        format!("{bytes} {us:.3} {:.2} 0\n", bytes as f64 / us / 1e3)
    }

    /// Times that were simulated with other numbers are found again.
    #[test]
    fn numbers_are_found_again() {
        let loaded = loaded();
        let truth = Fitted { latency: 1.5, bandwidth: 0.9 };
        let setup = Setup { loaded: &loaded, operation: Operation::AllReduce, ranks: 8, gpu: Gpu::H100 };
        let mut text = String::from("# Collective test starting: all_reduce_perf\n# size time algbw busbw\n");
        for power in [12, 22, 24, 26, 28, 30] {
            let (us, _) = setup.simulate(1 << power, truth).unwrap();
            text.push_str(&row(1 << power, us));
        }
        let tests = parse_nccl_tests(&text, "out.txt").unwrap();
        let found = fit_measurements(&loaded, &tests, None, Some(Gpu::H100)).unwrap();
        let Fitted { latency, bandwidth } = found.numbers.fitted;
        assert!((latency - 1.5).abs() < 0.02 && (bandwidth - 0.9).abs() < 0.002, "{found:?}");
        assert!(found.held_out_error.unwrap() < 0.01, "{found:?}");
        let text = snippet(&found);
        assert!(text.contains("operation = \"all-reduce\"") && text.contains("bandwidth = 0.9"), "{text}");
    }

    /// One size of Simple determines little, and what the program printed itself is described already.
    #[test]
    fn times_of_the_generation_leave_its_numbers() {
        let loaded = loaded();
        let known = Fitted::of(Gpu::H100.generation());
        let setup = Setup { loaded: &loaded, operation: Operation::AllReduce, ranks: 8, gpu: Gpu::H100 };
        for powers in [&[20, 22, 30][..], &[28, 30], &[26, 27, 28, 29, 30]] {
            let mut text =
                String::from("# Collective test starting: all_reduce_perf\n# size time algbw busbw\n");
            for power in powers {
                let (us, _) = setup.simulate(1 << power, known).unwrap();
                text.push_str(&row(1 << power, us));
            }
            let tests = parse_nccl_tests(&text, "out.txt").unwrap();
            let found = fit_measurements(&loaded, &tests, None, Some(Gpu::H100)).unwrap();
            let (was, is) = (found.held_out_error_before.unwrap(), found.held_out_error.unwrap());
            assert!(is < was + 0.002, "{powers:?}: {found:?}");
            assert!((found.numbers.fitted.bandwidth / known.bandwidth - 1.0).abs() < 0.005, "{found:?}");
        }
    }

    #[test]
    fn measurements_that_do_not_suit_are_named() {
        let error = |text: &str| {
            let tests = parse_nccl_tests(text, "out.txt").unwrap();
            fit_measurements(&loaded(), &tests, None, Some(Gpu::H100)).unwrap_err().to_string()
        };
        let table = "# size time algbw busbw\n8 17 0 0\n";
        assert!(error(table).contains("give --collective"));
        let named = format!("# all_reduce_perf\n{table}");
        assert!(error(&named).contains("no size uses the protocol Simple"), "{}", error(&named));
        let many = format!("# all_reduce_perf\n# Rank 15 Group 0\n{table}");
        assert!(error(&many).contains("the output has 16 ranks, the scenario 8 GPUs"), "{}", error(&many));
    }
}
