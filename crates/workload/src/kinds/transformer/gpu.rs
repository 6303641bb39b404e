//! GPUs by their data sheets, and the time that they take.

use pathweave_units::Duration;
use serde::{Deserialize, Serialize};

/// GPU by name. Rates are those of dense matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GpuModel {
    /// NVIDIA A100 with 80 GB.
    A100,
    /// NVIDIA H100 with 80 GB.
    H100,
    /// NVIDIA H200 with 141 GB.
    H200,
    /// NVIDIA H800 with 80 GB.
    H800,
    /// NVIDIA H20 with 96 GB.
    H20,
    /// NVIDIA B200 with 180 GB.
    B200,
    /// GPU of NVIDIA GB200, with 186 GB.
    Gb200,
    /// GPU of NVIDIA GB300, with 279 GB.
    Gb300,
    /// AMD Instinct MI300X with 192 GB.
    Mi300x,
}

/// Precision of matrix products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 16 bits.
    #[default]
    Bf16,
    /// 8 bits: also weights that are gathered and tokens that go to experts. Scores of attention keep 16 bits.
    Fp8,
}

/// Shape of matrix products, on which the part of the peak rate depends that they reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Products {
    /// Large matrices.
    Dense,
    /// Many experts, each with few tokens.
    Experts,
    /// Scores of attention, always in 16 bits.
    Scores,
}

/// Numbers of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuData {
    /// Peak rate in 16 bits, 10^12 operations per second.
    pub bf16_tflops: f64,
    /// Peak rate in 8 bits; `None` if it has no such products of floating-point numbers.
    pub fp8_tflops: Option<f64>,
    /// Rate of the memory, 10^12 bytes per second.
    pub memory_tbps: f64,
    /// Size of the memory, 10^9 bytes.
    pub memory_gb: f64,
}

impl GpuModel {
    /// All GPUs.
    pub(super) const ALL: [GpuModel; 9] = [
        GpuModel::A100,
        GpuModel::H100,
        GpuModel::H200,
        GpuModel::H800,
        GpuModel::H20,
        GpuModel::B200,
        GpuModel::Gb200,
        GpuModel::Gb300,
        GpuModel::Mi300x,
    ];

    /// Returns true if the GPU has matrix products of a precision.
    pub(super) const fn has(self, precision: Precision) -> bool {
        match precision {
            Precision::Bf16 => true,
            Precision::Fp8 => self.data().fp8_tflops.is_some(),
        }
    }

    /// Returns the numbers of the data sheet.
    pub const fn data(self) -> GpuData {
        let (bf16_tflops, fp8, memory_tbps, memory_gb) = match self {
            GpuModel::A100 => (312.0, 0.0, 2.0, 80.0),
            GpuModel::H100 => (989.0, 1979.0, 3.35, 80.0),
            GpuModel::H200 => (989.0, 1979.0, 4.8, 141.0),
            GpuModel::H800 => (989.0, 1979.0, 3.35, 80.0),
            GpuModel::H20 => (148.0, 296.0, 4.0, 96.0),
            GpuModel::B200 => (2250.0, 4500.0, 8.0, 180.0),
            GpuModel::Gb200 => (2500.0, 5000.0, 8.0, 186.0),
            GpuModel::Gb300 => (2500.0, 5000.0, 8.0, 279.0),
            GpuModel::Mi300x => (1307.0, 2615.0, 5.3, 192.0),
        };
        let fp8_tflops = if fp8 > 0.0 { Some(fp8) } else { None };
        GpuData { bf16_tflops, fp8_tflops, memory_tbps, memory_gb }
    }

    /// Returns the name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            GpuModel::A100 => "a100",
            GpuModel::H100 => "h100",
            GpuModel::H200 => "h200",
            GpuModel::H800 => "h800",
            GpuModel::H20 => "h20",
            GpuModel::B200 => "b200",
            GpuModel::Gb200 => "gb200",
            GpuModel::Gb300 => "gb300",
            GpuModel::Mi300x => "mi300x",
        }
    }
}

