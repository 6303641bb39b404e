//! Plan of a collective as NCCL executes it: algorithm, protocol, channels, loops, and the times of hops.

use super::chunks::{self, Chunks};
use super::orders::Exit;
use super::wanted::{Method, Wanted};
use super::wires::{Action, Hop, Load, Piece, Pipes, Portion, Way, Wires};
use crate::collective::{BadPlan, Operation, Partition};
use crate::error::WorkloadError;
use crate::graph::Parallelism;
use crate::nccl::algorithm::{Algorithm, Choices, Protocol};
use crate::nccl::channels::Channels;
use crate::nccl::error::NcclError;
use crate::nccl::hops::HopTimes;
use crate::nccl::team::{Inside, Team};
use crate::nccl::tuner::Tuner;
use crate::sink::Steps;

/// Largest number of channels of a communicator.
const MOST_CHANNELS: u32 = 64;
/// Bytes of a channel up to which sends and receives use LL.
const LL_SEND_BYTES: u64 = 16 << 10;

/// Collective to execute.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) team: Team,
    pub(super) operation: Operation,
    /// Size as nccl-tests count it.
    pub(super) size: u64,
    pub(super) method: Method,
    pub(super) protocol: Protocol,
    pub(super) channels: u32,
    /// Channels that NCCL's search found, of which the library opens two each.
    pub(super) ring_channels: u32,
    pub(super) exit: Exit,
    /// Pairs that a rank serves at a time in an all-to-all.
    pub(super) window: usize,
    pub(super) loops: u64,
    /// Loops of the library.
    real_loops: u64,
    pub(super) slices: u64,
    /// Loops of the library for each loop here.
    merged: f64,
    slots: usize,
    times: HopTimes,
    /// Bytes on a link for each byte of payload, over scale-up and over NICs.
    wire: [f64; 2],
    pub(super) qps: u32,
}

/// Method, protocol and channels.
struct Chosen {
    method: Method,
    protocol: Protocol,
    channels: u32,
    times: HopTimes,
    /// Part of the scale-up links that kernels of this kind keep busy.
    part: f64,
}

impl Plan {
    /// Makes the plan of a collective.
    ///
    /// # Errors
    /// If the servers lack what `wanted` asks for. The error names a field of it.
    pub(crate) fn new(team: Team, operation: Operation, size: u64, wanted: &Wanted) -> Result<Self, BadPlan> {
        let size = size.max(1);
        let channels = Channels::of(team.system()).map_err(bad)?;
        let mut chosen = match operation {
            Operation::AllToAll => sends(&team, size, wanted)?,
            _ => choose(&team, operation, size, wanted)?,
        };
        let mut ring_channels = channels.ring.channels.max(1);
        if let Some(given) = wanted.channels {
            chosen.channels = given_channels(given, chosen.method)?;
            ring_channels = ring_channels.min(given.div_ceil(2));
        }
        let exit = exit(&team, wanted.pxn)?;
        if !(1..=32).contains(&wanted.qps) {
            return Err(("qps", wanted.qps.to_string(), "expected 1 to 32".to_owned()));
        }
        let chunks =
            Chunks { method: chosen.method, protocol: chosen.protocol, operation, size, team: &team, exit };
        let cut = chunks.cut(chosen.channels, wanted.most_messages)?;
        let bandwidth = wanted.fitted.bandwidth;
        let flags = chunks::wire_factor(chosen.protocol);
        let Chosen { method, protocol, times, part, .. } = chosen;
        Ok(Plan {
            window: chunks::pairs_at_a_time(&team),
            operation,
            size,
            method,
            protocol,
            channels: cut.channels,
            ring_channels,
            exit,
            loops: cut.loops,
            real_loops: cut.real_loops,
            slices: cut.slices,
            merged: cut.merged,
            slots: chunks.slots(),
            times: match protocol {
                Protocol::Simple => times.scaled(wanted.fitted.latency),
                Protocol::Ll | Protocol::Ll128 => times,
            },
            wire: [flags / part / bandwidth, flags / bandwidth],
            qps: wanted.qps,
            team,
        })
    }

    /// Declares all messages.
    pub(crate) fn run<W: Wires>(&self, wires: &mut W) -> Result<(), WorkloadError> {
        let mut pipes = Pipes::new(wires, self.slots);
        match self.method {
            Method::Ring => self.rings(&mut pipes),
            Method::Chain => self.chains(&mut pipes),
            Method::Tree => self.trees(&mut pipes),
            Method::Nvls => self.nvls(&mut pipes),
            Method::NvlsTree => self.nvls_trees(&mut pipes),
            Method::Pat => self.pat(&mut pipes),
            Method::Direct => self.direct(&mut pipes),
        }
    }

    /// Returns the number of messages, approximately.
    pub(crate) fn messages(&self) -> f64 {
        chunks::messages_of_loop(self.method, self.operation, &self.team, self.channels, self.exit)
            * (self.loops * self.slices) as f64
    }

