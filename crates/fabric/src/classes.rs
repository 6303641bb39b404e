//! Settings of some switches: tables that select switches, and the classes of switches with equal settings that follow.

use pathweave_units::{Bytes, Duration, Glob, Rate, closest_name, matches_glob, name_kind, name_kinds};

use crate::config::{ConfigError, EcmpHash, PfcConfig, PfcThreshold, SwitchConfig};
use crate::marking::{EcnConfig, LastHop, MarkAt, Thresholds};
use crate::trim::TrimConfig;

/// Settings of the switches that a table selects. Absent fields are those of earlier tables for the switch, or of all
/// switches. At least one of `match`, `tier` and `group` is given; a switch is selected if all that are given apply.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchFor {
    /// Names of the switches: "leaf0", or a pattern in which `*` stands for any characters, `?` for one, and `[0-7]`
    /// for a number: "p*.leaf*".
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub names: Option<String>,
    /// Tier of the switches: their distance from the hosts, 0 for ToRs and leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<u8>,
    /// Pod or group of the switches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// Chip of the switches, which sets `buffer`. A `buffer` in the same table counts instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asic: Option<Asic>,
    /// Replaces `switch.buffer`, and at external switches `switch.external.buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Bytes>,
    /// Replaces `switch.egress_alpha`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_alpha: Option<f64>,
    /// Replaces fields of `switch.pfc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfc: Option<PfcChange>,
    /// Replaces fields of `switch.ecn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnChange>,
    /// Replaces fields of `switch.trim`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim: Option<TrimChange>,
    /// Replaces `switch.hash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<EcmpHash>,
    /// Replaces `switch.latency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Duration>,
}

/// Declares a table of fields of a configuration, each of which may be absent.
macro_rules! changes {
    ($(#[$meta:meta])* $name:ident of $config:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }

        impl $name {
            fn apply(&self, config: &mut $config) {
                $(if let Some(value) = self.$field {
                    config.$field = value.into();
                })*
            }
        }
    };
}

changes! {
    /// Changed fields of `switch.pfc`.
    PfcChange of PfcConfig {
        /// Replaces `switch.pfc.enabled`. Switches at the two ends of a link must agree.
        enabled: bool,
        /// Replaces `switch.pfc.threshold`.
        threshold: PfcThreshold,
        /// Replaces `switch.pfc.alpha`.
        alpha: f64,
        /// Replaces `switch.pfc.xon_gap`.
        xon_gap: Bytes,
        /// Replaces `switch.pfc.headroom`.
        headroom: Bytes,
    }
}

changes! {
    /// Changed fields of `switch.ecn`.
    EcnChange of EcnConfig {
        /// Replaces `switch.ecn.enabled`.
        enabled: bool,
        /// Replaces `switch.ecn.kmin`.
        kmin: Bytes,
        /// Replaces `switch.ecn.kmax`.
        kmax: Bytes,
        /// Replaces `switch.ecn.pmax`.
        pmax: f64,
        /// Replaces `switch.ecn.reference_rate`.
        reference_rate: Rate,
        /// Replaces `switch.ecn.thresholds`.
        thresholds: Thresholds,
        /// Replaces `switch.ecn.at`.
        at: MarkAt,
        /// Replaces `switch.ecn.last_hop`.
        last_hop: LastHop,
    }
}

changes! {
    /// Changed fields of `switch.trim`.
    TrimChange of TrimConfig {
        /// Replaces `switch.trim.enabled`.
        enabled: bool,
        /// Replaces `switch.trim.queue`.
        queue: Bytes,
        /// Replaces `switch.trim.header_queue`.
        header_queue: Bytes,
        /// Replaces `switch.trim.size`.
        size: Bytes,
        /// Replaces `switch.trim.arriving`.
        arriving: f64,
        /// Replaces `switch.trim.reference_rate`.
        reference_rate: Rate,
        /// Replaces `switch.trim.thresholds`.
        thresholds: Thresholds,
    }
}

/// Switch chip, which stands for its packet memory. The sizes are approximate: vendors' announcements and reports,
/// and a guess where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub enum Asic {
    /// Broadcom Tomahawk 3, 12.8 Tb/s: 64 MB.
    #[serde(rename = "tomahawk-3")]
    Tomahawk3,
    /// Broadcom Tomahawk 4, 25.6 Tb/s: 114 MB.
    #[serde(rename = "tomahawk-4")]
    Tomahawk4,
    /// Broadcom Tomahawk 5, 51.2 Tb/s: 165 MB.
    #[serde(rename = "tomahawk-5")]
    Tomahawk5,
    /// NVIDIA Spectrum-4, 51.2 Tb/s: 160 MB.
    #[serde(rename = "spectrum-4")]
    Spectrum4,
    /// Cisco Silicon One G200, 51.2 Tb/s: 256 MB.
    #[serde(rename = "silicon-one-g200")]
    SiliconOneG200,
    /// Broadcom Trident 4, 12.8 Tb/s: 132 MB.
    #[serde(rename = "trident-4")]
    Trident4,
    /// Broadcom Jericho 3, with packet memory outside of the chip (HBM): 1 GB.
    #[serde(rename = "jericho-3")]
    Jericho3,
    /// NVIDIA Quantum-2 (InfiniBand NDR), whose memory is not public: 64 MB, a guess.
    #[serde(rename = "quantum-2")]
    Quantum2,
}

