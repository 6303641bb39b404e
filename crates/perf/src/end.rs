//! An end of a measurement, whichever service carries it, and the server's part in one.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::broken::Broken;
use crate::clients::Moved;
use crate::show::Row;
use crate::tally::Tally;
use crate::test::Kind;
use crate::work::{Watch, Work};

/// Something that has come of a measurement.
pub(crate) enum Came<S> {
    /// A message of the other end.
    Data,
    /// A message of this end is done, or nothing that anybody waits for has come.
    Done,
    /// The other end says something.
    Said(Said<S>),
}

/// What the ends say to each other once they have agreed on what to measure.
#[derive(Debug)]
pub(crate) enum Said<S> {
    /// Client: it begins.
    Start,
    /// Client: that was all.
    Finish,
    /// Server: its part.
    Report(Box<S>),
    /// Client: it has heard that, and nothing follows.
    Bye,
}

/// One end: keeps receives posted and messages under way, and checks bytes.
pub(crate) trait End {
    type Side: Part;
    fn tally(&self) -> &Tally;
    fn tally_mut(&mut self) -> &mut Tally;
    /// Keeps as many messages under way as there may be.
    fn post(&mut self) -> Result<(), Broken>;
    /// Sends the next message.
    fn post_one(&mut self) -> Result<(), Broken>;
    /// The next thing that comes, waiting a little for it.
    fn next(&mut self) -> Result<Option<Came<Self::Side>>, Broken>;
    fn say(&mut self, said: Said<Self::Side>) -> Result<(), Broken>;
    fn stats(&self) -> Option<<Self::Side as Part>::Stats>;
    /// Payload that has arrived, each byte once, and that was sent.
    fn moved_bytes(&self) -> (u64, u64);
}

/// An end's part in a measurement. The server sends its to the client; both are in the JSON output.
pub(crate) trait Part: Serialize + DeserializeOwned + std::fmt::Debug + 'static {
    type Stats;
    /// Width of the names of counts.
    const NAMES: usize;
    /// What was counted between two looks. `others`: measurements the process had at a time, at most.
    fn between(work: Work, others: usize, before: Option<&Self::Stats>, now: Option<&Self::Stats>) -> Self;
    fn work(&self) -> &Work;
    fn others(&self) -> usize;
    /// What people are told of the counts of all sizes: names, and the figures of client and server.
    fn counts(rows: &[Row<Self>]) -> Vec<(&'static str, [u64; 2])>
    where
        Self: Sized;
    /// A table of the paths this end has sent on.
    fn paths(&self, text: &mut String);
}

/// Sums over all sizes, of client and server.
pub(crate) fn sums<S: Part>(rows: &[Row<S>], of: impl Fn(&S) -> u64) -> [u64; 2] {
    [rows.iter().map(|row| of(&row.client)).sum(), rows.iter().map(|row| of(&row.server)).sum()]
}

/// Share of a total, 0 to 1.
pub(crate) fn share(of: u64, total: u64) -> f64 {
    of as f64 / total.max(1) as f64
}

/// A line of two figures.
pub(crate) fn two(text: &mut String, width: usize, name: &str, figures: [impl std::fmt::Display; 2]) {
    let [client, server] = figures;
    let _ = writeln!(text, " {name:<width$} {client:>14} {server:>14}");
}

/// Where counters stood when a measurement began.
pub(crate) struct Mark<S: Part> {
    watch: Watch,
    stats: Option<S::Stats>,
}

impl<S: Part> Mark<S> {
    pub(crate) fn now(end: &impl End<Side = S>) -> Self {
        let stats = end.stats();
        Mark { watch: Watch::now(), stats }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.watch.elapsed()
    }

    /// What has happened since.
    pub(crate) fn side(&self, end: &impl End<Side = S>, others: usize) -> S {
        S::between(end.tally().work(&self.watch), others, self.stats.as_ref(), end.stats().as_ref())
    }
}

/// A measurement at the server.
pub(crate) struct Running<E: End> {
    pub(crate) end: E,
    /// Taken before the client can begin: what it asks for is answered without this end's doing.
    mark: Mark<E::Side>,
    phase: Phase,
    /// What had been moved before the client could begin. Data may overtake its word that it has.
    before: (u64, u64),
    /// When it said so.
    begun: Option<Instant>,
    /// What was moved until the client was told of this end's part.
    moved: Option<Moved>,
    /// Measurements the server had at a time, at most.
    others: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has not begun.
    Waiting,
    /// Messages are under way.
    Running,
    /// The client is done.
    Finishing,
    /// It has been told of this end's part.
    Over,
}

impl<E: End> Running<E> {
    pub(crate) fn new(end: E) -> Self {
        let (mark, before) = (Mark::now(&end), end.moved_bytes());
        Running { end, mark, phase: Phase::Waiting, before, begun: None, moved: None, others: 1 }
    }

    /// The server has so many measurements.
    pub(crate) fn note_others(&mut self, count: usize) {
        self.others = self.others.max(count);
    }

    /// It has been told of this end's part.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Does what follows from what has come. `count`: measurements the server has.
    ///
    /// # Errors
    /// It is over.
    pub(crate) fn go_on(&mut self, came: Came<E::Side>, count: usize) -> Result<(), Broken> {
        let test = self.end.tally().test;
        match came {
            Came::Said(Said::Start) => {
                (self.others, self.phase, self.begun) = (count, Phase::Running, Some(Instant::now()));
            }
            Came::Data if test.kind == Kind::Latency => self.end.post_one()?,
            Came::Said(Said::Finish) => {
                self.phase = Phase::Finishing;
                if test.iterations.is_none() || test.kind == Kind::Latency {
                    self.end.tally_mut().stop();
                }
            }
            Came::Said(Said::Bye) if self.is_over() => {}
            Came::Said(said) => return Err(Broken::Nonsense(format!("a client says {said:?}"))),
            Came::Data | Came::Done => {}
        }
        if matches!(self.phase, Phase::Running | Phase::Finishing) {
            self.end.post()?;
        }
        if self.phase == Phase::Finishing && self.end.tally().is_done() {
            self.phase = Phase::Over;
            self.moved = Some(self.moved_now());
            let side = self.mark.side(&self.end, self.others);
            self.end.say(Said::Report(Box::new(side)))?;
        }
        Ok(())
    }

    /// What was moved, if the client has been told of this end's part.
    pub(crate) fn moved(&self) -> Option<Moved> {
        self.moved
    }

    /// What has been moved since the client began.
    pub(crate) fn moved_now(&self) -> Moved {
        let ((received, sent), (received_before, sent_before)) = (self.end.moved_bytes(), self.before);
        Moved {
            seconds: self.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64()),
            received_bytes: received.saturating_sub(received_before),
            sent_bytes: sent.saturating_sub(sent_before),
        }
    }
}
