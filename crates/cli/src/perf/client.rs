//! `pathweave perf client`.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pathweave_datapath::{Access, Completion, Device, Region, Registration, Remote, WaitError};
use serde::de::DeserializeOwned;

use super::args::ClientArgs;
use super::bundle::Bundle;
use super::clients::draw_number;
use super::flow::{Flow, Role, region};
use super::progress::Live;
use super::samples::Samples;
use super::session::Welcome;
use super::show::{Ended, Figures, Row, Setup};
use super::side::{Mark, Side};
use super::test::{Check, Directions, Hello, Kind, Op, Test};
use super::words::{Broken, Word};
use super::{device, show};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::terminal;

/// Room for what the server says: 256 paths take a quarter of it.
const CONTROL_BYTES: u64 = 256 << 10;
/// So often the client looks at the clock, the user and the progress.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A server that lives, but says and takes nothing for so long, has failed.
pub(super) const LONGEST_SILENCE: Duration = Duration::from_secs(60);
pub(super) const DEFAULT_TIME: Duration = Duration::from_secs(2);

pub(crate) fn client(args: &ClientArgs) -> Result<Outcome, Failure> {
    let peer = device::resolve(&args.server)?;
    let mut config = args.device.config(device::any_port_for(peer))?;
    config.scheme = args.scheme().to_owned();
    config.connect_timeout = args.timeout;
    let device = device::open(config)?;
    let interrupt = Interrupt::listen_saying("stopping: what has been measured will be shown")?;
    let live = Live::new(&args.talk);
    let mut meeting = Meeting { args, number: draw_number()?, device, peer, interrupt, live, setup: None };
    let (mut rows, mut ended) = (Vec::new(), Ended::Done);
    let mut complaint = None;
    let tests = tests(args);
    for (left, &test) in (0..tests.len()).rev().zip(&tests) {
        if meeting.interrupt.requested() {
            ended = Ended::Interrupted;
            break;
        }
        match meeting.measure(test, left > 0)? {
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
    if ended == Ended::Done && meeting.interrupt.requested() {
        ended = Ended::Interrupted;
    }
    meeting.live.end();
    let wrong: u64 =
        rows.iter().map(|row: &Row| row.client.work.wrong_messages + row.server.work.wrong_messages).sum();
    if let Some(setup) = &meeting.setup {
        let text = if args.talk.json { show::json(setup, &rows, ended) } else { show::text(setup, &rows) };
        if !args.talk.quiet {
            terminal::out(&text);
        }
    }
    if let Some(complaint) = complaint {
        terminal::note(&format!("error: {complaint}"));
        return Ok(Outcome::Unfinished);
    }
    if wrong > 0 {
        let first = rows
            .iter()
            .find_map(|row| row.client.work.first_wrong.as_ref().or(row.server.work.first_wrong.as_ref()));
        let first = first.map_or("", |first| first.as_str());
        return Err(Failure::Internal(format!(
            "{wrong} messages arrived with wrong bytes; the first: {first}"
        )));
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
        op: args.op.unwrap_or(Op::Write),
        size_bytes,
        depth: if args.latency { 1 } else { args.depth },
        iterations: args.iterations,
        directions,
        check,
    };
    args.sizes().into_iter().map(test).collect()
}

/// What all measurements of a client have in common.
struct Meeting<'a> {
    args: &'a ClientArgs,
    number: u64,
    device: Device,
    peer: SocketAddr,
    interrupt: Interrupt,
    live: Live,
    setup: Option<Setup>,
}

/// What a client asks of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    pub(crate) test: Test,
    /// It will ask for another one.
    pub(crate) comes_back: bool,
    /// Its number ([`draw_number`]).
    pub(crate) client: u64,
}

/// A connection on which a test can begin.
pub(crate) struct Ready {
    pub(crate) connection: Bundle,
    pub(crate) flow: Flow,
    control: Region,
    _registered: [Registration; 2],
}

