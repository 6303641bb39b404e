//! Server of datagrams.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pathweave_datapath::rdm::{Delivery, Peer, RdmConfig, RdmEndpoint};
use pathweave_datapath::{Opcode, Region};

use super::end::{DatagramEnd, Layout};
use super::words::{Ask, WORDS_BYTES, Word, decode, encode};
use super::{config, open};
use crate::broken::MeasureError;
use crate::clients::{Clients, Ended, MeasurementId, Transferred};
use crate::console::{Console, Failure, Note};
use crate::end::{Came, Control, End as _, Running};
use crate::meet::{CHECK_INTERVAL, SILENCE_TIMEOUT};
use crate::pattern::region;
use crate::server::{Served, ServerOptions};
use crate::test::{Role, Test};

/// Number of posted receives for requests, hence of clients that may send one at the same moment.
const ASKS: u64 = 64;
/// Largest size of a request in bytes.
const ASK_BYTES: u64 = 4 << 10;
/// Time within which a client must begin at the endpoint opened for it.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// # Errors
/// If the server cannot start.
pub(crate) fn serve(options: &ServerOptions, console: &dyn Console) -> Result<Served, Failure> {
    let config = config(options.device.clone(), None);
    let endpoint = open(config.clone())?;
    let protection = config.device.protection;
    let local = endpoint.local_addr();
    console.note(Note::Listening(&format!("listening on {local} ({protection}), datagrams")));
    let own = |why: &dyn std::fmt::Display| Failure::Internal(why.to_string());
    let memory = region(ASKS * ASK_BYTES).map_err(|why| own(&why))?;
    let receive = |slot: u64| {
        let start = (slot * ASK_BYTES) as usize;
        let room = memory.slice(start..start + ASK_BYTES as usize).map_err(|why| own(&why))?;
        endpoint.recv(slot, room).map_err(|why| own(&why))
    };
    (0..ASKS).try_for_each(receive)?;
    let say = |line: String| console.note(Note::Client(&line));
    let (report, reports) = mpsc::channel::<(Peer, MeasurementId, String, (Ended, Transferred))>();
    let running = Arc::new(AtomicUsize::new(0));
    let (mut begun, mut clients) = (0, Clients::new(options.clients));
    while !console.is_interrupted() && !clients.are_over() {
        while let Ok((peer, ticket, line, (ended, moved))) = reports.try_recv() {
            clients.ends(ticket, ended, moved);
            say(line);
            endpoint.remove(peer);
        }
        let Some(done) = endpoint.wait_until(CHECK_INTERVAL, || endpoint.take()).map_err(|why| own(&why))?
        else {
            continue;
        };
        if done.opcode == Opcode::Send {
            continue;
        }
        let start = (done.wr_id * ASK_BYTES) as usize;
        let bytes = memory.to_vec(start..start + done.byte_len as usize).map_err(|why| own(&why))?;
        receive(done.wr_id)?;
        let Some(peer) = done.peer else { continue };
        let address = peer.address();
        let Some((token, Word::Ask(ask))) = decode(None, &bytes) else {
            say(format!("{address}: it is no client of `pathweave perf --transport erd`"));
            continue;
        };
        let entered = clients.admit(ask.client, address, ask.comes_back);
        let opened = entered.clone().and_then(|ticket| Ok((ticket, begin(&config, options, ask)?)));
        let answer = match opened {
            Ok((ticket, measuring)) => {
                begun += 1;
                clients.begins(ticket, ask.test().what());
                say(format!("{address}: {}", describe(ask)));
                let port = measuring.local_addr().port();
                let (report, running) = (report.clone(), running.clone());
                let body = move || {
                    let (line, how) = match measure(measuring, token, ask.test(), &running) {
                        Ok(moved) => (format!("{address}: done"), (Ended::Done, moved)),
                        Err(why) => (format!("{address}: {why}"), (Ended::Broken, Transferred::default())),
                    };
                    let _ = report.send((peer, ticket, line, how));
                };
                std::thread::Builder::new()
                    .name(format!("perf-{begun}"))
                    .spawn(body)
                    .map_err(|why| own(&why))?;
                Word::Ready { port }
            }
            Err(why) => {
                say(format!("{address}: refused: {why}"));
                if let Ok(ticket) = entered {
                    clients.ends(ticket, Ended::Refused, Transferred::default());
                }
                Word::Refused { why }
            }
        };
        let words = Region::from_bytes(&encode(token, &answer)).map_err(|why| own(&why))?;
        let _ = endpoint.send(0, peer, words.all());
    }
    Ok(Served::of(&clients, local, protection, console.is_interrupted()))
}

