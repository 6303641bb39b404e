//! Packet backends of a lab's hosts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use clap::ValueEnum;
use pathweave_bypass::{Carrier, DpdkPort, Fallback, dpdk};
use pathweave_datapath::{Device, DeviceConfig};
use pathweave_lab::{HostPort, LabNamespaces, over_sockets};

use crate::failure::Failure;

/// Packet backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabBackend {
    /// UDP sockets
    Udp,
    /// AF_XDP sockets at the first port of each host
    AfXdp,
    /// DPDK with a packet socket (net_af_packet) at the first port of each host
    Dpdk,
}

impl LabBackend {
    /// Returns the first of DPDK, AF_XDP and sockets that this build has and this user may use, with a note unless it
    /// is DPDK.
    pub(crate) fn usual(workplace: LabNamespaces) -> (LabBackend, Option<String>) {
        if dpdk::IS_BUILT {
            return (LabBackend::Dpdk, None);
        }
        let (backend, more) = match workplace {
            LabNamespaces::Machine => (LabBackend::AfXdp, ""),
            // Only root may load the program that selects packets.
            LabNamespaces::User { .. } | LabNamespaces::None => (LabBackend::Udp, ", and AF_XDP is for root"),
        };
        (backend, Some(format!("this build has no DPDK{more}: packets go over {}", backend.words())))
    }

    /// # Errors
    /// This build does not have the backend.
    pub(crate) fn check(self) -> Result<(), Failure> {
        if self == LabBackend::Dpdk && !dpdk::IS_BUILT {
            return Err(Failure::Input(format!("--backend dpdk: {}", dpdk::DpdkError::NotBuilt)));
        }
        Ok(())
    }

    /// Returns a description of the backend.
    pub(crate) fn words(self) -> &'static str {
        match self {
            LabBackend::Udp => "UDP sockets",
            LabBackend::AfXdp => "AF_XDP",
            LabBackend::Dpdk => "DPDK (net_af_packet)",
        }
    }

    /// Returns the name of the backend as a value of the option.
    pub(crate) fn name(self) -> &'static str {
        match self {
            LabBackend::Udp => "udp",
            LabBackend::AfXdp => "af-xdp",
            LabBackend::Dpdk => "dpdk",
        }
    }

    /// Opens the device of a host.
    ///
    /// # Errors
    /// The reason why it cannot be opened.
    pub(crate) fn open(self, port: &HostPort, config: DeviceConfig) -> Result<Device, String> {
        let carrier = match self {
            LabBackend::Udp => return over_sockets(port, config),
            LabBackend::AfXdp => {
                Carrier::AfXdp { interface: port.interface.clone(), fallback: Fallback::Fail }
            }
            LabBackend::Dpdk => Carrier::Dpdk(packet_socket(port)?),
        };
        // DPDK creates one port at a time.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().expect("no thread panics while it holds the lock");
        let opened = pathweave_bypass::open(config, &carrier)
            .map_err(|why| format!("--backend {}: {why}", self.name()))?;
        Ok(opened.device)
    }
}

/// Returns DPDK's port at a network interface that the kernel uses, too. Its packets pass the queue in front of the
/// link, which limits the rate.
fn packet_socket(port: &HostPort) -> Result<DpdkPort, String> {
    /// Devices of one process have different numbers.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let text = format!("net_af_packet{number},iface={},qdisc_bypass=0", port.interface);
    let vdev = text.parse().map_err(|why: dpdk::DpdkError| why.to_string())?;
    Ok(DpdkPort {
        device: dpdk::Device::Vdev(vdev),
        local: None,
        gateway: None,
        mtu_bytes: port.mtu_bytes,
        huge_pages: dpdk::HugePages::Auto,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_sockets_have_names_of_their_own_and_keep_to_the_rate_of_the_link() {
        let port = HostPort { interface: "p0".to_owned(), mtu_bytes: 1_551 };
        let name = || match packet_socket(&port).unwrap() {
            DpdkPort { device: dpdk::Device::Vdev(vdev), mtu_bytes: 1_551, .. } => vdev.name().to_owned(),
            other => panic!("{other:?}"),
        };
        let (first, second) = (name(), name());
        assert!(first.starts_with("net_af_packet") && first != second, "{first} {second}");
    }

    #[test]
    fn a_build_without_dpdk_is_reported() {
        let (backend, word) = LabBackend::usual(LabNamespaces::User { namespace_holder: 1 });
        match dpdk::IS_BUILT {
            true => assert_eq!((backend, word), (LabBackend::Dpdk, None)),
            false => {
                assert_eq!(backend, LabBackend::Udp);
                let expected = "this build has no DPDK, and AF_XDP is for root: packets go over UDP sockets";
                assert_eq!(word.as_deref(), Some(expected));
            }
        }
        assert_eq!(LabBackend::Dpdk.check().is_ok(), dpdk::IS_BUILT);
    }
}