impl Asic {
    /// Returns the packet memory.
    pub fn buffer(self) -> Bytes {
        Bytes::from_mb(match self {
            Asic::Tomahawk3 | Asic::Quantum2 => 64,
            Asic::Tomahawk4 => 114,
            Asic::Tomahawk5 => 165,
            Asic::Spectrum4 => 160,
            Asic::SiliconOneG200 => 256,
            Asic::Trident4 => 132,
            Asic::Jericho3 => 1_000,
        })
    }
}

/// Properties of a switch by which tables select it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchPlace<'a> {
    /// Name of the switch.
    pub name: &'a str,
    /// Distance from the hosts, 0 for a leaf.
    pub tier: u8,
    /// Pod or group, if any.
    pub group: Option<u32>,
    /// Role of the switch, on which its buffer depends.
    pub role: SwitchRole,
}

/// Role of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwitchRole {
    /// Within a site.
    #[default]
    Local,
    /// External switch: at the end of a link between sites.
    External,
}

impl SwitchFor {
    /// Returns true if the table selects a switch.
    pub fn selects(&self, place: &SwitchPlace<'_>) -> bool {
        self.names.as_ref().is_none_or(|names| matches_glob(names, place.name))
            && self.tier.is_none_or(|tier| tier == place.tier)
            && self.group.is_none_or(|group| Some(group) == place.group)
    }

    /// Returns the selecting fields as the file has them, such as `match = "leaf*"`.
    pub fn selection(&self) -> String {
        let names = self.names.iter().map(|names| format!("match = \"{names}\""));
        let tier = self.tier.iter().map(|tier| format!("tier = {tier}"));
        let group = self.group.iter().map(|group| format!("group = {group}"));
        names.chain(tier).chain(group).collect::<Vec<_>>().join(", ")
    }

    /// Returns true if the table gives the switches that it selects no setting.
    fn changes_nothing(&self) -> bool {
        let set = SwitchFor {
            pfc: self.pfc.clone().filter(|pfc| *pfc != PfcChange::default()),
            ecn: self.ecn.clone().filter(|ecn| *ecn != EcnChange::default()),
            trim: self.trim.clone().filter(|trim| *trim != TrimChange::default()),
            ..self.clone()
        };
        let (names, tier, group) = (self.names.clone(), self.tier, self.group);
        set == SwitchFor { names, tier, group, ..Self::default() }
    }

