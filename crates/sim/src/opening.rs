//! Creation of a connection's queue pairs: the parameters of their policies, and the random streams that these use.

use pathweave_execution::ConnId;
use pathweave_policy::{
    Adapt, Awaited, BasePath, FabricEnv, FullBufferAction, LateWait, MeasuredSection, PathView, PolicyConfig,
    PolicyEnv, Ports, Scheme,
};
use pathweave_transport::{LossEvidence, QpConfig, ReceiveMode, RnrConfig};
use pathweave_units::{Duration, HostId, Rng};

use crate::agenda::Opening;
use crate::distinct::distinct_paths;
use crate::edge;
use crate::network::Network;
use crate::packet_bytes::full_and_ack_bytes;
use crate::paths::PathProfile;
use crate::spec::{RouteChoice, SimSpec};

impl<const C: usize> Network<C> {
    /// Returns the parameters from which both ends of a connection are created.
    pub(crate) fn opening(
        &self,
        spec: &SimSpec,
        scheme: &Scheme,
        pair: (HostId, HostId),
        paths: &[PathProfile],
    ) -> Opening {
        let mtu = spec.network.mtu.get() as u16;
        let (mtu_wire, ack_wire) = full_and_ack_bytes(&spec.network);
        let nearest =
            paths.iter().min_by_key(|path| path.round_trip(mtu_wire, ack_wire)).expect("there is a path");
        let nearest_rtt = nearest.round_trip(mtu_wire, ack_wire);
        let base_rtt = match scheme.policy.base_path() {
            BasePath::Nearest => nearest_rtt,
            BasePath::Longest => self
                .routes
                .longest_round_trip(&spec.topology, pair, paths, (mtu_wire, ack_wire))
                .unwrap_or(nearest_rtt),
        };
        let env = PolicyEnv {
            // Explicit paths need not be the shortest.
            line_rate: match spec.routing {
                RouteChoice::Switches => nearest.nic_rate,
                _ => nearest.line_rate,
            },
            base_rtt,
            mtu_wire_bytes: mtu_wire,
            mtu_payload_bytes: u32::from(mtu),
            paths: scheme.paths_over(nearest.nic_ports.0 as u16),
            measured: MeasuredSection {
                base_rtt,
                links: u8::try_from(nearest.hops.len()).unwrap_or(u8::MAX),
            },
            edge: edge::leg(&spec.switch.external, spec.network.framing, nearest, mtu_wire),
        };
        Opening {
            env,
            port_rate: nearest.port_rate(),
            nic_ports: nearest.nic_ports.0 as u16,
            rtt: nearest_rtt,
            side_latency: Duration::ZERO,
        }
    }

    /// Returns the policy of a connection's queue pairs, adapted to the fabric.
    pub(crate) fn policy(&self, scheme: &Scheme, awaited: Awaited, opening: &Opening) -> PolicyConfig {
        let mut policy = scheme.policy.clone();
        policy.adapt_to_fabric(&FabricEnv {
            when_full: self.plan.when_full,
            longest_path: self.plan.longest_path.as_ref(),
            longest_rtt: self.plan.telemetry.map(|telemetry| telemetry.longest_rtt),
            line_rate: opening.env.line_rate,
            port_rate: opening.port_rate,
            nic_ports: opening.nic_ports,
            packet_bytes: u64::from(opening.env.mtu_wire_bytes),
            awaited,
        });
        policy
    }

    /// Returns the views of paths that the sender of a connection gets, or none if nothing is known of the paths.
    pub(crate) fn sender_views(
        &self,
        spec: &SimSpec,
        scheme: &Scheme,
        pair: (HostId, HostId),
    ) -> Vec<PathView> {
        let views = self.views(spec, pair);
        if scheme.ports == Ports::Distinct && views.is_empty() {
            let Some(ports) = self.port_set(&spec.topology, pair.0, pair.1) else { return views };
            return distinct_paths(self, pair, ports, scheme.paths_over(ports.len() as u16));
        }
        views
    }
}

/// Returns the evidence by which packets are declared lost: a probe sent behind them, if paths preserve order and
/// switches never drop silently. The scheme states how long the answer is waited for.
fn evidence(spec: &SimSpec, scheme: &Scheme, when_full: FullBufferAction) -> LossEvidence {
    let keeps_order =
        scheme.forwarding.is_none() && spec.switch.forwarding.kind.is_none() && spec.network.nic.is_none();
    if keeps_order && when_full != FullBufferAction::Drop {
        match scheme.policy.late_wait() {
            LateWait::Double => LossEvidence::Probe,
            LateWait::Brief => LossEvidence::BriefProbe,
        }
    } else {
        LossEvidence::Patience
    }
}

/// Returns the configuration of a queue pair of a scheme, with the peer, policy and paths of `base`.
pub(crate) fn queue_pair_config<'a, P>(
    spec: &SimSpec,
    scheme: &Scheme,
    (opening, env, when_full): (&Opening, &PolicyEnv, FullBufferAction),
    base: QpConfig<'a, P>,
) -> QpConfig<'a, P> {
    let retransmission = spec.network.retransmission;
    let recovery = match when_full {
        FullBufferAction::Trim => scheme.recovery,
        FullBufferAction::Drop | FullBufferAction::Pause => {
            scheme.recovery.without_trimming(retransmission.timeout)
        }
    };
    QpConfig {
        recovery: recovery.for_path(env.path_packets()),
        acks: scheme.acks.for_path(env.bdp_bytes()),
        cnp: scheme.cnp,
        reordering: scheme.reordering,
        rto: retransmission,
        idle_rtt: opening.rtt,
        evidence: evidence(spec, scheme, when_full),
        rnr: RnrConfig::default(),
        receive: ReceiveMode::Discard,
        ..base
    }
}

/// Returns the random stream that the policy at one end of a queue pair uses while it is created.
pub(crate) fn policy_stream(seed: u64, conn: ConnId, index: u16, is_sender: bool) -> Rng {
    let stream = u64::from(conn) << 20 | u64::from(index) << 1 | u64::from(!is_sender);
    Rng::for_component(seed, "policy", stream)
}
