//! The client's end.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pathweave_datapath::WaitError;
use pathweave_datapath::rdm::{Delivery, Peer, RdmConfig, RdmEndpoint};
use pathweave_datapath::secure::{OsRandom, SecureRandom};

use super::super::args::ClientArgs;
use super::super::client::{DEFAULT_TIME, LONGEST_SILENCE, LOOK_EVERY};
use super::super::clients::draw_number;
use super::super::device;
use super::super::progress::Live;
use super::super::samples::Samples;
use super::super::show::{Ended, Figures};
use super::super::test::Op;
use super::super::words::Broken;
use super::end::{Came, End};
use super::report::{Mark, Row, Setup, Side, text};
use super::words::{Ask, WORDS_BYTES, Word, decode, encode};
use super::{config, open, unreachable};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::terminal;

/// # Errors
/// What cannot even begin.
pub(in super::super) fn client(args: &ClientArgs) -> Result<Outcome, Failure> {
    if let Some(op @ (Op::Write | Op::Read)) = args.op {
        let op = format!("{op:?}").to_lowercase();
        return Err(Failure::Input(format!("--op {op}: datagrams have SEND alone (--transport erd)")));
    }
    let server = device::resolve(&args.server)?;
    let mut device = args.device.config(device::any_port_for(server))?;
    device.paths = args.device.paths.unwrap_or(RdmConfig::DEFAULT_PATHS);
    device.connect_timeout = args.timeout;
    let mut config = config(device, args.scheme.as_deref());
    if args.verify {
        // Messages are known by their order.
        config.delivery = Delivery::Ordered;
    }
    let interrupt = Interrupt::listen_saying("stopping: what has been measured will be shown")?;
    let (number, live) = (draw_number()?, Live::new(&args.talk));
    let mut client = Client { args, server, config, number, interrupt, live, setup: None };
    let (mut rows, mut ended, mut complaint) = (Vec::new(), Ended::Done, None);
    let sizes = args.sizes();
    for (left, &size_bytes) in (0..sizes.len()).rev().zip(&sizes) {
        if client.interrupt.requested() {
            break;
        }
        match client.measure(size_bytes, left > 0)? {
            Ok(row) => rows.push(row),
            Err(Broken::Refused(why)) => {
                return Err(Failure::Input(format!("{server} refuses the measurement: {why}")));
            }
            Err(why) => {
                let what = format!("{server}: the measurement of {size_bytes} bytes broke: {why}");
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
        terminal::out(&if args.talk.json { json(setup, &rows, ended) } else { text(setup, &rows) });
    }
    if let Some(complaint) = complaint {
        terminal::note(&format!("error: {complaint}"));
        return Ok(Outcome::Unfinished);
    }
    let sides = || rows.iter().flat_map(|row| [&row.client, &row.server]);
    let wrong: u64 = sides().map(|side| side.work.wrong_messages).sum();
    if wrong > 0 {
        let first = sides().find_map(|side| side.work.first_wrong.as_deref()).unwrap_or("");
        let what = format!("{wrong} messages arrived with wrong bytes; the first: {first}");
        return Err(Failure::Internal(what));
    }
    Ok(if ended == Ended::Interrupted { Outcome::Interrupted } else { Outcome::Done })
}

fn json(setup: &Setup, rows: &[Row], ended: Ended) -> String {
    #[derive(serde::Serialize)]
    struct Document<'a> {
        setup: &'a Setup,
        ended: Ended,
        results: &'a [Row],
    }
    crate::commands::json(&Document { setup, ended, results: rows })
}

struct Client<'a> {
    args: &'a ClientArgs,
    server: SocketAddr,
    config: RdmConfig,
    /// What the server knows this run of the program by.
    number: u64,
    interrupt: Interrupt,
    live: Live,
    setup: Option<Setup>,
}

