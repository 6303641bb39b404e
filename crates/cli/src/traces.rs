//! Export of a run to formats of other programs: tables of flows, a timeline, packets.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pathweave_records::RunResult;
use pathweave_report::{FctEnd, FctFormat, fct, flows_csv, perfetto};
use pathweave_scenario::units::HostId;
use pathweave_scenario::{Records, closest_name, suggestion};
use pathweave_sim::{Capture, CaptureFilter, Fidelity, Frames, SimSpec};

use crate::commands::safe_name;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::output::{Output, is_within};

/// Files to write in addition to the result folder.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TraceArgs {
    /// Write flows as comma-separated values, with the columns of flows.parquet; - is standard output, also for the
    /// options below
    #[arg(long, value_name = "FILE")]
    flows_csv: Option<PathBuf>,
    /// Write finished flows as the fct.txt of ns-3 RDMA simulators
    #[arg(long, value_name = "FILE")]
    fct: Option<PathBuf>,
    /// Format of hosts in --fct
    #[arg(long, value_enum, default_value_t = FctHosts::Hpcc, value_name = "FORMAT", requires = "fct")]
    fct_format: FctHosts,
    /// Event at which a flow's time ends in --fct
    #[arg(long, value_enum, default_value_t = FlowEnd::Delivered, value_name = "END", requires = "fct")]
    fct_end: FlowEnd,
    /// Write a timeline for ui.perfetto.dev: ranks, jobs, flows, queues, pauses, events
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Write packets as RoCEv2 frames for Wireshark, as they arrive at hosts
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,
    /// Capture only packets to and from this host, given by name or number
    #[arg(long, value_name = "HOST", requires = "pcapng")]
    pcapng_host: Option<String>,
    /// Capture only packets that arrive at --pcapng-host, over its link
    #[arg(long, requires = "pcapng_host")]
    pcapng_inbound: bool,
    /// Maximum number of packets; the first ones are written
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "pcapng", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pcapng_packets: u32,
    /// Kind of frames: plain RoCEv2, or with the extension header of the datapath
    #[arg(long, value_enum, default_value_t = FrameKind::Standard, value_name = "KIND", requires = "pcapng")]
    pcapng_frames: FrameKind,
}

impl TraceArgs {
    /// Returns true if any file is requested.
    pub(crate) fn any(&self) -> bool {
        self.files().iter().any(|(_, path)| path.is_some())
    }

    /// Returns the handling of flow records. Some files are generated from all records, which must then be kept.
    pub(crate) fn records(&self) -> Records {
        let needed = self.flows_csv.is_some() || self.fct.is_some() || self.perfetto.is_some();
        if needed { Records::Kept } else { Records::Written }
    }

    /// Returns true if packets are to be written.
    pub(crate) fn shows_packets(&self) -> bool {
        self.pcapng.is_some()
    }

    /// Checks that no file replaces an input, and that none is in a result folder, which is replaced as a whole.
    ///
    /// # Errors
    /// The first file that does.
    pub(crate) fn check_places(&self, inputs: &Inputs, folder: &Path) -> Result<(), Failure> {
        for (option, path) in self.files() {
            let Some(path) = path.as_deref().filter(|path| Output::is_file(path)) else { continue };
            inputs.check_output(option, path)?;
            if is_within(path, folder) {
                return Err(Failure::Input(format!(
                    "{option} {}: the result folder {} is replaced as a whole and holds no other files; name a file \
                     outside it",
                    path.display(),
                    folder.display()
                )));
            }
        }
        Ok(())
    }

