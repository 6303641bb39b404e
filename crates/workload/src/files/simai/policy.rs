//! First line of a workload file: a policy and its settings.

use pathweave_units::{closest_name, suggestion};

use super::{Recompute, SimAiFile, SimAiLayer};

/// Parallelism policy of ASTRA-sim 1.0: the order of the work of an iteration, and the GPUs that communicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Data-parallel: gradients of weights are reduced among all GPUs.
    Data,
    /// Model-parallel: activations and their gradients are exchanged among all GPUs.
    Model,
    /// Model-parallel among GPUs with adjacent numbers, data-parallel among those of equal rank.
    HybridDataModel,
    /// Data-parallel among GPUs with adjacent numbers, model-parallel among those of equal rank.
    HybridModelData,
    /// Each layer names one of the four policies above.
    HybridCustomized,
    /// Transformer with tensor-parallel, expert-parallel and data-parallel groups.
    #[default]
    Transformer,
    /// Transformer whose backward pass repeats the forward passes of some layers.
    TransformerAgain,
    /// Transformer whose layers compute gradients of weights before those of inputs, for jobs of `kind =
    /// "transformer"`.
    WeightsFirst,
    /// Recommendation model whose first layer looks up embeddings with all-to-alls.
    Dlrm {
        /// Layer, from 0, after which the all-to-all of the first layer is awaited.
        last_bottom: usize,
        /// Handling of the all-to-all of the first layer's gradients in the backward pass.
        gradients: EmbeddingGradients,
    },
    /// Collectives of weight gradients only, one after the other.
    Micro,
    /// Forward passes only, model-parallel.
    DistributedInference,
}

/// Handling of the all-to-all of embedding gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingGradients {
    /// The collective is awaited before the first layer's weight gradients end (`HYBRID_DLRM`).
    Awaited,
    /// The collective overlaps the rest of the iteration (`HYBRID_DLRM_ENHANCED`).
    Beside,
}

/// GPUs that take part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Span {
    /// Tensor-parallel group.
    Tp,
    /// Data-parallel group.
    Dp,
    /// Expert-parallel group.
    Ep,
    /// Data-parallel group of GPUs with the same experts.
    DpEp,
    /// Tensor-parallel group of all GPUs.
    AllTp,
    /// Data-parallel group of all GPUs.
    AllDp,
    /// Tensor-parallel group, if data-parallel ranks have adjacent numbers.
    OuterTp,
    /// Data-parallel group of GPUs with adjacent numbers.
    InnerDp,
}

/// GPUs that take part in the collectives of a layer, by phase, unless the name of the collective states
/// them. `None` means that the phase has no collective.
#[derive(Clone, Copy)]
pub(super) struct Spans {
    pub(super) forward: Option<Span>,
    pub(super) input_grad: Option<Span>,
    pub(super) weight_grad: Option<Span>,
}

impl Spans {
    /// Returns the groups of a layer under a policy. `own` is the layer's own policy, in the last column of
    /// HYBRID_CUSTOMIZED.
    pub(super) fn of_layer(policy: Policy, own: Option<&str>, first: bool) -> Result<Spans, String> {
        let of = |model, data| Spans { forward: model, input_grad: model, weight_grad: data };
        Ok(match policy {
            Policy::Transformer
            | Policy::TransformerAgain
            | Policy::WeightsFirst
            | Policy::HybridDataModel => of(Some(Span::Tp), Some(Span::Dp)),
            Policy::HybridModelData => of(Some(Span::OuterTp), Some(Span::InnerDp)),
            Policy::Dlrm { .. } if first => of(Some(Span::AllTp), Some(Span::AllDp)),
            Policy::Data | Policy::Dlrm { .. } | Policy::Micro => of(None, Some(Span::AllDp)),
            Policy::Model | Policy::DistributedInference => of(Some(Span::AllTp), None),
            Policy::HybridCustomized => match own.unwrap_or_default() {
                "DATA" => of(None, Some(Span::AllDp)),
                "MODEL" => of(Some(Span::AllTp), None),
                "HYBRID_DATA_MODEL" => of(Some(Span::Tp), Some(Span::Dp)),
                "HYBRID_MODEL_DATA" => of(Some(Span::OuterTp), Some(Span::InnerDp)),
                other => {
                    let known = ["DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA"];
                    let hint = suggestion(closest_name(other, known));
                    let shown: String = other.chars().take(40).collect();
                    return Err(format!("policy = {shown}: expected {}{hint}", known.join(", ")));
                }
            },
        })
    }
}

