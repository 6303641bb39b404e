//! An end in a process of its own, which posts what the script says, and compares every entry and every byte.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use pathweave_units::Rng;

use crate::calls::{self, name_of};
use crate::client::*;
use crate::script::{BOARD_BYTES, Batch, Class, End, Fate, SHELF_BYTES, Source, Step, Verb, WORDS};
use crate::wire::Family;

/// The port of both ends, the same after each start.
pub(crate) const PORT: u16 = 18_500;
/// Keys of the memory that is open to the other end.
pub(crate) const BOARD: u64 = 1;
pub(crate) const SHELF: u64 = 2;
pub(crate) const WORD: u64 = 3;
/// As long as a batch may take.
const LONGEST_BATCH: Duration = Duration::from_secs(60);
/// As long as an answer to a greeting is waited for, before another.
const ANSWER: Duration = Duration::from_secs(3);
/// Bytes behind a place that must stay as they are.
const MARGIN: usize = 16;
const UNTOUCHED: u8 = 0xee;
/// In tags: which start of the far end a message is of, and greetings.
const START_SHIFT: u32 = 32;
const GREETING: u64 = 1 << 60;
const ANSWERED: u64 = 1 << 61;
const PARTING: u64 = 1 << 62;
/// In contexts: receives.
const RECEIVE: u64 = 1 << 15;
/// Messages that are injected right before an endpoint is closed.
const PARTING_MESSAGES: usize = 5;

/// Memory of this program that is in RAM, in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it tells of RAM");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Words from the test that has started this process, and to it.
struct Orders(Receiver<Vec<String>>);

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

    fn say(word: &str) {
        let mut out = std::io::stdout();
        writeln!(out, "\nsays {word}").unwrap();
        out.flush().unwrap();
    }
}

/// An endpoint, its memory, and the model of what peers have done to it.
struct Endpoint {
    node: Node,
    end: End,
    other: u64,
    seed: u64,
    eager: usize,
    /// Starts of the far end.
    start: u64,
    board: Vec<u8>,
    expected_board: Vec<u8>,
    _shelf: Vec<u8>,
    words: Box<[u64; WORDS]>,
    /// Sums at this end, and at the other.
    sums: [[u64; WORDS]; 2],
    regions: [*mut FidMr; 3],
}

