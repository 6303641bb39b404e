//! A server of connections.

use std::net::SocketAddr;

use pathweave_datapath::{Completion, Connection, WaitError};

use super::super::args::ServerArgs;
use super::super::broken::Broken;
use super::super::clients::{Clients, Ended, Moved};
use super::super::device;
use super::super::meet::LOOK_EVERY;
use super::super::server::{announce, summarise};
use super::super::test::Hello;
use super::bundle::Gathering;
use super::session::Session;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::terminal;

/// What a server waits for.
enum Event {
    Opened(Connection),
    /// Of the session with this index.
    Completed(usize, Completion),
}

pub(crate) fn server(args: &ServerArgs) -> Result<Outcome, Failure> {
    let device = device::open(args.device.config(args.bind)?)?;
    let interrupt = Interrupt::listen_saying("stopping; Ctrl-C again does not wait for anything")?;
    let closed = |why: WaitError| Failure::Internal(why.to_string());
    let listener = device.listen().map_err(|why| Failure::Input(why.to_string()))?;
    let protection = args.device.protection.protection();
    let local = device.local_addr();
    announce(args, &format!("listening on {local} ({protection})"));
    let say = |line: String| {
        if !args.quiet {
            terminal::note(&line);
        }
    };
    let mut sessions: Vec<Session> = Vec::new();
    let mut clients = Clients::new(args.clients);
    let mut gathering = Gathering::default();
    // Whose completions are looked at first, so that none is kept waiting by the others.
    let mut first = 0;
    while !interrupt.requested() && !clients.are_over() {
        let count = sessions.len();
        let ready = || {
            if let Some(connection) = listener.take() {
                return Some(Event::Opened(connection));
            }
            let order = (0..count).map(|index| (first + index) % count);
            let mut taken = order.filter_map(|index| Some(Event::Completed(index, sessions[index].take()?)));
            taken.next()
        };
        match device.wait_until(LOOK_EVERY, ready).map_err(closed)? {
            Some(Event::Opened(connection)) => {
                let peer = connection.peer_addr();
                let Some((bundle, said)) = gathering.add(&device, connection) else { continue };
                let mut ticket = None;
                let enter = |from: SocketAddr, hello: &Hello| {
                    ticket = Some(clients.enter(hello.client, from, hello.comes_back)?);
                    Ok(ticket)
                };
                match Session::open(&device, bundle, &said, args.max_memory, enter) {
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
                            clients.ends(ticket, Ended::Broken, Moved::default());
                        }
                    }
                }
            }
            Some(Event::Completed(index, completion)) => {
                first = index + 1;
                if let Err(why) = sessions[index].complete(completion, count) {
                    let session = sessions.swap_remove(index);
                    leave(&mut clients, &session);
                    match why {
                        Broken::Closed => say(format!("{}: closed", session.peer())),
                        why => say(format!("{}: {why}", session.peer())),
                    }
                }
            }
            None => {
                gathering.tidy();
                sessions.retain(|session| {
                    let stays = !session.is_closed();
                    if !stays {
                        leave(&mut clients, session);
                    }
                    stays
                });
            }
        }
    }
    summarise(args, &clients, local, &protection.to_string(), interrupt.requested());
    Ok(Outcome::Done)
}

/// A client's connection is gone.
fn leave(clients: &mut Clients, session: &Session) {
    if let Some(ticket) = session.ticket() {
        let (ended, moved) = session.ended();
        clients.ends(ticket, ended, moved);
    }
}
