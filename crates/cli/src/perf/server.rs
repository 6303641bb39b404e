//! `pathweave perf server`.

use std::time::Duration;

use pathweave_datapath::{Completion, Connection, WaitError};

use super::args::ServerArgs;
use super::bundle::Gathering;
use super::device;
use super::session::Session;
use super::words::Broken;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::terminal;

/// So often a server that has nothing to do looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

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
    terminal::out(&format!("listening on {} ({protection})\n", device.local_addr()));
    let say = |line: String| {
        if !args.quiet {
            terminal::note(&line);
        }
    };
    let mut sessions: Vec<Session> = Vec::new();
    let mut gathering = Gathering::default();
    // Whose completions are looked at first, so that none is kept waiting by the others.
    let mut first = 0;
    while !interrupt.requested() {
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
                match Session::open(&device, bundle, &said, args.max_memory) {
                    Ok((session, words)) => {
                        say(format!("{peer}: {words}"));
                        sessions.push(session);
                        let count = sessions.len();
                        sessions.iter_mut().for_each(|session| session.note_connections(count));
                    }
                    Err(why) => say(format!("{peer}: {why}")),
                }
            }
            Some(Event::Completed(index, completion)) => {
                first = index + 1;
                if let Err(why) = sessions[index].complete(completion, count) {
                    let session = sessions.swap_remove(index);
                    match why {
                        Broken::Closed => say(format!("{}: closed", session.peer())),
                        why => say(format!("{}: {why}", session.peer())),
                    }
                }
            }
            None => {
                gathering.tidy();
                sessions.retain(|session| !session.is_closed());
            }
        }
    }
    Ok(Outcome::Done)
}
