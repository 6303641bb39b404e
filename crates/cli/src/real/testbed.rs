//! `pathweave paper --testbed`: figures that were measured on a testbed, repeated by real hosts in a lab.

// What documents an argument is its help text, in which brackets are brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use std::collections::BTreeSet;
use std::sync::Mutex;

use clap::Args;
use pathweave_datapath::DeviceConfig;
use pathweave_heap::usage;
use pathweave_lab::{
    LabError, LabName, LabRun, Plan, RateScale, Seen, Settings, Workplace, fitting_scale, foreseen_shortage,
};
use pathweave_results::{EndReason, RunResult};
use pathweave_scenario::Loaded;

use super::lab::{LabBackend, Temporary, workplace_to_make};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::terminal;

/// Options of figures of a testbed.
#[derive(Args, Debug, Default)]
pub(crate) struct TestbedArgs {
    /// Only figures that were measured on a testbed: run in a lab on this machine by real hosts, beside the simulation.
    /// Results go to DIR/NAME-testbed
    #[arg(long, conflicts_with = "record")]
    testbed: bool,
    /// With --testbed: what carries packets [default: dpdk; where the build has none, af-xdp; where only root may, udp]
    #[arg(long, value_enum, value_name = "NAME", requires = "testbed")]
    backend: Option<LabBackend>,
    /// With --testbed: link rates relative to the scenario's: 1/1000, 0.001 [default: the largest power of ten that this
    /// machine's cores carry and at which software takes no longer than the network]
    #[arg(long, value_name = "F", requires = "testbed")]
    rate_scale: Option<RateScale>,
}

impl TestbedArgs {
    /// Whether only figures of a testbed are wanted, in a lab.
    pub(crate) fn is_wanted(&self) -> bool {
        self.testbed
    }

    /// The same options again, as words of a command.
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

/// Where figures of a testbed are measured. To be made before the process starts any thread.
pub(crate) struct Testbed {
    backend: LabBackend,
    scale: Option<RateScale>,
    workplace: Workplace,
    /// Notes that were said; each is said once.
    said: Mutex<BTreeSet<String>>,
    quiet: bool,
}

/// A run that was measured.
pub(crate) struct MeasuredRun {
    pub(crate) result: RunResult,
    /// How, for people.
    pub(crate) said: String,
}

impl Testbed {
    /// # Errors
    /// Labs cannot be made here, or the build lacks the backend.
    pub(crate) fn open(args: &TestbedArgs, quiet: bool) -> Result<Self, Failure> {
        args.backend.map_or(Ok(()), LabBackend::check)?;
        let workplace = workplace_to_make()?;
        let (backend, word) =
            args.backend.map_or_else(|| LabBackend::usual(workplace), |chosen| (chosen, None));
        let testbed = Testbed { backend, scale: args.rate_scale, workplace, said: Mutex::default(), quiet };
        word.iter().for_each(|word| testbed.say(word));
        Ok(testbed)
    }

    /// What carries packets, in words.
    pub(crate) fn carrier(&self) -> &'static str {
        self.backend.words()
    }

    /// What measured runs depend on beside their scenarios.
    pub(crate) fn how(&self) -> String {
        let scale = self.scale.map_or("fitting".to_owned(), |scale| scale.to_string());
        format!("{}, rates {scale}", self.backend.name())
    }

    /// Runs a scenario on a lab of its own, which is removed whatever happens; `None` if the user interrupts it. `progress` is told
    /// the share that is done.
    ///
    /// # Errors
    /// What a lab or the backend lacks.
    pub(crate) fn measure(
        &self,
        label: &str,
        loaded: &Loaded,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Option<MeasuredRun>, Failure> {
        let prepared = loaded.prepare()?;
        let spec = &prepared.spec;
        let mtu_bytes = DeviceConfig::link_mtu_for(spec.host.mtu.get() as u16) as u32;
        let defaults = Settings { mtu_bytes, ..Settings::of_switch(&spec.switch, RateScale::FULL) };
        let rate_scale = self.scale.unwrap_or_else(|| fitting_scale(spec, &defaults));
        let settings = Settings { rate_scale, ..defaults };
        if let Some(shortage) = foreseen_shortage(spec, &settings) {
            self.say(&format!("warning: {label}: {shortage}"));
        }
        // Another call of this command may have a lab, too.
        let name = LabName::from_text(&format!("paper{}-{label}", std::process::id()));
        let plan = Plan::new(name, (*spec.topology).clone(), settings)?;
        // What this value holds outlives each lab.
        let mut lab = match Temporary::make(plan, Workplace::None, &|| interrupt.requested()) {
            Ok(lab) => lab,
            Err(LabError::Interrupted) => return Ok(None),
            Err(why) => return Err(why.into()),
        };
        let lab = lab.lab();
        lab.notes().iter().for_each(|note| self.say(&format!("note: {note}")));
        let until_s = match spec.stop.until {
            Some(until) => until.as_secs_f64(),
            None => f64::INFINITY,
        };
        let mut look = |seen: Seen| {
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
