//! Many connections, handled in the loop's thread: a message gathered from two places, and memory that the other end
//! reads. Run with `cargo run --example events`.

use std::error::Error;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use pathweave_datapath::{
    Access, Connection, Device, DeviceConfig, Event, Events, Region, Registration, Remote, Slices,
};

/// Result with any error.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

const RECEIVE: u64 = 1;
const SEND: u64 = 2;
const READ: u64 = 3;
const BYTES: usize = 100_000;

/// One end, with the same behaviour on events at both ends.
struct End {
    device: Device,
    events: Events,
    room: Region,
    target: Region,
    state: Mutex<State>,
    done: mpsc::Sender<Vec<u8>>,
}

#[derive(Default)]
struct State {
    open: Option<Connection>,
    lent: Option<Registration>,
}

impl End {
    fn start(done: mpsc::Sender<Vec<u8>>) -> Result<Arc<Self>> {
        let device = Device::open(DeviceConfig::loopback())?;
        let (room, target) = (Region::zeroed(100)?, Region::zeroed(BYTES)?);
        let (events, state) = (device.events(), Mutex::default());
        let end = Arc::new(End { events, room, target, state, done, device: device.clone() });
        let weak = Arc::downgrade(&end);
        device.set_hook(move || {
            if let Some(end) = weak.upgrade()
                && let Err(error) = end.progress()
            {
                panic!("{error}");
            }
        })?;
        Ok(end)
    }

    /// Handles all events. Called in the loop's thread.
    fn progress(&self) -> Result<()> {
        let mut state = self.state.lock().expect("nobody panics with it");
        while let Some(event) = self.events.take() {
            match event {
                // A peer has connected: post a receive before its message is processed.
                Event::Accepted(connection) => {
                    connection.recv(RECEIVE, self.room.all())?;
                    state.open = Some(connection);
                }
                // Sends the peer a header and, gathered from elsewhere, the key of the memory to read, which is valid
                // at once.
                Event::Opened { connection, .. } => {
                    let bytes: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8).collect();
                    let lent = self.device.register_at(&Region::from_bytes(&bytes)?, 0, Access::READ)?;
                    let (header, key) =
                        (Region::from_bytes(b"READ")?, Region::from_bytes(&lent.rkey().to_le_bytes())?);
                    connection.send(SEND, Slices::of([header.all(), key.all()])?)?;
                    (state.open, state.lent) = (Some(connection), Some(lent));
                }
                Event::Completed(done) if done.wr_id == RECEIVE && done.is_success() => {
                    let rkey = u64::from_le_bytes(self.room.to_vec(4..12)?.try_into().expect("eight bytes"));
                    let open = state.open.as_ref().ok_or("it was accepted")?;
                    open.read(READ, self.target.all(), Remote { address: 0, rkey })?;
                }
                Event::Completed(done) if done.wr_id == READ && done.is_success() => {
                    self.done.send(self.target.to_vec(0..BYTES)?)?;
                }
                Event::Closed { .. } => {
                    // The other end has finished reading.
                    if let Some(lent) = state.lent.take() {
                        self.events.release(lent, 7);
                    }
                }
                Event::Released { token: 7 } => self.done.send(Vec::new())?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Runs both ends in turn.
pub(crate) fn main() -> Result<()> {
    let (done, read) = mpsc::channel();
    let server = End::start(done)?;
    let (done, released) = mpsc::channel();
    let client = End::start(done)?;
    let _accepting = server.events.accept()?;
    client.events.connect(1, server.device.local_addr());
    let bytes = read.recv_timeout(Duration::from_secs(10))?;
    assert!(bytes.iter().enumerate().all(|(i, byte)| *byte == (i % 251) as u8));
    // Closes the connection.
    server.state.lock().expect("nobody panics with it").open = None;
    released.recv_timeout(Duration::from_secs(10))?;
    Ok(())
}
