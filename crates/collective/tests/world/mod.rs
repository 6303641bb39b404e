//! Engines of several ranks over a network of vectors, which reorders deliveries between different pairs of ranks.

use std::collections::{HashMap, VecDeque};

use pathweave_collective::{
    Call, Dtype, Engine, Frame, Landing, OpId, Output, Place, Received, ReduceOp, SEGMENT_BYTES, Span,
    TEMPORARY, Target, combine, divide,
};

pub(crate) const GROUP: u64 = 0xabcd;

/// Random numbers: xorshift.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % most
    }
}

/// Memory of an operation.
#[derive(Default)]
struct Memory {
    buffers: Vec<Vec<u8>>,
    temporary: Vec<u8>,
}

impl Memory {
    fn at(&mut self, span: Span) -> &mut [u8] {
        if span.len == 0 {
            return &mut [];
        }
        let buffer = match span.buffer {
            TEMPORARY => &mut self.temporary,
            number => &mut self.buffers[number as usize],
        };
        &mut buffer[span.start..span.start + span.len]
    }
}

enum Delivery {
    Frame(Vec<u8>),
    /// Bytes are read when they are delivered, so they must not change before.
    Write {
        op: OpId,
        from: Span,
        target: Target,
    },
}

/// Deliveries on the way from one rank to another, each with the number by which its end is reported, if it is.
type Link = VecDeque<(Delivery, Option<u64>)>;

pub(crate) struct Rank {
    pub(crate) engine: Engine,
    memory: HashMap<OpId, (Memory, Dtype, Option<ReduceOp>)>,
    scratch: Vec<Vec<u8>>,
    landings: HashMap<u64, (OpId, Landing)>,
    pub(crate) done: HashMap<OpId, Result<Option<u32>, String>>,
    /// Ends of own WRITEs that have not been reported.
    written: Vec<u64>,
}

pub(crate) struct World {
    pub(crate) ranks: Vec<Rank>,
    links: HashMap<(u32, u32), Link>,
    dice: Dice,
    next_key: u64,
    pub(crate) frames: usize,
}

impl World {
    pub(crate) fn new(count: u32, seed: u64) -> Self {
        let ranks = (0..count).map(|rank| {
            let mut engine = Engine::new();
            engine.join(GROUP, Place { rank, ranks: count }, (0..count).collect());
            Rank {
                engine,
                memory: HashMap::new(),
                scratch: Vec::new(),
                landings: HashMap::new(),
                done: HashMap::new(),
                written: Vec::new(),
            }
        });
        World { ranks: ranks.collect(), links: HashMap::new(), dice: Dice::new(seed), next_key: 0, frames: 0 }
    }

    pub(crate) fn place(&self, rank: usize) -> Place {
        Place { rank: rank as u32, ranks: self.ranks.len() as u32 }
    }

    /// Begins an operation with these buffers.
    pub(crate) fn begin(
        &mut self,
        rank: usize,
        call: Call,
        buffers: Vec<Vec<u8>>,
        temporary_bytes: usize,
        start: impl FnOnce(&mut Engine) -> Result<OpId, String>,
    ) -> OpId {
        let op = start(&mut self.ranks[rank].engine).unwrap();
        let memory = Memory { buffers, temporary: vec![0xee; temporary_bytes] };
        self.ranks[rank].memory.insert(op, (memory, call.dtype, call.op));
        self.obey(rank);
        op
    }

    pub(crate) fn buffers(&self, rank: usize, op: OpId) -> &[Vec<u8>] {
        &self.ranks[rank].memory[&op].0.buffers
    }

    /// Carries out the orders of an engine.
    pub(crate) fn obey(&mut self, rank: usize) {
        while let Some(output) = self.ranks[rank].engine.next_output() {
            self.carry_out(rank, output);
        }
    }

    fn queue(&mut self, from: usize, to: u32, delivery: Delivery, id: Option<u64>) {
        self.frames += 1;
        self.links.entry((from as u32, to)).or_default().push_back((delivery, id));
    }

