//! `pathweave perf client`.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::args::{ClientArgs, Transport};
use super::broken::Broken;
use super::clients::draw_number;
use super::connection::Connections;
use super::datagram::Datagrams;
use super::end::{Came, End, Mark, Part, Said};
use super::meet::{Asks, LONGEST_SILENCE, LOOK_EVERY, Meets};
use super::progress::Live;
use super::samples::Samples;
use super::show::{Ended, Figures, Row, Setup};
use super::test::{Check, Directions, Kind, Op, Test};
use super::{device, show};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::terminal;

const DEFAULT_TIME: Duration = Duration::from_secs(2);

/// # Errors
/// What cannot even begin.
pub(crate) fn client(args: &ClientArgs) -> Result<Outcome, Failure> {
    let peer = device::resolve(&args.server)?;
    match args.device.transport {
        Transport::Rc => run(args, peer, Connections::open(args, peer)?),
        Transport::Erd => run(args, peer, Datagrams::open(args, peer)?),
    }
}

fn run<M: Meets>(args: &ClientArgs, peer: SocketAddr, service: M) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::listen_saying("stopping: what has been measured will be shown")?;
    let live = Live::new(&args.talk);
    let mut client = Client { args, number: draw_number()?, service, interrupt, live, setup: None };
    let (mut rows, mut ended) = (Vec::new(), Ended::Done);
    let mut complaint = None;
    let tests = tests(args);
    for (left, &test) in (0..tests.len()).rev().zip(&tests) {
        if client.interrupt.requested() {
            break;
        }
        match client.measure(test, left > 0)? {
            Ok(row) => rows.push(row),
            Err(Broken::Refused(why)) => {
                return Err(Failure::Input(format!("{peer} refuses the measurement: {why}")));
            }
            Err(why) => {
                let what = format!("{peer}: the measurement of {} bytes broke: {why}", test.size_bytes);
                (ended, complaint) = (Ended::Broken, Some(what));
                break;
            }
        }
    }
    if ended == Ended::Done && client.interrupt.requested() {
        ended = Ended::Interrupted;
    }
    client.live.end();
    if let Some(setup) = client.setup.as_ref().filter(|_| !args.talk.quiet) {
        let text = if args.talk.json { show::json(setup, &rows, ended) } else { show::text(setup, &rows) };
        terminal::out(&text);
    }
    if let Some(complaint) = complaint {
        terminal::note(&format!("error: {complaint}"));
        return Ok(Outcome::Unfinished);
    }
    let works = || rows.iter().flat_map(|row| [row.client.work(), row.server.work()]);
    let wrong: u64 = works().map(|work| work.wrong_messages).sum();
    if wrong > 0 {
        let first = works().find_map(|work| work.first_wrong.as_deref()).unwrap_or("");
        let what = format!("{wrong} messages arrived with wrong bytes; the first: {first}");
        return Err(Failure::Internal(what));
    }
    Ok(if ended == Ended::Interrupted { Outcome::Interrupted } else { Outcome::Done })
}

/// A test a size.
fn tests(args: &ClientArgs) -> Vec<Test> {
    let kind = if args.latency { Kind::Latency } else { Kind::Bandwidth };
    let directions = if args.bidirectional { Directions::Both } else { Directions::One };
    let check = if args.verify { Check::EveryByte } else { Check::Off };
    let test = |size_bytes| Test {
        kind,
        op: args.op(),
        size_bytes,
        depth: if args.latency { 1 } else { args.depth },
        iterations: args.iterations,
        directions,
        check,
    };
    args.sizes().into_iter().map(test).collect()
}

/// What all measurements of a client have in common.
struct Client<'a, M> {
    args: &'a ClientArgs,
    number: u64,
    service: M,
    interrupt: Interrupt,
    live: Live,
    setup: Option<Setup>,
}

type SideOf<M> = <<M as Meets>::End as End>::Side;

