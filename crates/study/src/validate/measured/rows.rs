//! Tables of measurements, as in `data/truth`.

use std::collections::BTreeMap;

use pathweave_scenario::nccl::{Algorithm, Cpu, Gpu, Operation, Sharp, System};
use pathweave_scenario::units::Rate;
use serde::{Deserialize, Serialize};

use crate::validate::error::{ValidateError, in_file};

const COLLECTIVES: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/truth/collective.csv"));
const SYSTEMS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/truth/systems.toml"));
const COLLECTIVES_FILE: &str = "data/truth/collective.csv";
const SYSTEMS_FILE: &str = "data/truth/systems.toml";

/// Use of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The row determines fitted numbers.
    Fit,
    /// The row is held out.
    Test,
    /// Least value that a vendor accepts. The simulation must not be below, nor over 20 % above.
    Floor,
    /// Measurement of a faulty system, only shown.
    Example,
}

/// Measurement of a collective.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measurement {
    pub(super) id: String,
    pub(super) operation: String,
    pub(super) gpus: u32,
    pub(super) servers: u32,
    pub(super) system: String,
    pub(super) bytes: u64,
    pub(super) algorithm: String,
    pub(super) allowed: String,
    pub(super) role: Role,
    #[serde(rename = "busbw_GBs")]
    pub(super) busbw_gbs: Option<f64>,
    pub(super) time_us: Option<f64>,
    pub(super) source: String,
    pub(super) assume: String,
}

/// System of measurements.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SystemFile {
    gpu: Option<String>,
    #[serde(default)]
    nics: u32,
    nic_rate: Option<String>,
    #[serde(default)]
    cpu: Option<String>,
    #[serde(default)]
    sharp: bool,
    domain: Option<u32>,
    #[serde(default)]
    pub(super) assume: String,
    pub(super) no_model: Option<String>,
}

/// Rows and their systems.
pub(super) struct Table {
    pub(super) rows: Vec<Measurement>,
    pub(super) systems: BTreeMap<String, SystemFile>,
}

/// Reads the table of collectives.
pub(super) fn collectives() -> Result<Table, ValidateError> {
    let systems: BTreeMap<String, SystemFile> =
        toml::from_str(SYSTEMS).map_err(|why| in_file(SYSTEMS_FILE, why.to_string()))?;
    let mut rows = Vec::new();
    for row in csv::Reader::from_reader(COLLECTIVES.as_bytes()).deserialize() {
        let row: Measurement = row.map_err(|why| in_file(COLLECTIVES_FILE, why.to_string()))?;
        let wrong = |message: String| in_file(COLLECTIVES_FILE, format!("row {}: {message}", row.id));
        if row.busbw_gbs.is_none() && row.time_us.is_none() {
            return Err(wrong("has neither busbw_GBs nor time_us".to_owned()));
        }
        if !systems.contains_key(&row.system) {
            return Err(wrong(format!("system \"{}\" is not in {SYSTEMS_FILE}", row.system)));
        }
        if row.servers == 0 || row.gpus < 2 || !row.gpus.is_multiple_of(row.servers) {
            return Err(wrong(format!("gpus = {}: expected 2 or more, a multiple of servers", row.gpus)));
        }
        rows.push(row);
    }
    Ok(Table { rows, systems })
}

impl Measurement {
    /// Returns the operation, or the reason why it has no model.
    pub(super) fn operation(&self) -> Result<Operation, String> {
        Ok(match self.operation.as_str() {
            "all-reduce" => Operation::AllReduce,
            "all-gather" => Operation::AllGather,
            "reduce-scatter" => Operation::ReduceScatter,
            "broadcast" => Operation::Broadcast,
            "reduce" => Operation::Reduce,
            "all-to-all" => Operation::AllToAll,
            other => {
                return Err(format!("{other} consists of single sends, which are no collective of NCCL"));
            }
        })
    }

    /// Returns the algorithms that the setting of the source allows; empty for all.
    pub(super) fn allowed(&self) -> Result<Vec<Algorithm>, String> {
        self.allowed.split_whitespace().map(str::parse).collect()
    }

    /// Returns the system, or the reason why it has no model.
    pub(super) fn system(&self, file: &SystemFile) -> Result<System, String> {
        if let Some(why) = &file.no_model {
            return Err(why.clone());
        }
        let gpu: Gpu = file.gpu.as_deref().unwrap_or_default().parse()?;
        let chassis = self.gpus / self.servers;
        let gpus = file.domain.unwrap_or(chassis);
        let base = System::new(gpu, (self.gpus / gpus).max(1), gpus);
        let nic_rate: Rate = match &file.nic_rate {
            Some(text) => text.parse().map_err(|why| format!("nic_rate = {text}: {why}"))?,
            None => base.nic_rate,
        };
        let cpu = match file.cpu.as_deref() {
            None => base.cpu,
            Some("intel") => Cpu::Intel,
            Some("amd") => Cpu::Amd,
            Some("arm") => Cpu::Arm,
            Some(other) => return Err(format!("cpu = {other}: expected intel, amd or arm")),
        };
        let sharp = if file.sharp { Sharp::On } else { Sharp::Off };
        Ok(System { nics: file.nics * (gpus / chassis), nic_rate, cpu, sharp, ..base })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row that has a model has a valid system, operation and list of algorithms.
    #[test]
    fn the_tables_are_consistent() {
        let table = collectives().unwrap();
        assert_eq!(table.rows.len(), 152);
        let mut ids: Vec<_> = table.rows.iter().map(|row| row.id.as_str()).collect();
        ids.dedup();
        assert_eq!(ids.len(), 152, "each row has its own name");
        for row in &table.rows {
            assert!(!row.source.is_empty(), "{}", row.id);
            row.allowed().unwrap_or_else(|why| panic!("{}: {why}", row.id));
            let file = &table.systems[&row.system];
            if let Ok(system) = row.system(file) {
                system.check().unwrap_or_else(|why| panic!("{}: {why}", row.id));
                assert_eq!(system.ranks(), row.gpus, "{}", row.id);
            } else {
                assert!(file.no_model.is_some(), "{}: {:?}", row.id, row.system(file));
            }
        }
    }
}
