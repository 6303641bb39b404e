//! Fingerprint of a run, by which processes check that they are about to make the same one.

use pathweave_units::mix64;
use pathweave_workload::TaskId;

use crate::spec::SimSpec;

/// Returns a hash of the scenario, its network, its messages and its partition. The hash is not cryptographic: it
/// finds files that differ by mistake.
pub(crate) fn fingerprint(spec: &SimSpec) -> u64 {
    let mut hash = Hash(spec.seed);
    hash.text(&spec.name);
    hash.text(&spec.scenario_toml);
    for link in spec.topology.links() {
        hash.word(u64::from(link.a.0) << 32 | u64::from(link.b.0));
        hash.word(link.rate.as_bps());
        hash.word(link.delay.as_ps());
        hash.word(link.error_rate.to_bits());
    }
    if spec.topology.has_directions() {
        let links = (0..spec.topology.links().len() as u32).map(pathweave_topo::LinkId);
        for way in links.flat_map(|link| [true, false].map(|from_a| spec.topology.direction(link, from_a))) {
            hash.word(way.rate.as_bps());
            hash.word(way.delay.as_ps());
            hash.word(way.error_rate.to_bits());
        }
    }
    hash.word(u64::from(spec.topology.hosts()));
    for message in spec.graph.messages() {
        hash.word(u64::from(message.src.0) << 32 | u64::from(message.dst.0));
        hash.word(message.size.get());
        hash.word(message.start.as_ps());
        hash.word(u64::from(message.group.0));
    }
    for compute in spec.graph.computes() {
        hash.word(compute.host.map_or(u64::MAX, |host| u64::from(host.0)));
        hash.word(compute.duration.as_ps());
    }
    for task in (0..spec.graph.task_count() as u32).map(TaskId) {
        hash.word(spec.graph.delay_after_deps(task).as_ps());
        hash.word(u64::from(spec.graph.needs(task)));
        for next in spec.graph.all_dependents(task) {
            hash.word(u64::from(next.0));
        }
    }
    for part in spec.partition.iter().flat_map(|of_node| of_node.iter()) {
        hash.word(u64::from(*part));
    }
    hash.word(spec.run.max_events.unwrap_or(u64::MAX));
    hash.word(spec.run.until.map_or(u64::MAX, pathweave_units::Duration::as_ps));
    hash.0
}

struct Hash(u64);

impl Hash {
    fn word(&mut self, word: u64) {
        self.0 = mix64(self.0.rotate_left(5) ^ word);
    }

    fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        for bytes in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.word(u64::from_le_bytes(word));
        }
    }
}
