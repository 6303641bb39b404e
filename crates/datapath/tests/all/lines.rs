//! Readers that poll flags within a message while it arrives, as kernels of NCCL do: a new flag is above new data.
#![allow(unsafe_code, reason = "reads words of memory that the network writes")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::support::{Pair, done, loopback, region_of};
use pathweave_datapath::backend::{Cuts, Faults};
use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{Access, DeviceConfig, Region};

const BYTES: usize = 128 << 10;
const WORDS: usize = BYTES / 8;
/// Words of a line of LL128: 15 of data, and the flag.
const LINE_WORDS: usize = 16;
const ROUNDS: u32 = 30;

/// Layout of flags in a message.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// Words of 4 bytes of data and a flag of 4 bytes.
    Ll,
    /// Lines of 128 bytes, whose last word is the flag.
    Ll128,
}

/// Content of data words: differs in each round and word, so that an old one is recognised.
fn data(round: u32, word: usize) -> u64 {
    (u64::from(round) << 40) | (word as u64).wrapping_mul(0x9e37_79b9) & 0xff_ffff_ffff
}

impl Layout {
    fn word(self, round: u32, word: usize) -> u64 {
        match self {
            Layout::Ll => u64::from(round) << 32 | data(round, word) & 0xffff_ffff,
            Layout::Ll128 if word % LINE_WORDS == LINE_WORDS - 1 => round.into(),
            Layout::Ll128 => data(round, word),
        }
    }

    fn message(self, round: u32) -> Vec<u8> {
        (0..WORDS).flat_map(|word| self.word(round, word).to_ne_bytes()).collect()
    }

    /// Reads the flag at a line, then its data. Returns the flag, which is a round.
    fn look(self, words: &[AtomicU64], line: usize) -> u32 {
        let at = line * LINE_WORDS;
        let load = |word: usize| words[word].load(Ordering::Acquire);
        match self {
            Layout::Ll => {
                let word = load(at);
                let round = (word >> 32) as u32;
                assert!(word == 0 || word == self.word(round, at), "line {line}: {word:#x}");
                round
            }
            Layout::Ll128 => {
                let round = load(at + LINE_WORDS - 1) as u32;
                for word in at..at + LINE_WORDS - 1 {
                    // The data may be of a later round than the flag, but not of an earlier one.
                    let seen = load(word);
                    let of = (seen >> 40) as u32;
                    assert!(of >= round, "line {line}: a flag of round {round}, data of round {of}");
                    assert!(of == 0 || seen == self.word(of, word), "line {line}: {seen:#x}");
                }
                round
            }
        }
    }
}

/// Looks at all lines until it is over. Returns the number of passes that found lines of two rounds: those during
/// which the message was arriving.
fn poll(layout: Layout, region: &Region, over: &AtomicBool) -> u32 {
    // SAFETY: the region is aligned to a page and outlives this call. Its bytes are written by stores of whole words.
    let words = unsafe { std::slice::from_raw_parts(region.as_ptr().cast::<AtomicU64>(), WORDS) };
    let mut amid = 0;
    while !over.load(Ordering::Acquire) {
        let mut rounds = (0..WORDS / LINE_WORDS).map(|line| layout.look(words, line));
        let first = rounds.next();
        amid += u32::from(rounds.fold(false, |mixed, round| mixed | (Some(round) != first)));
    }
    amid
}

#[test]
fn a_new_flag_is_above_new_data_over_lossy_paths_that_reorder() {
    let faults = Faults { lose: 0.02, repeat: 0.05, reorder: 0.2, ..Faults::default() };
    for (seed, layout, protection) in [
        (1, Layout::Ll, Protection::Insecure),
        (2, Layout::Ll128, Protection::Insecure),
        (3, Layout::Ll128, Protection::Encrypt),
        (4, Layout::Ll, Protection::Encrypt),
    ] {
        let key = Some(ClusterKey::from_bytes([9; 32]));
        let mut config =
            DeviceConfig { paths: 4, mtu_payload: 1_344, protection, key, seed: Some(seed), ..loopback() };
        config.payload_of_lines(128).unwrap();
        assert_eq!(config.mtu_payload, 1_280);
        let pair = Pair::faulty(&config, faults, &Cuts::default(), seed);
        let memory = Region::zeroed(BYTES).unwrap();
        let board = pair.server.register(&memory.in_order(), Access::WRITE).unwrap();
        let over = AtomicBool::new(false);
        let amid = std::thread::scope(|scope| {
            let reader = scope.spawn(|| poll(layout, &memory, &over));
            for round in 1..=ROUNDS {
                let source = region_of(&layout.message(round));
                pair.near.write(round.into(), source.all(), board.remote(0)).unwrap();
                assert_eq!(done(&pair.near, round.into()), BYTES as u64);
            }
            over.store(true, Ordering::Release);
            reader.join().unwrap()
        });
        assert!(amid > 0, "{layout:?}: the reader never saw a message that was arriving");
        assert!(memory.to_vec(0..BYTES).unwrap() == layout.message(ROUNDS));
        let stats = pair.near.stats().unwrap();
        assert!(stats.counters.retransmitted_packets > 0, "{stats:?}");
        assert!(stats.paths.iter().all(|path| path.packets > 0), "{stats:?}");
    }
}
