//! The client: runs measurements against a server.

use std::time::{Duration, Instant};

use crate::broken::MeasureError;
use crate::clients::draw_number;
use crate::connection::Connections;
use crate::console::{Console, Failure, Progress, Service};
use crate::datagram::Datagrams;
use crate::end::{Baseline, Came, Control, End, Part};
use crate::meet::{CHECK_INTERVAL, ClientOptions, Connect, Request, SILENCE_TIMEOUT};
use crate::report::{self, Ended, Figures, Row, Setup};
use crate::samples::Samples;
use crate::test::{Directions, Kind, Op, Test};

/// Results of a client's measurements.
#[derive(Clone, Debug)]
pub struct Report {
    /// Report for people, in the format of the RDMA perftests. `None` if no measurement began.
    pub text: Option<String>,
    /// Report as JSON. `None` if no measurement began.
    pub json: Option<String>,
    /// Reason why the client ended.
    pub ended: Ended,
    /// Error message, if a measurement failed.
    pub error: Option<String>,
    /// Description of the messages that arrived with wrong bytes, if there were any.
    pub wrong_messages: Option<String>,
}

/// Runs the measurements of a client.
///
/// # Errors
/// If no measurement can begin, or the server refuses one.
pub fn measure(options: &ClientOptions, console: &mut dyn Console) -> Result<Report, Failure> {
    match options.service {
        Service::Connection => {
            let connections = Connections::open(options, console)?;
            run(options, console, connections)
        }
        Service::Datagram => run(options, console, Datagrams::open(options)?),
    }
}

fn run<M: Connect>(
    options: &ClientOptions,
    console: &mut dyn Console,
    service: M,
) -> Result<Report, Failure> {
    let peer = options.server;
    let mut client = Client { options, number: draw_number()?, service, console, setup: None };
    let (mut rows, mut ended, mut complaint) = (Vec::new(), Ended::Done, None);
    for (left, &test) in (0..options.tests.len()).rev().zip(&options.tests) {
        if client.console.is_interrupted() {
            break;
        }
        match client.measure(test, left > 0)? {
            Ok(row) => rows.push(row),
            Err(MeasureError::Refused(why)) => {
                return Err(Failure::Input(format!("{peer} refuses the measurement: {why}")));
            }
            Err(why) => {
                let what = format!("{peer}: the measurement of {} bytes broke: {why}", test.size_bytes);
                (ended, complaint) = (Ended::Broken, Some(what));
                break;
            }
        }
    }
    if ended == Ended::Done && client.console.is_interrupted() {
        ended = Ended::Interrupted;
    }
    let works = || rows.iter().flat_map(|row| [row.client.work(), row.server.work()]);
    let wrong: u64 = works().map(|work| work.wrong_messages).sum();
    let first = works().find_map(|work| work.first_wrong.as_deref()).unwrap_or("");
    let setup = client.setup.as_ref();
    Ok(Report {
        text: setup.map(|setup| report::text(setup, &rows)),
        json: setup.map(|setup| report::json(setup, &rows, ended)),
        ended,
        error: complaint,
        wrong_messages: (wrong > 0)
            .then(|| format!("{wrong} messages arrived with wrong bytes; the first: {first}")),
    })
}

/// State shared by all measurements of a client.
struct Client<'a, M> {
    options: &'a ClientOptions,
    number: u64,
    service: M,
    console: &'a mut dyn Console,
    setup: Option<Setup>,
}

type SideOf<M> = <<M as Connect>::End as End>::Side;

