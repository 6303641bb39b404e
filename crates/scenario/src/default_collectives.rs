//! Notes on training jobs whose collectives have the default algorithms on servers with several GPUs and NICs.

use pathweave_topo::Topology;
use pathweave_workload::nccl::Gpu;
use pathweave_workload::{Algorithms, Traffic, Transformer};

use crate::load::Loaded;
use crate::model::WorkloadEntry;
use crate::text::{FieldPath, value_of};

impl Loaded {
    /// Returns a note for each workload whose file gives no `algorithms` of collectives, if a ring through hosts in order
    /// may leave a server by fewer NICs than NCCL uses.
    pub fn default_collectives(&self, topology: &Topology) -> Vec<String> {
        let Some(domain) = domain_with_nics(topology) else { return Vec::new() };
        let mut notes = Vec::new();
        for (i, workload) in self.scenario.workload.iter().enumerate() {
            let field = FieldPath::root().key("workload").index(i).key("algorithms");
            let has_default =
                algorithms(workload).is_some_and(|algorithms| *algorithms == Algorithms::default());
            if has_default && !self.is_written(&field) && may_leave_by_one_nic(workload, topology, domain) {
                notes.push(note(&field, workload));
            }
        }
        notes
    }
}

/// Returns the GPUs that a scale-up network joins, if these are several, with several NICs, and others are beyond.
fn domain_with_nics(topology: &Topology) -> Option<u32> {
    let servers = topology.servers()?;
    let domain = servers.any_scale_up()?.domain_size();
    let nics = u64::from(domain) * u64::from(servers.nics()) / u64::from(servers.gpus());
    (domain > 1 && nics > 1 && topology.hosts() > domain).then_some(domain)
}

fn algorithms(workload: &WorkloadEntry) -> Option<&Algorithms> {
    match &workload.traffic {
        Traffic::Transformer(job) => Some(&job.algorithms),
        Traffic::SimAi(job) => Some(&job.algorithms),
        Traffic::Chakra(job) => Some(&job.algorithms),
        _ => None,
    }
}

/// Returns true if a group may have several GPUs of a domain and others beyond it. Groups of traces are not known.
fn may_leave_by_one_nic(workload: &WorkloadEntry, topology: &Topology, domain: u32) -> bool {
    match &workload.traffic {
        Traffic::Transformer(job) if job.order.is_none() && job.hosts.is_empty() => {
            groups(job, topology).into_iter().any(|group| group.leaves_with_several(domain))
        }
        _ => true,
    }
}

/// Group of GPUs whose numbers have equal distances.
struct Group {
    distance: u64,
    gpus: u64,
}

impl Group {
    fn leaves_with_several(&self, domain: u32) -> bool {
        2 * self.distance <= u64::from(domain) && self.distance * self.gpus > u64::from(domain)
    }
}

/// Returns the groups of a job that share matrices and weights, in the default order of axes.
fn groups(job: &Transformer, topology: &Topology) -> [Group; 2] {
    let (gpus, tp) = (u64::from(job.gpus.unwrap_or(topology.hosts())), u64::from(job.tp));
    let stage = gpus / u64::from(job.pp).max(1);
    [Group { distance: 1, gpus: tp }, Group { distance: tp, gpus: stage / tp.max(1) }]
}

fn note(field: &FieldPath, workload: &WorkloadEntry) -> String {
    let gpu = match &workload.traffic {
        Traffic::Transformer(job) => job.gpu.as_ref().map(value_of),
        _ => None,
    };
    let gpu = gpu.and_then(|gpu| gpu.as_str()?.parse::<Gpu>().ok());
    let (name, which) = match gpu {
        Some(gpu) => (gpu.name(), ""),
        None => (Gpu::H100.name(), " (`gpu` is the model of the servers' GPUs)"),
    };
    format!(
        "`{field}` is not given, so that a collective is a ring through hosts in order, which leaves a server by the NIC of \
         one GPU even if it has several GPUs there; NCCL uses the NICs of all, and other parallelism may be the fastest: \
         `algorithms = {{ library = \"nccl\", gpu = \"{name}\" }}`{which} executes NCCL's collectives, in larger runs, since no \
         rank then stands for others"
    )
}

