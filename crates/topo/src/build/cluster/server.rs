//! Servers of a cluster: GPUs, NICs, and the network that joins the GPUs.

use pathweave_units::{Duration, Rate, closest_name, suggestion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scale_up::{EqualLinks, ScaleUpConfig, SwitchLinks};
use crate::build::{at_least_one, positive, refuse};
use crate::error::TopoError;
use crate::graph::MAX_HOST_PORTS;

/// Server with GPUs and NICs. Fields that are not given come from `preset`, or have the defaults below.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Name of a server model, such as "dgx-h100", whose settings apply where none are given here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Number of GPUs. Each is a host. Default 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Number of NICs: a multiple or a divisor of `gpus`, unless `nic_of_gpu` is given. Default: `gpus`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nics: Option<u32>,
    /// Number of ports of a NIC. Default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic_ports: Option<u32>,
    /// Rate of a port. Default: the rate of the host links of `scale_out`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_rate: Option<Rate>,
    /// Rate between a GPU and its NIC in each direction. It matters if it is below the rate of the NIC's ports, or if
    /// GPUs share a NIC. Default: no limit, or for shared NICs the rate of the NIC's ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_rate: Option<Rate>,
    /// Latency between a GPU and its NIC, where `pcie_rate` matters. Default 300 ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_delay: Option<Duration>,
    /// NIC of each GPU, if GPUs share NICs. Default: GPU g has NIC g * nics / gpus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic_of_gpu: Option<Vec<u32>>,
    /// Network that joins the GPUs. Default: none, so that all traffic takes the NICs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<ScaleUpConfig>,
    /// Number of GPUs that one scale-up network joins: a multiple of `gpus` if it spans servers. Default: `gpus`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<u32>,
}

/// Server whose fields are all known and checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KnownServer {
    pub(super) gpus: u32,
    pub(super) nics: u32,
    pub(super) nic_ports: u32,
    pub(super) port_rate: Option<Rate>,
    pub(super) pcie_rate: Option<Rate>,
    pub(super) pcie_delay: Duration,
    pub(super) gpu_nics: GpuNics,
    pub(super) scale_up: Option<ScaleUpConfig>,
    pub(super) domain: u32,
}

/// Assignment of NICs to GPUs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GpuNics {
    /// Each GPU has this number of consecutive NICs for itself.
    Own(u32),
    /// Several GPUs share a NIC: the NIC of each.
    Shared(Vec<u32>),
}

impl Server {
    /// Completes the fields by the preset and by the defaults, and checks them.
    pub(super) fn complete(&self) -> Result<KnownServer, TopoError> {
        let base = match &self.preset {
            None => Server::default(),
            Some(name) => preset(name)?,
        };
        let gpus = at_least_one("server.gpus", self.gpus.or(base.gpus).unwrap_or(8))?;
        let nics = at_least_one("server.nics", self.nics.or(base.nics).unwrap_or(gpus))?;
        let nic_ports = at_least_one("server.nic_ports", self.nic_ports.or(base.nic_ports).unwrap_or(1))?;
        let scale_up = self.scale_up.clone().or(base.scale_up);
        let scale_up = scale_up.filter(|network| *network != ScaleUpConfig::None {});
        // Without a network, the domain of the preset has no meaning.
        let domain = self.domain.or(base.domain.filter(|_| scale_up.is_some())).unwrap_or(gpus);
        if domain == 0 || !domain.is_multiple_of(gpus) {
            let nearest = (domain / gpus).max(1) * gpus;
            let allowed = format!("must be a multiple of `server.gpus` = {gpus}, such as {nearest}");
            return Err(refuse("server.domain", domain, allowed));
        }
        let checked = |field, rate: Option<Rate>| rate.map(|rate| positive(field, rate)).transpose();
        let gpu_nics = gpu_nics(gpus, nics, self.nic_of_gpu.clone().or(base.nic_of_gpu))?;
        let ports = match &gpu_nics {
            GpuNics::Own(nics) => nics.saturating_mul(nic_ports),
            GpuNics::Shared(_) => 1,
        };
        if ports > MAX_HOST_PORTS {
            let allowed =
                format!("gives a GPU {ports} ports with {nics} NICs; at most {MAX_HOST_PORTS} are allowed");
            return Err(refuse("server.nic_ports", nic_ports, allowed));
        }
        Ok(KnownServer {
            gpus,
            nics,
            nic_ports,
            port_rate: checked("server.port_rate", self.port_rate.or(base.port_rate))?,
            pcie_rate: checked("server.pcie_rate", self.pcie_rate.or(base.pcie_rate))?,
            pcie_delay: self.pcie_delay.or(base.pcie_delay).unwrap_or(Duration::from_ns(300)),
            gpu_nics,
            scale_up,
            domain,
        })
    }
}

