//! Memory that a run needs, compared with the available memory.

use std::num::NonZeroU16;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use pathweave_heap::usage::available_bytes;
use pathweave_records::Quantity;
use pathweave_scenario::{Diagnostics, Loaded, Memory, MemoryPart, Prepared, Process, Records};
use pathweave_sim::SimSpec;

use crate::failure::Failure;
use crate::options::Threads;

/// Returns the parameters of the process in which a run is executed. The memory of the program itself is a constant,
/// so forecasts are reproducible.
pub(crate) fn process(spec: &SimSpec, records: Records) -> Process {
    Process { threads: spec.threads.unwrap_or(NonZeroU16::MIN), records, ..Process::ONE_THREAD }
}

fn bytes(bytes: u64) -> String {
    Quantity::Bytes.format(bytes as f64)
}

/// Parameters of a run on this machine: the spec with its number of threads, and a note about this number.
#[derive(Debug)]
pub(crate) struct ThreadChoice {
    pub(crate) spec: SimSpec,
    pub(crate) note: Option<String>,
}

/// Determines the number of threads of a run. `sharing` processes share the cores, and `processes` share the memory
/// of the machine. Uses fewer threads than cores if more would exceed the memory, unless the user has set the number.
///
/// # Errors
/// The run does not fit. The text contains the reason, and changes that would reduce the memory.
pub(crate) fn fit(
    prepared: &Prepared,
    threads: Threads,
    sharing: usize,
    processes: usize,
    records: Records,
) -> Result<ThreadChoice, String> {
    let available = available_bytes().map(|bytes| bytes / processes.max(1) as u64);
    fit_into(available, prepared, threads, sharing, records)
}

fn fit_into(
    available: Option<u64>,
    prepared: &Prepared,
    threads: Threads,
    sharing: usize,
    records: Records,
) -> Result<ThreadChoice, String> {
    let refused = |spec: &SimSpec| refused(&prepared.memory_in(process(spec, records)), available?);
    let most = threads.of(&prepared.spec, sharing);
    let mut spec = most.clone();
    while let Some(why) = refused(&spec) {
        spec = threads.halved(&prepared.spec, &spec).ok_or(why)?;
    }
    let number = |spec: &SimSpec| spec.threads.map_or(1, NonZeroU16::get);
    let (now, most) = (number(&spec), number(&most));
    let note = (now < most).then(|| {
        format!("by {now} of {most} threads: by more, the run would take more memory than is available")
    });
    Ok(ThreadChoice { spec, note })
}

fn refused(memory: &Memory, available: u64) -> Option<String> {
    if memory.total_bytes <= available {
        return None;
    }
    let of = |name: &str| memory.parts.iter().find(|part| part.part == name).map_or(0, |part| part.bytes);
    let largest = memory.parts.iter().max_by_key(|part| part.bytes)?;
    let mut advice = vec![format!("the largest part is \"{}\", {}", largest.part, bytes(largest.bytes))];
    if of("samples") > available / 20 {
        advice.push("observe.interval = \"0s\" takes no samples".to_owned());
    }
    if memory.threads > 1 {
        advice.push("fewer --threads take less".to_owned());
    }
    Some(format!(
        "the run takes about {}, and {} are available ({}; `pathweave check --memory` lists all parts)",
        bytes(memory.total_bytes),
        bytes(available),
        advice.join("; ")
    ))
}

/// Memory shared by concurrent runs. A run that does not fit together with the current ones waits for them. A run
/// that does not fit alone is refused.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    /// Memory available before the first run, in bytes. `None` if it is unknown or not checked.
    all: Option<u64>,
    /// Memory reserved for the current runs, in bytes.
    taken: Mutex<u64>,
    released: Condvar,
}

/// Reason why a run is impossible.
#[derive(Debug)]
pub(crate) enum RunRefusal {
    /// The scenario is wrong.
    Scenario(Diagnostics),
    /// The run needs more memory than is available. The text contains advice.
    Memory(String),
}

impl RunRefusal {
    /// Converts the reason into a failure of a command, for the run named `label`.
    pub(crate) fn of(self, label: &str) -> Failure {
        match self {
            RunRefusal::Scenario(findings) => Failure::Scenario(findings),
            RunRefusal::Memory(why) => Failure::Input(format!("{label}: {why}")),
        }
    }
}

