//! Division of a collective into loops, chunks and slices.

use super::orders::Exit;
use super::wanted::Method;
use crate::collective::{BadPlan, Operation};
use crate::nccl::algorithm::Protocol;
use crate::nccl::gpu::Generation;
use crate::nccl::system::Cpu;
use crate::nccl::team::{Inside, Team};

/// Largest number of messages of a collective.
pub(crate) const MOST_MESSAGES: u64 = 1 << 20;
/// Number of messages of a collective above which loops are merged by default: that of the simulations that
/// `pathweave validate truth-collectives` holds to measurements. In merged loops a pipeline is less often out of slots: an
/// all-reduce of 1 GiB by NVLSTree on four servers of 8 H100 takes 6.1 ms, and 8.4 ms loop by loop. At the 320 to 340 GB/s
/// of measurements it takes 6.1 to 6.5 ms.
pub const DEFAULT_MESSAGES: u64 = 1 << 13;
/// Largest message before its factor on the links.
const MOST_BYTES: u64 = 1 << 30;

const KIB: u64 = 1 << 10;
/// Payload of a slot of LL, whose slots have 64 KiB with flags.
const LL_SLOT: u64 = 32 * KIB;
/// Payload of a slot of LL128: an eighth of 4,915,200 bytes, of which 15 of 16 are data.
const LL128_SLOT: u64 = 576_000;

/// Channels of sends and receives.
const SEND_CHANNELS: u32 = 32;
/// Pairs that a channel of sends and receives serves at a time.
const PAIRS_OF_CHANNEL: u32 = 8;
/// GB/s for which sends to a rank have one channel more.
const SEND_CHANNEL_GBS: f64 = 14.0;

/// Collective to divide.
pub(super) struct Chunks<'a> {
    pub(super) method: Method,
    pub(super) protocol: Protocol,
    pub(super) operation: Operation,
    pub(super) size: u64,
    pub(super) team: &'a Team,
    pub(super) exit: Exit,
}

/// Division of a collective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cut {
    pub(super) channels: u32,
    pub(super) loops: u64,
    /// Loops of the library.
    pub(super) real_loops: u64,
    pub(super) slices: u64,
    /// Loops and channels of the library for each loop and channel here.
    pub(super) merged: f64,
}

/// Returns the bytes on a link for each byte of payload.
pub(super) const fn wire_factor(protocol: Protocol) -> f64 {
    match protocol {
        Protocol::Ll => 2.0,
        Protocol::Ll128 => 16.0 / 15.0,
        Protocol::Simple => 1.0,
    }
}

/// Returns the number of channels that send to one rank.
pub(super) fn channels_of_pair(team: &Team) -> u32 {
    let system = team.system();
    let nics_of_gpu = (system.nics / system.gpus).max(1);
    let gbs = if team.count() > 1 { system.nic_gbs() } else { system.scale_up_gbs };
    let wished = ((gbs / SEND_CHANNEL_GBS).ceil() as u32).max(nics_of_gpu).next_power_of_two();
    let groups = system.ranks().div_ceil(PAIRS_OF_CHANNEL);
    let mut channels = wished.min(SEND_CHANNELS);
    while channels > 1 && channels * groups > SEND_CHANNELS {
        channels /= 2;
    }
    channels
}

/// Returns the number of ranks to which a rank sends at a time.
pub(super) fn pairs_at_a_time(team: &Team) -> usize {
    (PAIRS_OF_CHANNEL * SEND_CHANNELS / channels_of_pair(team)) as usize
}

/// Returns the number of messages of one loop with one slice.
pub(super) fn messages_of_loop(
    method: Method,
    operation: Operation,
    team: &Team,
    channels: u32,
    exit: Exit,
) -> f64 {
    let (ranks, servers, gpus) = (team.ranks() as f64, team.count() as f64, team.gpus() as f64);
    let staged = if exit == Exit::ByNicOfChannel && servers > 1.0 && gpus > 1.0 { servers } else { 0.0 };
    let channels = f64::from(channels);
    match method {
        Method::Ring if operation == Operation::AllReduce => {
            channels * 2.0 * (ranks - 1.0) * (ranks + staged)
        }
        Method::Ring => channels * (ranks - 1.0) * (ranks + staged),
        Method::Chain => channels * (ranks - 1.0 + staged),
        Method::Tree => channels * 2.0 * (ranks - 1.0),
        Method::Nvls if operation == Operation::AllReduce => 2.0 * gpus * (gpus - 1.0),
        Method::Nvls => gpus * (gpus - 1.0),
        Method::NvlsTree => channels * 2.0 * (servers * gpus - 1.0),
        Method::Pat => channels * ranks * ranks.log2().ceil(),
        Method::Direct => {
            let staged = if staged > 0.0 { (servers - 1.0) * (gpus - 1.0) } else { 0.0 };
            ranks * (ranks - 1.0 + staged)
        }
    }
}

