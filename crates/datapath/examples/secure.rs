//! Two devices that share a cluster key: packets are encrypted. A third device without the key is refused.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use std::error::Error;
use std::time::Duration;

use pathweave_datapath::secure::{ClusterKey, OsRandom, Protection};
use pathweave_datapath::{ConnectError, Device, DeviceConfig, Region};

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let key = ClusterKey::generate(&mut OsRandom)?;
    let config = DeviceConfig {
        protection: Protection::Encrypt,
        key: Some(key),
        ..DeviceConfig::new("127.0.0.1:0".parse()?)
    };
    let server = Device::open(config.clone())?;
    let client = Device::open(config)?;
    let listener = server.listen()?;
    let near = client.connect(server.local_addr())?;
    let far = listener.accept(PATIENCE)?;

    let inbox = Region::zeroed(100)?;
    far.recv(1, inbox.all())?;
    near.send(1, Region::from_bytes(b"for your eyes only")?.all())?;
    let received = far.wait(PATIENCE)?;
    println!("{} bytes over a connection with protection {}", received.byte_len, near.info().protection);

    let mut stranger = DeviceConfig::new("127.0.0.1:0".parse()?);
    stranger.key = Some(ClusterKey::generate(&mut OsRandom)?);
    let refused = Device::open(stranger)?.connect(server.local_addr()).unwrap_err();
    println!("with another key: {refused}");
    assert!(matches!(refused, ConnectError::WrongKey { .. }));
    Ok(())
}