/// Policies by their names in files. DATA_REORDER, used in exercises of ASTRA-sim, is DATA with another order
/// of the same collectives.
const POLICIES: [(&str, Policy); 12] = [
    ("DATA", Policy::Data),
    ("DATA_REORDER", Policy::Data),
    ("MODEL", Policy::Model),
    ("HYBRID_DATA_MODEL", Policy::HybridDataModel),
    ("HYBRID_MODEL_DATA", Policy::HybridModelData),
    ("HYBRID_CUSTOMIZED", Policy::HybridCustomized),
    ("HYBRID_TRANSFORMER", Policy::Transformer),
    ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", Policy::TransformerAgain),
    ("HYBRID_DLRM", Policy::Dlrm { last_bottom: 0, gradients: EmbeddingGradients::Awaited }),
    ("HYBRID_DLRM_ENHANCED", Policy::Dlrm { last_bottom: 0, gradients: EmbeddingGradients::Beside }),
    ("MICRO", Policy::Micro),
    ("DISTRIBUTED_INFERENCE", Policy::DistributedInference),
];

/// Structure of the groups that a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// All GPUs form one data-parallel group.
    Data,
    /// All GPUs form one model-parallel group.
    Model,
    /// Model-parallel groups of GPUs with adjacent numbers. The size of the groups is a setting.
    Inner,
    /// Data-parallel groups of GPUs with adjacent numbers. The number of groups is a setting; it is the size
    /// of model-parallel groups.
    Outer,
    /// Tensor-, expert- and data-parallel groups, and pipeline stages.
    Transformer,
}

impl Policy {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Data => "DATA",
            Policy::Model => "MODEL",
            Policy::HybridDataModel => "HYBRID_DATA_MODEL",
            Policy::HybridModelData => "HYBRID_MODEL_DATA",
            Policy::HybridCustomized => "HYBRID_CUSTOMIZED",
            Policy::Transformer | Policy::WeightsFirst => "HYBRID_TRANSFORMER",
            Policy::TransformerAgain => "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
            Policy::Dlrm { gradients: EmbeddingGradients::Awaited, .. } => "HYBRID_DLRM",
            Policy::Dlrm { gradients: EmbeddingGradients::Beside, .. } => "HYBRID_DLRM_ENHANCED",
            Policy::Micro => "MICRO",
            Policy::DistributedInference => "DISTRIBUTED_INFERENCE",
        }
    }

    /// Returns the structure of groups under this policy.
    pub fn groups(self) -> Groups {
        match self {
            Policy::Data | Policy::Dlrm { .. } | Policy::Micro => Groups::Data,
            Policy::Model | Policy::DistributedInference => Groups::Model,
            Policy::HybridDataModel | Policy::HybridCustomized => Groups::Inner,
            Policy::HybridModelData => Groups::Outer,
            Policy::Transformer | Policy::TransformerAgain | Policy::WeightsFirst => Groups::Transformer,
        }
    }

    pub(super) fn has_experts(self) -> bool {
        self.groups() == Groups::Transformer
    }

    /// Returns an error if the setting belongs to other policies.
    fn check_has(self, key: &str) -> Result<(), String> {
        let groups = self.groups();
        let (has, of) = match key {
            "all_gpus" => (true, ""),
            "DLRM_LAST_BOTTOM_LAYER" => (matches!(self, Policy::Dlrm { .. }), "HYBRID_DLRM"),
            "checkpoints" | "checkpoint_initiates" => {
                (groups == Groups::Transformer, "HYBRID_TRANSFORMER_FWD_IN_BCKWD")
            }
            "model_parallel_NPU_group" => (
                matches!(groups, Groups::Transformer | Groups::Inner | Groups::Outer),
                "policies with groups, such as HYBRID_TRANSFORMER",
            ),
            _ => (groups == Groups::Transformer, "HYBRID_TRANSFORMER"),
        };
        if has { Ok(()) } else { Err(format!("{key} is of {of}, not of {}", self.name())) }
    }

    fn parse(name: &str) -> Result<Policy, String> {
        if let Some((_, policy)) = POLICIES.iter().find(|(known, _)| *known == name) {
            return Ok(*policy);
        }
        let names = POLICIES.map(|(name, _)| name);
        let shown: String = name.chars().take(60).collect();
        let hint = suggestion(closest_name(&shown, names));
        Err(format!("policy = {shown}: expected one of {}{hint}", names.join(", ")))
    }
}