impl std::fmt::Display for RunRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunRefusal::Scenario(findings) => findings.fmt(f),
            RunRefusal::Memory(why) => why.fmt(f),
        }
    }
}

/// Reservation of memory for a run, released on drop.
#[derive(Debug)]
pub(crate) struct MemoryReservation<'r> {
    room: &'r MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    /// Creates a room of the memory available now, or an unlimited one if runs are forced.
    pub(crate) fn now(forced: bool) -> Self {
        MemoryBudget::of(if forced { None } else { available_bytes() })
    }

    fn of(all: Option<u64>) -> Self {
        MemoryBudget { all, taken: Mutex::new(0), released: Condvar::new() }
    }

    /// Reserves memory for the run of a scenario, executed as `on_cores` determines, and waits until it is available.
    /// Then builds the run to find errors. Nothing is built before the reservation.
    pub(crate) fn prepare(
        &self,
        loaded: &Loaded,
        on_cores: impl FnOnce(&SimSpec) -> SimSpec,
    ) -> Result<(SimSpec, MemoryReservation<'_>), RunRefusal> {
        let drafted = loaded.draft().map_err(RunRefusal::Scenario)?;
        let (spec, taken) = self.reserve(&drafted, Records::Kept, on_cores)?;
        loaded.try_out(&spec).map_err(RunRefusal::Scenario)?;
        Ok((spec, taken))
    }

    /// Reserves memory for a drafted run like [`MemoryBudget::prepare`], without building the run.
    pub(crate) fn reserve(
        &self,
        drafted: &Prepared,
        records: Records,
        on_cores: impl FnOnce(&SimSpec) -> SimSpec,
    ) -> Result<(SimSpec, MemoryReservation<'_>), RunRefusal> {
        let spec = on_cores(&drafted.spec);
        let taken = self.take(&drafted.memory_in(process(&spec, records))).map_err(RunRefusal::Memory)?;
        Ok((spec, taken))
    }

    /// Reserves memory, and waits until it is available. Returns an error with the reason if it never will be.
    fn take(&self, memory: &Memory) -> Result<MemoryReservation<'_>, String> {
        let bytes = memory.total_bytes;
        let Some(all) = self.all else { return Ok(MemoryReservation { room: self, bytes: 0 }) };
        if let Some(why) = refused(memory, all) {
            return Err(format!("{why}; --force runs it all the same"));
        }
        let fits = |taken: &mut u64| *taken + bytes > all;
        let mut taken = self.released.wait_while(self.taken(), fits).unwrap_or_else(PoisonError::into_inner);
        *taken += bytes;
        Ok(MemoryReservation { room: self, bytes })
    }

    fn taken(&self) -> MutexGuard<'_, u64> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MemoryReservation<'_> {
    fn drop(&mut self) {
        *self.room.taken() -= self.bytes;
        self.room.released.notify_all();
    }
}