/// Connects, and agrees with the server on what is to be measured, and whether there is more to come.
///
/// # Errors
/// The outer one: there is no connection. The inner one: there was.
pub(crate) fn meet(
    device: &Device,
    peer: SocketAddr,
    scheme: &str,
    asks: Asks,
    timeout: Duration,
) -> Result<Result<Ready, Broken>, Failure> {
    let Asks { test, comes_back, client } = asks;
    let own = |why: Broken| Failure::Input(why.to_string());
    let memory = region(test.memory_bytes()).map_err(own)?;
    let control = region(CONTROL_BYTES).map_err(own)?;
    let register = |memory: &Region, access| {
        device.register(memory, access).map_err(|why| Failure::Internal(why.to_string()))
    };
    let registered = [register(&memory, Access::READ_WRITE)?, register(&control, Access::WRITE)?];
    let [data_key, control_key] = registered.each_ref().map(Registration::rkey);
    let hello = Hello { test, data_key, control_key, comes_back, client };
    let connection = device::connect(device, peer, scheme, &hello.encode())?;
    let agree = || {
        let mut flow = Flow::new(test, Role::Client, memory, Remote { address: 0, rkey: 0 })?;
        flow.prepare(&connection)?;
        let begun = Instant::now();
        let len = loop {
            let left = timeout.saturating_sub(begun.elapsed());
            let completion = match connection.wait(left) {
                Ok(completion) => completion,
                Err(WaitError::Timeout(_)) => return Err(Broken::Silent(timeout)),
                Err(WaitError::ConnectionClosed(_)) => return Err(Broken::Closed),
                Err(why) => return Err(Broken::Own(why.to_string())),
            };
            match flow.complete(&connection, completion)? {
                Some((Word::Ready, len)) => break len,
                Some((Word::Refused, len)) => return Err(Broken::Refused(text(&control, len)?)),
                Some((word, _)) => return Err(Broken::Nonsense(format!("{word:?} before a test"))),
                None => {}
            }
        };
        let welcome: Welcome = parsed(&control, len)?;
        flow.aim(Remote { address: 0, rkey: welcome.data_key });
        Ok(flow)
    };
    Ok(agree().map(|flow| Ready { connection, flow, control, _registered: registered }))
}

fn text(control: &Region, len: u64) -> Result<String, Broken> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    Ok(String::from_utf8_lossy(&control.to_vec(0..len)?).into_owned())
}

fn parsed<T: DeserializeOwned>(control: &Region, len: u64) -> Result<T, Broken> {
    let text = text(control, len)?;
    serde_json::from_str(&text).map_err(|why| Broken::Nonsense(why.to_string()))
}

impl Meeting<'_> {
    fn measure(&mut self, test: Test, comes_back: bool) -> Result<Result<Row, Broken>, Failure> {
        let asks = Asks { test, comes_back, client: self.number };
        let ready = match meet(&self.device, self.peer, self.args.scheme(), asks, self.args.timeout)? {
            Ok(ready) => ready,
            Err(why) => return Ok(Err(why)),
        };
        if self.setup.is_none() {
            device::note_paths(&ready.connection, self.args.device.paths());
            let info = ready.connection.info();
            self.setup = Some(Setup {
                op: test.op,
                kind: test.kind,
                directions: test.directions,
                check: test.check,
                server: self.peer,
                scheme: info.scheme.clone(),
                protection: info.protection.to_string(),
                paths: info.paths,
                mtu_payload_bytes: info.mtu_payload,
                depth: test.depth,
            });
        }
        Ok(self.run(test, ready))
    }

    fn run(&mut self, test: Test, mut ready: Ready) -> Result<Row, Broken> {
        let mark = Mark::now(&ready.connection);
        ready.flow.say(&ready.connection, Word::Start)?;
        let samples = match test.kind {
            Kind::Latency => Some(self.ping_pong(test, &mut ready, &mark)?),
            Kind::Bandwidth | Kind::Survey => {
                self.stream(test, &mut ready, &mark)?;
                None
            }
        };
        let (connection, flow) = (&ready.connection, &mut ready.flow);
        let before = mark.side(connection, flow, 1);
        flow.say(connection, Word::Finish)?;
        let mut heard = Instant::now();
        let server: Side = loop {
            match next(connection)? {
                None if heard.elapsed() > LONGEST_SILENCE => return Err(Broken::Silent(LONGEST_SILENCE)),
                None => {}
                Some(completion) => {
                    heard = Instant::now();
                    match flow.complete(connection, completion)? {
                        Some((Word::Report, len)) => break parsed(&ready.control, len)?,
                        Some((Word::Data | Word::Checked(_), _)) | None => {}
                        Some((word, _)) => return Err(Broken::Nonsense(format!("{word:?} after a test"))),
                    }
                }
            }
        };
        // Where the server sends, too, the client is done when the server is.
        let client = match test.directions {
            Directions::One => before,
            Directions::Both => mark.side(connection, flow, 1),
        };
        Ok(row(test, client, server, samples.as_ref()))
    }

    /// As much as can be.
    fn stream(&mut self, test: Test, ready: &mut Ready, mark: &Mark) -> Result<(), Broken> {
        let time = time(self.args);
        let (connection, flow) = (&ready.connection, &mut ready.flow);
        let (mut heard, mut shown) = (Instant::now(), Instant::now());
        loop {
            flow.post(connection)?;
            if flow.is_done() {
                return Ok(());
            }
            match next(connection)? {
                Some(completion) => {
                    unexpected(flow.complete(connection, completion)?)?;
                    heard = Instant::now();
                }
                None if heard.elapsed() > LONGEST_SILENCE => return Err(Broken::Silent(LONGEST_SILENCE)),
                None => {}
            }
            let now = Instant::now();
            if time.is_some_and(|time| mark.elapsed() >= time) {
                flow.stop();
            }
            if now - shown >= LOOK_EVERY {
                shown = now;
                if self.interrupt.requested() {
                    flow.stop();
                }
                self.live.update(&test, flow.done(), mark.elapsed(), time, connection);
            }
        }
    }

    /// One message at a time, there and back.
    fn ping_pong(&mut self, test: Test, ready: &mut Ready, mark: &Mark) -> Result<Samples, Broken> {
        let time = time(self.args);
        let (connection, flow) = (&ready.connection, &mut ready.flow);
        let (mut samples, mut shown) = (Samples::new(), Instant::now());
        loop {
            let over = test.iterations.is_some_and(|all| samples.count() >= all)
                || time.is_some_and(|time| mark.elapsed() >= time)
                || self.interrupt.requested();
            if over {
                break;
            }
            let begun = Instant::now();
            flow.post_one(connection)?;
            flow.refill(connection)?;
            while !answered(test.op, connection, flow, begun)? {}
            samples.add(begun.elapsed().as_nanos() as u64);
            if shown.elapsed() >= LOOK_EVERY {
                shown = Instant::now();
                self.live.update(&test, samples.count(), mark.elapsed(), time, connection);
            }
        }
        // The last answer may be here before the last acknowledgement.
        while !flow.is_done() {
            if let Some(completion) = next(connection)? {
                unexpected(flow.complete(connection, completion)?)?;
            }
        }
        Ok(samples)
    }
}