#[cfg(test)]
mod tests {
    use crate::load::{Changes, Loaded};

    const SERVERS: &str = "kind = 'cluster'\nservers = 4\nserver = { preset = 'dgx-h100' }\nscale_out = { kind = 'star', hosts = 32 }\n\
         attach = 'server'\n";

    fn notes(topology: &str, job: &str) -> Vec<String> {
        let text = format!(
            "[topology]\n{topology}[[workload]]\nkind = 'transformer'\nmodel = 'llama-3-8b'\nlayers = 2\n{job}"
        );
        let loaded = Loaded::parse(&text, "job.toml", ".", &Changes::default()).unwrap();
        loaded.default_collectives(&loaded.topology().unwrap())
    }

    /// Servers have 8 GPUs. With TP 4 each data-parallel group has two GPUs of each server, with TP 8 one, with TP 16 a
    /// tensor-parallel group has all eight. With TP 4 and PP 8 no group is larger than a server, and with TP 2 and PP 4 the
    /// four replicas fill one.
    #[test]
    fn a_job_with_several_gpus_of_a_server_in_a_group_that_leaves_it_has_a_note() {
        let has = |job: &str| !notes(SERVERS, job).is_empty();
        let found = ["tp = 1\n", "tp = 4\n", "tp = 16\n", "tp = 8\n", "tp = 4\npp = 8\n", "tp = 2\npp = 4\n"]
            .map(has);
        assert_eq!(found, [true, true, true, false, false, false]);
    }

    #[test]
    fn the_note_has_the_line_to_write() {
        let with_gpu = &notes(SERVERS, "gpu = 'a100'\n")[0];
        assert!(with_gpu.contains("`workload[0].algorithms` is not given"), "{with_gpu}");
        assert!(
            with_gpu.contains("`algorithms = { library = \"nccl\", gpu = \"a100\" }` executes"),
            "{with_gpu}"
        );
        let without = &notes(SERVERS, "")[0];
        assert!(without.contains("`gpu` is the model of the servers' GPUs"), "{without}");
        let written = "algorithms = { library = 'nccl', gpu = 'h100' }\n";
        assert_eq!(notes(SERVERS, written), [""; 0]);
        assert_eq!(
            notes(SERVERS, "algorithms = { all_reduce = 'ring' }\n"),
            [""; 0],
            "the default as written"
        );
    }

    #[test]
    fn servers_that_leave_no_choice_have_no_note() {
        let fat_tree = "kind = 'fat-tree'\nk = 4\n";
        assert_eq!(notes(fat_tree, ""), [""; 0], "hosts of one GPU");
        assert_eq!(notes(&SERVERS.replace("servers = 4", "servers = 1"), ""), [""; 0], "one server");
        let one_nic = "{ preset = 'dgx-h100', nics = 1 }";
        assert_eq!(notes(&SERVERS.replace("{ preset = 'dgx-h100' }", one_nic), ""), [""; 0], "one NIC");
        let no_scale_up = "{ gpus = 8 }";
        assert_eq!(
            notes(&SERVERS.replace("{ preset = 'dgx-h100' }", no_scale_up), ""),
            [""; 0],
            "all by NICs"
        );
    }

    /// The run has the note, as `check` and plans do.
    #[test]
    fn a_prepared_run_has_the_note() {
        let text = format!(
            "[topology]\n{SERVERS}[run]\nfidelity = 'flow'\n[[workload]]\nkind = 'transformer'\nmodel = 'llama-3-8b'\nlayers = 1\n"
        );
        let loaded = Loaded::parse(&text, "job.toml", ".", &Changes::default()).unwrap();
        let note = &loaded.default_collectives(&loaded.topology().unwrap())[0];
        assert!(loaded.draft().unwrap().notes.contains(note));
    }
}
