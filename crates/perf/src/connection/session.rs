//! Session of a client at the server.

use std::net::SocketAddr;

use pathweave_datapath::{Access, Completion, Device, Remote};
use serde::{Deserialize, Serialize};

use super::bundle::Bundle;
use super::control::ControlMessage;
use super::flow::{Flow, send_control_with_text};
use super::{Channel, ConnectionEnd};
use crate::broken::MeasureError;
use crate::clients::{Ended, MeasurementId, Transferred};
use crate::end::{End, Running};
use crate::pattern::region_with_turns;
use crate::test::{Hello, Kind, Role, Test};

/// Text of the server's ready message: the key of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) data_key: u64,
}

/// Connection with its test.
pub(crate) struct Session {
    part: Part,
    /// Entry in the server's list of clients. `None` if the client was not admitted.
    ticket: Option<MeasurementId>,
}

enum Part {
    /// The client is measured.
    Test(Box<Running<ConnectionEnd>>),
    /// The client has been sent a refusal.
    Refused(Bundle),
}

impl Session {
    /// Admits a client, or sends it a refusal. The returned text is for the operator of the server.
    ///
    /// # Errors
    /// If even the refusal cannot be sent.
    pub(crate) fn open(
        device: &Device,
        connection: Bundle,
        said: &[u8],
        max_memory_bytes: u64,
        enter: impl FnOnce(SocketAddr, &Hello) -> Result<Option<MeasurementId>, String>,
    ) -> Result<(Session, String), MeasureError> {
        let key = Hello::control_key(said).ok_or_else(|| {
            MeasureError::Protocol("it is no client of `pathweave perf` or `pathweave ping`".to_owned())
        })?;
        let control = Remote { address: 0, rkey: key };
        let refuse = |connection: Bundle, ticket: Option<MeasurementId>, why: String| {
            send_control_with_text(&connection, ControlMessage::Refused, why.as_bytes(), control)?;
            Ok((Session { part: Part::Refused(connection), ticket }, format!("refused: {why}")))
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
        let made = region_with_turns(test.memory_bytes(), || connection.turn()).and_then(|memory| {
            let open = device.register(&memory, Access::READ_WRITE);
            let open = open.map_err(|why| MeasureError::Local(why.to_string()))?;
            Ok((Flow::new(test, Role::Server, (memory, remote), || connection.turn())?, open))
        });
        let (mut flow, open) = match made {
            Ok(made) => made,
            Err(why) => return refuse(connection, ticket, why.to_string()),
        };
        flow.prepare(&connection)?;
        let welcome = Welcome { data_key: open.rkey() };
        let text = serde_json::to_vec(&welcome).expect("plain data serialises");
        let channel = Channel::Sends(control);
        let running = Running::new(ConnectionEnd { connection, flow, channel, _registered: vec![open] });
        send_control_with_text(&running.end.connection, ControlMessage::Ready, &text, control)?;
        Ok((Session { part: Part::Test(Box::new(running)), ticket }, describe(&test)))
    }

    fn connection(&self) -> &Bundle {
        match &self.part {
            Part::Test(running) => &running.end.connection,
            Part::Refused(connection) => connection,
        }
    }

    /// Returns the next completion, if there is one.
    pub(crate) fn take(&self) -> Option<Completion> {
        self.connection().poll_completion()
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.connection().peer_addr()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.connection().is_closed()
    }

    /// Returns the entry in the server's list of clients.
    pub(crate) fn ticket(&self) -> Option<MeasurementId> {
        self.ticket
    }

    /// Returns the test, unless the client was refused.
    pub(crate) fn test(&self) -> Option<&Test> {
        match &self.part {
            Part::Test(running) => Some(&running.end.tally().test),
            Part::Refused(_) => None,
        }
    }

    /// Returns the outcome that the session would have if it ended now.
    pub(crate) fn ended(&self) -> (Ended, Transferred) {
        match &self.part {
            Part::Refused(_) => (Ended::Refused, Transferred::default()),
            Part::Test(running) => match running.moved() {
                Some(moved) => (Ended::Done, moved),
                // A survey lasts until its client closes the connection.
                None if running.end.tally().test.kind == Kind::Survey => (Ended::Done, running.moved_now()),
                None => (Ended::Broken, running.moved_now()),
            },
        }
    }

    /// Records the number of connections that the server has.
    pub(crate) fn note_connections(&mut self, count: usize) {
        if let Part::Test(running) = &mut self.part {
            running.note_others(count);
        }
    }

    /// Handles a completion.
    ///
    /// # Errors
    /// If the session has ended.
    pub(crate) fn complete(
        &mut self,
        completion: Completion,
        connections: usize,
    ) -> Result<(), MeasureError> {
        let Part::Test(running) = &mut self.part else {
            return if completion.is_success() { Ok(()) } else { Err(MeasureError::Closed) };
        };
        let came = running.end.complete(completion)?;
        running.handle(came, connections)
    }
}

/// Describes a test in words, for instance "write, 65536 bytes a message, depth 64".
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
