//! State of flows that summary and report need, so that records can be written out as they become known: sums, exact
//! columns for distributions, and a sample of whole records. A finished flow takes [`FlowStats::FINISHED_BYTES`].

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pathweave_units::Rng;

use crate::activities::ActivityLabel;
use crate::arrivals::Arrivals;
use crate::format::ns;
use crate::late::{FlowTimes, LateFlows};
use crate::records::{FlowRecord, FlowStatus, Role, RunInfo, RunResult, ServersInfo};

/// Largest number of flows drawn at random for a report.
pub const PICKED: usize = 3_000;
/// Largest number of the slowest flows kept for a report.
pub(crate) const SLOWEST: usize = PICKED / 10;
/// Largest number of unfinished foreground flows that are named.
const OPEN: usize = 10;
/// Seed of the sample. The same flows are drawn every time.
const SEED: u64 = 0x7061_7468;

/// A receiver of the records of a run: each once, in the order of their numbers.
pub trait FlowSink {
    /// Receives the next records.
    fn take(&mut self, records: &[FlowRecord]);
}

/// State of the flows of a run. It does not depend on the portions in which records are added.
#[derive(Clone, Debug)]
pub struct FlowStats {
    groups: Vec<GroupStats>,
    /// Some whole records.
    pub sample: Sample,
    /// The first few flows of the foreground that did not finish.
    open: Vec<FlowRecord>,
    collectives: CollectiveStats,
    scale_up: Option<ScaleUpBytes>,
    late: LateFlows,
}

/// Bytes that GPUs sent over scale-up networks: those of finished flows between hosts of one domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleUpBytes {
    domain: u32,
    of_host: Vec<u64>,
}

impl ScaleUpBytes {
    /// Creates the sums without flows, or returns `None` if no scale-up network joins the hosts.
    pub fn new(servers: Option<&ServersInfo>) -> Option<Self> {
        let servers = servers?;
        let domain = servers.domain.filter(|domain| *domain > 0)?;
        Some(ScaleUpBytes { domain, of_host: vec![0; (servers.servers * servers.gpus) as usize] })
    }

    /// Adds a flow.
    pub fn add(&mut self, flow: &FlowRecord) {
        let inside =
            flow.src_host != flow.dst_host && flow.src_host / self.domain == flow.dst_host / self.domain;
        if let (true, Some(_), Some(sent)) =
            (inside, flow.finish_ps, self.of_host.get_mut(flow.src_host as usize))
        {
            *sent += flow.size_bytes;
        }
    }

    /// Returns the bytes that each host sent. A host whose rank is not recorded sent as much as the one that
    /// represents it.
    pub fn sent_by_hosts(&self, info: &RunInfo) -> Vec<u64> {
        let of = |host: u32| self.of_host[info.representative_of(host) as usize];
        (0..self.of_host.len() as u32).map(of).collect()
    }
}

/// State of the flows of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupStats {
    role: Role,
    /// Number of flows.
    pub count: u64,
    /// Number of flows that had not ended with the run.
    pub unfinished: u64,
    /// Number of flows that ended with an error.
    pub failed: u64,
    pub(crate) finished_bytes: u64,
    /// Start of the first finished flow; `None` without one.
    pub(crate) first_start_ps: Option<u64>,
    pub(crate) last_finish_ps: u64,
    /// Indices of the schemes of the flows.
    pub(crate) schemes: BTreeSet<u16>,
    pub(crate) counters: Counters,
    /// Finished flows, in the order in which they were added.
    pub finished: Vec<Finished>,
    /// Finish times of the flows.
    pub arrivals: Arrivals,
    /// Out-of-order degrees of unfinished flows.
    pub(crate) other_degrees: Vec<u32>,
}

/// State of one finished flow.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    fct_ps: u64,
    /// Completion time in an empty network.
    pub ideal_fct_ps: u64,
    /// Size of the message.
    pub size_bytes: u64,
    /// Time to the last acknowledgement; `u64::MAX` for flows without acknowledgements.
    acked_fct_ps: u64,
    /// Ideal time to the last acknowledgement; 0 for flows without acknowledgements.
    ideal_acked_ps: u64,
    pub(crate) ooo_degree_max: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
}

