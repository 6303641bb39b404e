//! Script of a batch: requests of both endpoints, drawn from a seed. Both processes draw the same script, so
//! each knows the other's requests.

use pathweave_units::Rng;

/// Largest message, bytes.
pub(crate) const LONGEST: u32 = 300_000;
/// Largest message that may be injected, bytes.
const LONGEST_INJECTED: usize = 1_024;
/// Number of requests of an endpoint in a batch.
const AT_A_TIME: u32 = 16;
/// Largest distance between two places that are written, bytes.
const GAP: u32 = 40;
/// Size of each endpoint's memory that is written, bytes.
pub(crate) const BOARD_BYTES: usize = (AT_A_TIME as usize) * (LONGEST + GAP) as usize;
/// Size of each endpoint's memory that is read, bytes.
pub(crate) const SHELF_BYTES: usize = LONGEST as usize + 100;
/// Number of each endpoint's words that are added to.
pub(crate) const WORDS: usize = 8;
/// Number of tags that messages share.
const CLASSES: u32 = 3;
/// Tag of the last message.
const LAST_CLASS: u64 = 9;

/// An endpoint of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Near,
    Far,
}

impl End {
    pub(crate) const BOTH: [End; 2] = [End::Near, End::Far];

    pub(crate) fn other(self) -> End {
        match self {
            End::Near => End::Far,
            End::Far => End::Near,
        }
    }
}

/// Class of a message. Messages of one class match receives in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Plain,
    Tagged(u64),
}

/// Form of a message or WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Bare,
    /// With immediate data for the target's completion queue.
    Data,
    /// Injected: the buffer is free at once, and there is no entry.
    Injected,
    InjectedData,
}

impl Form {
    pub(crate) fn has_data(self) -> bool {
        matches!(self, Form::Data | Form::InjectedData)
    }

    pub(crate) fn has_entry(self) -> bool {
        matches!(self, Form::Bare | Form::Data)
    }
}

/// Sender that a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Named,
    Anybody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// A message. Its receive has room for this many bytes.
    Message {
        class: Class,
        room: usize,
        from: Source,
    },
    /// A WRITE to a part of the board that no other request of the batch writes.
    Write {
        at: usize,
    },
    /// A READ from the shelf.
    Read {
        at: usize,
    },
    /// A READ from the board of the bytes that the WRITE of this number has written.
    ReadBack {
        of: usize,
        at: usize,
    },
    Add {
        word: usize,
        amount: u64,
    },
    /// Adds to a word, and returns the previous sum.
    Fetch {
        word: usize,
        amount: u64,
    },
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) verb: Verb,
    pub(crate) form: Form,
    pub(crate) len: usize,
    /// Seed of its bytes.
    pub(crate) salt: u64,
}

/// Next step of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Posts its own request with this number.
    Own(usize),
    /// Posts the receive of the other endpoint's message with this number.
    Receive(usize),
}

/// Outcome of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// All requests arrive.
    Whole,
    /// The far endpoint is killed during the batch.
    Crash,
}

/// A batch.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) number: u64,
    pub(crate) fate: Fate,
    /// Requests of the near endpoint, and of the far one.
    pub(crate) ops: [Vec<Op>; 2],
    pub(crate) steps: [Vec<Step>; 2],
}

/// Draws one of a few values.
pub(crate) fn draw<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u32) as usize]
}

/// Draws a length. Small lengths are as likely as large ones, and the limits at which the provider changes
/// its protocol are included.
fn len(rng: &mut Rng, eager: usize) -> usize {
    if rng.bernoulli(0.2) {
        return draw(
            rng,
            &[0, 1, LONGEST_INJECTED, LONGEST_INJECTED + 1, eager - 1, eager, eager + 1, 65_537],
        );
    }
    let most = LONGEST >> rng.below(19);
    rng.below(most + 1) as usize
}