    fn apply(&self, config: &mut SwitchConfig, role: SwitchRole) {
        if let Some(buffer) = self.buffer.or(self.asic.map(Asic::buffer)) {
            match role {
                SwitchRole::Local => config.buffer = buffer,
                SwitchRole::External => config.external.buffer = buffer,
            }
        }
        config.egress_alpha = self.egress_alpha.unwrap_or(config.egress_alpha);
        config.hash = self.hash.unwrap_or(config.hash);
        config.latency = self.latency.unwrap_or(config.latency);
        self.pfc.iter().for_each(|pfc| pfc.apply(&mut config.pfc));
        self.ecn.iter().for_each(|ecn| ecn.apply(&mut config.ecn));
        self.trim.iter().for_each(|trim| trim.apply(&mut config.trim));
    }

    /// Returns true if the table sets this field of [`SwitchConfig`], or another one of the same part.
    pub fn sets(&self, field: &str) -> bool {
        match field.split('.').next().unwrap_or_default() {
            "buffer" => self.buffer.is_some() || self.asic.is_some(),
            "egress_alpha" => self.egress_alpha.is_some(),
            "pfc" => self.pfc.is_some(),
            "ecn" => self.ecn.is_some(),
            "trim" => self.trim.is_some(),
            "hash" => self.hash.is_some(),
            "latency" => self.latency.is_some(),
            _ => false,
        }
    }
}

/// Settings of all switches: classes of switches with equal settings, and the class of each switch.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchClasses {
    /// Settings by class. Class 0 has those of the switches that no table selects, and may have no switch.
    configs: Vec<SwitchConfig>,
    /// Class of each switch. Empty if all switches have class 0.
    of_switch: Vec<u16>,
}

impl SwitchClasses {
    /// Returns one class for all switches.
    pub fn uniform(config: &SwitchConfig) -> Self {
        let general = SwitchConfig { tables: Vec::new(), ..config.clone() };
        SwitchClasses { configs: vec![general], of_switch: Vec::new() }
    }

    /// Returns the classes that the tables of a configuration give to these switches.
    ///
    /// # Errors
    /// A table selects no switch, or switches have a value out of its range.
    pub fn new<'a>(
        config: &SwitchConfig,
        switches: impl Iterator<Item = SwitchPlace<'a>> + Clone,
    ) -> Result<Self, ClassError> {
        let mut classes = Self::uniform(config);
        for (table, selecting) in config.tables.iter().enumerate() {
            if selecting.selection().is_empty() {
                return Err(ClassError::NothingSelected { table });
            }
            if !switches.clone().any(|place| selecting.selects(&place)) {
                return Err(no_match(table, selecting, switches.clone()));
            }
            if selecting.changes_nothing() {
                let by_name = selecting.names.is_some();
                let field = if by_name { "match" } else { selecting.tier.map_or("group", |_| "tier") };
                return Err(ClassError::ChangesNothing { table, field });
            }
        }
        if config.tables.is_empty() {
            return Ok(classes);
        }
        // Class of each combination of tables. Most combinations do not occur.
        let mut known: Vec<(Vec<usize>, SwitchRole, u16)> = Vec::new();
        for place in switches {
            let tables = (0..config.tables.len()).filter(|&table| config.tables[table].selects(&place));
            let tables: Vec<usize> = tables.collect();
            let is_known =
                |known: &&(Vec<usize>, SwitchRole, u16)| known.0 == tables && known.1 == place.role;
            let class = match known.iter().find(is_known) {
                Some(&(_, _, class)) => class,
                None => {
                    let class = classes.add(config, &tables, place.role)?;
                    known.push((tables, place.role, class));
                    class
                }
            };
            classes.of_switch.push(class);
        }
        if classes.of_switch.iter().all(|&class| class == 0) {
            classes.of_switch.clear();
        }
        Ok(classes)
    }

    /// Returns the class of the switches that these tables select.
    fn add(&mut self, config: &SwitchConfig, tables: &[usize], role: SwitchRole) -> Result<u16, ClassError> {
        let mut own = self.configs[0].clone();
        tables.iter().for_each(|&table| config.tables[table].apply(&mut own, role));
        if !tables.is_empty()
            && let Err(error) = own.validate()
        {
            let setting = tables.iter().rev().find(|&&table| config.tables[table].sets(error.field));
            let table = *setting.or(tables.last()).expect("there are some");
            return Err(ClassError::Value { table, error });
        }
        let class = self.configs.iter().position(|known| *known == own).unwrap_or_else(|| {
            self.configs.push(own);
            self.configs.len() - 1
        });
        u16::try_from(class).map_err(|_| ClassError::TooMany)
    }

    /// Returns the settings of the switches that no table selects. Settings that all switches share are here.
    pub fn general(&self) -> &SwitchConfig {
        &self.configs[0]
    }

    /// Returns the settings of a switch.
    pub fn of(&self, switch: u32) -> &SwitchConfig {
        &self.configs[usize::from(self.class_of(switch))]
    }

    /// Returns the class of a switch.
    pub fn class_of(&self, switch: u32) -> u16 {
        self.of_switch.get(switch as usize).copied().unwrap_or(0)
    }

    /// Iterates over the settings of the classes that have switches.
    pub fn each(&self) -> impl Iterator<Item = &SwitchConfig> + Clone {
        (0u16..).zip(&self.configs).filter(|(class, _)| self.has_switches(*class)).map(|(_, config)| config)
    }

    fn has_switches(&self, class: u16) -> bool {
        class > 0 || self.of_switch.is_empty() || self.of_switch.contains(&0)
    }
}