impl Finished {
    fn new(flow: &FlowRecord, finish_ps: u64) -> Self {
        Finished {
            fct_ps: finish_ps - flow.start_ps,
            ideal_fct_ps: flow.ideal_fct_ps,
            size_bytes: flow.size_bytes,
            acked_fct_ps: flow.acked_fct_ps().unwrap_or(u64::MAX),
            ideal_acked_ps: flow.ideal_acked_ps.unwrap_or(0),
            ooo_degree_max: flow.ooo_degree_max,
            timeouts: flow.timeouts,
        }
    }
    /// Returns the ideal time to the last acknowledgement; `None` for flows without acknowledgements.
    pub fn ideal_acked_ps(&self) -> Option<u64> {
        Some(self.ideal_acked_ps).filter(|&ps| ps > 0)
    }
    /// Returns a record in which only the retained fields are set.
    fn record(&self) -> FlowRecord {
        FlowRecord {
            finish_ps: Some(self.fct_ps),
            acked_ps: Some(self.acked_fct_ps).filter(|&ps| ps < u64::MAX),
            ideal_fct_ps: self.ideal_fct_ps,
            ideal_acked_ps: self.ideal_acked_ps(),
            size_bytes: self.size_bytes,
            status: FlowStatus::Finished,
            ..FlowRecord::default()
        }
    }
    /// Returns the completion time.
    pub fn fct_ns(&self) -> Option<f64> {
        Some(ns(self.fct_ps))
    }
    /// Returns the completion time divided by the ideal one.
    pub fn slowdown(&self) -> Option<f64> {
        self.record().slowdown()
    }
    /// Returns the time to the last acknowledgement.
    pub fn acked_fct_ns(&self) -> Option<f64> {
        self.record().acked_fct_ps().map(ns)
    }
    /// Returns the time to the last acknowledgement, divided by the ideal one.
    pub fn acked_slowdown(&self) -> Option<f64> {
        self.record().acked_slowdown()
    }
    /// Returns the size divided by the completion time.
    pub fn goodput_bps(&self) -> Option<f64> {
        self.record().goodput_bps()
    }
}

macro_rules! counters {
    (
        $( $_first:ident { $( $first:ident $_f:tt )* } )*;
        $_second:ident { $( $second:ident $_s:tt )* }
    ) => {
        /// Sums of the counters of flows.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Counters {
            $( $( pub(crate) $first: u64, )* )*
            $( pub(crate) $second: u64, )*
        }

        impl Counters {
            fn add(&mut self, flow: &FlowRecord) {
                $( $( self.$first += u64::from(flow.$first); )* )*
                $( self.$second += u64::from(flow.$second); )*
            }
        }
    };
}
pathweave_units::flow_counters!(counters);

/// Sample of whole records: the slowest flows, the watched flows, and some drawn at random.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Number of flows from which the sample was drawn.
    pub of: usize,
    /// The slowest flows. Slowdowns are positive, so their bits have the same order. Among equal ones the first flow
    /// comes first.
    slowest: BTreeMap<(Reverse<u64>, u32), FlowRecord>,
    watched: BTreeSet<u32>,
    /// Records of the watched flows.
    pub watched_records: Vec<FlowRecord>,
    /// Records drawn at random.
    pub picked: Vec<FlowRecord>,
    rng: Rng,
}

impl Sample {
    fn new(watched: BTreeSet<u32>) -> Self {
        let rng = Rng::for_component(SEED, "report flows", 0);
        Sample {
            of: 0,
            slowest: BTreeMap::new(),
            watched,
            watched_records: Vec::new(),
            picked: Vec::new(),
            rng,
        }
    }

    /// Iterates over the slowest flows, slowest first.
    pub fn slowest(&self) -> impl Iterator<Item = &FlowRecord> {
        self.slowest.values()
    }

    /// Adds a flow. Each flow is drawn with the same probability (J. S. Vitter, "Random Sampling with a Reservoir",
    /// 1985, algorithm R).
    fn add(&mut self, flow: &FlowRecord) {
        if let Some(slowdown) = flow.slowdown() {
            let key = (Reverse(slowdown.to_bits()), flow.flow);
            if self.slowest.len() < SLOWEST {
                self.slowest.insert(key, *flow);
            } else if self.slowest.last_key_value().is_some_and(|(last, _)| key < *last) {
                self.slowest.pop_last();
                self.slowest.insert(key, *flow);
            }
        }
        if self.watched.contains(&flow.flow) {
            self.watched_records.push(*flow);
        }
        self.of += 1;
        if self.picked.len() < PICKED {
            self.picked.push(*flow);
        } else if let Some(place) = self.picked.get_mut(self.rng.below(self.of as u32) as usize) {
            *place = *flow;
        }
    }
}