fn ops(rng: &mut Rng, eager: usize, fate: Fate) -> Vec<Op> {
    let (mut ops, mut board): (Vec<Op>, usize) = (Vec::new(), 0);
    for _ in 0..=rng.below(AT_A_TIME - 1) {
        let mut len = len(rng, eager);
        let mut form = draw(rng, &[Form::Bare, Form::Bare, Form::Data, Form::Injected, Form::InjectedData]);
        let mut written = ops.iter().enumerate().filter_map(|(of, op)| match op.verb {
            Verb::Write { at } if op.form.has_entry() => Some((of, at, op.len)),
            _ => None,
        });
        let last_write = written.next_back();
        let (word, amount) = (rng.below(WORDS as u32) as usize, rng.next_u64() >> 20);
        let verb = match (rng.below(10), last_write) {
            (0..=3, _) => {
                // A message that no receive has matched when an endpoint is killed would match a later
                // receive. So each tag belongs to one start.
                let plain = fate == Fate::Whole && rng.bernoulli(0.3);
                let tag = u64::from(rng.below(CLASSES));
                let class = if plain { Class::Plain } else { Class::Tagged(tag) };
                // In some cases, the receive lacks room for the whole message.
                let room = if rng.bernoulli(0.1) { rng.below(len as u32 + 1) as usize } else { len };
                Verb::Message { class, room, from: draw(rng, &[Source::Named, Source::Anybody]) }
            }
            (4 | 5, _) => Verb::Write { at: board + rng.below(GAP) as usize },
            (6, Some((of, at, bytes))) => {
                (len, form) = (bytes, Form::Bare);
                Verb::ReadBack { of, at }
            }
            (6 | 7, _) => Verb::Read { at: rng.below((SHELF_BYTES - len) as u32) as usize },
            (8, _) => Verb::Add { word, amount },
            _ => Verb::Fetch { word, amount },
        };
        match verb {
            Verb::Message { .. } => {}
            // A WRITE has at least one byte, so that each has a place of its own.
            Verb::Write { .. } => len = len.max(1),
            Verb::Read { .. } | Verb::ReadBack { .. } => (len, form) = (len.max(1), Form::Bare),
            Verb::Add { .. } | Verb::Fetch { .. } => (len, form) = (8, Form::Bare),
        }
        if !form.has_entry() && len > LONGEST_INJECTED {
            form = if form.has_data() { Form::Data } else { Form::Bare };
        }
        if let Verb::Write { at } = verb {
            board = at + len;
        }
        ops.push(Op { verb, form, len, salt: rng.next_u64() });
    }
    // All writes before this message are in place when it arrives.
    let verb = Verb::Message { class: Class::Tagged(LAST_CLASS), room: 8, from: Source::Named };
    ops.push(Op { verb, form: Form::Bare, len: 8, salt: rng.next_u64() });
    ops
}

/// Mixes requests in their order with receives, whose order within each class is that of sending.
fn steps(rng: &mut Rng, own: &[Op], other: &[Op]) -> Vec<Step> {
    let mut of_classes: Vec<(Class, Vec<Step>)> = Vec::new();
    for (number, op) in other.iter().enumerate() {
        let Verb::Message { class, .. } = op.verb else { continue };
        match of_classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, steps)) => steps.push(Step::Receive(number)),
            None => of_classes.push((class, vec![Step::Receive(number)])),
        }
    }
    let mut queues: Vec<Vec<Step>> = of_classes.into_iter().map(|(_, steps)| steps).collect();
    queues.push((0..own.len()).map(Step::Own).collect());
    queues.iter_mut().for_each(|steps| steps.reverse());
    // Often all receives come first or last.
    let bias = draw(rng, &[0.0, 0.5, 1.0]);
    let mut mixed = Vec::new();
    while !queues.is_empty() {
        let last = queues.len() - 1;
        let which = if last > 0 && rng.bernoulli(bias) { rng.below(last as u32) as usize } else { last };
        let which = if rng.bernoulli(0.3) { rng.below(queues.len() as u32) as usize } else { which };
        mixed.extend(queues[which].pop());
        queues.retain(|steps| !steps.is_empty());
    }
    mixed
}

impl Batch {
    pub(crate) fn new(seed: u64, number: u64, eager: usize, fate: Fate) -> Self {
        let mut rng = Rng::for_component(seed, "batch", number);
        let ops = End::BOTH.map(|_| ops(&mut rng, eager, fate));
        let steps = End::BOTH.map(|end| steps(&mut rng, &ops[end as usize], &ops[end.other() as usize]));
        Batch { number, fate, ops, steps }
    }

    /// Returns the number of a request, which is the same at both endpoints.
    pub(crate) fn name(&self, index: usize) -> u64 {
        self.number << 16 | index as u64
    }
}