    /// Returns the description of its messages.
    pub(crate) fn steps(&self, parallelism: Option<Parallelism>) -> Steps<'static> {
        Steps {
            kind: self.operation.name(),
            ranks: self.team.ranks(),
            algorithm: self.method.label(self.protocol),
            measure: Some(self.operation.measure(self.team.ranks(), self.size)),
            parallelism,
        }
    }

    /// Returns algorithm, protocol and channels as results show them.
    pub(crate) fn summary(&self) -> (&'static str, u32) {
        (self.method.label(self.protocol), self.channels)
    }

    /// Returns the messages of the library for each message here.
    pub(crate) fn merged(&self) -> f64 {
        self.merged
    }

    /// Returns true if messages to another rail of another server go by way of a GPU on that rail.
    pub(super) fn stages(&self) -> bool {
        self.exit == Exit::ByNicOfChannel
    }

    /// Returns the way between two ranks.
    pub(super) fn way(&self, src: usize, dst: usize) -> Way {
        if self.team.same_server(src, dst) { Way::ScaleUp } else { Way::Net }
    }

    /// Returns a part of a loop of a channel, with its bytes.
    pub(super) fn piece(
        &self,
        channel: u32,
        turn: u64,
        part: usize,
        slice: u64,
        owner: usize,
    ) -> (Piece, u64) {
        let parts = match self.method {
            Method::Ring | Method::Pat => self.team.ranks() as u64,
            _ => 1,
        };
        let of_channel =
            Partition { bytes: self.size, parts: self.channels as usize }.bytes(channel as usize, 1);
        let all = self.loops * parts * self.slices;
        // The parts of a rank are together in its vector.
        let place = (part as u64 * self.loops + turn) * self.slices + slice;
        let id = (u64::from(channel) * all + place) as u32;
        if self.method.streams() {
            return self.portion(of_channel, turn, id, owner);
        }
        let bytes = Partition { bytes: of_channel, parts: all as usize }.bytes(place as usize, 1);
        (Piece { id, owner, more: Vec::new(), portion: Portion::Whole }, bytes.max(1))
    }

    /// Returns a loop of a pipeline that has these bytes: the first and the last as the library has them, and all others
    /// merged if there are too many.
    fn portion(&self, bytes: u64, turn: u64, id: u32, owner: usize) -> (Piece, u64) {
        let cut = Partition { bytes, parts: self.real_loops as usize };
        let (first, count) = match turn {
            _ if self.real_loops == self.loops => (turn as usize, 1),
            0 => (0, 1),
            last if last + 1 == self.loops => (self.real_loops as usize - 1, 1),
            turn => {
                let between = Partition { bytes: self.real_loops - 2, parts: (self.loops - 2) as usize };
                let before = between.bytes(0, turn as usize - 1);
                (1 + before as usize, between.bytes(turn as usize - 1, 1) as usize)
            }
        };
        let portion = if count > 1 { Portion::Stream } else { Portion::Whole };
        (Piece { id, owner, more: Vec::new(), portion }, cut.bytes(first, count).max(1))
    }

    /// Returns a part of the block that a rank has for another, with its bytes.
    pub(super) fn pair_piece(&self, src: usize, dst: usize, turn: u64) -> (Piece, u64) {
        let ranks = self.team.ranks();
        let block = Partition { bytes: self.size, parts: ranks }.bytes(dst, 1);
        let id = ((src * ranks + dst) as u64 * self.loops + turn) as u32;
        self.portion(block, turn, id, src)
    }

    /// Returns the bytes of a message on links.
    pub(super) fn wire_bytes(&self, hop: &Hop) -> u64 {
        let gpus = self.team.gpus() as f64;
        let load = match hop.load {
            Load::Whole => 1.0,
            Load::SwitchReduces => (gpus + 1.0) / (2.0 * (gpus - 1.0)),
            Load::SwitchGathers => gpus / (gpus - 1.0),
        };
        let factor = load * self.wire[usize::from(hop.way == Way::Net)];
        (hop.bytes as f64 * factor).round().max(1.0) as u64
    }

    /// Returns the time between the arrival of what a message needs and its begin, in microseconds.
    pub(super) fn hop_us(&self, hop: &Hop) -> f64 {
        match hop.way {
            _ if hop.action == Action::Stage => 0.0,
            Way::ScaleUp | Way::Staged => self.times.scale_up_us,
            Way::Net => self.times.net_us + self.times.piece_us * (1 + hop.piece.more.len()) as f64,
        }
    }

    /// Returns the time after which a rank takes part, in microseconds.
    pub(super) fn base_us(&self) -> f64 {
        self.times.base_us
    }
}

fn bad(why: NcclError) -> BadPlan {
    match why {
        NcclError::Field { field, value, allowed } => (field, value, allowed),
        NcclError::Operation(name) => ("operation", name.to_owned(), "expected a collective".to_owned()),
    }
}

