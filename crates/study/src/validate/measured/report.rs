//! Measured and modelled values of each row.

use std::collections::BTreeMap;

use pathweave_scenario::nccl::{Choice, Choices, Fitted, Generation, Operation, Tuner, bus_factor};
use serde::Serialize;

use super::executed::{Executed, Loads};
use super::rows::{self, Measurement, Role, Table};
use crate::fit::{Numbers, fit};
use crate::validate::error::{ValidateError, in_file, unknown};
use crate::validate::model::{Band, Measured, MeasuredTable};

/// Size from which the narrow bar applies.
const LARGE_BYTES: u64 = 16 << 20;
/// Bars of the bus bandwidth, simulated over measured.
const LARGE_BAR: Band = Band { low: 0.90, high: 1.10 };
const SMALL_BAR: Band = Band { low: 0.75, high: 1.25 };
const FLOOR_BAR: Band = Band { low: 1.0, high: 1.20 };

/// Outcome of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowState {
    /// The row determined fitted numbers.
    Fitted,
    /// The error is within the bar.
    Within,
    /// The error is outside of the bar, as the case states with its cause.
    KnownMiss,
    /// The error is outside of the bar.
    Misses,
    /// The row is only shown, since its system is faulty.
    Shown,
    /// There is no model.
    NoModel,
}

/// Time of a row, estimated or simulated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimated {
    /// Time in microseconds.
    pub time_us: f64,
    /// Bus bandwidth.
    pub busbw_gbs: f64,
    /// Ratio to the measured bus bandwidth, less 1.
    pub error: f64,
}

/// Numbers fitted for a generation of GPUs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GenerationFit {
    /// Generation of GPUs.
    pub generation: &'static str,
    /// The numbers.
    #[serde(flatten)]
    pub numbers: Numbers,
    /// Rows that determine the numbers. Empty if none is marked: then nothing is changed.
    pub rows: Vec<String>,
}

/// Row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredRow {
    /// Name of the row.
    pub id: String,
    /// Operation.
    pub operation: String,
    /// Number of GPUs.
    pub gpus: u32,
    /// Number of servers.
    pub servers: u32,
    /// Name of the system.
    pub system: String,
    /// Size, as nccl-tests count it.
    pub bytes: u64,
    /// Algorithm that the source states.
    pub algorithm: String,
    /// Use of the row.
    pub role: Role,
    /// Measured time in microseconds.
    pub time_us: f64,
    /// Measured bus bandwidth.
    pub busbw_gbs: f64,
    /// Algorithm, protocol and channels of NCCL's tuner.
    pub choice: Option<Choice>,
    /// Time of NCCL's cost model.
    pub model: Option<Estimated>,
    /// Time of the messages that NCCL sends, simulated with the fitted numbers.
    pub simulated: Option<Estimated>,
    /// Bar of the ratio. `None` if the row is not judged.
    pub band: Option<Band>,
    /// Outcome.
    pub state: RowState,
    /// Cause of a known miss, or reason why there is no model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Assumptions, about the row and its system.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub assume: String,
    /// Origin of the measurement.
    pub source: String,
}

/// Errors of a group of rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Description of the group.
    pub group: String,
    /// Number of rows.
    pub rows: usize,
    /// Rows whose error is within the bar.
    pub within: usize,
    /// Mean of the absolute errors.
    pub mean_error: f64,
    /// Mean of the absolute errors of NCCL's cost model, of the rows that have one.
    pub model_error: f64,
}

/// Measured and modelled values of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredReport {
    /// Fitted numbers of each generation of GPUs.
    pub fitted: Vec<GenerationFit>,
    /// Rows, in the order of the table.
    pub rows: Vec<MeasuredRow>,
    /// Errors of the rows that are held out, by generation and size.
    pub shares: Vec<Share>,
}

/// Row with its collective, before the fit.
struct Candidate<'a> {
    row: &'a Measurement,
    factor: f64,
    executed: Result<Executed, String>,
}

