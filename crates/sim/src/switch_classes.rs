//! Settings of the switches of a network: their classes, and what links between them require.

use pathweave_fabric::config::{ClassError, SwitchClasses, SwitchConfig, SwitchFor, SwitchPlace, SwitchRole};
use pathweave_policy::FullBufferAction;
use pathweave_topo::{LinkId, NodeId, Switch, Topology};
use pathweave_units::Duration;

use crate::spec::{BufferField, SimError};

/// Returns the settings of each switch of a network.
///
/// # Errors
/// A table of `switch.for` selects no switch or gives switches a value out of its range. Or two switches with a link
/// between them differ in PFC.
pub fn switch_classes(topology: &Topology, config: &SwitchConfig) -> Result<SwitchClasses, SimError> {
    let places = topology
        .switches()
        .iter()
        .enumerate()
        .map(|(index, switch)| SwitchPlace { role: switch_role(topology, index), ..place_of(switch) });
    let classes = SwitchClasses::new(config, places).map_err(refused)?;
    check_pfc(topology, config, &classes)?;
    Ok(classes)
}

/// Returns the role of a switch.
pub fn switch_role(topology: &Topology, index: usize) -> SwitchRole {
    match topology.sites().and_then(|sites| sites.of_external(topology.switch_node(index))) {
        Some(_) => SwitchRole::External,
        None => SwitchRole::Local,
    }
}

/// Returns a network whose switches have the latencies of these settings.
///
/// # Errors
/// See [`switch_classes`].
pub fn with_switch_latencies(topology: Topology, config: &SwitchConfig) -> Result<Topology, SimError> {
    let without = config.latency == Duration::ZERO;
    if without && config.tables.iter().all(|table| table.latency.is_none()) {
        return Ok(topology);
    }
    let classes = switch_classes(&topology, config)?;
    let latency = |switch| classes.of(switch).latency;
    let latencies = (0..topology.switches().len() as u32).map(latency).collect();
    Ok(topology.with_latencies(latencies))
}

/// Returns the properties of a switch by which tables select it. Its role affects no selection.
pub fn place_of(switch: &Switch) -> SwitchPlace<'_> {
    let role = SwitchRole::Local;
    SwitchPlace { name: &switch.name, tier: switch.tier, group: switch.group, role }
}

fn refused(error: ClassError) -> SimError {
    match error {
        ClassError::NothingSelected { table } => SimError::SwitchFor {
            table,
            field: "match",
            message: "the table selects no switch".to_owned(),
            allowed: "give `match`, such as match = \"leaf*\", `tier` or `group`".to_owned(),
            nearest: None,
        },
        ClassError::ChangesNothing { table, field } => SimError::SwitchFor {
            table,
            field,
            message: "the table changes nothing".to_owned(),
            allowed: "set `asic`, `buffer`, `egress_alpha`, `pfc`, `ecn`, `trim`, `hash` or `latency`"
                .to_owned(),
            nearest: None,
        },
        ClassError::NoMatch { table, field, selection, allowed, nearest } => SimError::SwitchFor {
            table,
            field,
            message: match field {
                "match" => format!("no switch matches {selection}"),
                _ => format!("no switch is of {field} {selection}"),
            },
            allowed,
            nearest,
        },
        ClassError::Value { table, error } => SimError::SwitchFor {
            table,
            field: error.field,
            message: format!("`{}` cannot be {}", error.field, error.value),
            allowed: error.allowed,
            nearest: None,
        },
        ClassError::TooMany => SimError::Network("more than 65,536 different settings of switches".into()),
    }
}

/// Checks that both switches of each link pause each other, or neither does.
fn check_pfc(topology: &Topology, config: &SwitchConfig, classes: &SwitchClasses) -> Result<(), SimError> {
    let mut with_pfc = classes.each().map(|own| own.pfc.enabled);
    let first = with_pfc.next();
    if with_pfc.all(|enabled| Some(enabled) == first) {
        return Ok(());
    }
    let lossless = |node: NodeId| {
        let switch = topology.switch_index(node)?;
        Some(classes.of(switch as u32).pfc.enabled)
    };
    for (id, link) in (0..).map(LinkId).zip(topology.links()) {
        let lossy = topology.sites().is_some_and(|sites| sites.is_wan(id) && !sites.wan_pfc());
        let (Some(a), Some(b)) = (lossless(link.a), lossless(link.b)) else { continue };
        if lossy || a == b {
            continue;
        }
        let setting = |node| setting_of_pfc(topology, config, node);
        let ((table_a, by_a), (table_b, by_b)) = (setting(link.a), setting(link.b));
        let (from, to) = (topology.node_name(link.a), topology.node_name(link.b));
        return Err(SimError::SwitchFor {
            table: table_a.max(table_b).expect("two switches differ by a table"),
            field: "pfc.enabled",
            message: format!(
                "the ends of link {} differ in PFC: {from} has pfc.enabled = {a} by {by_a}, {to} has {b} by {by_b}",
                topology.link_name(id)
            ),
            allowed: "the same for both: a pause is of use only if the other end obeys it and never drops"
                .to_owned(),
            nearest: None,
        });
    }
    Ok(())
}

/// Returns the table that sets `pfc.enabled` of a switch, if there is one, and the setting's place in words.
fn setting_of_pfc(topology: &Topology, config: &SwitchConfig, node: NodeId) -> (Option<usize>, String) {
    let switch = topology.switch_index(node).expect("both ends are switches");
    let place = place_of(&topology.switches()[switch]);
    let sets = |table: &&(usize, &SwitchFor)| {
        table.1.selects(&place) && table.1.pfc.as_ref().is_some_and(|pfc| pfc.enabled.is_some())
    };
    let tables: Vec<_> = config.tables.iter().enumerate().collect();
    match tables.iter().rev().find(sets) {
        Some((number, table)) => (Some(*number), format!("[[switch.for]] with {}", table.selection())),
        None => (None, "[switch.pfc]".to_owned()),
    }
}

/// Returns the field that sets the buffer of a switch, such as `switch.for[1].buffer`.
pub(crate) fn setting_of_buffer(topology: &Topology, config: &SwitchConfig, switch: usize) -> BufferField {
    let place = place_of(&topology.switches()[switch]);
    let sets = |table: &SwitchFor| table.sets("buffer") && table.selects(&place);
    match (config.tables.iter().rposition(sets), switch_role(topology, switch)) {
        (Some(table), _) if config.tables[table].buffer.is_some() => BufferField::Table(table, "buffer"),
        (Some(table), _) => BufferField::Table(table, "asic"),
        (None, SwitchRole::Local) => BufferField::Local,
        (None, SwitchRole::External) => BufferField::External,
    }
}

/// Returns the action of full buffers. Of several, the one that schemes must be prepared for: silent drops, then
/// trims.
pub(crate) fn when_full(classes: &SwitchClasses) -> FullBufferAction {
    let each = || classes.each();
    if each().any(|switch| !switch.trim.enabled && !switch.pfc.enabled) {
        FullBufferAction::Drop
    } else if each().any(|switch| switch.trim.enabled) {
        FullBufferAction::Trim
    } else {
        FullBufferAction::Pause
    }
}