impl<M: Meets> Client<'_, M> {
    fn measure(&mut self, test: Test, comes_back: bool) -> Result<Result<Row<SideOf<M>>, Broken>, Failure> {
        let asks = Asks { test, comes_back, client: self.number };
        let mut end = match self.service.meet(asks)? {
            Ok(end) => end,
            Err(why) => return Ok(Err(why)),
        };
        if self.setup.is_none() {
            self.setup = Some(self.service.setup(&end));
        }
        Ok(self.run(test, &mut end))
    }

    fn run(&mut self, test: Test, end: &mut M::End) -> Result<Row<SideOf<M>>, Broken> {
        let mark = Mark::now(end);
        end.say(Said::Start)?;
        let samples = match test.kind {
            Kind::Latency => Some(self.ping_pong(test, end, &mark)?),
            Kind::Bandwidth | Kind::Survey => {
                self.stream(test, end, &mark)?;
                None
            }
        };
        let before = mark.side(end, 1);
        end.say(Said::Finish)?;
        let mut heard = Instant::now();
        let server = loop {
            match end.next()? {
                None if heard.elapsed() > LONGEST_SILENCE => return Err(Broken::Silent(LONGEST_SILENCE)),
                None => continue,
                Some(Came::Said(Said::Report(side))) => break *side,
                Some(Came::Said(said)) => return Err(Broken::Nonsense(format!("{said:?} after a test"))),
                Some(Came::Data | Came::Done) => {}
            }
            heard = Instant::now();
        };
        // Where the server sends, too, the client is done when the server is.
        let client = match test.directions {
            Directions::One => before,
            Directions::Both => mark.side(end, 1),
        };
        end.say(Said::Bye)?;
        // The time of a message is half of that there and back, but for READ, which is one.
        let factor = if test.op == Op::Read { 1.0 } else { 0.5 };
        let latency = samples.and_then(|samples| samples.latency(factor));
        let figures = Figures::of(test.size_bytes, client.work(), server.work(), latency);
        Ok(Row { figures, client, server })
    }

    /// How long to measure; `None`: for a number of messages.
    fn time(&self) -> Option<Duration> {
        self.args.time.or(if self.args.iterations.is_some() { None } else { Some(DEFAULT_TIME) })
    }

    /// As much as can be.
    fn stream(&mut self, test: Test, end: &mut M::End, mark: &Mark<SideOf<M>>) -> Result<(), Broken> {
        let time = self.time();
        let (mut heard, mut shown) = (Instant::now(), Instant::now());
        loop {
            end.post()?;
            if end.is_done() {
                return Ok(());
            }
            match next(end)? {
                Some(_) => heard = Instant::now(),
                None if heard.elapsed() > LONGEST_SILENCE => return Err(Broken::Silent(LONGEST_SILENCE)),
                None => {}
            }
            if time.is_some_and(|time| mark.elapsed() >= time) {
                end.stop();
            }
            if shown.elapsed() >= LOOK_EVERY {
                shown = Instant::now();
                if self.interrupt.requested() {
                    end.stop();
                }
                self.show(test, end, end.done(), mark.elapsed());
            }
        }
    }

    /// One message at a time, there and back.
    fn ping_pong(&mut self, test: Test, end: &mut M::End, mark: &Mark<SideOf<M>>) -> Result<Samples, Broken> {
        let time = self.time();
        let (mut samples, mut shown) = (Samples::new(), Instant::now());
        loop {
            let over = test.iterations.is_some_and(|all| samples.count() >= all)
                || time.is_some_and(|time| mark.elapsed() >= time)
                || self.interrupt.requested();
            if over {
                break;
            }
            let (begun, before) = (Instant::now(), end.done());
            end.post_one()?;
            loop {
                match next(end)? {
                    Some(Came::Data) if test.op != Op::Read => break,
                    Some(_) if test.op == Op::Read && end.done() > before => break,
                    None if begun.elapsed() > LONGEST_SILENCE => {
                        return Err(Broken::Silent(LONGEST_SILENCE));
                    }
                    _ => {}
                }
            }
            samples.add(begun.elapsed().as_nanos() as u64);
            if shown.elapsed() >= LOOK_EVERY {
                shown = Instant::now();
                self.show(test, end, samples.count(), mark.elapsed());
            }
        }
        // The last answer may be here before the last acknowledgement.
        end.stop();
        while !end.is_done() {
            next(end)?;
        }
        Ok(samples)
    }

    fn show(&mut self, test: Test, end: &M::End, done: u64, elapsed: Duration) {
        let (time, service) = (self.time(), &self.service);
        self.live.look((test.size_bytes, test.iterations), done, elapsed, time, || service.health(end));
    }
}

/// The next thing that comes in the middle of a test, in which words have no place.
fn next<E: End>(end: &mut E) -> Result<Option<Came<E::Side>>, Broken> {
    match end.next()? {
        Some(Came::Said(said)) => Err(Broken::Nonsense(format!("{said:?} during a test"))),
        came => Ok(came),
    }
}