/// Waits for the next completion, and says whether it was what a message waits for.
fn answered(op: Op, connection: &Bundle, flow: &mut Flow, begun: Instant) -> Result<bool, Broken> {
    let Some(completion) = next(connection)? else {
        return if begun.elapsed() > LONGEST_SILENCE {
            Err(Broken::Silent(LONGEST_SILENCE))
        } else {
            Ok(false)
        };
    };
    let before = flow.done();
    let word = flow.complete(connection, completion)?;
    unexpected(word)?;
    Ok(match op {
        Op::Read => flow.done() > before,
        Op::Send | Op::Write => matches!(word, Some((Word::Data, _))),
    })
}

/// Words that have no place in the middle of a test.
fn unexpected(word: Option<(Word, u64)>) -> Result<(), Broken> {
    match word {
        Some((Word::Data | Word::Checked(_), _)) | None => Ok(()),
        Some((word, _)) => Err(Broken::Nonsense(format!("{word:?} during a test"))),
    }
}

/// The next completion, waiting a little for it.
pub(crate) fn next(connection: &Bundle) -> Result<Option<Completion>, Broken> {
    match connection.wait(LOOK_EVERY) {
        Ok(completion) => Ok(Some(completion)),
        Err(WaitError::Timeout(_)) => Ok(None),
        Err(WaitError::ConnectionClosed(_)) => Err(Broken::Closed),
        Err(why) => Err(Broken::Own(why.to_string())),
    }
}

/// How long to measure; `None`: for a number of messages.
fn time(args: &ClientArgs) -> Option<Duration> {
    match (args.time, args.iterations) {
        (Some(time), _) => Some(time),
        (None, Some(_)) => None,
        (None, None) => Some(DEFAULT_TIME),
    }
}

fn row(test: Test, client: Side, server: Side, samples: Option<&Samples>) -> Row {
    // The time of a message is half of that there and back, but for READ, which is one.
    let factor = if test.op == Op::Read { 1.0 } else { 0.5 };
    let latency = samples.and_then(|samples| samples.latency(factor));
    Row { figures: Figures::of(test.size_bytes, &client.work, &server.work, latency), client, server }
}
