//! Bytes of full packets and acknowledgements on links.

use crate::config::NetworkConfig;
use crate::ideal::{ack_wire_bytes, data_wire_bytes};

/// Returns the wire bytes of a full data packet and of an acknowledgement.
pub fn full_and_ack_bytes(network: &NetworkConfig) -> (u32, u32) {
    let mtu = network.mtu.get() as u16;
    (data_wire_bytes(network.framing, network.verb, 1, mtu, false), ack_wire_bytes(network.framing))
}

/// Returns the payload of a full packet as a share of its bytes on a link, 0 to 1.
pub fn payload_share(network: &NetworkConfig) -> f64 {
    network.mtu.get() as f64 / f64::from(full_and_ack_bytes(network).0)
}

#[cfg(test)]
mod tests {
    use pathweave_units::Bytes;
    use pathweave_wire::Framing;

    use super::*;

    #[test]
    fn headers_are_what_the_framing_counts() {
        let share = |framing| {
            payload_share(&NetworkConfig { framing, mtu: Bytes::new(1_400), ..NetworkConfig::default() })
        };
        assert_eq!(share(Framing::Ns3), 1_400.0 / 1_448.0);
        // Preamble and gap 20, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4.
        assert_eq!(share(Framing::Rocev2), 1_400.0 / 1_482.0);
    }
}
