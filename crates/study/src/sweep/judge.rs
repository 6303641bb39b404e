//! Judgement of candidates before they run: their parallelism, and the memory that they need.

use std::collections::BTreeMap;
use std::sync::Arc;

use pathweave_scenario::{Diagnostic, Diagnostics, Fidelity, FieldPath, Loaded, Topology};

use crate::sweep::cells::Cell;
use crate::sweep::cluster::{Candidate, Strike};
use crate::sweep::parallelism::{PARALLELISM, ParallelismAxes};
use crate::sweep::plan::Admission;

/// Reasons that an error of a plan without candidates lists.
const SHOWN: usize = 5;

/// Judge of the candidates of a plan. It builds each fabric once.
pub(crate) struct Judge<'a> {
    parallelism: Option<&'a ParallelismAxes>,
    topologies: Vec<Option<Result<Arc<Topology>, String>>>,
    fidelity: Option<Fidelity>,
    candidates: BTreeMap<Vec<usize>, Candidate>,
    notes: Vec<String>,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(parallelism: Option<&'a ParallelismAxes>, fabrics: usize) -> Self {
        Judge {
            parallelism,
            topologies: vec![None; fabrics],
            fidelity: None,
            candidates: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Judges a cell of the plan. Its first axis has the fabrics.
    pub(crate) fn judge(&mut self, cell: &Cell, loaded: &Loaded) -> Admission {
        self.fidelity.get_or_insert(loaded.scenario.run.fidelity);
        let built = self.topologies[cell.value_indices[0]]
            .get_or_insert_with(|| loaded.topology().map_err(|why| why.to_string()));
        let (candidate, notes) = match built {
            Ok(topology) => {
                (candidate(self.parallelism, loaded, topology), loaded.default_collectives(topology))
            }
            Err(_) => Default::default(),
        };
        let admission = if candidate.strike.is_some() { Admission::StaysOut } else { Admission::Runs };
        if admission == Admission::Runs {
            self.add_notes(notes);
        }
        self.candidates.insert(cell.value_indices.clone(), candidate);
        admission
    }

    /// Adds notes of a candidate, each once.
    fn add_notes(&mut self, notes: Vec<String>) {
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Returns the notes of all candidates that run.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the candidate of a cell.
    pub(crate) fn candidate(&self, cell: &Cell) -> Candidate {
        self.candidates.get(&cell.value_indices).cloned().unwrap_or_default()
    }

    /// Returns the network of a fabric, or `None` if no cell of it could be loaded.
    pub(crate) fn topology(&self, fabric: usize) -> Result<Option<&Topology>, Diagnostic> {
        match &self.topologies[fabric] {
            None => Ok(None),
            Some(Ok(topology)) => Ok(Some(topology)),
            Some(Err(why)) => Err(Diagnostic::new(FieldPath::root().key("fabric"), why.clone())),
        }
    }

    pub(crate) fn fidelity(&self) -> &'static str {
        match self.fidelity {
            Some(Fidelity::Flow) => "flow",
            _ => "packet",
        }
    }

    /// Returns an error if no candidate is left.
    pub(crate) fn check(&self) -> Result<(), Diagnostic> {
        if self.candidates.is_empty() || self.candidates.values().any(|one| one.strike.is_none()) {
            return Ok(());
        }
        let mut reasons: Vec<String> = Vec::new();
        for candidate in self.candidates.values() {
            let reason = candidate.strike.as_ref().map(ToString::to_string).unwrap_or_default();
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let message = format!("none of {} candidates can run", self.candidates.len());
        let field = if self.parallelism.is_some() { PARALLELISM } else { "scenario" };
        let more = reasons.len().saturating_sub(SHOWN);
        let finding = Diagnostic::new(FieldPath::root().key(field), message);
        let finding = reasons.into_iter().take(SHOWN).fold(finding, Diagnostic::help);
        Err(if more > 0 { finding.help(format!("and {more} more reasons")) } else { finding })
    }
}

fn candidate(parallelism: Option<&ParallelismAxes>, loaded: &Loaded, topology: &Arc<Topology>) -> Candidate {
    let outlook = match loaded.training_outlook(topology) {
        Ok(outlook) => outlook,
        // Without axes of parallelism, the error is one of the whole plan, which its runs report.
        Err(why) => {
            return Candidate { outlook: None, strike: parallelism.map(|_| refusal(&why)) };
        }
    };
    let too_large =
        outlook.as_ref().and_then(|outlook| outlook.memory.clone()).filter(|memory| !memory.fits());
    let objection = parallelism.zip(outlook.as_ref()).and_then(|(axes, outlook)| axes.objection(outlook));
    let strike = match (objection, too_large) {
        (Some((field, why)), _) => Some(Strike::Refused { field, why }),
        (None, Some(memory)) => Some(Strike::Memory(memory)),
        (None, None) => None,
    };
    Candidate { outlook, strike }
}

/// Returns the first error in one line.
fn refusal(why: &Diagnostics) -> Strike {
    let first = why.iter().next();
    let words = first.map_or(String::new(), |finding| match &finding.allowed {
        Some(allowed) => format!("{}: {allowed}", finding.message),
        None => finding.message.clone(),
    });
    let field = first.map_or(String::new(), |finding| finding.field.to_string());
    Strike::Refused { field: field.rsplit('.').next().unwrap_or_default().to_owned(), why: words }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::sweep::cluster::ClusterPlan;

    fn notes(fabric: &str, job: &str, axes: &str) -> Vec<String> {
        let text = format!(
            "[[scenario.workload]]\nkind = 'transformer'\nmodel = 'llama-3-8b'\ngpu = 'h100'\nglobal_batch = 32\n{job}\n\
             [parallelism]\n{axes}\n[[fabric]]\nname = 'a'\n[fabric.topology]\n{fabric}\n\
             [prices]\nof = [{{ rate = '400Gbps', switch_port = 600, optics = 500 }}]\n"
        );
        ClusterPlan::parse(&text, "c.toml", Path::new("")).unwrap_or_else(|why| panic!("{why}")).notes
    }

    /// DP groups of TP 2 have four GPUs of each server of eight, those of TP 8 one. DP 32 does not fit, so that it has no
    /// part in the order of candidates.
    #[test]
    fn a_plan_by_default_collectives_on_servers_has_one_note() {
        let servers = "kind = 'cluster'\nservers = 4\nserver = { preset = 'dgx-h100' }\nattach = 'server'\n\
                       scale_out = { kind = 'star', hosts = 32, rate = '400Gbps' }";
        let found = notes(servers, "", "tp = [2, 4, 8]");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`algorithms = { library = \"nccl\", gpu = \"h100\" }`"), "{found:?}");
        let by_library = "algorithms = { library = 'nccl', gpu = 'h100' }";
        assert_eq!(notes(servers, by_library, "tp = [2, 4, 8]"), [""; 0]);
        assert_eq!(notes(servers, "", "tp = [1, 8]"), [""; 0]);
        let fat_tree = "kind = 'fat-tree'\npods = 4\ntors_per_pod = 2\naggs_per_pod = 2\nhosts_per_tor = 4\ncores = 4\n\
             host_rate = '400Gbps'";
        assert_eq!(notes(fat_tree, "", "tp = [2, 4, 8]"), [""; 0]);
    }

    /// An axis that sets the library is a choice of the file, with its default among the values.
    #[test]
    fn a_plan_that_varies_the_collectives_has_no_note() {
        let servers = "kind = 'cluster'\nservers = 4\nserver = { preset = 'dgx-h100' }\nattach = 'server'\n\
                       scale_out = { kind = 'star', hosts = 32, rate = '400Gbps' }\n\
                       [[grid]]\nkey = 'workload[0].algorithms'\n\
                       values = [{ all_reduce = 'ring' }, { library = 'nccl', gpu = 'h100' }]";
        assert_eq!(notes(servers, "", "tp = [2, 4]"), [""; 0]);
    }
}
