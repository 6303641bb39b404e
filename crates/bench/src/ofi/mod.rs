//! Benchmark of our libfabric provider beside libfabric's own: tagged messages, MPI, several paths, cuts and losses.

mod fabric;
mod mpi;
mod site;
mod spines;
mod tools;

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::transport::Floor;
use crate::transport::place::{Location, Packets};
use fabric::{Measurement, Series};
use site::Site;
use tools::{Subject, Tools};

/// Name on the command line and in the report.
pub(crate) const NAME: &str = "ofi";

/// Subparts that can be measured alone.
pub(crate) const PARTS: [&str; 6] = ["loopback", "namespaces", "mpi", "unequal", "cuts", "loss"];

/// Number of turns of all providers.
const TURNS: usize = 3;
const MTU_BYTES: u32 = 9_000;
const SCENARIO: &str = "scenarios/unequal-spines.toml";

/// Floors of the project: latency over that of `tcp`; rate over that of `tcp`; share of the sum of unequal spines;
/// recovery after a cut; rate over that of rxd.
const LATENCY_RATIO: f64 = 1.3;
const RATE_RATIO: f64 = 1.0;
const RATE_RATIO_ENCRYPTED: f64 = 0.7;
const SHARE_OF_SUM: f64 = 0.85;
const RECOVERY_MS: f64 = 100.0;
const RXD_RATIO: f64 = 10.0;

#[derive(Default)]
struct Report {
    messages: Vec<Value>,
    mpi: Vec<Value>,
    unequal: Vec<Value>,
    cuts: Vec<Value>,
    loss: Vec<Value>,
    floors: Vec<Floor>,
    notes: Vec<String>,
}

/// Measures and prints. `parts` restricts it to some [parts](PARTS), if not empty. Returns true if all floors are
/// met.
#[allow(clippy::print_stdout)]
pub(crate) fn run(parts: &[String]) -> (Value, bool) {
    println!(
        "{NAME}  the libfabric provider beside others: 8 bytes half a round trip, 1 MiB with a window of 16"
    );
    let begun = Instant::now();
    let mut report = Report::default();
    match Tools::make() {
        Ok(tools) => report.all(&tools, &|part| parts.is_empty() || parts.iter().any(|one| one == part)),
        Err(why) => report.note(why),
    }
    report.floors.iter().for_each(|floor| println!("{}", floor.line()));
    let seconds = begun.elapsed().as_secs_f64();
    println!("    took {seconds:.0} s");
    let met = report.floors.iter().all(Floor::is_met);
    (report.json(seconds), met)
}

impl Report {
    #[allow(clippy::print_stdout)]
    fn note(&mut self, why: String) {
        println!("    note: {why}");
        self.notes.push(why);
    }

    fn all(&mut self, tools: &Tools, wanted: &dyn Fn(&str) -> bool) {
        if wanted("loopback") {
            self.messages(&Site::Place(&Location::Loopback, None), "loopback", tools);
        }
        if wanted("namespaces") {
            self.in_namespaces(tools);
        }
        let mut notes = Vec::new();
        if wanted("mpi") {
            self.mpi = mpi::on_loopback(tools, &mut notes);
        }
        match pathweave_lab::missing_privileges() {
            Some(missing) => notes.push(format!("several paths are left out: {missing}")),
            None => {
                if wanted("mpi") {
                    self.mpi.extend(mpi::over_spines(tools, Path::new(SCENARIO), &mut notes));
                }
                self.over_paths(tools, wanted, &mut notes);
            }
        }
        notes.into_iter().for_each(|why| self.note(why));
    }

    fn in_namespaces(&mut self, tools: &Tools) {
        match Location::make() {
            (place @ Location::Namespaces(_), _) => match place.set(MTU_BYTES, Packets::Super) {
                Ok(()) => self.messages(&Site::Place(&place, Some(MTU_BYTES)), "two namespaces", tools),
                Err(why) => self.note(why),
            },
            (Location::Loopback, why) => self.note(why.unwrap_or_default()),
        }
    }

