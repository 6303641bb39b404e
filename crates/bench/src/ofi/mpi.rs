//! MPI over our provider, over libfabric's `tcp`, and over the MPI's own transport.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::tools::{Subject, Tools};
use crate::transport::process::{ProcessError, Running};

/// Numbers of ranks in a job.
const RANKS: [u32; 2] = [2, 4];
/// Number of turns. The best of each counts, as other work can only slow a run down.
const TURNS: usize = 2;
/// Time after which a job counts as hung and is killed.
const PATIENCE_SECONDS: u64 = 90;
/// Status with which `timeout` ends then.
const TIMEOUT_STATUS: &str = "exit status: 124";
/// Bytes of a sum over all ranks. Over paths of 260 Mb/s there are fewer.
const SUM_BYTES: u32 = 64 << 20;
const SUM_BYTES_OF_LAB: u32 = 8 << 20;

/// MPI implementation, with its launcher and library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OpenMpi,
    Mpich,
}

/// Carrier of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Provider(Subject),
    /// Open MPI's own TCP transport.
    Own,
}

impl Carrier {
    fn all(kind: Kind) -> Vec<Carrier> {
        let provided = [Subject::INSECURE, Subject::ENCRYPT, Subject::TCP].map(Carrier::Provider);
        match kind {
            Kind::OpenMpi => provided.into_iter().chain([Carrier::Own]).collect(),
            Kind::Mpich => provided.to_vec(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Carrier::Provider(subject) => subject.name,
            Carrier::Own => "its own tcp",
        }
    }
}

/// MPI implementation, with the rank program compiled for it.
struct Mpi {
    kind: Kind,
    name: &'static str,
    launcher: PathBuf,
    program: PathBuf,
}

impl Mpi {
    /// Returns the MPI implementations found. Missing ones are added to the notes.
    fn find(tools: &Tools, notes: &mut Vec<String>) -> Vec<Mpi> {
        let known = [
            (Kind::OpenMpi, "Open MPI", "PATHWEAVE_OPENMPI", "openmpi"),
            (Kind::Mpich, "MPICH", "PATHWEAVE_MPICH", "mpich"),
        ];
        let mut found = Vec::new();
        for (kind, name, variable, suffix) in known {
            let tool = |tool: &str| match std::env::var_os(variable) {
                Some(folder) => Path::new(&folder).join(tool),
                None => PathBuf::from(format!("{tool}.{suffix}")),
            };
            if kind == Kind::Mpich && !speaks_libfabric(&tool("mpichversion")) {
                let why = "the one installed does not use libfabric, or there is none; PATHWEAVE_MPICH names the folder \
                           of the programs of another";
                notes.push(format!("{name} is left out: {why}"));
                continue;
            }
            match tools.ranks(&tool("mpicc").to_string_lossy(), suffix) {
                Ok(program) => found.push(Mpi { kind, name, launcher: tool("mpirun"), program }),
                Err(why) => notes.push(format!("{name} is left out: {why}")),
            }
        }
        found
    }

