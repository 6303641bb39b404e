//! The script of a batch: requests of both ends, drawn from a seed. Both processes draw the same, so each knows what the other asks for.

use pathweave_units::Rng;

/// Longest message, in bytes.
pub(crate) const LONGEST: u32 = 300_000;
/// Longest message that may be injected.
const LONGEST_INJECTED: usize = 1_024;
/// Requests of an end in a batch.
const AT_A_TIME: u32 = 16;
/// Most bytes between two places that are written.
const GAP: u32 = 40;
/// Bytes of the memory that is written, of each end.
pub(crate) const BOARD_BYTES: usize = (AT_A_TIME as usize) * (LONGEST + GAP) as usize;
/// Bytes of the memory that is read, of each end.
pub(crate) const SHELF_BYTES: usize = LONGEST as usize + 100;
/// Words that are added to, of each end.
pub(crate) const WORDS: usize = 8;
/// Tags that messages share.
const CLASSES: u32 = 3;
/// The tag of the last message.
const LAST_CLASS: u64 = 9;

/// An end of a pair.
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

/// A message's class: those of one class match receives in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Plain,
    Tagged(u64),
}

/// The form of a message or WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Bare,
    /// With data for the target's completion queue.
    Data,
    /// The buffer is free at once, and there is no entry.
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

/// The receiver's idea of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Named,
    Anybody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// A message; its receive has room for so many bytes.
    Message {
        class: Class,
        room: usize,
        from: Source,
    },
    /// To a place of the board that nothing else of the batch is written to.
    Write {
        at: usize,
    },
    /// From the shelf.
    Read {
        at: usize,
    },
    /// From the board, what the WRITE of this number has put there.
    ReadBack {
        of: usize,
        at: usize,
    },
    Add {
        word: usize,
        amount: u64,
    },
    /// Adds, and gets the sum before.
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
    /// Of its bytes.
    pub(crate) salt: u64,
}

/// The next deed of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Posts its request of this number.
    Own(usize),
    /// Posts the receive of the other end's message of this number.
    Receive(usize),
}

/// The fate of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// All of it arrives.
    Whole,
    /// The far end dies in it.
    Crash,
}

/// A batch.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) number: u64,
    pub(crate) fate: Fate,
    /// Of the near end, and of the far one.
    pub(crate) ops: [Vec<Op>; 2],
    pub(crate) steps: [Vec<Step>; 2],
}

/// One of a few.
pub(crate) fn draw<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u32) as usize]
}

/// A length: small ones as likely as large ones, and those at which the provider changes its ways.
fn len(rng: &mut Rng, eager: usize) -> usize {
    if rng.chance(0.2) {
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
                // What no receive has taken when an end dies would match one of later: a tag is of one start.
                let plain = fate == Fate::Whole && rng.chance(0.3);
                let tag = u64::from(rng.below(CLASSES));
                let class = if plain { Class::Plain } else { Class::Tagged(tag) };
                // At times without room for all of it.
                let room = if rng.chance(0.1) { rng.below(len as u32 + 1) as usize } else { len };
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
            // A WRITE of nothing is one of a byte, so that each has a place of its own.
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
    // All writes before it are in place when it arrives.
    let verb = Verb::Message { class: Class::Tagged(LAST_CLASS), room: 8, from: Source::Named };
    ops.push(Op { verb, form: Form::Bare, len: 8, salt: rng.next_u64() });
    ops
}

/// Requests in their order, and receives of each class in the order of sending, mixed.
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
    // Often all receives first or last.
    let bias = draw(rng, &[0.0, 0.5, 1.0]);
    let mut mixed = Vec::new();
    while !queues.is_empty() {
        let last = queues.len() - 1;
        let which = if last > 0 && rng.chance(bias) { rng.below(last as u32) as usize } else { last };
        let which = if rng.chance(0.3) { rng.below(queues.len() as u32) as usize } else { which };
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

    /// The number that an end's request is known by, at both ends.
    pub(crate) fn name(&self, index: usize) -> u64 {
        self.number << 16 | index as u64
    }
}
