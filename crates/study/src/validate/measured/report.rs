//! Measured and modelled values of each row.

use std::collections::BTreeMap;

use pathweave_scenario::nccl::{Choice, Choices, Generation, Tuner, bus_factor};
use serde::Serialize;

use super::fit::{self, Fitted, Point};
use super::rows::{self, Measurement, Role, Table};
use crate::validate::error::{ValidateError, in_file, unknown};
use crate::validate::model::{Band, Measured, MeasuredTable};

/// Size from which the narrow bar applies.
const LARGE_BYTES: u64 = 16 << 20;
/// Bars of the bus bandwidth, modelled over measured.
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

/// Modelled values of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Modelled {
    /// Algorithm, protocol and channels, with the parts of NCCL's own estimate.
    pub choice: Choice,
    /// Time in microseconds, with the fitted numbers.
    pub time_us: f64,
    /// Bus bandwidth, with the fitted numbers.
    pub busbw_gbs: f64,
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
    /// Modelled values.
    pub model: Option<Modelled>,
    /// Modelled over measured bus bandwidth, less 1.
    pub error: Option<f64>,
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
}

/// Measured and modelled values of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredReport {
    /// Fitted numbers of each generation of GPUs.
    pub fitted: Vec<Fitted>,
    /// Rows, in the order of the table.
    pub rows: Vec<MeasuredRow>,
    /// Errors of the rows that are held out, by generation and size.
    pub shares: Vec<Share>,
}

/// Row with its model, before the fit.
struct Estimate<'a> {
    row: &'a Measurement,
    factor: f64,
    model: Result<(Generation, Choice), String>,
}

impl Estimate<'_> {
    fn busbw_gbs(&self, time_us: f64) -> f64 {
        self.row.bytes as f64 * self.factor / time_us / 1e3
    }

    fn measured_us(&self) -> f64 {
        let from_bandwidth = |gbs: f64| self.row.bytes as f64 * self.factor / gbs / 1e3;
        self.row.time_us.or(self.row.busbw_gbs.map(from_bandwidth)).unwrap_or(f64::NAN)
    }
}

/// Models the rows of a table.
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
    let estimates: Vec<Estimate<'_>> = table.rows.iter().map(|row| estimate(row, &table)).collect();
    let fitted = fit_all(&estimates);
    let rows: Vec<MeasuredRow> =
        estimates.iter().map(|estimate| judged(estimate, &table, &fitted, &known)).collect();
    let shares = shares(&rows, &estimates);
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

fn estimate<'a>(row: &'a Measurement, table: &Table) -> Estimate<'a> {
    let operation = row.operation();
    // Gathers, scatters and all-to-alls of sends count as all-to-all; a send counts its bytes once.
    let n = f64::from(row.gpus);
    let factor = match (&operation, row.operation.as_str()) {
        (Ok(operation), _) => bus_factor(*operation, row.gpus),
        (Err(_), "send-recv") => 1.0,
        (Err(_), _) => (n - 1.0) / n,
    };
    let model = operation.and_then(|operation| {
        let file = table.systems.get(&row.system).ok_or("no such system")?;
        let system = row.system(file)?;
        let tuner = Tuner::new(&system, operation).map_err(|why| why.to_string())?;
        let allowed = Choices { algorithms: row.allowed()?, protocols: Vec::new() };
        let choice = tuner.choose(row.bytes, &allowed);
        let choice = choice.ok_or_else(|| format!("the model has no {} here", row.algorithm))?;
        Ok((system.gpu.generation(), choice))
    });
    Estimate { row, factor, model }
}

fn fit_all(estimates: &[Estimate<'_>]) -> BTreeMap<Generation, Fitted> {
    let mut points: BTreeMap<Generation, Vec<Point>> = BTreeMap::new();
    for estimate in estimates {
        let Ok((generation, model)) = estimate.model else { continue };
        let of_generation = points.entry(generation).or_default();
        if estimate.row.role == Role::Fit {
            let (id, measured_us) = (estimate.row.id.clone(), estimate.measured_us());
            of_generation.push(Point { id, model, measured_us });
        }
    }
    points.into_iter().map(|(generation, points)| (generation, fit::fit(generation, &points))).collect()
}

fn judged(
    estimate: &Estimate<'_>,
    table: &Table,
    fitted: &BTreeMap<Generation, Fitted>,
    known: &BTreeMap<&str, &str>,
) -> MeasuredRow {
    let row = estimate.row;
    let time_us = estimate.measured_us();
    let busbw_gbs = row.busbw_gbs.unwrap_or_else(|| estimate.busbw_gbs(time_us));
    let model = estimate.model.as_ref().ok().map(|(generation, choice)| {
        let time_us = fitted[generation].time_us(choice);
        Modelled { choice: *choice, time_us, busbw_gbs: estimate.busbw_gbs(time_us) }
    });
    let ratio = model.as_ref().map(|model| model.busbw_gbs / busbw_gbs);
    let band = match row.role {
        Role::Fit | Role::Example => None,
        Role::Floor => Some(FLOOR_BAR),
        Role::Test if row.bytes >= LARGE_BYTES => Some(LARGE_BAR),
        Role::Test => Some(SMALL_BAR),
    };
    let state = match (ratio, band) {
        (None, _) => RowState::NoModel,
        (Some(_), None) if row.role == Role::Fit => RowState::Fitted,
        (Some(_), None) => RowState::Shown,
        (Some(ratio), Some(band)) if band.holds(ratio) => RowState::Within,
        _ if known.contains_key(row.id.as_str()) => RowState::KnownMiss,
        _ => RowState::Misses,
    };
    let why = match (&estimate.model, state) {
        (Err(why), _) => why.clone(),
        (_, RowState::KnownMiss) => known[row.id.as_str()].to_owned(),
        _ => String::new(),
    };
    let of_system = table.systems.get(&row.system).map_or("", |system| system.assume.as_str());
    let assume: Vec<&str> =
        [row.assume.as_str(), of_system].into_iter().filter(|text| !text.is_empty()).collect();
    MeasuredRow {
        id: row.id.clone(),
        operation: row.operation.clone(),
        gpus: row.gpus,
        servers: row.servers,
        system: row.system.clone(),
        bytes: row.bytes,
        algorithm: row.algorithm.clone(),
        role: row.role,
        time_us,
        busbw_gbs,
        model,
        error: ratio.map(|ratio| ratio - 1.0),
        band,
        state,
        why,
        assume: assume.join("; "),
        source: row.source.clone(),
    }
}

/// Returns the errors of the rows that are held out: from 16 MiB and below, by generation and together.
fn shares(rows: &[MeasuredRow], estimates: &[Estimate<'_>]) -> Vec<Share> {
    let mut groups: BTreeMap<(bool, &str), Vec<&MeasuredRow>> = BTreeMap::new();
    for (row, estimate) in rows.iter().zip(estimates) {
        let Ok((generation, _)) = estimate.model else { continue };
        if row.role == Role::Test {
            let small = row.bytes < LARGE_BYTES;
            for name in [fit::name(generation), "all"] {
                groups.entry((small, name)).or_default().push(row);
            }
        }
    }
    let share = |((small, name), rows): ((bool, &str), Vec<&MeasuredRow>)| {
        let errors = || rows.iter().filter_map(|row| row.error);
        Share {
            group: format!("{name}, {}", if small { "below 16 MiB" } else { "from 16 MiB" }),
            rows: rows.len(),
            within: rows.iter().filter(|row| row.state == RowState::Within).count(),
            mean_error: errors().map(f64::abs).sum::<f64>() / rows.len() as f64,
        }
    };
    groups.into_iter().map(share).collect()
}