fn gpu_nics(gpus: u32, nics: u32, given: Option<Vec<u32>>) -> Result<GpuNics, TopoError> {
    if let Some(given) = given {
        if given.len() != gpus as usize {
            let allowed = format!("must have {gpus} entries, one for each GPU");
            return Err(refuse("server.nic_of_gpu", format!("{given:?}"), allowed));
        }
        if let Some(nic) = given.iter().find(|nic| **nic >= nics) {
            return Err(refuse("server.nic_of_gpu", nic, format!("must be a NIC from 0 to {}", nics - 1)));
        }
        return Ok(match given.iter().copied().eq(0..nics) {
            true => GpuNics::Own(1),
            false => GpuNics::Shared(given),
        });
    }
    if nics.is_multiple_of(gpus) {
        return Ok(GpuNics::Own(nics / gpus));
    }
    if gpus.is_multiple_of(nics) {
        return Ok(GpuNics::Shared((0..gpus).map(|gpu| gpu / (gpus / nics)).collect()));
    }
    let fits = |nics: u32| nics > 0 && (nics.is_multiple_of(gpus) || gpus.is_multiple_of(nics));
    let nearest = (1..).flat_map(|by| [nics.saturating_sub(by), nics + by]).find(|near| fits(*near));
    let allowed = format!(
        "must be a multiple or a divisor of `server.gpus` = {gpus}, such as {}, or needs `server.nic_of_gpu`",
        nearest.unwrap_or(gpus)
    );
    Err(refuse("server.nics", nics, allowed))
}

/// Model of server: name and settings.
struct Model {
    name: &'static str,
    make: fn() -> Server,
}

/// Models of servers. The sources of each are in docs/clusters.md.
const MODELS: [Model; 12] = [
    Model {
        name: "dgx-1",
        make: || model(8, 4, 1, 100, 126, ScaleUpConfig::HybridCubeMesh(links(200, 0.80))),
    },
    Model { name: "dgx-a100", make: || model(8, 8, 1, 200, 252, nvlink(2_400, 0.80, 6)) },
    Model { name: "dgx-h100", make: || model(8, 8, 1, 400, 504, nvlink(3_600, 0.82, 4)) },
    Model { name: "dgx-b200", make: || model(8, 8, 1, 400, 504, nvlink(7_200, 0.80, 2)) },
    Model { name: "dgx-b300", make: || model(8, 8, 2, 400, 1_008, nvlink(7_200, 0.80, 2)) },
    Model { name: "gb200-nvl72", make: || rack(400) },
    Model { name: "gb300-nvl72", make: || rack(800) },
    Model { name: "mi300x", make: || model(8, 8, 1, 400, 504, ScaleUpConfig::FullMesh(links(512, 0.75))) },
    Model { name: "p4d", make: || model(8, 4, 1, 100, 252, nvlink(2_400, 0.80, 6)) },
    Model { name: "p5", make: || model(8, 32, 1, 100, 504, nvlink(3_600, 0.82, 4)) },
    Model { name: "p5en", make: || model(8, 16, 1, 200, 504, nvlink(3_600, 0.82, 4)) },
    Model { name: "p6-b200", make: || model(8, 8, 1, 400, 504, nvlink(7_200, 0.80, 2)) },
];

/// Returns the models of servers that `preset` can name, with their settings.
pub fn server_models() -> impl Iterator<Item = (&'static str, Server)> {
    MODELS.iter().map(|model| (model.name, (model.make)()))
}

fn preset(name: &str) -> Result<Server, TopoError> {
    match MODELS.iter().find(|model| model.name == name) {
        Some(model) => Ok((model.make)()),
        None => {
            let names = || MODELS.iter().map(|model| model.name);
            let nearest = closest_name(name, names());
            let hint = suggestion(nearest);
            let models = names().collect::<Vec<_>>().join(", ");
            Err(refuse("server.preset", format!("\"{name}\""), format!("must be one of {models}{hint}")))
        }
    }
}

/// Rates in Gb/s.
fn model(gpus: u32, nics: u32, nic_ports: u32, port: u64, pcie: u64, scale_up: ScaleUpConfig) -> Server {
    Server {
        gpus: Some(gpus),
        nics: Some(nics),
        nic_ports: Some(nic_ports),
        port_rate: Some(Rate::from_gbps(port)),
        pcie_rate: Some(Rate::from_gbps(pcie)),
        scale_up: Some(scale_up),
        ..Server::default()
    }
}

/// Rack of 18 trays with four GPUs each, of which each has a NIC; one NVLink domain of 72.
fn rack(nic_gbps: u64) -> Server {
    Server { domain: Some(72), pcie_rate: None, ..model(4, 4, 1, nic_gbps, 1_008, nvlink(7_200, 0.80, 18)) }
}

/// Links to NVSwitch chips.
fn nvlink(gbps: u64, efficiency: f64, chips: u32) -> ScaleUpConfig {
    ScaleUpConfig::Switch(SwitchLinks { chips, efficiency, ..SwitchLinks::new(Rate::from_gbps(gbps)) })
}

fn links(gbps: u64, efficiency: f64) -> EqualLinks {
    EqualLinks { efficiency, ..EqualLinks::new(Rate::from_gbps(gbps)) }
}