impl Chunks<'_> {
    /// Returns the slots of a connection, in messages.
    pub(super) fn slots(&self) -> usize {
        match (self.method, self.protocol) {
            (Method::Ring, Protocol::Simple) => 4,
            _ => 8,
        }
    }

    /// Returns the payload of a chunk.
    fn chunk(&self) -> u64 {
        let (team, system) = (self.team, self.team.system());
        match (self.method, self.protocol) {
            (Method::Nvls, _) => 128 * KIB,
            (Method::NvlsTree, _) if team.count() >= 4 => 64 * KIB,
            (Method::NvlsTree, _) => 128 * KIB,
            (Method::Direct, _) if team.count() == 1 => 512 * KIB,
            (Method::Direct, _) => {
                let wide = system.cpu == Cpu::Arm && system.gpu.generation() == Generation::Blackwell;
                u64::from(channels_of_pair(team)) * 128 * KIB * if wide { 2 } else { 1 }
            }
            (_, Protocol::Ll) => LL_SLOT,
            (_, Protocol::Ll128) => LL128_SLOT,
            (Method::Ring, Protocol::Simple) => 2_048 * KIB,
            (_, Protocol::Simple) => 512 * KIB,
        }
    }

    /// Returns channels, loops and slices, with loops merged such that there are about `most` messages, and with
    /// channels merged that share a NIC if there are still too many.
    pub(super) fn cut(&self, channels: u32, most: u64) -> Result<Cut, BadPlan> {
        let of_loop =
            |channels| messages_of_loop(self.method, self.operation, self.team, channels, self.exit);
        let mut kept = channels;
        let least = match self.team.inside() {
            // Rings over links each have links of their own.
            Inside::Links => channels,
            Inside::Switch | Inside::Nothing => self.team.entries() as u32,
        };
        let merges = matches!(self.method, Method::Ring | Method::Chain);
        while merges && of_loop(kept) > most as f64 && kept / 2 >= least && kept.is_multiple_of(2) {
            kept /= 2;
        }
        let one = of_loop(kept);
        let parts = match self.method {
            Method::Ring | Method::Pat => self.team.ranks() as u64,
            _ => 1,
        };
        let of_channel = match self.method {
            Method::Direct => self.size.div_ceil(self.team.ranks() as u64),
            _ => self.size.div_ceil(u64::from(channels)),
        };
        let real = of_channel.div_ceil(parts * self.chunk()).max(1);
        let share = of_channel * u64::from(channels / kept) / parts;
        // A stream has a first and a last loop of its own.
        let ends = if self.method.streams() { 2 } else { 0 };
        let least_loops = real.min(ends + share.div_ceil(MOST_BYTES).max(1));
        if one * least_loops as f64 > MOST_MESSAGES as f64 {
            return self.refuse(one * least_loops as f64);
        }
        let room = ((most as f64 / one) as u64).max(1);
        let halves = self.method == Method::Ring
            && self.protocol == Protocol::Simple
            && share.div_ceil(real) > 1_024 * KIB
            && 2 * real <= room;
        let slices = if halves { 2 } else { 1 };
        let loops = real.min(room).max(least_loops);
        let merged = real as f64 / loops as f64 * f64::from(channels) / f64::from(kept);
        Ok(Cut { channels: kept, loops, real_loops: real, slices, merged })
    }
    fn refuse(&self, messages: f64) -> Result<Cut, BadPlan> {
        let allowed = format!(
            "{} over {} ranks has {messages} messages at least, and at most {MOST_MESSAGES} are allowed; expected fewer \
             channels, or another algorithm",
            self.operation.name(),
            self.team.ranks()
        );
        Err(("algorithm", self.method.name().to_owned(), allowed))
    }
}
