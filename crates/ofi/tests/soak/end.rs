//! One endpoint in a separate process. It executes the script, and compares every entry and every byte.

use std::io::Write;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::calls::{self, name_of};
use crate::client::*;
use crate::play::{Play, is_end};
use crate::script::{BOARD_BYTES, Batch, End, Fate, SHELF_BYTES, WORDS};
use crate::wire::Family;

/// Port of both endpoints, the same after each restart.
pub(crate) const PORT: u16 = 18_500;
/// Keys of the memory that is open to the other endpoint.
pub(crate) const BOARD: u64 = 1;
pub(crate) const SHELF: u64 = 2;
pub(crate) const WORD: u64 = 3;
/// Longest time of a batch.
pub(crate) const LONGEST_BATCH: Duration = Duration::from_secs(60);
/// Time after which an unanswered greeting is sent again.
const ANSWER: Duration = Duration::from_secs(3);
/// Byte value of memory that has not been written.
pub(crate) const UNTOUCHED: u8 = 0xee;
/// Fields of tags: the restart count of the far endpoint, and the kinds of greetings.
const START_SHIFT: u32 = 32;
const GREETING: u64 = 1 << 60;
const ANSWERED: u64 = 1 << 61;
const PARTING: u64 = 1 << 62;
/// Contexts of greetings.
const HEARD: usize = 1;
const SAID: usize = 2;
/// Number of messages that are injected right before an endpoint is closed.
const PARTING_MESSAGES: usize = 5;

/// Returns the resident memory of this process, KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it tells of RAM");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Order in which the two endpoints greet each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    First,
    /// The endpoint answers after it has received the other's greeting.
    Second,
}

/// State of an endpoint's greeting.
#[derive(Clone, Copy, Debug)]
enum Said {
    NotYet,
    Due,
    UnderWay,
    Sent(Instant),
}

/// Orders from the test that started this process.
pub(crate) struct Orders(pub(crate) Receiver<Vec<String>>);

impl Orders {
    fn read() -> Self {
        let (give, take) = channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                if give.send(line.split(' ').map(str::to_owned).collect()).is_err() {
                    break;
                }
            }
        });
        Orders(take)
    }

    pub(crate) fn say(word: &str) {
        let mut out = std::io::stdout();
        writeln!(out, "\nsays {word}").unwrap();
        out.flush().unwrap();
    }
}

/// An endpoint, its memory, and a model of its peers' operations on the memory.
pub(crate) struct Endpoint {
    pub(crate) node: Node,
    pub(crate) end: End,
    pub(crate) other: u64,
    pub(crate) seed: u64,
    eager: usize,
    /// Number of restarts of the far endpoint.
    start: u64,
    board: Vec<u8>,
    pub(crate) expected_board: Vec<u8>,
    _shelf: Vec<u8>,
    words: Box<[u64; WORDS]>,
    /// Sums at this endpoint, and at the other one.
    pub(crate) sums: [[u64; WORDS]; 2],
    regions: [*mut FidMr; 3],
}

/// Returns the content of an endpoint's shelf, the memory that its peer reads.
pub(crate) fn shelf(seed: u64, end: End) -> Vec<u8> {
    pattern(SHELF_BYTES, seed << 1 | end as u64)
}

