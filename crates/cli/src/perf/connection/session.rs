//! A client, as the server sees it.

use std::net::SocketAddr;
use std::time::Instant;

use pathweave_datapath::{Access, Completion, Device, Registration, Remote};
use serde::{Deserialize, Serialize};

use super::bundle::Bundle;
use super::clients::{Ended, Moved, Ticket};
use super::flow::{Flow, Role, region, tell};
use super::side::Mark;
use super::test::{Hello, Kind, Test};
use super::words::{Broken, Word};

/// What the server says before a test: the key to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) data_key: u64,
}

/// A connection and its test.
pub(crate) struct Session {
    connection: Bundle,
    /// Where the client hears.
    control: Remote,
    part: Part,
    /// In the server's list of clients. `None`: it is not one of those it takes.
    ticket: Option<Ticket>,
}

enum Part {
    /// It takes part.
    Test(Box<Running>),
    /// It has been told that it cannot.
    Refused,
}

struct Running {
    test: Test,
    flow: Flow,
    /// Taken before the client can begin: what it asks for is answered without this end's doing.
    mark: Mark,
    phase: Phase,
    /// What had been moved before the client could begin. Data may overtake its word that it has.
    before: Moved,
    /// When it said so.
    begun: Option<Instant>,
    /// What was moved until the client was told of this end's part.
    moved: Option<Moved>,
    /// Connections the server had at a time, at most.
    connections: usize,
    _open: Registration,
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

impl Session {
    /// Takes a client in, or tells it why not. The text is for who runs the server.
    ///
    /// # Errors
    /// The client cannot even be told.
    pub(crate) fn open(
        device: &Device,
        connection: Bundle,
        said: &[u8],
        max_memory_bytes: u64,
        enter: impl FnOnce(SocketAddr, &Hello) -> Result<Option<Ticket>, String>,
    ) -> Result<(Session, String), Broken> {
        let key = Hello::control_key(said).ok_or_else(|| {
            Broken::Nonsense("it is no client of `pathweave perf` or `pathweave ping`".to_owned())
        })?;
        let control = Remote { address: 0, rkey: key };
        let refuse = |connection: Bundle, ticket: Option<Ticket>, why: String| {
            tell(&connection, Word::Refused, why.as_bytes(), control)?;
            let session = Session { connection, control, part: Part::Refused, ticket };
            Ok((session, format!("refused: {why}")))
        };
        let hello = match Hello::decode(said) {
            Ok(hello) => hello,
            Err(why) => return refuse(connection, None, why),
        };
        let ticket = match enter(connection.peer_addr(), &hello) {
            Ok(ticket) => ticket,
            Err(why) => return refuse(connection, None, why),
        };
        let test = hello.test;
        if test.memory_bytes() > max_memory_bytes {
            let wanted = test.memory_bytes();
            let why = format!(
                "messages of {} bytes need {wanted} bytes of memory, and it gives a client {max_memory_bytes} \
                 (--max-memory of the server)",
                test.size_bytes
            );
            return refuse(connection, ticket, why);
        }
        let remote = Remote { address: 0, rkey: hello.data_key };
        let made = region(test.memory_bytes()).and_then(|memory| {
            let open = device.register(&memory, Access::READ_WRITE);
            let open = open.map_err(|why| Broken::Own(why.to_string()))?;
            Ok((Flow::new(test, Role::Server, memory, remote)?, open))
        });
        let (mut flow, open) = match made {
            Ok(made) => made,
            Err(why) => return refuse(connection, ticket, why.to_string()),
        };
        flow.prepare(&connection)?;
        let welcome = Welcome { data_key: open.rkey() };
        let text = serde_json::to_vec(&welcome).expect("plain data serialises");
        let mark = Mark::now(&connection);
        let before = moved(&connection);
        tell(&connection, Word::Ready, &text, control)?;
        let words = describe(&test);
        let phase = Phase::Waiting;
        let (begun, moved, connections) = (None, None, 1);
        let running = Running { test, flow, mark, phase, before, begun, moved, connections, _open: open };
        Ok((Session { connection, control, part: Part::Test(Box::new(running)), ticket }, words))
    }