/// Opens an endpoint for a measurement, or returns the reason for refusing it.
fn begin(config: &RdmConfig, options: &ServerOptions, ask: Ask) -> Result<RdmEndpoint, String> {
    let allowed = 1..=pathweave_datapath::MAX_MESSAGE_BYTES;
    if !allowed.contains(&ask.size_bytes) || !(1..=crate::test::MAX_DEPTH).contains(&ask.depth) {
        return Err(format!("messages of {} bytes with a depth of {}", ask.size_bytes, ask.depth));
    }
    let needed = Layout(ask.test()).memory_bytes();
    if needed > options.max_memory_bytes {
        return Err(format!(
            "messages of {} bytes need {needed} bytes of memory, and it gives a client {} (--max-memory of the server)",
            ask.size_bytes, options.max_memory_bytes
        ));
    }
    let mut config = config.clone();
    config.device.bind = SocketAddr::new(config.device.bind.ip(), 0);
    if ask.check {
        config.delivery = Delivery::Ordered;
    }
    RdmEndpoint::open(config).map_err(|why| why.to_string())
}

fn describe(ask: Ask) -> String {
    let kind = if ask.latency { "latency" } else { "bandwidth" };
    format!("datagram {kind} of {} bytes, depth {}", ask.size_bytes, ask.depth)
}

/// Runs a measurement from the client's first message to its last. Returns the amount of data moved.
fn measure(
    endpoint: RdmEndpoint,
    token: u64,
    test: Test,
    count: &AtomicUsize,
) -> Result<Transferred, MeasureError> {
    let peer = await_begin(&endpoint, token)?;
    let end = DatagramEnd::new(endpoint, peer, token, test, Role::Server)?;
    let mut running = Running::new(end);
    let others = count.fetch_add(1, Ordering::Relaxed);
    let _leaves = RunningGuard(count);
    running.end.tell(&Word::Ready { port: 0 })?;
    running.handle(Came::Said(Control::Start), others + 1)?;
    let mut heard = Instant::now();
    loop {
        if let Some(moved) = running.moved().filter(|_| running.end.all_delivered()) {
            return Ok(moved);
        }
        match running.end.next() {
            Ok(Some(Came::Said(Control::Bye))) | Err(_) if running.is_over() => {
                // The client leaves when it has the report, mostly before its acknowledgement arrives here.
                return Ok(running.moved().unwrap_or_default());
            }
            Ok(Some(came)) => {
                running.handle(came, 1)?;
                heard = Instant::now();
            }
            Ok(None) if heard.elapsed() > SILENCE_TIMEOUT => {
                return Err(MeasureError::Timeout(SILENCE_TIMEOUT));
            }
            Ok(None) => {}
            Err(why) => return Err(why),
        }
        running.note_others(count.load(Ordering::Relaxed));
    }
}

/// Decrements the number of running measurements when dropped.
struct RunningGuard<'a>(&'a AtomicUsize);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for the client to begin.
fn await_begin(endpoint: &RdmEndpoint, token: u64) -> Result<Peer, MeasureError> {
    let own = |why: &dyn std::fmt::Display| MeasureError::Local(why.to_string());
    let room = region(WORDS_BYTES)?;
    let deadline = Instant::now() + BEGINS_WITHIN;
    loop {
        endpoint.recv(0, room.all()).map_err(|why| own(&why))?;
        let left = deadline.saturating_duration_since(Instant::now());
        let done = endpoint.wait(left).map_err(|_| MeasureError::Timeout(BEGINS_WITHIN))?;
        let bytes = room.to_vec(0..done.byte_len as usize)?;
        if let (Some(peer), Some((_, Word::Begin))) = (done.peer, decode(Some(token), &bytes)) {
            return Ok(peer);
        }
    }
}