/// State of a rank in a collective.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rank {
    /// Post time of its first own message, or of the first one sent to it while it has sent none.
    pub(crate) start_ps: u64,
    sends: bool,
    receives: bool,
    /// Arrival of its last message, or `None` if one did not arrive.
    pub(crate) finish_ps: Option<u64>,
}

impl Rank {
    fn add(&mut self, flow: &FlowRecord, sends: bool) {
        self.start_ps = match (sends, self.sends) {
            (true, false) => flow.start_ps,
            (false, true) => self.start_ps,
            _ => self.start_ps.min(flow.start_ps),
        };
        self.sends |= sends;
        self.receives |= !sends;
        self.finish_ps = self.finish_ps.zip(flow.finish_ps).map(|(a, b)| a.max(b));
    }
}

/// State of a collective, from its messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct CollectiveState {
    pub(crate) flows: u32,
    pub(crate) ranks: BTreeMap<u32, Rank>,
    pub(crate) slowest: Option<(u64, u32)>,
}

impl CollectiveState {
    /// Returns the time that each rank took, if each arrived: from its begin until its last message is there. If all have
    /// `equal` parts and one rank only sends or only receives, that is the root of a broadcast or a reduction. Ranks that
    /// receive then wait for others before they can send: they begin with the first rank, not with a message of their own.
    pub(crate) fn times_ps(&self, equal: bool) -> Option<Vec<u64>> {
        let ranks = || self.ranks.values();
        let only_send = ranks().filter(|rank| !rank.receives).count();
        let only_receive = ranks().filter(|rank| !rank.sends).count();
        let has_root = equal && (only_send == 1 || only_receive == 1);
        let first_ps = ranks().map(|rank| rank.start_ps).min().unwrap_or(0);
        let begin_ps = |rank: &Rank| if has_root && rank.receives { first_ps } else { rank.start_ps };
        ranks().map(|rank| Some(rank.finish_ps?.saturating_sub(begin_ps(rank)))).collect()
    }

    /// Adds a message. `receiver` is the recorded host that represents its destination.
    fn add(&mut self, flow: &FlowRecord, receiver: u32) {
        self.flows += 1;
        for (host, sends) in [(flow.src_host, true), (receiver, false)] {
            let fresh = Rank { start_ps: flow.start_ps, sends, receives: !sends, finish_ps: flow.finish_ps };
            self.ranks.entry(host).and_modify(|rank| rank.add(flow, sends)).or_insert(fresh);
        }
        if let Some(fct_ps) = flow.fct_ps() {
            let lost = (fct_ps.saturating_sub(flow.ideal_fct_ps), flow.flow);
            if self.slowest.is_none_or(|(most, _)| lost.0 > most) {
                self.slowest = Some(lost);
            }
        }
    }
}

/// Identifies a collective in a run: group, job and label.
pub(crate) type Key = (u16, Option<u32>, u32);

/// State of collectives, from their messages. Each message is added once, in the order of numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct CollectiveStats {
    /// True for each label of a collective.
    is_collective: Vec<bool>,
    /// Recorded host that represents each host; empty if every host is recorded.
    representatives: Vec<u32>,
    pub(crate) parts: BTreeMap<Key, CollectiveState>,
}

impl CollectiveStats {
    pub(crate) fn new(labels: &[ActivityLabel]) -> Self {
        let is_collective = labels.iter().map(|label| label.collective.is_some()).collect();
        CollectiveStats { is_collective, ..CollectiveStats::default() }
    }

    /// Sets the recorded host that represents each host: a message to the latter ends at its representative, too.
    #[must_use]
    pub(crate) fn with_representatives(mut self, of_host: &[u32]) -> Self {
        self.representatives = of_host.to_vec();
        self
    }

    pub(crate) fn knows(&self, label: u32) -> bool {
        self.is_collective.get(label as usize).copied().unwrap_or(false)
    }

    pub(crate) fn add(&mut self, flow: &FlowRecord) {
        if let Some(label) = flow.label.filter(|&label| self.knows(label)) {
            let receiver = self.representatives.get(flow.dst_host as usize).copied();
            let state = self.parts.entry((flow.group, flow.job, label)).or_default();
            state.add(flow, receiver.unwrap_or(flow.dst_host));
        }
    }
}