    #[allow(clippy::print_stdout)]
    fn messages(&mut self, site: &Site<'_>, name: &str, tools: &Tools) {
        println!("    {name}:");
        let mut all = Subject::ALL.map(Series::new);
        for _ in 0..TURNS {
            for ask in [Measurement::LATENCY, Measurement::BANDWIDTH] {
                all.iter_mut().for_each(|series| series.turn(site, tools, ask));
            }
        }
        all.iter().for_each(|series| println!("{}", series.line()));
        let of = |subject| all.iter().find(|series| series.subject == subject);
        let latency = |subject| of(subject).and_then(Series::latency_us);
        let rate = |subject| of(subject).and_then(Series::mb_per_second);
        let mut floor = |what: &str, measured: Option<f64>, at_most: f64| {
            // A missing figure misses the floor, unless there is nothing to compare with.
            self.floors.push(Floor {
                what: format!("{name}: {what}"),
                measured: measured.unwrap_or(f64::INFINITY),
                at_most,
            });
        };
        if let Some(tcp) = latency(Subject::TCP) {
            let ours = latency(Subject::INSECURE);
            floor("8 bytes over tcp's time", ours.map(|ours| ours / tcp), LATENCY_RATIO);
        }
        if let Some(tcp) = rate(Subject::TCP) {
            let ours = rate(Subject::INSECURE);
            floor("tcp's rate over ours, unprotected", ours.map(|ours| tcp / ours), 1.0 / RATE_RATIO);
            let ours = rate(Subject::ENCRYPT);
            floor("tcp's rate over ours, encrypted", ours.map(|ours| tcp / ours), 1.0 / RATE_RATIO_ENCRYPTED);
        }
        self.messages
            .push(json!({ "place": name, "providers": all.iter().map(Series::json).collect::<Vec<_>>() }));
    }

    fn over_paths(&mut self, tools: &Tools, wanted: &dyn Fn(&str) -> bool, notes: &mut Vec<String>) {
        let mut keep = |part: &str, measure: &dyn Fn() -> Result<Vec<Value>, String>| {
            let rows = if wanted(part) { measure() } else { Ok(Vec::new()) };
            rows.unwrap_or_else(|why| {
                notes.push(why);
                Vec::new()
            })
        };
        self.unequal = keep("unequal", &|| spines::unequal(tools, &Subject::ALL));
        self.cuts =
            keep("cuts", &|| spines::cuts(tools, &[Subject::ENCRYPT, Subject::TCP, Subject::UDP_RXD]));
        self.loss =
            keep("loss", &|| spines::loss(tools, &[Subject::INSECURE, Subject::ENCRYPT, Subject::UDP_RXD]));
        let ours = |rows: &[Value], name: &str, of: Subject| {
            rows.iter().filter(|row| row["provider"] == of.name).map(|row| row[name].as_f64()).collect()
        };
        let mut floor = |what: &str, measured: Option<f64>, at_most: f64| {
            self.floors.push(Floor {
                what: what.into(),
                measured: measured.unwrap_or(f64::INFINITY),
                at_most,
            });
        };
        let shares: Vec<Option<f64>> = ours(&self.unequal, "share_of_sum", Subject::ENCRYPT);
        if !shares.is_empty() {
            // A missing figure counts as the worst.
            let least = shares.into_iter().try_fold(f64::INFINITY, |least, share| Some(least.min(share?)));
            let what = "unequal spines: their sum over ours, worst of all sizes";
            floor(what, least.map(|share| 1.0 / share), 1.0 / SHARE_OF_SUM);
        }
        let times: Vec<Option<f64>> = ours(&self.cuts, "recovered_ms", Subject::ENCRYPT);
        for (ms, count) in times.into_iter().zip(["one", "two"]) {
            floor(&format!("{count} of four spines cut: ms until 90 % of what is left"), ms, RECOVERY_MS);
        }
        let first = |rows: &[Value], of: Subject| -> Option<f64> {
            let all: Vec<Option<f64>> = ours(rows, "mb_per_second", of);
            all.into_iter().next().flatten()
        };
        if let (Some(rxd), Some(losing)) =
            (first(&self.loss, Subject::UDP_RXD), first(&self.loss, Subject::INSECURE))
        {
            floor("1 % loss: rxd's rate over ours", Some(rxd / losing), 1.0 / RXD_RATIO);
        }
    }

    fn json(&self, seconds: f64) -> Value {
        json!({
            "messages": self.messages,
            "mpi": self.mpi,
            "unequal": self.unequal,
            "cuts": self.cuts,
            "loss": self.loss,
            "floors": self.floors.iter().map(Floor::json).collect::<Vec<_>>(),
            "notes": self.notes,
            "seconds": seconds,
        })
    }
}