impl Candidate<'_> {
    fn estimated(&self, time_us: f64) -> Estimated {
        let busbw_gbs = self.row.bytes as f64 * self.factor / time_us / 1e3;
        Estimated { time_us, busbw_gbs, error: busbw_gbs / self.measured_gbs() - 1.0 }
    }

    fn measured_us(&self) -> f64 {
        let from_bandwidth = |gbs: f64| self.row.bytes as f64 * self.factor / gbs / 1e3;
        self.row.time_us.or(self.row.busbw_gbs.map(from_bandwidth)).unwrap_or(f64::NAN)
    }

    fn measured_gbs(&self) -> f64 {
        let from_time = || self.row.bytes as f64 * self.factor / self.measured_us() / 1e3;
        self.row.busbw_gbs.unwrap_or_else(from_time)
    }
}

/// Simulates the rows of a table.
///
/// # Errors
/// If the data are invalid, or `measured` names a row that does not exist.
pub(crate) fn report(measured: &Measured) -> Result<MeasuredReport, ValidateError> {
    let table = match measured.table {
        MeasuredTable::Collectives => rows::collectives()?,
        MeasuredTable::Training => {
            return Err(in_file("measured.table", "steps of training are simulated".to_owned()));
        }
    };
    let known = known_misses(measured, &table)?;
    let candidates: Vec<Candidate<'_>> = table.rows.iter().map(|row| candidate(row, &table)).collect();
    let mut loads = Loads::default();
    let fitted = fit_all(&candidates, &mut loads)?;
    let mut rows = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        rows.push(judged(candidate, &table, &fitted, (&known, &mut loads))?);
    }
    let shares = shares(&rows, &candidates);
    Ok(MeasuredReport { fitted: fitted.into_values().collect(), rows, shares })
}

/// Returns the causes of known misses by row.
fn known_misses<'a>(
    measured: &'a Measured,
    table: &Table,
) -> Result<BTreeMap<&'a str, &'a str>, ValidateError> {
    let mut known = BTreeMap::new();
    for miss in &measured.known {
        for id in &miss.rows {
            if !table.rows.iter().any(|row| row.id == *id) {
                let why = unknown("row", id, table.rows.iter().map(|row| row.id.as_str()));
                return Err(in_file("measured.known.rows", why.to_string()));
            }
            known.insert(id.as_str(), miss.text.as_str());
        }
    }
    Ok(known)
}

fn candidate<'a>(row: &'a Measurement, table: &Table) -> Candidate<'a> {
    let operation = row.operation();
    // Gathers, scatters and all-to-alls of sends count as all-to-all; a send counts its bytes once.
    let n = f64::from(row.gpus);
    let factor = match (&operation, row.operation.as_str()) {
        (Ok(operation), _) => bus_factor(*operation, row.gpus),
        (Err(_), "send-recv") => 1.0,
        (Err(_), _) => (n - 1.0) / n,
    };
    let executed = operation.and_then(|operation| {
        let file = table.systems.get(&row.system).ok_or("no such system")?;
        let (system, bytes) = (row.system(file)?, row.bytes);
        let choice = match operation {
            Operation::AllToAll => None,
            _ => {
                let tuner = Tuner::new(&system, operation).map_err(|why| why.to_string())?;
                let allowed = Choices { algorithms: row.allowed()?, protocols: Vec::new() };
                let choice = tuner.choose(bytes, &allowed);
                Some(choice.ok_or_else(|| format!("the model has no {} here", row.algorithm))?)
            }
        };
        Ok(Executed { system, operation, bytes, choice })
    });
    Candidate { row, factor, executed }
}

/// Returns the name of a generation.
const fn name(generation: Generation) -> &'static str {
    match generation {
        Generation::Volta => "V100",
        Generation::Ampere => "A100",
        Generation::Hopper => "H100",
        Generation::Blackwell => "B200",
        Generation::Cdna3 => "MI300X",
    }
}