/// Bytes of the shelf of an end.
fn shelf(seed: u64, end: End) -> Vec<u8> {
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
        // SAFETY: the words stay where they are as long as the endpoint.
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

    fn tag(&self, class: u64) -> u64 {
        self.start << START_SHIFT | class
    }

    /// The board, as peers have written it until now.
    fn board(&self, at: usize, len: usize) -> Vec<u8> {
        let place = &self.board[at..at + len];
        // SAFETY: bytes within the board, which the provider writes.
        (0..len).map(|index| unsafe { place.as_ptr().add(index).read_volatile() }).collect()
    }

    fn word(&self, word: usize) -> u64 {
        // SAFETY: a word, which the provider adds to.
        unsafe { self.words.as_ptr().add(word).read_volatile() }
    }

    /// Meets another start of the other end, which is the first to speak, or is spoken to.
    fn greet(&mut self, start: u64, speaks: bool) {
        self.start = start;
        let (hello, answer) = (GREETING | start, ANSWERED | start);
        let (first, second) = if speaks { (hello, answer) } else { (answer, hello) };
        let mut heard = vec![0; 8];
        let begun = Instant::now();
        self.node.trecv(FI_ADDR_UNSPEC, second, 0, slot(&mut heard), 1);
        let mut waits = !speaks;
        let (mut is_sent, mut is_heard, mut said) = (false, false, Instant::now());
        while !(is_sent && is_heard) {
            assert!(
                begun.elapsed() < LONGEST_BATCH,
                "no greeting of start {start}: sent {is_sent}, heard {is_heard}"
            );
            let lost = speaks && is_sent && said.elapsed() > ANSWER;
            if !waits && (!is_sent || lost) {
                self.node.tsend(self.other, first, b"greeting", 2);
                (waits, is_sent, said) = (true, false, Instant::now());
            }
            match self.look() {
                None => {}
                Some(Ok((entry, _))) if entry.op_context as u64 == 1 => {
                    assert_eq!((entry.tag, &heard[..]), (second, &b"greeting"[..]));
                    is_heard = true;
                    waits &= speaks;
                }
                // The last writes of the start before.
                Some(Ok((entry, _))) if start > 0 && entry.flags & FI_REMOTE_WRITE != 0 => {}
                Some(Ok((entry, _))) => {
                    assert_eq!(entry.op_context as u64, 2, "{entry:?}");
                    (waits, is_sent) = (false, true);
                }
                // The connection of the start before ends, with what was injected.
                Some(Err(error)) if start > 0 && error.op_context.is_null() => {
                    assert!(is_end(error.err), "{error:?}");
                }
                Some(Err(error)) => {
                    assert_eq!(error.op_context as u64, 2, "{error:?}");
                    assert!(start > 0 && is_end(error.err), "{error:?}");
                    (waits, is_sent) = (false, false);
                }
            }
        }
        // The other end knows nothing of what was.
        self.words.fill(0);
        self.sums = [[0; WORDS]; 2];
        self.expected_board = self.board(0, BOARD_BYTES);
    }

    /// Looks for an entry, and lets others have the core if there is none.
    fn look(&self) -> Option<Result<(CqTaggedEntry, u64), CqErrEntry>> {
        for _ in 0..50 {
            let found = self.node.poll();
            if found.is_some() {
                return found;
            }
            std::thread::yield_now();
        }
        // The thread of the provider takes over.
        std::thread::sleep(Duration::from_millis(1));
        self.node.poll()
    }

    /// Plays a batch.
    fn play(&mut self, batch: &Batch, orders: &Orders) {
        let mut play = Play::new(self, batch);
        let steps = &batch.steps[play.at.end as usize];
        let mut rng = Rng::for_component(play.at.seed, "pace", batch.number);
        for step in steps {
            play.post(*step);
            while rng.chance(0.3) {
                if let Some(found) = play.at.node.poll() {
                    play.saw(found);
                }
            }
        }
        let mut is_lost = false;
        while !play.is_done(is_lost) {
            assert!(play.begun.elapsed() < LONGEST_BATCH, "batch {}: {}", batch.number, play.left());
            if let Some(found) = play.at.look() {
                play.saw(found);
            }
            match orders.0.try_recv() {
                Err(TryRecvError::Empty) => {}
                Ok(words) if words[0] == "lost" => {
                    is_lost = true;
                    play.cancel();
                }
                other => panic!("{other:?} in a batch"),
            }
        }
        if batch.fate == Fate::Whole {
            play.compare();
        }
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

    /// Receives what the other end has injected before it closed.
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

/// The errors by which requests end with their connection.
fn is_end(errno: i32) -> bool {
    [FI_ECONNRESET, FI_ETIMEDOUT, FI_ECONNREFUSED].contains(&errno)
}

/// A batch that is being played.
struct Play<'a> {
    at: &'a mut Endpoint,
    batch: &'a Batch,
    begun: Instant,
    /// Bytes of own requests, and places of receives, by number.
    own: Vec<Vec<u8>>,
    places: Vec<Vec<u8>>,
    /// Contexts and data whose entries are to come.
    left: BTreeSet<u64>,
    data_left: BTreeSet<u64>,
    /// Requests of this end that may have an entry of their failure.
    injected: usize,
    /// Sums before, of those that fetch them.
    fetched: Vec<u64>,
    /// Requests of the other end whose writes are compared.
    compared: usize,
}

impl<'a> Play<'a> {
    fn new(at: &'a mut Endpoint, batch: &'a Batch) -> Self {
        let ops = End::BOTH.map(|end| &batch.ops[end as usize]);
        let (own, other) = (ops[at.end as usize], ops[at.end.other() as usize]);
        let has_entry = |step: &Step| match step {
            Step::Own(index) => own[*index].form.has_entry(),
            Step::Receive(_) => true,
        };
        let steps = batch.steps[at.end as usize].iter();
        let left = steps.filter(|step| has_entry(step)).map(|step| context(batch, *step)).collect();
        let writes = other
            .iter()
            .enumerate()
            .filter(|(_, op)| matches!(op.verb, Verb::Write { .. }) && op.form.has_data());
        let data_left = writes.map(|(index, _)| batch.name(index)).collect();
        let sums = &mut at.sums[1];
        let fetched = own.iter().map(|op| match op.verb {
            Verb::Add { word, amount } | Verb::Fetch { word, amount } => {
                let before = sums[word];
                sums[word] = before.wrapping_add(amount);
                before
            }
            _ => 0,
        });
        let fetched = fetched.collect();
        for op in other {
            if let Verb::Add { word, amount } | Verb::Fetch { word, amount } = op.verb {
                at.sums[0][word] = at.sums[0][word].wrapping_add(amount);
            }
        }
        Play {
            begun: Instant::now(),
            own: own.iter().map(|op| pattern(op.len, op.salt)).collect(),
            places: other
                .iter()
                .map(|op| match op.verb {
                    Verb::Message { room, .. } => vec![UNTOUCHED; room + MARGIN],
                    _ => Vec::new(),
                })
                .collect(),
            left,
            data_left,
            injected: own.iter().filter(|op| !op.form.has_entry()).count(),
            fetched,
            compared: 0,
            at,
            batch,
        }
    }

    fn post(&mut self, step: Step) {
        let (node, to) = (&self.at.node, self.at.other);
        let index = match step {
            Step::Own(index) => index,
            Step::Receive(index) => {
                let Verb::Message { class, room, from } =
                    self.batch.ops[self.at.end.other() as usize][index].verb
                else {
                    panic!("{step:?} is no message")
                };
                let from = if from == Source::Named { to } else { FI_ADDR_UNSPEC };
                let (place, context) =
                    (&mut slot(&mut self.places[index])[..room], context(self.batch, step));
                return match class {
                    Class::Plain => node.recv(from, place, context as usize),
                    Class::Tagged(class) => node.trecv(from, self.at.tag(class), 0, place, context as usize),
                };
            }
        };
        let op = self.batch.ops[self.at.end as usize][index];
        let (context, data) = (context(self.batch, step) as usize, self.batch.name(index));
        let bytes = &mut self.own[index];
        let target = match op.verb {
            Verb::Message { class: Class::Plain, .. } => calls::Target::Plain,
            Verb::Message { class: Class::Tagged(class), .. } => calls::Target::Tagged(self.at.tag(class)),
            Verb::Write { at } => calls::Target::Memory { at: at as u64, key: BOARD },
            Verb::Read { at } | Verb::ReadBack { at, .. } => {
                let key = if matches!(op.verb, Verb::Read { .. }) { SHELF } else { BOARD };
                bytes.fill(UNTOUCHED);
                bytes.extend([UNTOUCHED; MARGIN]);
                return node.read(to, key, at as u64, &mut slot(bytes)[..op.len], context);
            }
            Verb::Add { word, amount } => {
                bytes.copy_from_slice(&amount.to_le_bytes());
                return calls::add(node, to, (8 * word as u64, WORD), bytes, None, context);
            }
            Verb::Fetch { word, amount } => {
                bytes.copy_from_slice(&amount.to_le_bytes());
                bytes.extend([UNTOUCHED; 8]);
                let (amount, before) = slot(bytes).split_at_mut(8);
                return calls::add(node, to, (8 * word as u64, WORD), amount, Some(before), context);
            }
        };
        calls::send(node, to, target, op.form, bytes, data, context);
        if !op.form.has_entry() {
            // They were copied.
            bytes.fill(UNTOUCHED);
        }
    }

    fn saw(&mut self, found: Result<(CqTaggedEntry, u64), CqErrEntry>) {
        match found {
            Ok((entry, source)) => self.succeeded(&entry, source),
            Err(error) => self.failed(&error),
        }
    }

    /// Takes a context off those that are left.
    fn step_of(&mut self, context: u64, entry: &dyn std::fmt::Debug) -> Step {
        assert!(
            self.left.remove(&context),
            "an entry that nothing is waited for with, or one twice: {entry:?}"
        );
        let index = (context & (RECEIVE - 1)) as usize;
        if context & RECEIVE == 0 { Step::Own(index) } else { Step::Receive(index) }
    }

    fn failed(&mut self, error: &CqErrEntry) {
        if self.batch.fate == Fate::Crash && error.op_context.is_null() {
            // What was injected has an entry only if it failed.
            assert!(is_end(error.err) && self.injected > 0, "{error:?}");
            self.injected -= 1;
            return;
        }
        let step = self.step_of(error.op_context as u64, error);
        let of_crash = self.batch.fate == Fate::Crash && (is_end(error.err) || error.err == FI_ECANCELED);
        if of_crash {
            return;
        }
        let Step::Receive(index) = step else {
            let Step::Own(index) = step else { unreachable!() };
            let ops = &self.batch.ops[self.at.end as usize];
            panic!("number {index} of {:?} failed: {error:?}; all: {ops:#?}", self.at.end);
        };
        let op = self.batch.ops[self.at.end.other() as usize][index];
        let Verb::Message { room, .. } = op.verb else { panic!("no message") };
        assert!(room < op.len, "{op:?} failed: {error:?}");
        assert_eq!((error.err, error.len, error.olen), (FI_ETRUNC, room, op.len - room), "{op:?}: {error:?}");
        self.received(index, room);
    }

    fn succeeded(&mut self, entry: &CqTaggedEntry, source: u64) {
        if entry.flags & FI_REMOTE_WRITE != 0 {
            assert_eq!(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
            assert!(self.data_left.remove(&entry.data), "data of nothing, or twice: {entry:?}");
            let op = self.batch.ops[self.at.end.other() as usize][(entry.data & 0xffff) as usize];
            let Verb::Write { at } = op.verb else { panic!("{op:?} is no WRITE") };
            assert!(
                self.at.board(at, op.len) == pattern(op.len, op.salt),
                "the bytes of {op:?} at its entry"
            );
            return;
        }
        match self.step_of(entry.op_context as u64, entry) {
            Step::Own(index) => self.ended(index, entry),
            Step::Receive(index) => {
                let op = self.batch.ops[self.at.end.other() as usize][index];
                let Verb::Message { class, room, .. } = op.verb else { panic!("no message") };
                let kind = if class == Class::Plain { FI_MSG } else { FI_TAGGED };
                let data = if op.form.has_data() { FI_REMOTE_CQ_DATA } else { 0 };
                assert_eq!((entry.flags, entry.len), (kind | FI_RECV | data, op.len), "{op:?}");
                assert_eq!(source, self.at.other, "the source of {op:?}");
                if op.form.has_data() {
                    assert_eq!(entry.data, self.batch.name(index), "{op:?}");
                }
                if let Class::Tagged(class) = class {
                    assert_eq!(entry.tag, self.at.tag(class), "{op:?}");
                }
                assert!(room >= op.len, "{op:?} fits");
                self.received(index, op.len);
            }
        }
    }

    /// So many bytes of a message are here: they are its own, and all writes before it are in place.
    fn received(&mut self, index: usize, len: usize) {
        let ops = &self.batch.ops[self.at.end.other() as usize];
        let (op, place) = (&ops[index], &self.places[index]);
        assert!(place[..len] == pattern(op.len, op.salt)[..len], "the bytes of {op:?}");
        assert!(place[len..].iter().all(|byte| *byte == UNTOUCHED), "behind {op:?}");
        for before in self.compared..index {
            if let Verb::Write { at } = ops[before].verb {
                let bytes = pattern(ops[before].len, ops[before].salt);
                assert!(self.at.board(at, bytes.len()) == bytes, "{op:?} has overtaken {:?}", ops[before]);
                self.at.expected_board[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        self.compared = self.compared.max(index);
    }

    /// A request of this end has ended well.
    fn ended(&mut self, index: usize, entry: &CqTaggedEntry) {
        let op = self.batch.ops[self.at.end as usize][index];
        let bytes = &self.own[index];
        let flags = match op.verb {
            Verb::Message { class: Class::Plain, .. } => FI_MSG | FI_SEND,
            Verb::Message { .. } => FI_TAGGED | FI_SEND,
            Verb::Write { .. } => FI_RMA | FI_WRITE,
            Verb::Read { .. } | Verb::ReadBack { .. } => FI_RMA | FI_READ,
            Verb::Add { .. } => FI_ATOMIC | FI_WRITE,
            Verb::Fetch { .. } => FI_ATOMIC | FI_READ,
        };
        assert_eq!(entry.flags, flags, "{op:?}");
        match op.verb {
            Verb::Read { at } => {
                let there = shelf(self.at.seed, self.at.end.other());
                assert!(bytes[..op.len] == there[at..at + op.len], "the bytes of {op:?}");
            }
            Verb::ReadBack { of, .. } => {
                let written = self.batch.ops[self.at.end as usize][of];
                assert!(bytes[..op.len] == pattern(written.len, written.salt), "{op:?} of {written:?}");
            }
            Verb::Fetch { .. } => {
                assert_eq!(bytes[8..], self.fetched[index].to_le_bytes(), "{op:?}");
            }
            _ => {
                assert!(matches!(op.verb, Verb::Add { .. }) || *bytes == pattern(op.len, op.salt));
                return;
            }
        }
        let read = if matches!(op.verb, Verb::Fetch { .. }) { 16 } else { op.len };
        assert!(bytes[read..].iter().all(|byte| *byte == UNTOUCHED), "behind {op:?}");
    }

    /// The other end is gone: nothing will be received any more.
    fn cancel(&self) {
        assert_eq!(self.batch.fate, Fate::Crash);
        for context in self.left.iter().filter(|context| *context & RECEIVE != 0) {
            self.at.node.cancel(*context as usize);
        }
    }

    fn is_done(&self, is_lost: bool) -> bool {
        match self.batch.fate {
            Fate::Whole => self.left.is_empty() && self.data_left.is_empty(),
            Fate::Crash => is_lost && self.left.is_empty(),
        }
    }

    /// Entries that have not come.
    fn left(&self) -> String {
        let of = |context: &u64| {
            let index = (context & (RECEIVE - 1)) as usize;
            let end = if context & RECEIVE == 0 { self.at.end } else { self.at.end.other() };
            format!("of {end:?}: {:?}", self.batch.ops[end as usize][index])
        };
        let left: Vec<String> = self.left.iter().map(of).collect();
        format!("stuck: {left:#?}, data of {:?}", self.data_left)
    }

    /// All memory that the other end can change.
    fn compare(&self) {
        let begun = Instant::now();
        for (word, sum) in self.at.sums[0].iter().enumerate() {
            while self.at.word(word) != *sum {
                assert!(begun.elapsed() < LONGEST_BATCH, "word {word} is {}, not {sum}", self.at.word(word));
                let found = self.at.look();
                assert!(found.is_none(), "an entry too many: {found:?}");
            }
        }
        let board = self.at.board(0, BOARD_BYTES);
        if let Some(at) = (0..BOARD_BYTES).find(|at| board[*at] != self.at.expected_board[*at]) {
            panic!("byte {at} of the board is {:#x}, not {:#x}", board[at], self.at.expected_board[at]);
        }
    }
}

fn context(batch: &Batch, step: Step) -> u64 {
    match step {
        Step::Own(index) => batch.name(index),
        Step::Receive(index) => batch.name(index) | RECEIVE,
    }
}

/// Does what it is told until it is told no more.
pub(crate) fn obey(end: End) {
    // At once: what unwinds frees memory that the provider still sends from.
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
                // SAFETY: nothing that reads it is open.
                unsafe { std::env::set_var(&words[1], &words[2]) }
                continue;
            }
            ("open", none) => {
                let address: IpAddr = std::env::var("PATHWEAVE_ADDRESS").unwrap().parse().unwrap();
                let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
                *none = Some(Endpoint::open(end, number(1), family, number(2) as usize));
            }
            ("greet", Some(endpoint)) => endpoint.greet(number(1), words[2] == "first"),
            ("batch", Some(endpoint)) => {
                let fate = if words[2] == "crash" { Fate::Crash } else { Fate::Whole };
                let batch = Batch::new(endpoint.seed, number(1), endpoint.eager, fate);
                endpoint.play(&batch, &orders);
            }
            ("part", open) => the(open).part(),
            ("seeoff", open) => the(open).see_off(),
            _ => panic!("{words:?}"),
        }
        Orders::say(&format!("{} {}", words[0], resident_kib()));
    }
}
