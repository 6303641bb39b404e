//! Runs over several processes, the *ranks*, that a launcher (`mpirun`, `srun`) has started together.

mod launch;
#[cfg(feature = "mpi")]
mod world;

use pathweave_scenario::Style;
use pathweave_sim::Ranks;
use rustix::system::uname;
use rustix::thread::sched_getaffinity;

use crate::failure::{Failure, Outcome};

/// All ranks, with the communication between them.
pub(crate) struct RankGroup {
    ranks: Box<dyn Ranks>,
    places: Vec<RankLocation>,
}

/// Location of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankLocation {
    host: String,
    process: u32,
    /// Cores that the rank may use.
    cores: Vec<u16>,
}

/// Connects to the processes that the launcher has started with this one. Returns `None` if it was started alone.
///
/// # Errors
/// The process was started as one of several and cannot reach the others.
pub(crate) fn connect() -> Result<Option<RankGroup>, Failure> {
    let Some(launch) = launch::detect(|name| std::env::var(name).ok()) else { return Ok(None) };
    let ranks = meet(&launch)?;
    Ok(ranks.map(RankGroup::new))
}

/// Checks that this process was started alone, for commands that cannot use several processes.
///
/// # Errors
/// The process was started as one of several.
pub(crate) fn check_started_alone(command: &str) -> Result<(), Failure> {
    let Some(launch) = launch::detect(|name| std::env::var(name).ok()) else { return Ok(()) };
    Err(Failure::Input(format!(
        "{launch}, each of which would do the same: \"pathweave {command}\" makes its runs side by side in one process; start it \
         without a launcher, or make one run over all of them with \"pathweave run\""
    )))
}

#[cfg(feature = "mpi")]
fn meet(launch: &launch::Launch) -> Result<Option<Box<dyn Ranks>>, Failure> {
    let world = world::World::join().map_err(|why| Failure::Input(format!("{launch}, but {why}")))?;
    // A single rank has no others to communicate with.
    Ok((world.count() > 1).then(|| Box::new(world) as Box<dyn Ranks>))
}

#[cfg(not(feature = "mpi"))]
fn meet(launch: &launch::Launch) -> Result<Option<Box<dyn Ranks>>, Failure> {
    Err(Failure::Input(format!(
        "{launch}, but this build of pathweave has no MPI: they cannot reach each other; build it with \
         \"cargo build --release -p pathweave-cli --features mpi\", or start it without a launcher, with --threads"
    )))
}

impl RankLocation {
    fn own() -> Self {
        let allowed = sched_getaffinity(None);
        let cores = allowed.map_or_else(
            |_| Vec::new(),
            |set| {
                (0..rustix::thread::CpuSet::MAX_CPU as u16).filter(|&core| set.is_set(core.into())).collect()
            },
        );
        let host = uname().nodename().to_string_lossy().into_owned();
        RankLocation { host, process: std::process::id(), cores }
    }

    fn write(&self) -> Vec<u8> {
        let cores: Vec<String> = self.cores.iter().map(u16::to_string).collect();
        format!("{}\n{}\n{}", self.host, self.process, cores.join(" ")).into_bytes()
    }

    fn read(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines();
        let mut line = || lines.next().unwrap_or_default();
        RankLocation {
            host: line().to_owned(),
            process: line().parse().unwrap_or_default(),
            cores: line().split(' ').filter_map(|core| core.parse().ok()).collect(),
        }
    }
}

impl RankGroup {
    fn new(mut ranks: Box<dyn Ranks>) -> Self {
        let places = tell_all(&mut *ranks, RankLocation::own().write());
        RankGroup { places: places.iter().map(|place| RankLocation::read(place)).collect(), ranks }
    }

    pub(crate) fn ranks(&mut self) -> &mut dyn Ranks {
        &mut *self.ranks
    }

    /// Returns true if this rank writes the results.
    pub(crate) fn is_lead(&self) -> bool {
        self.ranks.own() == 0
    }

    /// Returns the number of ranks with the same cores as this one, including itself. Without binding by the launcher
    /// these are all ranks of its machine.
    pub(crate) fn sharing(&self) -> usize {
        sharing(&self.places, usize::from(self.ranks.own()))
    }

    /// Returns the number of ranks on the machine of this one, including itself.
    pub(crate) fn on_this_machine(&self) -> usize {
        let own = &self.places[usize::from(self.ranks.own())];
        self.places.iter().filter(|place| place.host == own.host).count()
    }

