//! The datagram queue pair of an endpoint.

use std::io;

use pathweave_policy::{AnyPolicy, DatagramConfig, EethPlace, MeasuredSection, PolicyEnv};
use pathweave_transport::rd::{RdConfig, RdQp};
use pathweave_units::{Duration as Span, QpNum, Rng};
use pathweave_wire::Framing;

use super::config::RdmConfig;
use crate::config::AROUND_PAYLOAD_BYTES;
use crate::error::OpenError;
use crate::scheme;

/// Creates the queue pair of an endpoint, without peers.
pub(super) fn queue_pair(config: &RdmConfig, num: QpNum) -> Result<RdQp<AnyPolicy>, OpenError> {
    let device = &config.device;
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| OpenError::System {
        address: device.bind,
        source: io::Error::other(error.to_string()),
    })?;
    let seed = device.seed.unwrap_or(u64::from_ne_bytes(random));
    let (mut found, behaviour) = scheme::find_datagrams(&device.scheme)?;
    scheme::suit_datagrams(&mut found, device);
    // The MTU of a socket excludes the header, so the payload does not shrink.
    let behaviour = DatagramConfig { eeth: EethPlace::OutsideMtu, delivery: config.delivery, ..behaviour };
    // Software hosts add delay, which must not be mistaken for loss.
    let rtt = scheme::span(device.base_rtt) + scheme::span(device.host_delay);
    let env = PolicyEnv {
        line_rate: device.line_rate,
        base_rtt: rtt,
        mtu_wire_bytes: u32::from(device.mtu_payload) + AROUND_PAYLOAD_BYTES,
        mtu_payload_bytes: u32::from(device.mtu_payload),
        paths: device.paths,
        measured: MeasuredSection::with_rtt(rtt),
        edge: None,
    };
    let mut rng = Rng::for_component(seed, "rd-policy", u64::from(num.0));
    let (policy, control) = found.datagram_policy(&env, &mut rng);
    Ok(RdQp::new(RdConfig {
        num,
        policy,
        control,
        behaviour,
        mtu_payload: device.mtu_payload,
        framing: Framing::Pathweave,
        paths: device.paths,
        nic_ports: 1,
        seed,
        rtt,
        nack_delay: Span::ZERO,
    }))
}