/// First line of a file.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) policy: Policy,
    file: SimAiFile,
    /// Layers, from 0, whose inputs are kept. `initiates` holds the layers before whose gradients forward
    /// passes are repeated.
    checkpoints: Vec<usize>,
    initiates: Vec<usize>,
}

pub(super) const KEYS: [&str; 10] = [
    "model_parallel_NPU_group",
    "ep",
    "pp",
    "vpp",
    "ga",
    "all_gpus",
    "checkpoints",
    "checkpoint_initiates",
    "pp_comm",
    "DLRM_LAST_BOTTOM_LAYER",
];

impl Settings {
    pub(super) fn parse(head: &str) -> Result<Settings, String> {
        let mut words = head.split_whitespace().peekable();
        let name = words.next().unwrap_or_default();
        let mut found = Settings { policy: Policy::parse(name)?, ..Settings::default() };
        if name == "DATA_REORDER" {
            found.file.notes.push(
                "DATA_REORDER is run as DATA: collectives start in the order of the backward pass".into(),
            );
        }
        let (mut last_bottom, mut virtual_stages) = (None, 1);
        while let Some(word) = words.next() {
            // ASTRA-sim writes the number of a DLRM's last bottom layer without a keyword.
            if matches!(found.policy, Policy::Dlrm { .. }) && word.bytes().all(|b| b.is_ascii_digit()) {
                last_bottom = Some(whole("DLRM_LAST_BOTTOM_LAYER", word)?);
                continue;
            }
            let key = word.trim_end_matches(':');
            if !KEYS.contains(&key) {
                let shown: String = key.chars().take(40).collect();
                return Err(format!("unknown setting \"{shown}\"{}", suggestion(closest_name(&shown, KEYS))));
            }
            let value = words.next().ok_or_else(|| format!("{key}: its value is missing"))?;
            found.policy.check_has(key)?;
            match key {
                "checkpoints" => found.checkpoints = layers(key, value, &mut words)?,
                "checkpoint_initiates" => found.initiates = layers(key, value, &mut words)?,
                "pp_comm" => {
                    let wrong = || format!("{key} = {value}: expected a whole number");
                    found.file.pp_comm = value.parse().map_err(|_| wrong())?;
                }
                "vpp" => virtual_stages = whole(key, value)?,
                "DLRM_LAST_BOTTOM_LAYER" => last_bottom = Some(whole(key, value)?),
                _ => {
                    let number = whole(key, value)?;
                    if number == 0 {
                        return Err(format!("{key} = 0: expected 1 or more"));
                    }
                    let place = match key {
                        "model_parallel_NPU_group" => &mut found.file.tp,
                        "ep" => &mut found.file.ep,
                        "pp" => &mut found.file.pp,
                        "ga" => &mut found.file.ga,
                        _ => &mut found.file.all_gpus,
                    };
                    *place = Some(number);
                }
            }
        }
        if virtual_stages > 1 && found.file.pp.is_some_and(|stages| stages > 1) {
            let what = "a GPU does the work of all its virtual stages at once, as in SimAI";
            found.file.notes.push(format!("vpp = {virtual_stages} is not used: {what}"));
        }
        if let Policy::Dlrm { last_bottom: layer, .. } = &mut found.policy {
            let given = last_bottom.ok_or(
                "DLRM_LAST_BOTTOM_LAYER is missing: the layer, from 0, that waits for the embeddings",
            )?;
            *layer = given as usize;
        }
        Ok(found)
    }

