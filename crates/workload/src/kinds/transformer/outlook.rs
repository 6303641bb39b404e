//! Facts about a job without its messages: parallelism, memory, and a lower bound of its time.

use pathweave_topo::Topology;

use super::{Transformer, memory};
use crate::error::WorkloadError;
use crate::kinds::simai::layout_of;
use crate::sink::WorkloadBuilder;
use crate::training_outlook::{Degrees, TrainingOutlook};

impl Transformer {
    /// Checks the job as its generation would, and returns its facts.
    pub(crate) fn outlook(
        &self,
        out: &mut WorkloadBuilder<'_>,
        topology: &Topology,
    ) -> Result<TrainingOutlook, WorkloadError> {
        let architecture = self.architecture(out)?;
        self.check(out, &architecture)?;
        let job = self.with_microbatches(out)?;
        let (mut of_gpus, mut bound) = (None, None);
        if job.equal_stages(architecture).is_some() {
            job.check_equal_stages(out, &architecture)?;
            layout_of(&job.played(out), out)?;
        } else {
            let staged = job.staged(out, architecture)?;
            of_gpus = job.gpu.map(|gpu| memory::of(&staged, gpu));
            // The period of later iterations need not contain a whole iteration.
            if job.iterations == 1 {
                let hosts = staged.hosts.iter().map(|&host| out.env.member(host)).collect();
                bound = Some(staged.lower_bound(hosts, topology));
            }
        }
        let (gpus, dp) = (job.gpus(out), job.replicas(out));
        let work = job.training(&architecture, gpus, dp);
        Ok(TrainingOutlook {
            parallelism: Degrees { tp: job.tp, pp: job.pp, cp: job.cp, dp, ep: job.ep, vp: job.vp },
            gpus,
            microbatches: job.microbatches,
            global_batch: work.sequences,
            tokens: work.tokens as f64 * job.scale,
            memory: of_gpus,
            bound,
        })
    }
}