    /// Checks that all outputs are files, because each of several runs has its own.
    pub(crate) fn check_files(&self) -> Result<(), Failure> {
        for (option, path) in self.files() {
            if let Some(path) = path.as_deref().filter(|path| !Output::is_file(path)) {
                return Err(Failure::Input(format!(
                    "{option} {}: each run writes its own file, named after the run; name a file, or use \"pathweave run\"",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    fn files(&self) -> [(&'static str, &Option<PathBuf>); 4] {
        [
            ("--flows-csv", &self.flows_csv),
            ("--fct", &self.fct),
            ("--perfetto", &self.perfetto),
            ("--pcapng", &self.pcapng),
        ]
    }

    /// Returns the options for one of several runs, with the name of the run before the extension of every file.
    pub(crate) fn of_run(&self, run: &str) -> Self {
        let mut own = self.clone();
        let files = [&mut own.flows_csv, &mut own.fct, &mut own.perfetto, &mut own.pcapng];
        for path in files.into_iter().flatten() {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let extension = path.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
            path.set_file_name(format!("{stem}-{}{extension}", safe_name(run)));
        }
        own
    }
}

/// Format of hosts in fct.txt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum FctHosts {
    /// Addresses in hexadecimal
    #[default]
    Hpcc,
    /// Numbers
    Conweave,
}

/// Event at which a flow's time ends in fct.txt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum FlowEnd {
    /// Arrival of the last byte at the receiver
    #[default]
    Delivered,
    /// Arrival of the last acknowledgement at the sender, as in ns-3
    Acknowledged,
}

/// Kind of frames in a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum FrameKind {
    /// RoCEv2 as adapters send it
    #[default]
    Standard,
    /// Frames as the datapath sends them, with its extension header
    Pathweave,
}

/// Requested files. They are created before the run, so that errors are found early.
pub(crate) struct Traces {
    flows_csv: Option<Output>,
    fct: Option<(Output, FctFormat, FctEnd)>,
    perfetto: Option<Output>,
    pcapng: Option<(Output, Frames)>,
    /// Capture to register as a tap of the run.
    pub(crate) capture: Option<Capture>,
}

impl Traces {
    /// Creates the files that `args` request.
    pub(crate) fn open(args: &TraceArgs, spec: &SimSpec) -> Result<Self, Failure> {
        if args.pcapng.is_some() && spec.run.fidelity == Fidelity::Flow {
            let what = "--pcapng captures packets, and there are none with run.fidelity = \"flow\"; leave it out, or set \
                        run.fidelity to \"packet\"";
            return Err(Failure::Input(what.to_owned()));
        }
        let open = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
        let format = match args.fct_format {
            FctHosts::Hpcc => FctFormat::Hpcc,
            FctHosts::Conweave => FctFormat::ConWeave,
        };
        let end = match args.fct_end {
            FlowEnd::Delivered => FctEnd::Delivered,
            FlowEnd::Acknowledged => FctEnd::Acknowledged,
        };
        let frames = match args.pcapng_frames {
            FrameKind::Standard => Frames::Standard,
            FrameKind::Pathweave => Frames::Pathweave,
        };
        let host = args.pcapng_host.as_deref().map(|name| host(name, spec)).transpose()?;
        let filter = match (host, args.pcapng_inbound) {
            (None, _) => CaptureFilter::All,
            (Some(host), false) => CaptureFilter::Host(host),
            (Some(host), true) => CaptureFilter::Into(host),
        };
        let pcapng = open(&args.pcapng)?;
        let traces = Traces {
            flows_csv: open(&args.flows_csv)?,
            fct: open(&args.fct)?.map(|output| (output, format, end)),
            perfetto: open(&args.perfetto)?,
            capture: pcapng.as_ref().map(|_| Capture::new(filter, args.pcapng_packets as usize)),
            pcapng: pcapng.map(|output| (output, frames)),
        };
        let all: Vec<&Output> = traces.outputs().collect();
        for (i, one) in all.iter().enumerate() {
            if let Some(other) = all[..i].iter().find(|other| other.is_same(one)) {
                return Err(Failure::Input(format!(
                    "{} and {} are the same place; choose different ones",
                    other.name().display(),
                    one.name().display()
                )));
            }
        }
        Ok(traces)
    }

    fn outputs(&self) -> impl Iterator<Item = &Output> {
        let with_format = self.fct.iter().map(|(output, ..)| output);
        let with_frames = self.pcapng.iter().map(|(output, _)| output);
        self.flows_csv.iter().chain(with_format).chain(&self.perfetto).chain(with_frames)
    }

    /// Returns true if one of the files goes to standard output, which must not carry other output then.
    pub(crate) fn take_stdout(&self) -> bool {
        self.outputs().any(Output::is_stdout)
    }

    /// Writes the files. Returns notes for the user.
    pub(crate) fn write(self, run: &RunResult) -> Result<Vec<String>, Failure> {
        let mut notes = Vec::new();
        if let Some(output) = self.flows_csv {
            output.write(|out| flows_csv(run, out))?;
        }
        if let Some((output, format, end)) = self.fct {
            output.write(|out| fct(run, format, end, out))?;
        }
        if let Some(output) = self.perfetto {
            output.write(|out| perfetto(run, out))?;
            let events: u64 = run.events_not_recorded.values().sum();
            if events > 0 {
                notes.push(format!("{events} events are not in the timeline: raise observe.max_events"));
            }
        }
        if let (Some((output, frames)), Some(capture)) = (self.pcapng, &self.capture) {
            let name =
                |host: HostId| run.nodes.get(host.index()).map_or_else(String::new, |node| node.name.clone());
            output.write(|out| capture.write(frames, name, out))?;
            if capture.left_out() > 0 {
                let (kept, more) = (capture.len(), capture.left_out());
                notes.push(format!(
                    "the capture has the first {kept} packets; {more} more: raise --pcapng-packets"
                ));
            }
        }
        Ok(notes)
    }
}

/// Returns the host with this name or number.
fn host(name: &str, spec: &SimSpec) -> Result<HostId, Failure> {
    let hosts = spec.topology.hosts();
    let names: Vec<String> =
        (0..hosts).map(|id| spec.topology.node_name(HostId(id).into()).into_owned()).collect();
    let by_number = name.parse().ok().filter(|&id: &u32| id < hosts);
    let by_name = names.iter().position(|known| known == name).map(|at| at as u32);
    by_name.or(by_number).map(HostId).ok_or_else(|| {
        let near = closest_name(name, names.iter().map(String::as_str));
        let near = suggestion(near);
        let last = names.last().map_or("", String::as_str);
        Failure::Input(format!(
            "--pcapng-host: no host is \"{name}\"; there are {} to {last}{near}",
            names[0]
        ))
    })
}
