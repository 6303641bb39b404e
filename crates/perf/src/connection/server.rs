//! Server of connections.

use std::net::SocketAddr;

use pathweave_datapath::{Completion, Connection, WaitError};

use super::bundle::IncompleteBundles;
use super::session::Session;
use crate::broken::MeasureError;
use crate::clients::{Clients, Ended, Transferred};
use crate::console::{Console, Failure, Note};
use crate::meet::CHECK_INTERVAL;
use crate::open as device;
use crate::server::{Served, ServerOptions};
use crate::test::Hello;

/// Event of a server.
enum Event {
    Opened(Connection),
    /// Completion of the session with this index.
    Completed(usize, Completion),
}

/// # Errors
/// If the server cannot start.
pub(crate) fn serve(options: &ServerOptions, console: &dyn Console) -> Result<Served, Failure> {
    let device = device::open(options.device.clone(), &options.carrier, console)?;
    let closed = |why: WaitError| Failure::Internal(why.to_string());
    let listener = device.listen().map_err(|why| Failure::Input(why.to_string()))?;
    let (protection, local) = (options.device.protection, device.local_addr());
    let all: Vec<String> = device.addresses().iter().map(ToString::to_string).collect();
    console.note(Note::Listening(&format!("listening on {} ({protection})", all.join(","))));
    let say = |line: String| console.note(Note::Client(&line));
    let mut sessions: Vec<Session> = Vec::new();
    let mut clients = Clients::new(options.clients);
    let mut gathering = IncompleteBundles::default();
    // Session whose completions are looked for first. It rotates, so that no session is starved.
    let mut first = 0;
    while !console.is_interrupted() && !clients.are_over() {
        let count = sessions.len();
        let ready = || {
            if let Some(connection) = listener.take() {
                return Some(Event::Opened(connection));
            }
            let order = (0..count).map(|index| (first + index) % count);
            let mut taken = order.filter_map(|index| Some(Event::Completed(index, sessions[index].take()?)));
            taken.next()
        };
        match device.wait_until(CHECK_INTERVAL, ready).map_err(closed)? {
            Some(Event::Opened(connection)) => {
                let peer = connection.peer_addr();
                let Some((bundle, said)) = gathering.add(&device, connection) else { continue };
                let mut ticket = None;
                let enter = |from: SocketAddr, hello: &Hello| {
                    ticket = Some(clients.admit(hello.client, from, hello.comes_back)?);
                    Ok(ticket)
                };
                match Session::open(&device, bundle, &said, options.max_memory_bytes, enter) {
                    Ok((session, words)) => {
                        say(format!("{peer}: {words}"));
                        if let (Some(ticket), Some(test)) = (ticket, session.test()) {
                            clients.begins(ticket, test.what());
                        }
                        sessions.push(session);
                        let count = sessions.len();
                        sessions.iter_mut().for_each(|session| session.note_connections(count));
                    }
                    Err(why) => {
                        say(format!("{peer}: {why}"));
                        if let Some(ticket) = ticket {
                            clients.ends(ticket, Ended::Broken, Transferred::default());
                        }
                    }
                }
            }
            Some(Event::Completed(index, completion)) => {
                first = index + 1;
                if let Err(why) = sessions[index].complete(completion, count) {
                    let session = sessions.swap_remove(index);
                    record_end(&mut clients, &session);
                    match why {
                        MeasureError::Closed => say(format!("{}: closed", session.peer())),
                        why => say(format!("{}: {why}", session.peer())),
                    }
                }
            }
            None => {
                gathering.drop_closed();
                sessions.retain(|session| {
                    let stays = !session.is_closed();
                    if !stays {
                        record_end(&mut clients, session);
                    }
                    stays
                });
            }
        }
    }
    for session in &sessions {
        match (session.ticket(), session.ended()) {
            (Some(ticket), (Ended::Broken, moved)) => clients.is_cut_off(ticket, moved),
            _ => record_end(&mut clients, session),
        }
    }
    Ok(Served::of(&clients, local, protection, console.is_interrupted()))
}

/// Records the end of a client whose connection has closed.
fn record_end(clients: &mut Clients, session: &Session) {
    if let Some(ticket) = session.ticket() {
        let (ended, moved) = session.ended();
        clients.ends(ticket, ended, moved);
    }
}