/// Returns a table with a line for each component, their sum, and the available memory.
pub(crate) fn table(memory: &Memory, available: Option<u64>) -> String {
    let line = |name: &str, size: u64, what: &str| format!("{name:<12} {:>10}  {what}\n", bytes(size));
    let parts = memory.parts.iter().map(|&MemoryPart { part, bytes, what }| line(part, bytes, what));
    let threads =
        if memory.threads == 1 { "one thread".to_owned() } else { format!("{} threads", memory.threads) };
    let all = line("all", memory.total_bytes, &format!("by {threads}"));
    let there = available.map(|available| line("available", available, "now"));
    parts.chain([all]).chain(there).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(threads: u16) -> Memory {
        let part = |part, bytes| MemoryPart { part, bytes, what: "" };
        let parts = vec![part("network", 3_000_000), part("samples", 7_000_000)];
        Memory { threads, parts, total_bytes: 10_000_000 }
    }

    #[test]
    fn runs_that_do_not_fit_are_refused_with_advice() {
        assert_eq!(refused(&memory(2), 10_000_000), None);
        let why = refused(&memory(2), 9_000_000).expect("it does not fit");
        for part in ["10.00 MB", "9.000 MB", "\"samples\", 7.000 MB", "observe.interval", "--threads"] {
            assert!(why.contains(part), "{part}: {why}");
        }
        let why = refused(&memory(1), 9_000_000).expect("it does not fit");
        assert!(!why.contains("--threads"), "{why}");
    }

    /// Three runs of 10 MB with 25 MB in all: at most two are concurrent, and all three are executed.
    #[test]
    fn runs_side_by_side_wait_for_room() {
        let room = MemoryBudget::of(Some(25_000_000));
        let most = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _taken = room.take(&memory(1)).expect("it fits by itself");
                        let now = *room.taken();
                        let mut most = most.lock().unwrap();
                        *most = now.max(*most);
                    }
                });
            }
        });
        assert!(*most.lock().unwrap() <= 20_000_000 && *room.taken() == 0);
        let why = MemoryBudget::of(Some(9_000_000)).take(&memory(1)).map(drop).expect_err("it never fits");
        assert!(why.contains("--force"), "{why}");
        assert!(MemoryBudget::of(None).take(&memory(1)).is_ok());
    }

    /// A run that does not fit is not built. Building this one would give a different error.
    #[test]
    fn runs_that_do_not_fit_are_not_tried_out() {
        let text = "topology = { kind = \"torus\", size = [160] }\nrouting = \"ecmp\"\n[[workload]]\n\
                    kind = \"flows\"\nflows = [{ src = 0, dst = 64, size = \"1KB\" }]\n";
        let loaded = Loaded::parse(text, "a.toml", "", &pathweave_scenario::Changes::default()).unwrap();
        let prepare = |all| {
            MemoryBudget::of(all)
                .prepare(&loaded, SimSpec::clone)
                .map(drop)
                .expect_err("65 switches between hosts")
        };
        assert!(matches!(prepare(Some(1_000)), RunRefusal::Memory(why) if why.contains("--force")));
        for all in [None, Some(u64::MAX)] {
            assert!(
                matches!(prepare(all), RunRefusal::Scenario(why) if why.to_string().contains("switches apart"))
            );
        }
    }

    /// Each thread has its own ports and switches. If eight threads do not fit and two do, two are used.
    #[test]
    fn as_many_threads_as_fit() {
        let text = "topology.preset = \"b2-8192\"\nobserve.interval = \"0s\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
        let prepared = |threads: &str| {
            let text = format!("{threads}{text}");
            let loaded = Loaded::parse(&text, "a.toml", "", &pathweave_scenario::Changes::default()).unwrap();
            loaded.draft().unwrap()
        };
        let free = prepared("");
        let by = |threads| {
            let spec = SimSpec { threads: NonZeroU16::new(threads), ..free.spec.clone() };
            free.memory_in(process(&spec, Records::Written)).total_bytes
        };
        assert!(by(2) > by(1) && by(3) > by(2), "{} {} {}", by(1), by(2), by(3));
        let fit = |prepared: &Prepared, available| {
            fit_into(Some(available), prepared, Threads::default(), 1, Records::Written)
        };
        let one = fit(&free, by(1)).unwrap();
        assert_eq!(one.spec.threads, NonZeroU16::new(1));
        assert_eq!(one.note.is_some(), fit(&free, u64::MAX).unwrap().spec.threads != NonZeroU16::new(1));
        assert!(fit(&free, by(1) - 1).is_err());
        // An explicit number of threads is used as it is or refused.
        let eight = prepared("run.threads = 8\n");
        assert!(fit(&eight, by(2)).is_err_and(|why| why.contains("--threads")));
        assert_eq!(fit(&eight, by(8)).unwrap().spec.threads, NonZeroU16::new(8));
        let halved = Threads::default()
            .halved(&free.spec, &SimSpec { threads: NonZeroU16::new(5), ..free.spec.clone() });
        assert_eq!(halved.and_then(|spec| spec.threads), NonZeroU16::new(2));
    }

    #[test]
    fn a_line_a_part() {
        let text = table(&memory(2), Some(9_000_000));
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1], ["samples", "7.000", "MB"]);
        assert_eq!(words[2], ["all", "10.00", "MB", "by", "2", "threads"]);
        assert_eq!(words[3], ["available", "9.000", "MB", "now"]);
    }
}