impl Client<'_> {
    fn measure(&mut self, size_bytes: u64, comes_back: bool) -> Result<Result<Row, Broken>, Failure> {
        let args = self.args;
        let ask = Ask {
            size_bytes,
            depth: if args.latency { 1 } else { args.depth },
            latency: args.latency,
            both: args.bidirectional,
            check: args.verify,
            iterations: args.iterations,
            client: self.number,
            comes_back,
        };
        // An endpoint for each, so that receives of one size are not in the way of another's.
        let endpoint = open(self.config.clone())?;
        let server = endpoint.insert(self.server).map_err(|why| Failure::Input(why.to_string()))?;
        endpoint.reach(server).map_err(|why| unreachable(&why))?;
        self.note(&endpoint);
        Ok(self.agree(endpoint, server, ask).and_then(|end| self.run(end, ask)))
    }

    /// Asks the server for a measurement, and meets the endpoint it takes place at.
    fn agree(&self, endpoint: RdmEndpoint, server: Peer, ask: Ask) -> Result<End, Broken> {
        let own = |why: &dyn std::fmt::Display| Broken::Own(why.to_string());
        let mut random = [0; 8];
        OsRandom.fill(&mut random).map_err(|why| own(&why))?;
        let token = u64::from_ne_bytes(random);
        let hear = |peer: Peer, word: &Word| -> Result<Word, Broken> {
            let room = super::super::flow::region(WORDS_BYTES)?;
            endpoint.recv_from(peer, 0, room.all()).map_err(|why| own(&why))?;
            let words = pathweave_datapath::Region::from_bytes(&encode(token, word))?;
            endpoint.send(1, peer, words.all()).map_err(|why| own(&why))?;
            let (mut sent, mut answer) = (false, None);
            let deadline = Instant::now() + self.args.timeout;
            loop {
                if sent && let Some(answer) = answer {
                    return Ok(answer);
                }
                let left = deadline.saturating_duration_since(Instant::now());
                let done = match endpoint.wait(left) {
                    Ok(done) => done,
                    Err(WaitError::Timeout(_)) => return Err(Broken::Silent(self.args.timeout)),
                    Err(why) => return Err(own(&why)),
                };
                let Ok(len) = done.result() else {
                    let (opcode, status) = (done.opcode, done.status);
                    return Err(Broken::Request { opcode, status, reason: None });
                };
                if done.wr_id == 1 {
                    sent = true;
                } else {
                    let bytes = room.to_vec(0..len as usize)?;
                    let word = decode(Some(token), &bytes).map(|(_, word)| word);
                    answer =
                        Some(word.ok_or_else(|| Broken::Nonsense("no answer to what was asked".into()))?);
                }
            }
        };
        let port = match hear(server, &Word::Ask(ask))? {
            Word::Ready { port } => port,
            Word::Refused { why } => return Err(Broken::Refused(why)),
            other => return Err(Broken::Nonsense(format!("{other:?} before a measurement"))),
        };
        let at = endpoint.insert(SocketAddr::new(self.server.ip(), port)).map_err(|why| own(&why))?;
        match hear(at, &Word::Begin)? {
            Word::Ready { .. } => {}
            other => return Err(Broken::Nonsense(format!("{other:?} before a measurement"))),
        }
        End::new(endpoint, at, token, ask, true)
    }

    fn note(&mut self, endpoint: &RdmEndpoint) {
        let (args, config) = (self.args, &self.config.device);
        let scan = endpoint.stats().map_or(Duration::ZERO, |stats| stats.scan_period);
        self.setup.get_or_insert_with(|| Setup {
            op: "send",
            transport: "erd",
            kind: if args.latency { "latency" } else { "bandwidth" },
            directions: if args.bidirectional { "both" } else { "one" },
            check: if args.verify { "every-byte" } else { "off" },
            server: self.server,
            scheme: config.scheme.clone(),
            protection: config.protection.to_string(),
            paths: config.paths,
            mtu_payload_bytes: config.mtu_payload,
            depth: if args.latency { 1 } else { args.depth },
            scan_period_us: scan.as_secs_f64() * 1e6,
        });
    }

    fn run(&mut self, mut end: End, ask: Ask) -> Result<Row, Broken> {
        let mark = Mark::now(end.endpoint());
        let samples = if ask.latency {
            Some(self.ping_pong(&mut end, ask, &mark)?)
        } else {
            self.stream(&mut end, ask, &mark)?;
            None
        };
        let before = mark.side(&end, 1);
        end.say(&Word::Finish)?;
        let mut heard = Instant::now();
        let server = loop {
            match end.next()? {
                Some(Came::Word(Word::Report(side))) => break *side,
                Some(Came::Word(word)) => return Err(Broken::Nonsense(format!("{word:?} after a test"))),
                Some(Came::Data | Came::Done) => heard = Instant::now(),
                None if heard.elapsed() > LONGEST_SILENCE => return Err(Broken::Silent(LONGEST_SILENCE)),
                None => {}
            }
        };
        // Where the server sends, too, this end is done when the server is.
        let client = if ask.both { mark.side(&end, 1) } else { before };
        end.part();
        Ok(row(ask, client, server, samples.as_ref()))
    }

    /// How long to measure; `None`: for a number of messages.
    fn time(&self) -> Option<Duration> {
        if self.args.iterations.is_some() { None } else { Some(self.args.time.unwrap_or(DEFAULT_TIME)) }
    }

    /// As much as can be.
    fn stream(&mut self, end: &mut End, ask: Ask, mark: &Mark) -> Result<(), Broken> {
        let time = self.time();
        let (mut heard, mut shown) = (Instant::now(), Instant::now());
        loop {
            end.post()?;
            if end.is_done() {
                return Ok(());
            }
            match end.next()? {
                Some(Came::Word(word)) => return Err(Broken::Nonsense(format!("{word:?} during a test"))),
                Some(Came::Data | Came::Done) => heard = Instant::now(),
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
                self.show(end, ask, mark);
            }
        }
    }

    /// One message at a time, there and back.
    fn ping_pong(&mut self, end: &mut End, ask: Ask, mark: &Mark) -> Result<Samples, Broken> {
        let time = self.time();
        let (mut samples, mut shown) = (Samples::new(), Instant::now());
        loop {
            let over = ask.iterations.is_some_and(|all| samples.count() >= all)
                || time.is_some_and(|time| mark.elapsed() >= time)
                || self.interrupt.requested();
            if over {
                break;
            }
            let begun = Instant::now();
            end.post_one()?;
            loop {
                match end.next()? {
                    Some(Came::Data) => break,
                    Some(Came::Word(word)) => {
                        return Err(Broken::Nonsense(format!("{word:?} during a test")));
                    }
                    _ if begun.elapsed() > LONGEST_SILENCE => return Err(Broken::Silent(LONGEST_SILENCE)),
                    Some(Came::Done) | None => {}
                }
            }
            samples.add(begun.elapsed().as_nanos() as u64);
            if shown.elapsed() >= LOOK_EVERY {
                shown = Instant::now();
                self.show(end, ask, mark);
            }
        }
        // The last answer may be here before the word that the last message is whole.
        end.stop();
        while !end.is_done() {
            end.next()?;
        }
        Ok(samples)
    }

    fn show(&mut self, end: &End, ask: Ask, mark: &Mark) {
        let (goal, elapsed) = ((ask.size_bytes, ask.iterations), mark.elapsed());
        let time = self.time();
        self.live.look(goal, end.done(), elapsed, time, || {
            let paths = usize::from(self.config.device.paths);
            let retransmitted = end.endpoint().stats().map_or(0, |stats| stats.counters.retransmitted);
            (retransmitted, paths, paths)
        });
    }
}

fn row(ask: Ask, client: Side, server: Side, samples: Option<&Samples>) -> Row {
    // The time of a message is half of that there and back.
    let latency = samples.and_then(|samples| samples.latency(0.5));
    Row { figures: Figures::of(ask.size_bytes, &client.work, &server.work, latency), client, server }
}
