//! Servers and NICs of a communicator.

use pathweave_units::Rate;
use serde::{Deserialize, Serialize};

use super::error::{NcclError, refuse};
use super::gpu::{Generation, Gpu};

/// Largest number of GPUs of a communicator.
const MOST_RANKS: u64 = 1 << 24;
/// Largest number of NICs of a server or rack.
const MOST_NICS: u32 = 1_024;

/// Processor of the servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cpu {
    /// Intel x86.
    #[default]
    Intel,
    /// AMD x86.
    Amd,
    /// Arm, as in Grace.
    Arm,
}

/// Longest way between a GPU of a channel and its NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NicPath {
    /// Only PCIe switches.
    Pxb,
    /// Scale-up to the GPU beside the NIC (PXN).
    Pxn,
    /// A processor.
    Phb,
}

/// Reduction in the switches of the scale-out network (SHARP, by the CollNet plugin).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharp {
    /// None.
    #[default]
    Off,
    /// The switches reduce.
    On,
}

/// GPUs, servers and NICs of a communicator.
///
/// A server stands for the GPUs that one scale-up network joins. For a rack such as NVL72 it is the rack.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct System {
    /// Model of GPU.
    pub gpu: Gpu,
    /// Number of servers.
    pub servers: u32,
    /// GPUs of a server that take part.
    pub gpus: u32,
    /// NICs of a server.
    pub nics: u32,
    /// Rate of a NIC, all its ports together.
    pub nic_rate: Rate,
    /// Usable GB/s of the scale-up links of a GPU in one direction.
    pub scale_up_gbs: f64,
    /// Processor.
    pub cpu: Cpu,
    /// Way between GPU and NIC.
    pub nic_path: NicPath,
    /// Reduction in the scale-out network.
    pub sharp: Sharp,
}

impl System {
    /// Creates a system with a NIC for each GPU, of 200 Gb/s for Ampere and Volta and 400 Gb/s for others, and with the
    /// processor and the NIC path of the usual servers of that GPU.
    pub fn new(gpu: Gpu, servers: u32, gpus: u32) -> Self {
        let old = gpu.generation() <= Generation::Ampere;
        System {
            gpu,
            servers,
            gpus,
            nics: gpus,
            nic_rate: Rate::from_gbps(if old { 200 } else { 400 }),
            scale_up_gbs: gpu.scale_up_gbs(),
            cpu: if matches!(gpu, Gpu::Gb200 | Gpu::Gb300) { Cpu::Arm } else { Cpu::Intel },
            nic_path: if old { NicPath::Pxb } else { NicPath::Pxn },
            sharp: Sharp::Off,
        }
    }

    /// Returns the number of GPUs.
    pub fn ranks(&self) -> u32 {
        self.servers * self.gpus
    }

    /// Returns the usable GB/s of a link of a GPU, if the servers' GPUs are joined by links.
    pub fn link_gbs(&self) -> f64 {
        self.scale_up_gbs / f64::from(self.gpu.links().0)
    }

    /// Returns the rate of a NIC in GB/s.
    pub fn nic_gbs(&self) -> f64 {
        self.nic_rate.as_bps() as f64 / 8e9
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// If one is out of range.
    pub fn check(&self) -> Result<(), NcclError> {
        for (field, value) in [("servers", self.servers), ("gpus", self.gpus)] {
            if value == 0 {
                return Err(refuse(field, value, "must be at least 1"));
            }
        }
        let ranks = u64::from(self.servers) * u64::from(self.gpus);
        if ranks < 2 {
            return Err(refuse(
                "gpus",
                self.gpus,
                "must be at least 2 on one server: a collective needs two GPUs",
            ));
        }
        if ranks > MOST_RANKS {
            let allowed =
                format!("gives {ranks} GPUs with {} a server; at most {MOST_RANKS} are allowed", self.gpus);
            return Err(refuse("servers", self.servers, allowed));
        }
        if self.servers > 1 && !(1..=MOST_NICS).contains(&self.nics) {
            return Err(refuse(
                "nics",
                self.nics,
                format!("must be from 1 to {MOST_NICS} for several servers"),
            ));
        }
        // The slowest channel of NCCL has 0.12 GB/s.
        if self.servers > 1 && self.nic_rate < Rate::from_gbps(1) {
            return Err(refuse("nic", self.nic_rate, "must be at least 1Gbps"));
        }
        if self.gpus > 1 && !(self.scale_up_gbs >= 3.0 && self.scale_up_gbs <= 1e6) {
            let allowed = "must be from 3 to 1000000 GB/s for servers of several GPUs";
            return Err(refuse("scale-up rate", self.scale_up_gbs, allowed));
        }
        let mesh = self.gpu.generation() == Generation::Cdna3;
        if mesh && self.gpus > 8 {
            return Err(refuse("gpus", self.gpus, "must be at most 8, the GPUs of a full mesh of MI300X"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_named() {
        let base = System::new(Gpu::H100, 2, 8);
        assert_eq!(base.check(), Ok(()));
        let error = |system: System| system.check().unwrap_err().to_string();
        assert_eq!(error(System { servers: 0, ..base }), "servers = 0: must be at least 1");
        assert!(error(System { servers: 1, gpus: 1, ..base }).contains("needs two GPUs"));
        assert!(error(System { nics: 0, ..base }).starts_with("nics = 0: must be from 1 to 1024"));
        assert!(error(System { nic_rate: Rate::from_mbps(10), ..base }).contains("nic = 10Mbps"));
        assert!(error(System { scale_up_gbs: 0.0, ..base }).contains("scale-up rate = 0"));
        assert!(error(System { servers: u32::MAX, ..base }).contains("at most 16777216"));
        assert!(error(System { gpus: 9, ..System::new(Gpu::Mi300x, 1, 8) }).contains("at most 8"));
        // One server needs no NIC.
        assert_eq!(System { nics: 0, ..System::new(Gpu::H100, 1, 8) }.check(), Ok(()));
    }
}
