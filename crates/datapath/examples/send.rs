//! SEND and RECV: a message is placed in the memory that the other end has posted for the next one.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use std::error::Error;
use std::time::Duration;

use pathweave_datapath::{Device, DeviceConfig, Region};

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let server = Device::open(DeviceConfig::loopback())?;
    let client = Device::open(DeviceConfig::loopback())?;
    let listener = server.listen()?;
    let near = client.connect(server.local_addr())?;
    let far = listener.accept(PATIENCE)?;

    let inbox = Region::zeroed(100)?;
    far.recv(7, inbox.all())?;

    let message = Region::from_bytes(b"a message")?;
    near.send_imm(1, message.all(), 42)?;

    let received = far.wait(PATIENCE)?;
    let bytes = inbox.to_vec(0..received.byte_len as usize)?;
    println!(
        "receive {} holds {:?}, immediate {:?}",
        received.wr_id,
        String::from_utf8_lossy(&bytes),
        received.imm
    );
    let sent = near.wait(PATIENCE)?;
    println!("request {}: {:?}", sent.wr_id, sent.status);
    assert_eq!((&bytes[..], received.imm, sent.is_success()), (&b"a message"[..], Some(42), true));
    Ok(())
}
