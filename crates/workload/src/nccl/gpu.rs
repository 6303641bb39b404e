//! Models of GPU.

use std::str::FromStr;

use pathweave_units::closest_name;
use serde::{Deserialize, Serialize};

/// Model of GPU, as far as collectives depend on it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Gpu {
    /// NVIDIA V100: six links of 25 GB/s.
    V100,
    /// NVIDIA A100: twelve links of 25 GB/s.
    A100,
    /// NVIDIA A800: eight links of 25 GB/s.
    A800,
    /// NVIDIA H100: eighteen links of 25 GB/s.
    H100,
    /// NVIDIA H200, an H100 with more memory.
    H200,
    /// NVIDIA H800: eight links of 25 GB/s.
    H800,
    /// NVIDIA H20, an H100 with fewer cores.
    H20,
    /// NVIDIA B200: eighteen links of 50 GB/s.
    B200,
    /// NVIDIA B300, a B200 with more memory.
    B300,
    /// NVIDIA GB200: the GPU of NVL72 racks with Arm processors.
    Gb200,
    /// NVIDIA GB300: likewise.
    Gb300,
    /// AMD MI300X: a link of 64 GB/s to each of seven others.
    Mi300x,
}

/// Generation of GPU, which selects the rows of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Compute capability 7.0.
    Volta,
    /// Compute capability 8.0.
    Ampere,
    /// Compute capability 9.0.
    Hopper,
    /// Compute capability 10.0.
    Blackwell,
    /// AMD CDNA 3, which RCCL serves.
    Cdna3,
}

impl Gpu {
    /// All models.
    pub const ALL: [Gpu; 12] = [
        Gpu::V100,
        Gpu::A100,
        Gpu::A800,
        Gpu::H100,
        Gpu::H200,
        Gpu::H800,
        Gpu::H20,
        Gpu::B200,
        Gpu::B300,
        Gpu::Gb200,
        Gpu::Gb300,
        Gpu::Mi300x,
    ];

    /// Returns the name in scenarios and options.
    pub const fn name(self) -> &'static str {
        match self {
            Gpu::V100 => "v100",
            Gpu::A100 => "a100",
            Gpu::A800 => "a800",
            Gpu::H100 => "h100",
            Gpu::H200 => "h200",
            Gpu::H800 => "h800",
            Gpu::H20 => "h20",
            Gpu::B200 => "b200",
            Gpu::B300 => "b300",
            Gpu::Gb200 => "gb200",
            Gpu::Gb300 => "gb300",
            Gpu::Mi300x => "mi300x",
        }
    }

    /// Returns the generation.
    pub const fn generation(self) -> Generation {
        match self {
            Gpu::V100 => Generation::Volta,
            Gpu::A100 | Gpu::A800 => Generation::Ampere,
            Gpu::H100 | Gpu::H200 | Gpu::H800 | Gpu::H20 => Generation::Hopper,
            Gpu::B200 | Gpu::B300 | Gpu::Gb200 | Gpu::Gb300 => Generation::Blackwell,
            Gpu::Mi300x => Generation::Cdna3,
        }
    }

    /// Returns the links of a GPU in one direction, and the usable GB/s of each as NCCL counts them.
    pub(crate) const fn links(self) -> (u32, f64) {
        match self {
            Gpu::V100 => (6, 20.0),
            Gpu::A100 => (12, 20.0),
            Gpu::A800 => (8, 20.0),
            Gpu::H100 | Gpu::H200 | Gpu::H20 => (18, 20.6),
            Gpu::H800 => (8, 20.6),
            Gpu::B200 | Gpu::B300 | Gpu::Gb200 | Gpu::Gb300 => (18, 40.1),
            // AMD's own measurements with ROCm: 48 of 64 GB/s.
            Gpu::Mi300x => (7, 48.0),
        }
    }

    /// Returns the usable GB/s of all links of a GPU in one direction.
    pub fn scale_up_gbs(self) -> f64 {
        let (links, each_gbs) = self.links();
        f64::from(links) * each_gbs
    }

    /// Returns the GPU of a server model of `kind = "cluster"`, such as "dgx-h100".
    pub fn of_server_model(model: &str) -> Option<Gpu> {
        let found = MODELS.iter().find(|(name, _)| *name == model);
        found.map(|&(_, gpu)| gpu)
    }
}

/// GPUs of the server models.
const MODELS: [(&str, Gpu); 12] = [
    ("dgx-1", Gpu::V100),
    ("dgx-a100", Gpu::A100),
    ("dgx-h100", Gpu::H100),
    ("dgx-b200", Gpu::B200),
    ("dgx-b300", Gpu::B300),
    ("gb200-nvl72", Gpu::Gb200),
    ("gb300-nvl72", Gpu::Gb300),
    ("mi300x", Gpu::Mi300x),
    ("p4d", Gpu::A100),
    ("p5", Gpu::H100),
    ("p5en", Gpu::H200),
    ("p6-b200", Gpu::B200),
];

impl FromStr for Gpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        Gpu::ALL.into_iter().find(|gpu| gpu.name() == lower).ok_or_else(|| {
            let names = || Gpu::ALL.into_iter().map(Gpu::name);
            let nearest = closest_name(&lower, names()).map(|name| format!("; did you mean \"{name}\"?"));
            let known: Vec<_> = names().collect();
            format!("no GPU is named \"{text}\"{}; known: {}", nearest.unwrap_or_default(), known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_serde_and_are_read_back() {
        for gpu in Gpu::ALL {
            assert_eq!(serde_json::to_value(gpu).unwrap(), gpu.name());
            assert_eq!(gpu.name().to_uppercase().parse(), Ok(gpu));
        }
        let error = "h10".parse::<Gpu>().unwrap_err();
        assert!(
            error.starts_with("no GPU is named \"h10\"; did you mean \"h100\"?; known: v100, a100"),
            "{error}"
        );
    }

    /// The usable rates: 12 x 20, 18 x 20.6 and 18 x 40.1 GB/s.
    #[test]
    fn links_by_hand() {
        let usable = [Gpu::A100, Gpu::H100, Gpu::B200].map(Gpu::scale_up_gbs);
        for (found, expected) in usable.into_iter().zip([240.0, 370.8, 721.8]) {
            assert!((found - expected).abs() < 1e-9, "{found}");
        }
    }
}
