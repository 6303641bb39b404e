//! Every verb in tasks of tokio: requests are posted by the call, and their futures wait for the completion.
//!
//! ```sh
//! cargo run -p pathweave-datapath --features tokio --example tokio
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use std::error::Error;

use pathweave_datapath::{Access, DeviceConfig, Region, Remote, aio};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Length of the address and key of the server's memory.
const NAME_BYTES: usize = 16;

async fn serve(device: aio::Device, listener: aio::Listener) -> Result<Vec<u8>> {
    let connection = listener.accept().await?;
    let memory = Region::from_bytes(b"what the client reads, and writes")?;
    let open = device.register(&memory, Access::READ_WRITE)?;
    // Receive for the client's final message.
    connection.give(Region::zeroed(100)?.all())?;
    let Remote { address, rkey } = open.remote(0);
    let name = [&address.to_be_bytes()[..], &rkey.to_be_bytes()].concat();
    connection.send(Region::from_bytes(&name)?.all()).await?;
    let word = connection.recv().await?;
    println!("the client says {:?}, immediate {:?}", String::from_utf8_lossy(&word.to_vec()?), word.imm);
    connection.closed().await;
    Ok(memory.to_vec(0..memory.len())?)
}

async fn ask(device: aio::Device, server: std::net::SocketAddr) -> Result<Vec<u8>> {
    let connection = device.connect(server).await?;
    connection.give(Region::zeroed(NAME_BYTES)?.all())?;
    let name = connection.recv().await?.to_vec()?;
    let (address, rkey) = name.split_at(8);
    let memory = Remote {
        address: u64::from_be_bytes(address.try_into()?),
        rkey: u64::from_be_bytes(rkey.try_into()?),
    };

    let copy = Region::zeroed(21)?;
    connection.read(copy.all(), memory).await?;
    // Both are posted before either is awaited; the message arrives after the bytes.
    let written = connection.write(Region::from_bytes(b"WHAT")?.all(), memory);
    let said = connection.send_imm(Region::from_bytes(b"done")?.all(), 7);
    written.await?;
    said.await?;
    Ok(copy.to_vec(0..copy.len())?)
}

async fn both() -> Result<()> {
    let server = aio::Device::open(DeviceConfig::loopback())?;
    let client = aio::Device::open(DeviceConfig::loopback())?;
    let address = server.local_addr();
    // Listens before the client connects, since a request without a listener is refused.
    let listener = server.listen()?;
    let serving = tokio::spawn(serve(server, listener));
    let read = ask(client, address).await?;
    let written = serving.await??;
    println!("read {:?}, wrote {:?}", String::from_utf8_lossy(&read), String::from_utf8_lossy(&written));
    assert_eq!((&read[..], &written[..4]), (&b"what the client reads"[..], &b"WHAT"[..]));
    Ok(())
}

/// Runs client and server to the end.
///
/// # Errors
/// The first error at either end.
pub(crate) fn main() -> Result<()> {
    tokio::runtime::Builder::new_current_thread().build()?.block_on(both())
}
