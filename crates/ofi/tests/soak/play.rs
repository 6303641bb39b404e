//! Execution of a batch by one endpoint: posts its requests and receives, and compares every entry and every
//! byte with the script.

use std::collections::BTreeSet;
use std::sync::mpsc::TryRecvError;
use std::time::Instant;

use pathweave_units::Rng;

use crate::calls;
use crate::client::*;
use crate::end::{BOARD, Endpoint, LONGEST_BATCH, Orders, SHELF, UNTOUCHED, WORD, shelf};
use crate::script::{BOARD_BYTES, Batch, Class, End, Fate, Source, Step, Verb};

/// Number of bytes after a place that must stay unchanged.
const MARGIN: usize = 16;
/// Bit of contexts that marks receives.
const RECEIVE: u64 = 1 << 15;

/// Returns true for an error with which requests end when their connection ends.
pub(crate) fn is_end(errno: i32) -> bool {
    [FI_ECONNRESET, FI_ETIMEDOUT, FI_ECONNREFUSED].contains(&errno)
}

/// A batch in execution.
pub(crate) struct Play<'a> {
    at: &'a mut Endpoint,
    batch: &'a Batch,
    begun: Instant,
    /// Bytes of own requests by number, and in `places` the memory of receives.
    own: Vec<Vec<u8>>,
    places: Vec<Vec<u8>>,
    /// Contexts whose entries are expected, and in `data_left` the immediate data.
    left: BTreeSet<u64>,
    data_left: BTreeSet<u64>,
    /// Number of requests of this endpoint that have an entry only if they fail.
    injected: usize,
    /// Fetched sums, by request.
    fetched: Vec<u64>,
    /// Number of requests of the other endpoint whose writes have been compared.
    compared: usize,
}

impl<'a> Play<'a> {
    /// Executes a batch to its end.
    pub(crate) fn run(at: &'a mut Endpoint, batch: &'a Batch, orders: &Orders) {
        let mut play = Play::new(at, batch);
        let steps = &batch.steps[play.at.end as usize];
        let mut rng = Rng::for_component(play.at.seed, "pace", batch.number);
        for step in steps {
            play.post(*step);
            while rng.bernoulli(0.3) {
                if let Some(found) = play.at.node.poll() {
                    play.saw(found);
                }
            }
        }
        if batch.fate == Fate::Crash {
            // From now on, the other endpoint may restart; then it knows nothing of this batch.
            Orders::say("posted 0");
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
            // The bytes of an injected message were copied.
            bytes.fill(UNTOUCHED);
        }
    }

    fn saw(&mut self, found: Result<(CqTaggedEntry, u64), CqErrEntry>) {
        match found {
            Ok((entry, source)) => self.succeeded(&entry, source),
            Err(error) => self.failed(&error),
        }
    }

    /// Removes a context from the expected ones. Returns its step.
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
            // An injected request has an entry only if it failed.
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

    /// Compares the bytes of a received message, and of all writes before it, which must be in place.
    fn received(&mut self, index: usize, len: usize) {
        let ops = &self.batch.ops[self.at.end.other() as usize];
        let (op, place) = (&ops[index], &self.places[index]);
        assert!(place[..len] == pattern(op.len, op.salt)[..len], "the bytes of {op:?}");
        assert!(place[len..].iter().all(|byte| *byte == UNTOUCHED), "behind {op:?}");
        for before in ops.iter().take(index).skip(self.compared) {
            if let Verb::Write { at } = before.verb {
                let bytes = pattern(before.len, before.salt);
                assert!(self.at.board(at, bytes.len()) == bytes, "{op:?} has overtaken {before:?}");
                self.at.expected_board[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        self.compared = self.compared.max(index);
    }

    /// Checks the entry of a successful request of this endpoint.
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
                assert_eq!(
                    bytes[8..],
                    self.fetched[index].to_le_bytes(),
                    "{op:?} of a batch {:?}",
                    self.batch.fate
                );
            }
            _ => {
                assert!(matches!(op.verb, Verb::Add { .. }) || *bytes == pattern(op.len, op.salt));
                return;
            }
        }
        let read = if matches!(op.verb, Verb::Fetch { .. }) { 16 } else { op.len };
        assert!(bytes[read..].iter().all(|byte| *byte == UNTOUCHED), "behind {op:?}");
    }

    /// Cancels all receives, because the other endpoint has ended.
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

    /// Describes the entries that have not arrived.
    fn left(&self) -> String {
        let of = |context: &u64| {
            let index = (context & (RECEIVE - 1)) as usize;
            let end = if context & RECEIVE == 0 { self.at.end } else { self.at.end.other() };
            format!("of {end:?}: {:?}", self.batch.ops[end as usize][index])
        };
        let left: Vec<String> = self.left.iter().map(of).collect();
        format!("stuck: {left:#?}, data of {:?}", self.data_left)
    }

    /// Compares all memory that the other endpoint can change.
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