    /// Returns the file with these settings, without its layers. `layers` is used for checks.
    pub(super) fn file(self, layers: &[SimAiLayer]) -> Result<SimAiFile, String> {
        let policy = self.policy;
        if let Policy::Dlrm { last_bottom, .. } = policy
            && last_bottom >= layers.len()
        {
            return Err(format!(
                "DLRM_LAST_BOTTOM_LAYER = {last_bottom}: layers are 0 to {}",
                layers.len().saturating_sub(1)
            ));
        }
        let mut file = SimAiFile { policy, recompute: self.again(layers.len())?, ..self.file };
        if policy == Policy::Micro && layers.len() > 1 {
            file.notes.push(
                "the collectives of MICRO run one after the other; ASTRA-sim runs the first alone".into(),
            );
        }
        Ok(file)
    }

    /// Returns the ranges of repeated forward passes. The range before a layer begins at the last checkpoint
    /// before it.
    fn again(&self, layers: usize) -> Result<Vec<Recompute>, String> {
        if self.policy != Policy::TransformerAgain {
            return match self.checkpoints.is_empty() && self.initiates.is_empty() {
                true => Ok(Vec::new()),
                false => Err(format!(
                    "checkpoints are of HYBRID_TRANSFORMER_FWD_IN_BCKWD, not of {}",
                    self.policy.name()
                )),
            };
        }
        for (key, listed) in [("checkpoints", &self.checkpoints), ("checkpoint_initiates", &self.initiates)] {
            if let Some(beyond) = listed.iter().find(|&&layer| layer >= layers) {
                return Err(format!(
                    "{key} has layer {beyond}: layers are 0 to {}",
                    layers.saturating_sub(1)
                ));
            }
        }
        let mut before = self.initiates.clone();
        before.sort_unstable();
        before.dedup();
        let mut again: Vec<Recompute> = Vec::new();
        for before in before {
            let kept = self.checkpoints.iter().copied().filter(|&layer| layer < before).max();
            let Some(checkpoint) = kept else {
                return Err(format!(
                    "checkpoint_initiates has layer {before}: expected a checkpoint before it"
                ));
            };
            if let Some(other) = again.iter().find(|other| other.before > checkpoint) {
                let (b, c) = (other.before, checkpoint);
                return Err(format!(
                    "checkpoint_initiates has layers {b} and {before}: expected a checkpoint at {b} or between them, not {c}"
                ));
            }
            again.push(Recompute { checkpoint, before });
        }
        Ok(again)
    }
}

fn whole(key: &str, value: &str) -> Result<u32, String> {
    value.parse().map_err(|_| format!("{key} = {value}: expected a whole number"))
}

/// Parses a list: the number of values, and the values.
fn layers<'a>(
    key: &str,
    count: &str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<Vec<usize>, String> {
    let count = whole(key, count)?;
    let mut found = Vec::new();
    for nth in 0..count {
        let word = words.next().ok_or_else(|| format!("{key}: ends after {nth} of {count} layers"))?;
        found.push(whole(key, word)? as usize);
    }
    Ok(found)
}