impl GpuData {
    /// Returns the peak rate at a precision, 10^12 operations per second.
    pub fn peak_tflops(&self, precision: Precision) -> f64 {
        match precision {
            Precision::Bf16 => self.bf16_tflops,
            Precision::Fp8 => self.fp8_tflops.unwrap_or(self.bf16_tflops),
        }
    }
}

/// Time before a computation of a GPU begins, in seconds.
const LAUNCH_S: f64 = 5e-6;
/// Part of the peak that large products reach, by precision, and that products of experts reach.
const BF16_EFFICIENCY: f64 = 0.72;
const FP8_EFFICIENCY: f64 = 0.60;
const EXPERT_EFFICIENCY: f64 = 0.45;

/// Speed of computations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Speed {
    /// A rate that all computations achieve, 10^12 operations per second.
    Achieved(f64),
    /// The rates of a GPU, of which products reach a part; that part, if the user sets it.
    Gpu(GpuData, Precision, Option<f64>),
}

impl Speed {
    /// Returns the time of operations that read and write so many bytes of memory.
    pub(super) fn time(self, products: Products, flops: f64, bytes: f64) -> Duration {
        let seconds = match self {
            _ if flops == 0.0 && bytes == 0.0 => 0.0,
            Speed::Achieved(tflops) => flops / (tflops * 1e12),
            Speed::Gpu(data, precision, efficiency) => {
                let precision = if products == Products::Scores { Precision::Bf16 } else { precision };
                let dense = match precision {
                    Precision::Bf16 => BF16_EFFICIENCY,
                    Precision::Fp8 => FP8_EFFICIENCY,
                };
                let part = match products {
                    Products::Experts => EXPERT_EFFICIENCY * efficiency.map_or(1.0, |e| e / dense),
                    Products::Dense | Products::Scores => efficiency.unwrap_or(dense),
                };
                let peak = data.peak_tflops(precision) * 1e12;
                (flops / (peak * part)).max(bytes / (data.memory_tbps * 1e12)) + LAUNCH_S
            }
        };
        Duration::from_ps((seconds * 1e12 + 0.5) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 71.208 TFLOP at 72 % of 989 TFLOP/s take 100 ms; 3.35 GB take 1 ms; and 5 us to begin.
    #[test]
    fn times_are_those_of_the_larger_of_two_bounds() {
        let h100 = Speed::Gpu(GpuModel::H100.data(), Precision::Bf16, None);
        let time = |products, flops, bytes| h100.time(products, flops, bytes).as_ps();
        assert_eq!(time(Products::Dense, 71.208e12, 0.0), 100_005_000_000);
        assert_eq!(time(Products::Dense, 1.0, 3.35e9), 1_005_000_000);
        assert_eq!(time(Products::Dense, 0.0, 0.0), 0);
        // Experts reach 45 % of the peak.
        assert_eq!(time(Products::Experts, 44.505e12, 0.0), 100_005_000_000);
        let fp8 = Speed::Gpu(GpuModel::H100.data(), Precision::Fp8, Some(0.5));
        assert_eq!(fp8.time(Products::Dense, 98.95e12, 0.0).as_ps(), 100_005_000_000);
        assert_eq!(fp8.time(Products::Scores, 49.45e12, 0.0).as_ps(), 100_005_000_000);
        assert_eq!(Speed::Achieved(400.0).time(Products::Dense, 4e12, 1e9).as_ps(), 10_000_000_000);
        assert_eq!(GpuModel::A100.data().peak_tflops(Precision::Fp8), 312.0);
    }

    /// The A100 is older than products of 8 bits.
    #[test]
    fn all_gpus_but_one_have_products_of_8_bits() {
        let without = |precision| GpuModel::ALL.into_iter().filter(move |gpu| !gpu.has(precision));
        assert_eq!(without(Precision::Fp8).collect::<Vec<_>>(), [GpuModel::A100]);
        assert_eq!(without(Precision::Bf16).count(), 0);
    }
}