    fn carry_out(&mut self, at: usize, output: Output) {
        let rank = &mut self.ranks[at];
        match output {
            Output::Frame { peer, bytes } => self.queue(at, peer, Delivery::Frame(bytes), None),
            Output::Eager { peer, head: mut bytes, op, from } => {
                bytes.extend(&*rank.memory.get_mut(&op).unwrap().0.at(from));
                self.queue(at, peer, Delivery::Frame(bytes), None);
            }
            Output::Announce { peer, op, landing, key, call, bytes, token } => {
                if let Landing::Scratch(slot) = landing {
                    rank.scratch.resize(rank.scratch.len().max(slot as usize + 1), vec![0; SEGMENT_BYTES]);
                }
                self.next_key += 1;
                rank.landings.insert(self.next_key, (op, landing));
                let target = Target { address: 0, rkey: self.next_key, token };
                let frame = Frame::Ready { key, call, bytes: bytes as u64, target };
                self.queue(at, peer, Delivery::Frame(frame.encode()), None);
            }
            Output::Write { peer, op, from, target, id } => {
                self.queue(at, peer, Delivery::Write { op, from, target }, Some(id));
            }
            Output::Store { op, to, bytes } => {
                rank.memory.get_mut(&op).unwrap().0.at(to).copy_from_slice(&bytes);
            }
            Output::Combine { op, with, into, received, order } => {
                let (memory, dtype, how) = rank.memory.get_mut(&op).unwrap();
                let mut own = memory.at(with).to_vec();
                let other = match received {
                    Received::Bytes(bytes) => bytes,
                    Received::Scratch(slot) => rank.scratch[slot as usize][..with.len].to_vec(),
                };
                combine(*dtype, how.unwrap(), &mut own, &other, order);
                memory.at(into).copy_from_slice(&own);
            }
            Output::Copy { op, from, to } => {
                let memory = &mut rank.memory.get_mut(&op).unwrap().0;
                let bytes = memory.at(from).to_vec();
                memory.at(to).copy_from_slice(&bytes);
            }
            Output::Divide { op, of, by } => {
                let (memory, dtype, _) = rank.memory.get_mut(&op).unwrap();
                divide(*dtype, memory.at(of), by);
            }
            Output::Done { op, result } => {
                assert!(rank.done.insert(op, result).is_none(), "ends once");
            }
        }
    }

    /// Delivers one thing that is on its way, or reports the end of a WRITE. Returns false if there is nothing.
    pub(crate) fn step(&mut self) -> bool {
        let mut choices: Vec<(u32, u32)> =
            self.links.iter().filter(|(_, queue)| !queue.is_empty()).map(|(link, _)| *link).collect();
        choices.sort_unstable();
        let reports: Vec<usize> =
            (0..self.ranks.len()).filter(|rank| !self.ranks[*rank].written.is_empty()).collect();
        let total = choices.len() + reports.len();
        if total == 0 {
            return false;
        }
        let chosen = self.dice.below(total);
        if chosen >= choices.len() {
            let rank = reports[chosen - choices.len()];
            let index = self.dice.below(self.ranks[rank].written.len());
            let id = self.ranks[rank].written.swap_remove(index);
            self.ranks[rank].engine.written(id);
            self.obey(rank);
            return true;
        }
        let (from, to) = choices[chosen];
        let (delivery, id) = self.links.get_mut(&(from, to)).unwrap().pop_front().unwrap();
        match delivery {
            Delivery::Frame(bytes) => self.ranks[to as usize].engine.frame(from, &bytes),
            Delivery::Write { op, from: span, target } => {
                let bytes = self.ranks[from as usize].memory.get_mut(&op).unwrap().0.at(span).to_vec();
                let receiver = &mut self.ranks[to as usize];
                let (of, landing) = receiver.landings.remove(&target.rkey).expect("announced once");
                match landing {
                    Landing::Span(span) => {
                        receiver.memory.get_mut(&of).unwrap().0.at(span).copy_from_slice(&bytes);
                    }
                    Landing::Scratch(slot) => {
                        receiver.scratch[slot as usize][..bytes.len()].copy_from_slice(&bytes);
                    }
                }
                receiver.engine.arrived(from, target.token, bytes.len() as u64);
            }
        }
        if let Some(id) = id {
            self.ranks[from as usize].written.push(id);
        }
        self.obey(to as usize);
        true
    }

    pub(crate) fn run(&mut self) {
        while self.step() {}
    }
}