impl FlowStats {
    /// Memory retained for a finished flow, in bytes.
    pub const FINISHED_BYTES: usize = size_of::<Finished>();

    /// Creates the state without flows. `groups` are the role and the number of flows of each group. The report also
    /// shows the flows in `watched`. `labels` determine the collective of a message.
    pub fn new(
        groups: impl IntoIterator<Item = (Role, usize)>,
        watched: BTreeSet<u32>,
        labels: &[ActivityLabel],
    ) -> Self {
        let group =
            |(role, flows)| GroupStats { role, finished: Vec::with_capacity(flows), ..GroupStats::default() };
        FlowStats {
            groups: groups.into_iter().map(group).collect(),
            sample: Sample::new(watched),
            open: Vec::new(),
            collectives: CollectiveStats::new(labels),
            scale_up: None,
            late: LateFlows::default(),
        }
    }

    /// Returns sums over the late flows of the foreground.
    pub fn late(&self) -> &LateFlows {
        &self.late
    }

    /// Adds what the run is known to have before its first flow: sums over the scale-up networks of its servers, and
    /// the hosts that represent others.
    #[must_use]
    pub fn of_run(mut self, info: &RunInfo) -> Self {
        self.scale_up = ScaleUpBytes::new(info.servers.as_ref());
        self.collectives = self.collectives.with_representatives(&info.representative_of_host);
        self
    }

    /// Returns what GPUs sent over scale-up networks, if it was summed.
    pub fn scale_up(&self) -> Option<&ScaleUpBytes> {
        self.scale_up.as_ref()
    }

    /// Creates the state from the records of a run in memory. Collectives are left out: `collectives` reads the
    /// records.
    pub(crate) fn of(run: &RunResult) -> Self {
        let watched = run.series.iter().filter(|sample| sample.kind.of_flow()).map(|sample| sample.entity);
        let most = run.flows.iter().map(|flow| usize::from(flow.group) + 1).max().unwrap_or(0);
        let mut counts = vec![0; most.max(run.info.groups.len())];
        run.flows.iter().for_each(|flow| counts[usize::from(flow.group)] += 1);
        let groups = (0u16..).zip(counts).map(|(group, flows)| (run.info.role(group), flows));
        let mut figures = FlowStats::new(groups, watched.collect(), &[]);
        run.flows.iter().for_each(|flow| figures.add(flow));
        figures
    }

    /// Adds a flow.
    ///
    /// # Panics
    /// Panics if the group does not exist, or if a finished flow has no time.
    pub fn add(&mut self, flow: &FlowRecord) {
        self.sample.add(flow);
        self.collectives.add(flow);
        if let Some(scale_up) = &mut self.scale_up {
            scale_up.add(flow);
        }
        let group = &mut self.groups[usize::from(flow.group)];
        group.count += 1;
        group.schemes.insert(flow.scheme);
        group.counters.add(flow);
        match (flow.status, flow.finish_ps) {
            (FlowStatus::Finished, Some(finish_ps)) => {
                group.finished_bytes += flow.size_bytes;
                let earlier = group.first_start_ps.is_none_or(|first| flow.start_ps < first);
                group.first_start_ps = if earlier { Some(flow.start_ps) } else { group.first_start_ps };
                group.last_finish_ps = group.last_finish_ps.max(finish_ps);
                group.finished.push(Finished::new(flow, finish_ps));
                group.arrivals.add(finish_ps);
                if group.role == Role::Foreground {
                    let FlowRecord { src_host, dst_host, ideal_fct_ps, ideal_acked_ps, .. } = *flow;
                    let fct_ps = finish_ps - flow.start_ps;
                    self.late.add(FlowTimes { src_host, dst_host, fct_ps, ideal_fct_ps, ideal_acked_ps });
                }
                return;
            }
            (FlowStatus::Finished, None) => panic!("flow {} finished at no time", flow.flow),
            (FlowStatus::Unfinished, _) => group.unfinished += 1,
            _ => group.failed += 1,
        }
        group.other_degrees.push(flow.ooo_degree_max);
        if group.role == Role::Foreground && self.open.len() < OPEN {
            self.open.push(*flow);
        }
    }

    /// Returns the first few flows of the foreground that did not finish.
    pub fn unfinished(&self) -> &[FlowRecord] {
        &self.open
    }