impl Endpoint {
    fn open(end: End, seed: u64, family: Family, eager: usize) -> Self {
        let addr_format = match family {
            Family::V4 => FI_SOCKADDR_IN,
            Family::V6 => FI_SOCKADDR_IN6,
        };
        let node = Node::with(Options { addr_format, ..Options::default() }, |_| ());
        let name = |end: End| name_of(family.address(end), PORT);
        assert_eq!(calls::name(&node), name(end), "the name of this end");
        let other = calls::insert(&node, &name(end.other()));
        let all = FI_REMOTE_READ | FI_REMOTE_WRITE;
        let (mut board, mut shelf) = (vec![UNTOUCHED; BOARD_BYTES], shelf(seed, end));
        let words = Box::new([0; WORDS]);
        // SAFETY: the words stay in place as long as the endpoint.
        let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_ptr() as *mut u8, 8 * WORDS) };
        let regions = [
            node.register(slot(&mut board), BOARD, all).unwrap(),
            node.register(slot(&mut shelf), SHELF, all).unwrap(),
            node.register(bytes, WORD, all).unwrap(),
        ];
        let expected_board = board.clone();
        let sums = [[0; WORDS]; 2];
        Endpoint {
            node,
            end,
            other,
            seed,
            eager,
            start: 0,
            board,
            expected_board,
            _shelf: shelf,
            words,
            sums,
            regions,
        }
    }

    pub(crate) fn tag(&self, class: u64) -> u64 {
        self.start << START_SHIFT | class
    }

    /// Returns a part of the board, the memory that the peer writes, in its current state.
    pub(crate) fn board(&self, at: usize, len: usize) -> Vec<u8> {
        let place = &self.board[at..at + len];
        // SAFETY: bytes within the board, which the provider writes.
        (0..len).map(|index| unsafe { place.as_ptr().add(index).read_volatile() }).collect()
    }

    pub(crate) fn word(&self, word: usize) -> u64 {
        // SAFETY: a word, which the provider adds to.
        unsafe { self.words.as_ptr().add(word).read_volatile() }
    }

    /// Exchanges greetings with a new start of the other endpoint.
    fn greet(&mut self, start: u64, turn: Turn) {
        self.start = start;
        let (hello, answer) = (GREETING | start, ANSWERED | start);
        let (own, other, mut said) = match turn {
            Turn::First => (hello, answer, Said::Due),
            Turn::Second => (answer, hello, Said::NotYet),
        };
        let (mut heard, mut is_heard, begun) = (vec![0; 8], false, Instant::now());
        self.node.trecv(FI_ADDR_UNSPEC, other, 0, slot(&mut heard), HEARD);
        loop {
            match said {
                Said::NotYet if is_heard => said = Said::Due,
                Said::Sent(_) if is_heard => break,
                // The previous start may have received the greeting.
                Said::Sent(at) if turn == Turn::First && at.elapsed() > ANSWER => said = Said::Due,
                _ => {}
            }
            if let Said::Due = said {
                self.node.tsend(self.other, own, b"greeting", SAID);
                said = Said::UnderWay;
            }
            assert!(
                begun.elapsed() < LONGEST_BATCH,
                "no greeting of start {start}: {said:?}, heard: {is_heard}"
            );
            match self.look() {
                None => {}
                Some(Ok((entry, _))) if entry.op_context as usize == HEARD => {
                    assert_eq!((entry.tag, &heard[..]), (other, &b"greeting"[..]));
                    is_heard = true;
                }
                // These are the last writes of the previous start.
                Some(Ok((entry, _))) if start > 0 && entry.flags & FI_REMOTE_WRITE != 0 => {}
                Some(Ok((entry, _))) => {
                    assert_eq!(entry.op_context as usize, SAID, "{entry:?}");
                    said = Said::Sent(Instant::now());
                }
                // The connection with the previous start ends, and its sends and injected messages fail.
                Some(Err(error)) => {
                    assert!(start > 0 && is_end(error.err), "{error:?}");
                    if !error.op_context.is_null() {
                        assert_eq!(error.op_context as usize, SAID, "{error:?}");
                        said = Said::Due;
                    }
                }
            }
        }
        // The new start knows nothing of the previous state.
        self.words.fill(0);
        self.sums = [[0; WORDS]; 2];
        self.expected_board = self.board(0, BOARD_BYTES);
    }

    /// Polls for an entry, and yields the core if there is none.
    pub(crate) fn look(&self) -> Option<Result<(CqTaggedEntry, u64), CqErrEntry>> {
        for _ in 0..50 {
            let found = self.node.poll();
            if found.is_some() {
                return found;
            }
            std::thread::yield_now();
        }
        // The provider's thread takes over.
        std::thread::sleep(Duration::from_millis(1));
        self.node.poll()
    }

    fn close(self) {
        for mr in self.regions {
            assert_eq!(close(mr), 0, "a region stays open");
        }
        drop(self.node);
    }

    /// Injects messages, and closes at once.
    fn part(self) {
        for number in 0..PARTING_MESSAGES {
            let bytes = pattern(100 * number, number as u64);
            calls::inject(&self.node, self.other, PARTING | self.tag(number as u64), &bytes);
        }
        self.close();
    }

    /// Receives the messages that the other endpoint injected before it closed.
    fn see_off(self) {
        let mut places: Vec<Vec<u8>> = (0..PARTING_MESSAGES).map(|number| vec![0; 100 * number]).collect();
        for (number, place) in places.iter_mut().enumerate() {
            self.node.trecv(FI_ADDR_UNSPEC, PARTING | self.tag(number as u64), 0, slot(place), number);
        }
        for _ in 0..PARTING_MESSAGES {
            let entry = self.node.done();
            assert_eq!(entry.len, 100 * entry.op_context as usize);
        }
        for (number, place) in places.iter().enumerate() {
            assert!(*place == pattern(100 * number, number as u64), "parting message {number}");
        }
        self.close();
    }
}

/// Executes orders until there are no more.
pub(crate) fn obey(end: End) {
    // Exits at once, because unwinding would free memory that the provider still sends from.
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say(panic);
        std::process::exit(1);
    }));
    let orders = Orders::read();
    let mut endpoint: Option<Endpoint> = None;
    while let Ok(words) = orders.0.recv() {
        let number = |index: usize| -> u64 { words[index].parse().expect("a number") };
        let the = |endpoint: &mut Option<Endpoint>| endpoint.take().expect("it is open");
        match (words[0].as_str(), &mut endpoint) {
            ("set", _) => {
                // SAFETY: no object that reads the variable is open.
                unsafe { std::env::set_var(&words[1], &words[2]) }
                continue;
            }
            ("open", none) => {
                let address: IpAddr = std::env::var("PATHWEAVE_ADDRESS").unwrap().parse().unwrap();
                let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
                *none = Some(Endpoint::open(end, number(1), family, number(2) as usize));
            }
            ("greet", Some(endpoint)) => {
                endpoint.greet(number(1), if words[2] == "first" { Turn::First } else { Turn::Second });
            }
            ("batch", Some(endpoint)) => {
                let fate = if words[2] == "crash" { Fate::Crash } else { Fate::Whole };
                let batch = Batch::new(endpoint.seed, number(1), endpoint.eager, fate);
                Play::run(endpoint, &batch, &orders);
            }
            ("part", open) => the(open).part(),
            ("seeoff", open) => the(open).see_off(),
            _ => panic!("{words:?}"),
        }
        Orders::say(&format!("{} {}", words[0], resident_kib()));
    }
}