    /// Returns the command that starts ranks over this carrier.
    fn command(&self, carrier: Carrier, ranks: u32) -> Vec<String> {
        let mut words = vec![self.launcher.to_string_lossy().into_owned(), "-n".into(), ranks.to_string()];
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        if self.kind == Kind::OpenMpi {
            add(&["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]);
            match carrier {
                Carrier::Provider(subject) => {
                    add(&["--mca", "pml", "cm", "--mca", "mtl", "ofi"]);
                    add(&["--mca", "mtl_ofi_provider_include", subject.provider]);
                }
                Carrier::Own => add(&["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]),
            }
        }
        words
    }

    fn variables(
        &self,
        tools: &Tools,
        carrier: Carrier,
        network: &[(&'static str, String)],
    ) -> Vec<(String, String)> {
        let mut all = match carrier {
            Carrier::Provider(subject) => subject.variables(tools, network),
            Carrier::Own => Vec::new(),
        };
        let mut add = |name: &str, value: &str| all.push((name.to_owned(), value.to_owned()));
        match self.kind {
            Kind::OpenMpi => {
                add("OMPI_ALLOW_RUN_AS_ROOT", "1");
                add("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            }
            Kind::Mpich => {
                add("MPIR_CVAR_CH4_NETMOD", "ofi");
                // Ranks on one host must use the network, too.
                add("MPIR_CVAR_NOLOCAL", "1");
            }
        }
        if let Carrier::Provider(subject) = carrier {
            add("FI_PROVIDER", subject.provider);
        }
        all
    }

    /// Runs one job. `before` is the prefix of the command that runs it in its place.
    fn run(
        &self,
        before: &[String],
        job: &Job,
        variables: Vec<(String, String)>,
    ) -> Result<Value, ProcessError> {
        let mut command = Command::new("timeout");
        command.args(["-k", "10", &PATIENCE_SECONDS.to_string()]).args(before);
        command
            .args(self.command(job.carrier, job.ranks))
            .args(job.hosts.iter().flat_map(|hosts| ["--host", hosts]));
        command.arg(&self.program).args([
            job.seconds.to_string(),
            job.sum_bytes.to_string(),
            job.sums.to_string(),
        ]);
        command.envs(variables).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Running::start(command).map_err(ProcessError::Failed)?;
        let patience = Duration::from_secs(PATIENCE_SECONDS + 20);
        let ran = running.finish_within(patience).map_err(|broken| match broken {
            ProcessError::Failed(why) if why.starts_with(TIMEOUT_STATUS) => {
                ProcessError::Hung(Duration::from_secs(PATIENCE_SECONDS))
            }
            broken => broken,
        })?;
        let line = ran.output.lines().find(|line| line.starts_with('{')).unwrap_or_default();
        serde_json::from_str(line)
            .map_err(|_| ProcessError::Failed(format!("it prints {}", ran.output.trim())))
    }
}

/// Parameters of a job.
struct Job {
    carrier: Carrier,
    ranks: u32,
    hosts: Option<&'static str>,
    seconds: f64,
    sum_bytes: u32,
    sums: u32,
}

fn speaks_libfabric(program: &Path) -> bool {
    let output = Command::new(program).stdin(Stdio::null()).output();
    output.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
        text.lines().any(|line| line.contains("device") && line.contains("ch4") && line.contains("ofi"))
    })
}

/// Runs on loopback, with ranks on one host and without shared memory.
pub(super) fn on_loopback(tools: &Tools, notes: &mut Vec<String>) -> Vec<Value> {
    let mut rows = Vec::new();
    for mpi in Mpi::find(tools, notes) {
        for ranks in RANKS {
            let job =
                |carrier| Job { carrier, ranks, hosts: None, seconds: 0.6, sum_bytes: SUM_BYTES, sums: 2 };
            let network = [("PATHWEAVE_IFACE", "lo".to_owned())];
            rows.extend(in_turns(&mpi, "loopback", ranks, &|carrier| {
                mpi.run(&[], &job(carrier), mpi.variables(tools, carrier, &network))
            }));
        }
    }
    rows
}

/// Runs in a lab with four unequal spines, with one rank per host.
pub(super) fn over_spines(tools: &Tools, scenario: &Path, notes: &mut Vec<String>) -> Vec<Value> {
    let program = std::env::current_exe().unwrap_or_default().with_file_name("pathweave");
    if !program.exists() {
        notes.push("MPI in a lab is left out: there is no pathweave beside this program".into());
        return Vec::new();
    }
    let mut rows = Vec::new();
    for mpi in Mpi::find(tools, &mut Vec::new()) {
        for ranks in RANKS {
            // Ranks 0 and 1 are in different racks.
            let hosts = Some(if ranks == 2 { "host0,host2" } else { "host0,host2,host1,host3" });
            let job =
                |carrier| Job { carrier, ranks, hosts, seconds: 2.0, sum_bytes: SUM_BYTES_OF_LAB, sums: 1 };
            let lab = format!("bench{}", std::process::id());
            let path = |path: &Path| path.to_string_lossy().into_owned();
            let before = [path(&program), "lab".into(), "exec".into(), path(scenario), "--name".into(), lab];
            let before = before.into_iter().chain(["--provider".into(), path(&tools.provider), "--".into()]);
            let before: Vec<String> = before.collect();
            rows.extend(in_turns(&mpi, "four unequal spines", ranks, &|carrier| {
                mpi.run(&before, &job(carrier), mpi.variables(tools, carrier, &[]))
            }));
        }
    }
    rows
}

#[allow(clippy::print_stdout)]
fn in_turns(
    mpi: &Mpi,
    place: &str,
    ranks: u32,
    run: &dyn Fn(Carrier) -> Result<Value, ProcessError>,
) -> Vec<Value> {
    let carriers = Carrier::all(mpi.kind);
    let mut runs: Vec<Vec<Value>> = vec![Vec::new(); carriers.len()];
    let mut broken: Vec<Option<ProcessError>> = vec![None; carriers.len()];
    for _ in 0..TURNS {
        for (index, carrier) in
            carriers.iter().enumerate().filter(|(index, _)| broken[*index].is_none()).collect::<Vec<_>>()
        {
            match run(*carrier) {
                Ok(value) => runs[index].push(value),
                Err(why) => broken[index] = Some(why),
            }
        }
    }
    let rows = carriers.iter().zip(runs).zip(broken).map(|((carrier, runs), broken)| {
        let all = |name: &str| runs.iter().filter_map(|run| run[name].as_f64()).collect::<Vec<_>>();
        let least = |name: &str| all(name).into_iter().min_by(f64::total_cmp);
        let (latency, sum) = (least("latency_us"), least("sum_s"));
        let rate = all("mb_per_second").into_iter().max_by(f64::total_cmp);
        let text = |value: Option<f64>, unit| value.map_or("-".into(), |value| format!("{value:.2} {unit}"));
        println!(
            "    {}, {place}, {ranks} ranks, {:<20} {:>12} {:>14}  sum {:>9}  {}",
            mpi.name,
            carrier.name(),
            text(latency, "us"),
            text(rate, "MB/s"),
            text(sum, "s"),
            broken.as_ref().map(ToString::to_string).unwrap_or_default()
        );
        json!({
            "mpi": mpi.name,
            "place": place,
            "ranks": ranks,
            "carrier": carrier.name(),
            "latency_us": latency,
            "mb_per_second": rate,
            "sum_s": sum,
            "runs": runs,
            "hung": matches!(broken, Some(ProcessError::Hung(_))),
            "error": broken.map(|why| why.to_string()),
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_started_over_what_is_asked_for() {
        let mpi = |kind| Mpi { kind, name: "x", launcher: "mpirun".into(), program: "p".into() };
        let words = mpi(Kind::OpenMpi).command(Carrier::Provider(Subject::ENCRYPT), 4).join(" ");
        assert!(
            words.starts_with("mpirun -n 4 ") && words.ends_with("mtl_ofi_provider_include pathweave"),
            "{words}"
        );
        assert!(mpi(Kind::OpenMpi).command(Carrier::Own, 2).join(" ").ends_with("--mca btl tcp,self"));
        assert_eq!(mpi(Kind::Mpich).command(Carrier::Provider(Subject::TCP), 2), ["mpirun", "-n", "2"]);
    }
}