    pub(crate) fn collectives(&self) -> &CollectiveStats {
        &self.collectives
    }

    pub(crate) fn all(&self) -> Vec<&GroupStats> {
        self.groups.iter().collect()
    }

    /// Returns the states of the groups of the foreground.
    pub fn foreground(&self) -> Vec<&GroupStats> {
        self.groups.iter().filter(|group| group.role == Role::Foreground).collect()
    }

    /// Returns the state of a group; empty if the group has no flows.
    pub fn group(&self, group: u16) -> Vec<&GroupStats> {
        self.groups.get(usize::from(group)).into_iter().collect()
    }
}

/// Returns a figure of each finished flow of some groups that has it.
pub fn values(groups: &[&GroupStats], of: fn(&Finished) -> Option<f64>) -> Vec<f64> {
    let mut values = Vec::with_capacity(groups.iter().map(|group| group.finished.len()).sum());
    values.extend(groups.iter().flat_map(|group| &group.finished).filter_map(of));
    values
}

/// Returns the largest out-of-order degree of each flow of some groups, finished or not.
pub fn degrees(groups: &[&GroupStats]) -> Vec<f64> {
    let mut values = Vec::with_capacity(groups.iter().map(|group| group.count as usize).sum());
    for group in groups {
        values.extend(group.finished.iter().map(|flow| f64::from(flow.ooo_degree_max)));
        values.extend(group.other_degrees.iter().copied().map(f64::from));
    }
    values
}

impl RunResult {
    /// Returns the state of flows: the streamed one, or else one computed from the records.
    pub fn figures(&self) -> Cow<'_, FlowStats> {
        self.streamed.as_deref().map_or_else(|| Cow::Owned(FlowStats::of(self)), Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(flows: &[FlowRecord]) -> FlowStats {
        let mut figures = FlowStats::new([(Role::Foreground, flows.len())], BTreeSet::from([4]), &[]);
        flows.iter().for_each(|flow| figures.add(flow));
        figures
    }

    #[test]
    fn the_sample_is_the_same_every_time_and_even() {
        let flows: Vec<_> = (0..100_000).map(|flow| FlowRecord { flow, ..FlowRecord::default() }).collect();
        let sample = figures(&flows).sample;
        assert_eq!(sample.picked, figures(&flows).sample.picked);
        let numbers: BTreeSet<u32> = sample.picked.iter().map(|flow| flow.flow).collect();
        assert_eq!((numbers.len(), sample.of), (PICKED, 100_000));
        // Expected are 300 in each tenth, with a standard deviation below 17.
        for tenth in 0..10 {
            let inside = numbers.iter().filter(|&&flow| flow / 10_000 == tenth).count();
            assert!((225..375).contains(&inside), "{inside} of tenth {tenth}");
        }
        assert_eq!(sample.watched_records.iter().map(|flow| flow.flow).collect::<Vec<_>>(), [4]);
        assert_eq!(figures(&flows[..3]).sample.picked, flows[..3]);
    }

    #[test]
    fn the_slowest_come_first_and_the_open_are_named() {
        let flow = |(flow, fct_ps): (u32, &u64)| FlowRecord {
            flow,
            finish_ps: Some(*fct_ps),
            ideal_fct_ps: 10,
            status: FlowStatus::Finished,
            ..FlowRecord::default()
        };
        let fcts: Vec<u64> = [30, 90, 20, 90, 50].into_iter().chain((0..1_000).map(|_| 10)).collect();
        let mut flows: Vec<_> = (0..).zip(&fcts).map(flow).collect();
        flows.push(FlowRecord { flow: 1_005, ..FlowRecord::default() });
        let figures = figures(&flows);
        let slowest: Vec<u32> = figures.sample.slowest().map(|flow| flow.flow).collect();
        assert_eq!((slowest.len(), &slowest[..6]), (SLOWEST, &[1, 3, 4, 0, 2, 5][..]));
        assert_eq!(figures.unfinished().iter().map(|flow| flow.flow).collect::<Vec<_>>(), [1_005]);
    }

    /// A finished flow keeps 48 bytes. The record is three and a half times as large.
    #[test]
    fn a_finished_flow_takes_little() {
        assert_eq!(FlowStats::FINISHED_BYTES, 48);
        assert!(size_of::<FlowRecord>() >= 3 * FlowStats::FINISHED_BYTES, "{}", size_of::<FlowRecord>());
    }
}