fn fit_all(
    candidates: &[Candidate<'_>],
    loads: &mut Loads,
) -> Result<BTreeMap<Generation, GenerationFit>, ValidateError> {
    let mut of_generation: BTreeMap<Generation, Vec<(&Executed, &Candidate<'_>)>> = BTreeMap::new();
    for candidate in candidates {
        let Ok(executed) = &candidate.executed else { continue };
        let points = of_generation.entry(executed.system.gpu.generation()).or_default();
        if candidate.row.role == Role::Fit && executed.is_simple() {
            points.push((executed, candidate));
        }
    }
    let mut all = BTreeMap::new();
    for (generation, points) in of_generation {
        let measured: Vec<f64> = points.iter().map(|(_, candidate)| candidate.measured_us()).collect();
        let mut time = |row: usize, numbers: Fitted| points[row].0.time_us(numbers, loads);
        let numbers = fit(&measured, Fitted::NONE, &mut time)?;
        let rows = points.iter().map(|(_, candidate)| candidate.row.id.clone()).collect();
        all.insert(generation, GenerationFit { generation: name(generation), numbers, rows });
    }
    Ok(all)
}

fn judged(
    candidate: &Candidate<'_>,
    table: &Table,
    fitted: &BTreeMap<Generation, GenerationFit>,
    (known, loads): (&BTreeMap<&str, &str>, &mut Loads),
) -> Result<MeasuredRow, ValidateError> {
    let row = candidate.row;
    let executed = candidate.executed.as_ref().ok();
    let simulated = match executed.filter(|executed| executed.is_executed()) {
        Some(executed) => {
            let numbers = fitted[&executed.system.gpu.generation()].numbers.fitted;
            Some(candidate.estimated(executed.time_us(numbers, loads)?))
        }
        None => None,
    };
    let choice = executed.and_then(|executed| executed.choice);
    let band = match row.role {
        Role::Fit | Role::Example => None,
        Role::Floor => Some(FLOOR_BAR),
        Role::Test if row.bytes >= LARGE_BYTES => Some(LARGE_BAR),
        Role::Test => Some(SMALL_BAR),
    };
    let state = match (simulated, band) {
        (None, _) => RowState::NoModel,
        (Some(_), None) if row.role == Role::Fit => RowState::Fitted,
        (Some(_), None) => RowState::Shown,
        (Some(simulated), Some(band)) if band.holds(1.0 + simulated.error) => RowState::Within,
        _ if known.contains_key(row.id.as_str()) => RowState::KnownMiss,
        _ => RowState::Misses,
    };
    let why = match (&candidate.executed, state) {
        (Err(why), _) => why.clone(),
        (Ok(_), RowState::NoModel) => "switches of the network reduce, which is not simulated".to_owned(),
        (_, RowState::KnownMiss) => known[row.id.as_str()].to_owned(),
        _ => String::new(),
    };
    let of_system = table.systems.get(&row.system).map_or("", |system| system.assume.as_str());
    let assume: Vec<&str> =
        [row.assume.as_str(), of_system].into_iter().filter(|text| !text.is_empty()).collect();
    Ok(MeasuredRow {
        id: row.id.clone(),
        operation: row.operation.clone(),
        gpus: row.gpus,
        servers: row.servers,
        system: row.system.clone(),
        bytes: row.bytes,
        algorithm: row.algorithm.clone(),
        role: row.role,
        time_us: candidate.measured_us(),
        busbw_gbs: candidate.measured_gbs(),
        choice,
        model: choice.map(|choice| candidate.estimated(choice.time_us())),
        simulated,
        band,
        state,
        why,
        assume: assume.join("; "),
        source: row.source.clone(),
    })
}

/// Returns the errors of the rows that are held out: from 16 MiB and below, by generation and together.
fn shares(rows: &[MeasuredRow], candidates: &[Candidate<'_>]) -> Vec<Share> {
    let mut groups: BTreeMap<(bool, &str), Vec<&MeasuredRow>> = BTreeMap::new();
    for (row, candidate) in rows.iter().zip(candidates) {
        let Ok(executed) = &candidate.executed else { continue };
        if row.role == Role::Test && row.simulated.is_some() {
            let small = row.bytes < LARGE_BYTES;
            for name in [name(executed.system.gpu.generation()), "all"] {
                groups.entry((small, name)).or_default().push(row);
            }
        }
    }
    let share = |((small, name), rows): ((bool, &str), Vec<&MeasuredRow>)| {
        let mean = |of: fn(&MeasuredRow) -> Option<Estimated>| {
            let errors: Vec<f64> = rows.iter().filter_map(|row| Some(of(row)?.error.abs())).collect();
            errors.iter().sum::<f64>() / errors.len().max(1) as f64
        };
        Share {
            group: format!("{name}, {}", if small { "below 16 MiB" } else { "from 16 MiB" }),
            rows: rows.len(),
            within: rows.iter().filter(|row| row.state == RowState::Within).count(),
            mean_error: mean(|row| row.simulated),
            model_error: mean(|row| row.model),
        }
    };
    groups.into_iter().map(share).collect()
}
