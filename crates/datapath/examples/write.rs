//! WRITE: one end puts bytes into the other end's memory, without an event there.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use std::error::Error;
use std::time::Duration;

use pathweave_datapath::{Access, Device, DeviceConfig, Region};

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let server = Device::open(DeviceConfig::loopback())?;
    let client = Device::open(DeviceConfig::loopback())?;
    let listener = server.listen()?;
    let near = client.connect(server.local_addr())?;
    let far = listener.accept(PATIENCE)?;

    // The server registers memory and gives the client its address and key. Both are in one process here, so no
    // message is needed.
    let board = Region::zeroed(64)?;
    let opened = server.register(&board, Access::WRITE)?;

    let words = Region::from_bytes(b"written from afar")?;
    near.write(1, words.all(), opened.remote(10))?;
    let done = near.wait(PATIENCE)?;
    println!("{:?} of {} bytes: {:?}", done.opcode, done.byte_len, done.status);
    println!("the server finds {:?}", String::from_utf8_lossy(&board.to_vec(10..27)?));
    assert_eq!(board.to_vec(10..27)?, b"written from afar");
    drop(far);
    Ok(())
}
