//! Work around limits of the driver for shared memory (memif).

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::dpdk::vdev::Vdev;

/// Returns true if the device is the server of a memif, which waits for its client.
pub(crate) fn is_server(vdev: &Vdev) -> bool {
    vdev.driver() == "net_memif" && !matches!(vdev.get("role"), Some("client" | "slave"))
}

/// Removes the socket of a server that was killed. The driver would report that its address is in use.
pub(crate) fn remove_stale_socket(vdev: &Vdev) {
    if let (true, Some("no"), Some(path)) = (is_server(vdev), vdev.get("socket-abstract"), vdev.get("socket"))
        && is_abandoned(Path::new(path))
    {
        // If removal fails, the driver reports an error later.
        let _ = fs::remove_file(path);
    }
}

/// Returns true if the path is a socket without a listener.
fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let refused = || {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).ok()?;
        Some(connect(&socket, &SocketAddrUnix::new(path).ok()?) == Err(Errno::CONNREFUSED))
    };
    is_socket && refused() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{bind, listen};

    #[test]
    fn only_a_socket_at_which_nobody_listens_is_cleared_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memif.sock");
        let vdev = |role: &str| -> Vdev {
            format!("net_memif0,role={role},socket={},socket-abstract=no", path.display()).parse().unwrap()
        };
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&socket, 1).unwrap();
        remove_stale_socket(&vdev("server"));
        assert!(path.exists(), "somebody listens");
        drop(socket);
        remove_stale_socket(&vdev("client"));
        assert!(path.exists(), "a client waits for its server");
        remove_stale_socket(&vdev("server"));
        assert!(!path.exists());
        fs::write(&path, "a file").unwrap();
        remove_stale_socket(&vdev("server"));
        assert!(path.exists(), "it is somebody's file");
    }
}