impl<M: Connect> Client<'_, M> {
    fn measure(
        &mut self,
        test: Test,
        comes_back: bool,
    ) -> Result<Result<Row<SideOf<M>>, MeasureError>, Failure> {
        let asks = Request { test, comes_back, client: self.number };
        let mut end = match self.service.agree(asks)? {
            Ok(end) => end,
            Err(why) => return Ok(Err(why)),
        };
        if self.setup.is_none() {
            self.setup = Some(self.service.setup(&end, self.console));
        }
        Ok(self.run(test, &mut end))
    }

    fn run(&mut self, test: Test, end: &mut M::End) -> Result<Row<SideOf<M>>, MeasureError> {
        let mark = Baseline::now(end);
        end.send_control(Control::Start)?;
        let samples = match test.kind {
            Kind::Latency => Some(self.ping_pong(test, end, &mark)?),
            Kind::Bandwidth | Kind::Survey => {
                self.stream(test, end, &mark)?;
                None
            }
        };
        let before = mark.side(end, 1);
        end.send_control(Control::Finish)?;
        let mut heard = Instant::now();
        let server = loop {
            match end.next()? {
                None if heard.elapsed() > SILENCE_TIMEOUT => {
                    return Err(MeasureError::Timeout(SILENCE_TIMEOUT));
                }
                None => continue,
                Some(Came::Said(Control::Report(side))) => break *side,
                Some(Came::Said(said)) => {
                    return Err(MeasureError::Protocol(format!("unexpected message {said:?} after a test")));
                }
                Some(Came::Data | Came::Done) => {}
            }
            heard = Instant::now();
        };
        // If the server sends as well, the client's part lasts until the server is done.
        let client = match test.directions {
            Directions::One => before,
            Directions::Both => mark.side(end, 1),
        };
        end.send_control(Control::Bye)?;
        // The time of a message is half a round trip. A READ is one message with the length of a round trip.
        let factor = if test.op == Op::Read { 1.0 } else { 0.5 };
        let latency = samples.and_then(|samples| samples.latency(factor));
        let figures = Figures::of(test.size_bytes, client.work(), server.work(), latency);
        Ok(Row { figures, client, server })
    }

    /// Returns the time to measure, or `None` if the number of messages is given.
    fn time(&self, test: Test) -> Option<Duration> {
        test.iterations.is_none().then_some(self.options.time)
    }

    /// Keeps the window full until the test is done.
    fn stream(
        &mut self,
        test: Test,
        end: &mut M::End,
        mark: &Baseline<SideOf<M>>,
    ) -> Result<(), MeasureError> {
        let time = self.time(test);
        let (mut heard, mut shown) = (Instant::now(), Instant::now());
        loop {
            end.post()?;
            if end.tally().is_done() {
                return Ok(());
            }
            match next(end)? {
                Some(_) => heard = Instant::now(),
                None if heard.elapsed() > SILENCE_TIMEOUT => {
                    return Err(MeasureError::Timeout(SILENCE_TIMEOUT));
                }
                None => {}
            }
            if time.is_some_and(|time| mark.elapsed() >= time) {
                end.tally_mut().stop();
            }
            if shown.elapsed() >= CHECK_INTERVAL {
                shown = Instant::now();
                if self.console.is_interrupted() {
                    end.tally_mut().stop();
                }
                self.show(test, end, end.tally().done, mark.elapsed());
            }
        }
    }

    /// Measures one round trip after the other.
    fn ping_pong(
        &mut self,
        test: Test,
        end: &mut M::End,
        mark: &Baseline<SideOf<M>>,
    ) -> Result<Samples, MeasureError> {
        let time = self.time(test);
        let (mut samples, mut shown) = (Samples::new(), Instant::now());
        loop {
            let over = test.iterations.is_some_and(|all| samples.count() >= all)
                || time.is_some_and(|time| mark.elapsed() >= time)
                || self.console.is_interrupted();
            if over {
                break;
            }
            let (begun, before) = (Instant::now(), end.tally().done);
            end.post_one()?;
            loop {
                match next(end)? {
                    Some(Came::Data) if test.op != Op::Read => break,
                    Some(_) if test.op == Op::Read && end.tally().done > before => break,
                    None if begun.elapsed() > SILENCE_TIMEOUT => {
                        return Err(MeasureError::Timeout(SILENCE_TIMEOUT));
                    }
                    _ => {}
                }
            }
            samples.add(begun.elapsed().as_nanos() as u64);
            if shown.elapsed() >= CHECK_INTERVAL {
                shown = Instant::now();
                self.show(test, end, samples.count(), mark.elapsed());
            }
        }
        // The last answer may arrive before the last acknowledgement.
        end.tally_mut().stop();
        while !end.tally().is_done() {
            next(end)?;
        }
        Ok(samples)
    }

    fn show(&mut self, test: Test, end: &M::End, done: u64, elapsed: Duration) {
        let Test { size_bytes, iterations, .. } = test;
        let progress = Progress { size_bytes, iterations, done, elapsed, time: self.time(test) };
        self.console.progress(progress, &mut || self.service.health(end));
    }
}

/// Returns the next event of a running test. Control messages are an error there.
fn next<E: End>(end: &mut E) -> Result<Option<Came<E::Side>>, MeasureError> {
    match end.next()? {
        Some(Came::Said(said)) => {
            Err(MeasureError::Protocol(format!("unexpected message {said:?} during a test")))
        }
        came => Ok(came),
    }
}