/// Reason why tables do not give settings to switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassError {
    /// A table has none of the fields that select switches.
    NothingSelected {
        /// Number of the table, from 0.
        table: usize,
    },
    /// A table gives no setting.
    ChangesNothing {
        /// Number of the table, from 0.
        table: usize,
        /// Selecting field of the table.
        field: &'static str,
    },
    /// A table selects no switch.
    NoMatch {
        /// Number of the table, from 0.
        table: usize,
        /// Field without a switch, or the first of several.
        field: &'static str,
        /// The table's selection, or that field's value.
        selection: String,
        /// Values with switches.
        allowed: String,
        /// Similar value with switches.
        nearest: Option<String>,
    },
    /// Switches that the table selects have a value out of its range.
    Value {
        /// Number of the table, from 0.
        table: usize,
        /// The value.
        error: ConfigError,
    },
    /// More than 65,536 different settings.
    TooMany,
}

/// Returns the error of a table that selects no switch.
fn no_match<'a>(
    table: usize,
    selecting: &SwitchFor,
    switches: impl Iterator<Item = SwitchPlace<'a>> + Clone,
) -> ClassError {
    let range = |numbers: Vec<u32>| match (numbers.iter().min(), numbers.iter().max()) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => "the switches of this topology have none".to_owned(),
    };
    let groups = || switches.clone().filter_map(|place| place.group);
    let refused = |field, selection, allowed, nearest| ClassError::NoMatch {
        table,
        field,
        selection,
        allowed,
        nearest,
    };
    if let Some(names) = &selecting.names
        && !switches.clone().any(|place| matches_glob(names, place.name))
    {
        if let Err(why) = Glob::parse(names) {
            return refused("match", format!("\"{names}\""), why.what, None);
        }
        let kinds = name_kinds(switches.map(|place| place.name));
        let nearest = closest_name(&name_kind(names), kinds.iter().map(String::as_str)).map(str::to_owned);
        return refused("match", format!("\"{names}\""), format!("names like {}", kinds.join(", ")), nearest);
    }
    if let Some(tier) = selecting.tier
        && !switches.clone().any(|place| place.tier == tier)
    {
        let allowed = range(switches.map(|place| u32::from(place.tier)).collect());
        return refused("tier", tier.to_string(), allowed, None);
    }
    if let Some(group) = selecting.group
        && !groups().any(|other| other == group)
    {
        return refused("group", group.to_string(), range(groups().collect()), None);
    }
    let field = if selecting.names.is_some() { "match" } else { "tier" };
    refused(field, selecting.selection(), "values that apply to one switch together".to_owned(), None)
}
