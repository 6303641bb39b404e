//! One end of a measurement, independent of the service, and the server's state machine.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::broken::MeasureError;
use crate::clients::Transferred;
use crate::report::Row;
use crate::tally::Counters;
use crate::test::Kind;
use crate::work::{Watch, Work};

/// Event of a measurement.
pub(crate) enum Came<S> {
    /// A message of the peer arrived.
    Data,
    /// A message of this end completed, or an event without further meaning occurred.
    Done,
    /// A control message of the peer arrived.
    Said(Control<S>),
}

/// Control message after client and server have agreed on the measurement.
#[derive(Debug)]
pub(crate) enum Control<S> {
    /// Client: the measurement begins.
    Start,
    /// Client: it has sent its last message.
    Finish,
    /// Server: its report.
    Report(Box<S>),
    /// Client: it has received the report, and nothing follows.
    Bye,
}

/// One end: keeps receives posted and messages in flight, and checks bytes.
pub(crate) trait End {
    type Side: Part;
    fn tally(&self) -> &Counters;
    fn tally_mut(&mut self) -> &mut Counters;
    /// Posts messages until the window is full.
    fn post(&mut self) -> Result<(), MeasureError>;
    /// Sends the next message.
    fn post_one(&mut self) -> Result<(), MeasureError>;
    /// Returns the next event, and waits a short time for it.
    fn next(&mut self) -> Result<Option<Came<Self::Side>>, MeasureError>;
    fn send_control(&mut self, said: Control<Self::Side>) -> Result<(), MeasureError>;
    fn stats(&self) -> Option<<Self::Side as Part>::Stats>;
    /// Returns the payload received, each byte counted once, and the payload sent.
    fn moved_bytes(&self) -> (u64, u64);
}

/// Report of one end about a measurement. The server sends its report to the client. Both appear in the JSON output.
pub(crate) trait Part: Serialize + DeserializeOwned + std::fmt::Debug + 'static {
    type Stats;
    /// Width of the column with the names of counters.
    const NAMES: usize;
    /// Builds the report from the counters at the begin and the end. `others` is the largest number of measurements
    /// that the process had at a time.
    fn between(work: Work, others: usize, before: Option<&Self::Stats>, now: Option<&Self::Stats>) -> Self;
    fn work(&self) -> &Work;
    fn others(&self) -> usize;
    /// Returns the counters shown to people, summed over all sizes: names, and the values of client and server.
    fn counts(rows: &[Row<Self>]) -> Vec<(&'static str, [u64; 2])>
    where
        Self: Sized;
    /// Appends a table of the paths on which this end has sent.
    fn paths(&self, text: &mut String);
}

/// Returns the sums over all sizes for client and server.
pub(crate) fn sums<S: Part>(rows: &[Row<S>], of: impl Fn(&S) -> u64) -> [u64; 2] {
    [rows.iter().map(|row| of(&row.client)).sum(), rows.iter().map(|row| of(&row.server)).sum()]
}

/// Returns the share of a total, from 0 to 1.
pub(crate) fn share(of: u64, total: u64) -> f64 {
    of as f64 / total.max(1) as f64
}

/// Appends a line with two values.
pub(crate) fn append_pair(text: &mut String, width: usize, name: &str, figures: [impl std::fmt::Display; 2]) {
    let [client, server] = figures;
    let _ = writeln!(text, " {name:<width$} {client:>14} {server:>14}");
}

/// State of the counters when a measurement began.
pub(crate) struct Baseline<S: Part> {
    watch: Watch,
    stats: Option<S::Stats>,
}

impl<S: Part> Baseline<S> {
    pub(crate) fn now(end: &impl End<Side = S>) -> Self {
        let stats = end.stats();
        Baseline { watch: Watch::now(), stats }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.watch.elapsed()
    }

    /// Returns the report since the mark.
    pub(crate) fn side(&self, end: &impl End<Side = S>, others: usize) -> S {
        S::between(end.tally().work(&self.watch), others, self.stats.as_ref(), end.stats().as_ref())
    }
}

/// Measurement at the server.
pub(crate) struct Running<E: End> {
    pub(crate) end: E,
    /// Counters before the client can begin. Its READs are served without any action of this end.
    mark: Baseline<E::Side>,
    phase: Phase,
    /// Payload moved before the client could begin. Data may arrive before the client's start message.
    before: (u64, u64),
    /// Time at which the client's start message arrived.
    begun: Option<Instant>,
    /// Payload moved until the report was sent to the client.
    moved: Option<Transferred>,
    /// Largest number of measurements that the server had at a time.
    concurrent_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has not begun.
    Waiting,
    /// Messages are in flight.
    Running,
    /// The client has sent its last message.
    Finishing,
    /// The report has been sent to the client.
    Over,
}

impl<E: End> Running<E> {
    pub(crate) fn new(end: E) -> Self {
        let (mark, before) = (Baseline::now(&end), end.moved_bytes());
        Running { end, mark, phase: Phase::Waiting, before, begun: None, moved: None, concurrent_max: 1 }
    }

    /// Records the number of measurements that the server has.
    pub(crate) fn note_others(&mut self, count: usize) {
        self.concurrent_max = self.concurrent_max.max(count);
    }

    /// Returns true if the report has been sent to the client.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Handles an event. `count` is the number of measurements that the server has.
    ///
    /// # Errors
    /// If the measurement has failed.
    pub(crate) fn handle(&mut self, came: Came<E::Side>, count: usize) -> Result<(), MeasureError> {
        let test = self.end.tally().test;
        match came {
            Came::Said(Control::Start) => {
                (self.concurrent_max, self.phase, self.begun) = (count, Phase::Running, Some(Instant::now()));
            }
            Came::Data if test.kind == Kind::Latency => self.end.post_one()?,
            Came::Said(Control::Finish) => {
                self.phase = Phase::Finishing;
                if test.iterations.is_none() || test.kind == Kind::Latency {
                    self.end.tally_mut().stop();
                }
            }
            Came::Said(Control::Bye) if self.is_over() => {}
            Came::Said(said) => {
                return Err(MeasureError::Protocol(format!("unexpected message {said:?} of a client")));
            }
            Came::Data | Came::Done => {}
        }
        if matches!(self.phase, Phase::Running | Phase::Finishing) {
            self.end.post()?;
        }
        if self.phase == Phase::Finishing && self.end.tally().is_done() {
            self.phase = Phase::Over;
            self.moved = Some(self.moved_now());
            let side = self.mark.side(&self.end, self.concurrent_max);
            self.end.send_control(Control::Report(Box::new(side)))?;
        }
        Ok(())
    }

    /// Returns the payload moved, if the report has been sent to the client.
    pub(crate) fn moved(&self) -> Option<Transferred> {
        self.moved
    }

    /// Returns the payload moved since the client began.
    pub(crate) fn moved_now(&self) -> Transferred {
        let ((received, sent), (received_before, sent_before)) = (self.end.moved_bytes(), self.before);
        Transferred {
            seconds: self.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64()),
            received_bytes: received.saturating_sub(received_before),
            sent_bytes: sent.saturating_sub(sent_before),
        }
    }
}