    /// Returns a table of ranks with their processes and machines, to find one that has died.
    pub(crate) fn table(&self) -> String {
        let line = |(rank, place): (usize, &RankLocation)| {
            format!("\n  rank {rank}: process {} on {}", place.process, place.host)
        };
        let lines: String = self.places.iter().enumerate().map(line).collect();
        format!("{} ranks{lines}", self.places.len())
    }

    /// Returns the value of this rank if every rank has one. Otherwise every rank fails, and the lead reports the
    /// error.
    pub(crate) fn all_or_none<T>(&mut self, own: Result<T, Failure>) -> Result<T, Failure> {
        let said = own.as_ref().map_or_else(|failure| failure.render(Style::Plain), |_| String::new());
        let all = self.all_gather(said.into_bytes());
        let Some(rank) = all.iter().position(|said| !said.is_empty()) else { return own };
        if !self.is_lead() {
            return Err(Failure::SaidByLead);
        }
        own.and_then(|_| {
            let said = String::from_utf8_lossy(&all[rank]);
            let said = said.strip_prefix("error: ").unwrap_or(&said);
            Err(Failure::Input(format!("rank {rank}, on {}: {said}", self.places[rank].host)))
        })
    }

    /// Sends the outcome of the run from the lead to all ranks. All ranks wait for it, so that none exits before the
    /// results are written.
    pub(crate) fn outcome(&mut self, lead: Option<Outcome>) -> Outcome {
        let code = lead.map_or(0, Outcome::exit_code);
        let said = self.all_gather(vec![code]);
        lead.unwrap_or_else(|| Outcome::Command(said[0].first().copied().unwrap_or_default()))
    }

    /// Returns the sums of values over all ranks.
    pub(crate) fn sums(&mut self, own: [f64; 2]) -> [f64; 2] {
        let all = self.all_gather(own.iter().flat_map(|value| value.to_le_bytes()).collect());
        let mut sums = [0.0; 2];
        for told in all {
            for (sum, value) in sums.iter_mut().zip(told.as_chunks::<8>().0) {
                *sum += f64::from_le_bytes(*value);
            }
        }
        sums
    }

    fn all_gather(&mut self, own: Vec<u8>) -> Vec<Vec<u8>> {
        tell_all(&mut *self.ranks, own)
    }
}

/// Sends the same message to all ranks. Returns the messages of all, ordered by rank.
fn tell_all(ranks: &mut dyn Ranks, own: Vec<u8>) -> Vec<Vec<u8>> {
    let mut answers = Vec::new();
    ranks.meet(&vec![own; usize::from(ranks.count())], &mut answers);
    answers
}

fn sharing(places: &[RankLocation], own: usize) -> usize {
    let own = &places[own];
    places.iter().filter(|place| (&place.host, &place.cores) == (&own.host, &own.cores)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_sim::InProcess;

    #[test]
    fn ranks_share_the_cores_that_they_are_both_given() {
        let place =
            |host: &str, cores: &[u16]| RankLocation { host: host.into(), process: 7, cores: cores.to_vec() };
        let all = [place("a", &[0, 1]), place("a", &[0, 1]), place("b", &[0, 1]), place("b", &[2, 3])];
        assert_eq!([0, 1, 2, 3].map(|own| sharing(&all, own)), [2, 2, 1, 1]);
        assert_eq!(RankLocation::read(&all[3].write()), all[3]);
        let own = RankLocation::own();
        assert!(!own.host.is_empty() && !own.cores.is_empty(), "{own:?}");
    }

    #[test]
    fn failures_of_a_rank_are_reported_by_the_lead() {
        let say = |own: u16, fails: u16| -> Result<u16, Failure> {
            if own == fails { Err(Failure::Input(format!("{own} has no file"))) } else { Ok(own) }
        };
        for (fails, expected) in
            [(0, ["error: 0 has no file", "", ""]), (2, ["rank 2", "", ""]), (9, ["fine", "fine", "fine"])]
        {
            let threads: Vec<_> = InProcess::ranks(3)
                .into_iter()
                .map(|ranks| {
                    std::thread::spawn(move || {
                        let own = ranks.own();
                        let mut company = RankGroup::new(Box::new(ranks));
                        let result = company.all_or_none(say(own, fails));
                        let outcome = company.outcome((own == 0).then_some(Outcome::Unfinished));
                        assert_eq!(outcome.exit_code(), 3);
                        assert_eq!(company.sums([1.0, f64::from(own)]), [3.0, 3.0]);
                        result.map_or_else(|failure| failure.render(Style::Plain), |_| "fine".to_owned())
                    })
                })
                .collect();
            for (thread, expected) in threads.into_iter().zip(expected) {
                let said = thread.join().expect("no panic");
                assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said}");
            }
        }
    }
}
