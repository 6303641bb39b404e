//! `pathweave lab up`.

use std::path::Path;
use std::sync::Arc;

use pathweave_lab::{Lab, LabError, LabName, Plan, RateScale, Settings, topology_of_file};
use pathweave_scenario::Loaded;
use pathweave_scenario::units::Bytes;

use super::args::{SettingsArgs, UpArgs};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::options::Changes;
use crate::terminal;

pub(crate) fn up(args: &UpArgs) -> Result<Outcome, Failure> {
    let plan = plan(&args.file, args.name.clone(), &args.settings, &args.changes)?;
    let workplace = super::workplace_to_make()?;
    let interrupt = Interrupt::listen_saying("stopping: what has been made will be removed")?;
    let lab = match Lab::make(plan, &|| interrupt.requested()) {
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
    // Where to go from here, for people and for scripts.
    terminal::out(&format!("{}\n", plan.lab()));
    Ok(Outcome::Done)
}

/// What is to be made of a scenario or a topology file.
pub(crate) fn plan(
    file: &Path,
    name: Option<LabName>,
    args: &SettingsArgs,
    changes: &Changes,
) -> Result<Plan, Failure> {
    let (topology, default_name, switch) = match topology_of_file(file).map_err(LabError::from)? {
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
            (topology, loaded.scenario.name.clone(), Some(loaded.scenario.switch))
        }
    };
    let automatic = || RateScale::automatic(topology.links().iter().map(|link| link.rate));
    let scale = args.rate_scale.unwrap_or_else(automatic);
    let defaults = Settings::of_switch(&switch.unwrap_or_default(), scale);
    let settings = Settings {
        mtu_bytes: args.mtu,
        super_packets: args.super_packets.into(),
        queue_bytes: args.queue.map_or(defaults.queue_bytes, Bytes::get),
        ..defaults
    };
    Ok(Plan::new(name.unwrap_or_else(|| LabName::from_text(&default_name)), topology, settings)?)
}