fn given_channels(given: u32, method: Method) -> Result<u32, BadPlan> {
    let value = given.to_string();
    match method {
        Method::Nvls | Method::NvlsTree => {
            let allowed = "expected no such field: switches that reduce have a channel for each GPU";
            Err(("channels", value, allowed.to_owned()))
        }
        Method::Direct => {
            let allowed = "expected no such field: all pairs of an all-to-all are sent at once";
            Err(("channels", value, allowed.to_owned()))
        }
        _ if !(1..=MOST_CHANNELS).contains(&given) => {
            Err(("channels", value, format!("expected 1 to {MOST_CHANNELS}")))
        }
        _ => Ok(given),
    }
}

fn exit(team: &Team, pxn: Option<bool>) -> Result<Exit, BadPlan> {
    match (pxn, team.inside()) {
        (Some(true), Inside::Nothing) => {
            let allowed = "expected a scale-up network, by which a GPU reaches the NIC of another";
            Err(("pxn", "true".to_owned(), allowed.to_owned()))
        }
        (Some(true), _) | (None, Inside::Switch) => Ok(Exit::ByNicOfChannel),
        (Some(false), _) | (None, _) => Ok(Exit::ByOwnNic),
    }
}

/// Chooses algorithm and protocol as the library does, among those that are wanted.
fn choose(team: &Team, operation: Operation, size: u64, wanted: &Wanted) -> Result<Chosen, BadPlan> {
    let tuner = Tuner::new(team.system(), operation).map_err(bad)?;
    let given = wanted.algorithm.of_tuner();
    if matches!(given, Some(Algorithm::Nvls | Algorithm::NvlsTree)) && team.inside() != Inside::Switch {
        let allowed = "expected a scale-up network with a switch, which reduces; these servers have none";
        return Err(("algorithm", wanted.algorithm.name().to_owned(), allowed.to_owned()));
    }
    let possible = |algorithm: Algorithm| {
        team.inside() == Inside::Switch || !matches!(algorithm, Algorithm::Nvls | Algorithm::NvlsTree)
    };
    let all = tuner.all(size).filter(|choice| possible(choice.algorithm));
    let known: Vec<String> = all
        .map(|choice| format!("{}/{}", Method::of(choice.algorithm, operation).name(), choice.protocol))
        .collect();
    let refuse = |field, value: &str| {
        let allowed = format!("{} on these servers is done by {}", operation.name(), known.join(", "));
        Err((field, value.to_owned(), allowed))
    };
    if wanted.algorithm.is_for_pairs() {
        return refuse("algorithm", wanted.algorithm.name());
    }
    let algorithms = match given {
        Some(algorithm) => vec![algorithm],
        None => Algorithm::ALL.into_iter().filter(|&algorithm| possible(algorithm)).collect(),
    };
    let protocols: Vec<Protocol> = wanted.protocol.of_tuner().into_iter().collect();
    let by_algorithm = Choices { algorithms, protocols: Vec::new() };
    let allowed = Choices { protocols, ..by_algorithm.clone() };
    match tuner.choose(size, &allowed) {
        Some(choice) => Ok(Chosen {
            method: Method::of(choice.algorithm, operation),
            protocol: choice.protocol,
            channels: match choice.algorithm {
                Algorithm::Nvls => team.gpus() as u32,
                Algorithm::NvlsTree => 2 * team.gpus() as u32,
                _ => choice.channels,
            },
            times: tuner.hop_times(choice.algorithm, choice.protocol),
            part: tuner.busy_part(choice.algorithm, choice.protocol),
        }),
        None if tuner.choose(size, &by_algorithm).is_some() => refuse("protocol", wanted.protocol.name()),
        None => refuse("algorithm", wanted.algorithm.name()),
    }
}

/// Chooses the protocol of sends and receives.
fn sends(team: &Team, size: u64, wanted: &Wanted) -> Result<Chosen, BadPlan> {
    let name = wanted.algorithm.name();
    if wanted.algorithm.of_tuner().is_some() {
        let allowed = "an all-to-all is done by direct, as sends and receives";
        return Err(("algorithm", name.to_owned(), allowed.to_owned()));
    }
    let of_channel = size / team.ranks() as u64 / u64::from(chunks::channels_of_pair(team));
    let protocol = match wanted.protocol.of_tuner() {
        None if of_channel <= LL_SEND_BYTES => Protocol::Ll,
        None => Protocol::Simple,
        Some(Protocol::Ll128) => {
            let allowed = "sends and receives use ll or simple";
            return Err(("protocol", wanted.protocol.name().to_owned(), allowed.to_owned()));
        }
        Some(protocol) => protocol,
    };
    let times = Tuner::new(team.system(), Operation::AllGather).map_err(bad)?;
    let times = times.hop_times(Algorithm::Ring, protocol);
    Ok(Chosen { method: Method::Direct, protocol, channels: 1, times, part: 1.0 })
}
