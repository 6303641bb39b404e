//! WRITE with immediate: bytes are placed in the other end's memory, and its application gets a completion.
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

    let board = Region::zeroed(1 << 20)?;
    let opened = server.register(&board, Access::WRITE)?;
    // The immediate consumes a receive; the bytes are not placed there.
    far.recv(7, Region::zeroed(0)?.all())?;

    let block = Region::from_bytes(&vec![0xab; 1 << 20])?;
    near.write_imm(1, block.all(), opened.remote(0), 2026)?;

    let told = far.wait(PATIENCE)?;
    println!("{} bytes were written, immediate {:?}", told.byte_len, told.imm);
    assert_eq!((told.result(), told.imm), (Ok(1 << 20), Some(2026)));
    assert!(board.to_vec(0..1 << 20)?.iter().all(|byte| *byte == 0xab));
    assert!(near.wait(PATIENCE)?.is_success());
    Ok(())
}