    /// The next completion, if there is one.
    pub(crate) fn take(&self) -> Option<Completion> {
        self.connection.take()
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.connection.peer_addr()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// In the server's list of clients.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    /// What is measured, where it takes part.
    pub(crate) fn test(&self) -> Option<&Test> {
        match &self.part {
            Part::Test(running) => Some(&running.test),
            Part::Refused => None,
        }
    }

    /// How it has ended, if it is over now.
    pub(crate) fn ended(&self) -> (Ended, Moved) {
        match &self.part {
            Part::Refused => (Ended::Refused, Moved::default()),
            Part::Test(running) => match running.moved {
                Some(moved) => (Ended::Done, moved),
                None => (Ended::Broken, running.moved_by(&self.connection)),
            },
        }
    }

    /// The server has so many connections.
    pub(crate) fn note_connections(&mut self, count: usize) {
        if let Part::Test(running) = &mut self.part {
            running.connections = running.connections.max(count);
        }
    }

    /// Takes in a completion, and does what follows from it.
    ///
    /// # Errors
    /// The session is over.
    pub(crate) fn complete(&mut self, completion: Completion, connections: usize) -> Result<(), Broken> {
        let connection = &self.connection;
        let Part::Test(running) = &mut self.part else {
            return if completion.is_success() { Ok(()) } else { Err(Broken::Closed) };
        };
        match running.flow.complete(connection, completion)?.map(|(word, _)| word) {
            Some(Word::Start) => {
                running.connections = connections;
                running.phase = Phase::Running;
                running.begun = Some(Instant::now());
            }
            Some(Word::Data) if running.test.kind == Kind::Latency => running.flow.post_one(connection)?,
            Some(Word::Finish) => {
                running.phase = Phase::Finishing;
                if running.test.iterations.is_none() {
                    running.flow.stop();
                }
            }
            Some(word @ (Word::Ready | Word::Report | Word::Refused)) => {
                return Err(Broken::Nonsense(format!("a client says {word:?}")));
            }
            Some(Word::Data | Word::Checked(_)) | None => {}
        }
        running.flow.refill(connection)?;
        if matches!(running.phase, Phase::Running | Phase::Finishing) {
            running.flow.post(connection)?;
        }
        if running.phase == Phase::Finishing && running.flow.is_done() {
            running.phase = Phase::Over;
            running.moved = Some(running.moved_by(connection));
            let side = running.mark.side(connection, &running.flow, running.connections);
            let text = serde_json::to_vec(&side).expect("plain data serialises");
            tell(connection, Word::Report, &text, self.control)?;
        }
        Ok(())
    }
}

impl Running {
    /// What has been moved since the client began.
    fn moved_by(&self, connection: &Bundle) -> Moved {
        let (before, now) = (self.before, moved(connection));
        Moved {
            seconds: self.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64()),
            received_bytes: now.received_bytes.saturating_sub(before.received_bytes),
            sent_bytes: now.sent_bytes.saturating_sub(before.sent_bytes),
        }
    }
}

/// Payload that a connection has moved.
fn moved(connection: &Bundle) -> Moved {
    let Some(counters) = connection.stats().map(|stats| stats.counters) else { return Moved::default() };
    Moved {
        seconds: 0.0,
        received_bytes: counters.payload_bytes_received,
        sent_bytes: counters.payload_bytes_sent,
    }
}

/// "write, 65536 bytes a message, depth 64".
fn describe(test: &Test) -> String {
    let op = format!("{:?}", test.op).to_lowercase();
    match test.kind {
        Kind::Survey => "path survey".to_owned(),
        Kind::Latency => format!("{op} latency, {} bytes a message", test.size_bytes),
        Kind::Bandwidth => {
            format!("{op} bandwidth, {} bytes a message, depth {}", test.size_bytes, test.depth)
        }
    }
}
