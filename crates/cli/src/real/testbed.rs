//! `pathweave paper --testbed`: figures that were measured on a testbed, repeated on real hosts in a lab.

// Doc comments of arguments are their help texts, in which brackets are plain text.
#![allow(rustdoc::broken_intra_doc_links)]

use std::collections::BTreeSet;
use std::sync::Mutex;

use clap::Args;
use pathweave_datapath::DeviceConfig;
use pathweave_heap::usage;
use pathweave_lab::{
    LabError, LabName, LabNamespaces, LabRun, Plan, RateScale, RunProgress, Settings, capacity_warning,
    recommended_rate_scale,
};
use pathweave_records::{EndReason, RunResult};
use pathweave_scenario::Loaded;

use super::lab::{LabBackend, Temporary, workplace_to_make};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::terminal;

/// Options for testbed figures.
#[derive(Args, Debug, Default)]
pub(crate) struct TestbedArgs {
    /// Run only figures that were measured on a testbed, on real hosts in a lab on this machine, and compare them
    /// with the simulation. Results go to DIR/NAME-testbed
    #[arg(long, conflicts_with = "record")]
    testbed: bool,
    /// With --testbed: packet backend [default: dpdk; in a build without it af-xdp, or udp
    /// without root]
    #[arg(long, value_enum, value_name = "NAME", requires = "testbed")]
    backend: Option<LabBackend>,
    /// With --testbed: link rates relative to the scenario's: 1/1000, 0.001 [default: the largest power of ten that
    /// this machine's cores sustain and at which software is no slower than the network]
    #[arg(long, value_name = "F", requires = "testbed")]
    rate_scale: Option<RateScale>,
}

impl TestbedArgs {
    /// Returns true if only testbed figures are requested.
    pub(crate) fn is_wanted(&self) -> bool {
        self.testbed
    }

    /// Returns these options as words of a command.
    pub(crate) fn words(&self) -> String {
        let mut text = if self.testbed { " --testbed".to_owned() } else { String::new() };
        if let Some(backend) = self.backend {
            text.push_str(&format!(" --backend {}", backend.name()));
        }
        if let Some(scale) = self.rate_scale {
            text.push_str(&format!(" --rate-scale {scale}"));
        }
        text
    }
}

/// Environment that measures testbed figures. Must be created before the process starts any thread.
pub(crate) struct Testbed {
    backend: LabBackend,
    scale: Option<RateScale>,
    workplace: LabNamespaces,
    /// Notes that have been printed. Each is printed once.
    said: Mutex<BTreeSet<String>>,
    quiet: bool,
}

/// Measured run.
pub(crate) struct MeasuredRun {
    pub(crate) result: RunResult,
    /// Description of the measurement, for users.
    pub(crate) said: String,
}

impl Testbed {
    /// # Errors
    /// Labs cannot be created here, or the build lacks the backend.
    pub(crate) fn open(args: &TestbedArgs, quiet: bool) -> Result<Self, Failure> {
        args.backend.map_or(Ok(()), LabBackend::check)?;
        let workplace = workplace_to_make()?;
        let (backend, word) =
            args.backend.map_or_else(|| LabBackend::usual(workplace), |chosen| (chosen, None));
        let testbed = Testbed { backend, scale: args.rate_scale, workplace, said: Mutex::default(), quiet };
        word.iter().for_each(|word| testbed.say(word));
        Ok(testbed)
    }

    /// Returns a description of the packet backend.
    pub(crate) fn carrier(&self) -> &'static str {
        self.backend.words()
    }

    /// Returns the settings, besides the scenario, that measured runs depend on.
    pub(crate) fn settings_text(&self) -> String {
        let scale = self.scale.map_or("fitting".to_owned(), |scale| scale.to_string());
        format!("{}, rates {scale}", self.backend.name())
    }

    /// Runs a scenario on its own lab, which is removed in any case. Returns `None` if the user interrupts it.
    /// `progress` is called with the fraction that is done.
    ///
    /// # Errors
    /// A requirement of the lab or the backend is not met.
    pub(crate) fn measure(
        &self,
        label: &str,
        loaded: &Loaded,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Option<MeasuredRun>, Failure> {
        let prepared = loaded.prepare()?;
        let spec = &prepared.spec;
        if !spec.switch.tables.is_empty() {
            self.say(&format!(
                "note: {label}: all switches of the lab have the settings of [switch]; [[switch.for]] has no effect"
            ));
        }
        let mtu_bytes = DeviceConfig::link_mtu_for(spec.network.mtu.get() as u16) as u32;
        let defaults = Settings { mtu_bytes, ..Settings::from_switch_config(&spec.switch, RateScale::FULL) };
        let rate_scale = self.scale.unwrap_or_else(|| recommended_rate_scale(spec, &defaults));
        let settings = Settings { rate_scale, ..defaults };
        if let Some(shortage) = capacity_warning(spec, &settings) {
            self.say(&format!("warning: {label}: {shortage}"));
        }
        // Another call of this command may have a lab, too.
        let name = LabName::from_text(&format!("paper{}-{label}", std::process::id()));
        let plan = Plan::new(name, (*spec.topology).clone(), settings)?;
        // The workplace in this value outlives each lab.
        let mut lab = match Temporary::make(plan, LabNamespaces::None, &|| interrupt.requested()) {
            Ok(lab) => lab,
            Err(LabError::Interrupted) => return Ok(None),
            Err(why) => return Err(why.into()),
        };
        let lab = lab.lab();
        lab.notes().iter().for_each(|note| self.say(&format!("note: {note}")));
        let until_s = match spec.run.until {
            Some(until) => until.as_secs_f64(),
            None => f64::INFINITY,
        };
        let mut look = |seen: RunProgress| {
            let bytes = seen.bytes_done as f64 / (seen.bytes_total as f64).max(1.0);
            let time = (seen.now.as_ps() as f64 / 1e12) / until_s;
            progress(bytes.max(time).min(1.0));
            !interrupt.requested()
        };
        let open = |port: &_, config| self.backend.open(port, config);
        let LabRun { mut result, notes, load } = pathweave_lab::run(lab, spec, &open, &mut look)?;
        if result.info.ended == EndReason::Interrupted {
            return Ok(None);
        }
        notes.iter().for_each(|note| self.say(&format!("note: {note}")));
        if !result.info.ended_detail.is_empty() {
            self.say(&format!("warning: {label}: {}", result.info.ended_detail));
        }
        result.info.peak_rss_bytes = usage::peak_rss_bytes();
        let said = format!(
            "{label}: over {}, rates of links {rate_scale} of the scenario's; {} cores {:.0} % busy, loops {:.2} ms late on the mean",
            self.carrier(),
            load.cores,
            100.0 * load.busy,
            load.late.as_secs_f64() * 1e3
        );
        Ok(Some(MeasuredRun { result, said }))
    }

    fn say(&self, line: &str) {
        let mut said = self.said.lock().expect("no thread panics while it holds the lock");
        if !self.quiet && said.insert(line.to_owned()) {
            terminal::note(line);
        }
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if let Err(why) = self.workplace.close_if_empty() {
            terminal::note(&format!("the place of the labs is not removed: {why}"));
        }
    }
}
