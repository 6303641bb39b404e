//! READ: one end fetches bytes from the other end's memory, without work of the application there.
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
    let _far = listener.accept(PATIENCE)?;

    let library = Region::from_bytes(b"all that is to be known")?;
    let opened = server.register(&library, Access::READ)?;

    let copy = Region::zeroed(5)?;
    near.read(1, copy.all(), opened.remote(18))?;
    let done = near.wait(PATIENCE)?;
    println!("{:?}: {:?}", done.status, String::from_utf8_lossy(&copy.to_vec(0..5)?));
    assert_eq!(copy.to_vec(0..5)?, b"known");
    Ok(())
}
