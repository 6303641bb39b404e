//! `pathweave lab up`.

use std::path::Path;
use std::sync::Arc;

use pathweave_lab::{
    Lab, LabError, LabName, Plan, RateScale, Schedule, Settings, SuperPackets, topology_of_file,
};
use pathweave_scenario::Loaded;
use pathweave_scenario::units::Bytes;

use super::args::{SettingsArgs, UpArgs};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::options::Changes;
use crate::terminal;

pub(crate) fn up(args: &UpArgs) -> Result<Outcome, Failure> {
    let Planned { plan, .. } = Planned::read(&args.file, args.name.clone(), &args.settings, &args.changes)?;
    let workplace = super::workplace_to_make()?;
    let interrupt = Interrupt::listen_saying("stopping: the parts of the lab made so far will be removed")?;
    let lab = match Lab::create(plan, &|| interrupt.requested()) {
        Ok(lab) => lab,
        Err(why) => {
            workplace.close_if_empty()?;
            return match why {
                LabError::Interrupted => Ok(Outcome::Interrupted),
                why => Err(why.into()),
            };
        }
    };
    let (plan, topology) = (lab.plan(), lab.plan().topology());
    terminal::note(&format!(
        "{}: hosts: {}, switches: {}, links: {}; rates at {} of the file's",
        plan.lab(),
        topology.hosts(),
        topology.switches().len(),
        topology.links().len(),
        plan.settings().rate_scale
    ));
    for note in lab.notes() {
        terminal::note(&format!("note: {note}"));
    }
    // Name of the lab, for users and for scripts.
    terminal::out(&format!("{}\n", plan.lab()));
    Ok(Outcome::Done)
}

/// Plan of a lab, from a scenario or a topology file.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    /// The scenario, or `None` for a topology file.
    scenario: Option<Loaded>,
}

impl Planned {
    pub(crate) fn read(
        file: &Path,
        name: Option<LabName>,
        args: &SettingsArgs,
        changes: &Changes,
    ) -> Result<Planned, Failure> {
        let (topology, default_name, scenario) = match topology_of_file(file).map_err(LabError::from)? {
            Some(topology) => {
                if !changes.set.is_empty() || changes.seed.is_some() {
                    let what = "--set and --seed change scenarios, and this is a topology file";
                    return Err(Failure::Input(format!("{}: {what}", file.display())));
                }
                let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                (topology, stem, None)
            }
            None => {
                let loaded = Loaded::read(file, &crate::commands::changes(changes))?;
                let topology = Arc::unwrap_or_clone(loaded.topology()?);
                (topology, loaded.scenario.name.clone(), Some(loaded))
            }
        };
        let automatic = || RateScale::automatic(topology.links().iter().map(|link| link.rate));
        let scale = args.rate_scale.unwrap_or_else(automatic);
        let switch = scenario.as_ref().map(|loaded| loaded.scenario.switch.clone());
        let defaults = Settings::from_switch_config(&switch.unwrap_or_default(), scale);
        let settings = Settings {
            mtu_bytes: args.mtu.unwrap_or(defaults.mtu_bytes),
            super_packets: args.super_packets.map_or(defaults.super_packets, SuperPackets::from),
            queue_bytes: args.queue.map_or(defaults.queue_bytes, Bytes::get),
            ..defaults
        };
        let name = name.unwrap_or_else(|| LabName::from_text(&default_name));
        Ok(Planned { plan: Plan::new(name, topology, settings)?, scenario })
    }

    /// Returns the faults of the scenario, or none for a topology file.
    pub(crate) fn schedule(&self) -> Result<Schedule, Failure> {
        let Some(Loaded { scenario, .. }) = &self.scenario else { return Ok(Schedule::default()) };
        let (topology, scale) = (self.plan.topology(), self.plan.settings().rate_scale);
        Ok(Schedule::new(topology, &scenario.fault, scenario.switch.reroute_after, scale)?)
    }
}
