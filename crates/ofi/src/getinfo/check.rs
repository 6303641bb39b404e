//! Checks hints against the capabilities of the provider. Zero means "any", except in `mode`, where it means
//! that the application supports no mode. The provider needs none.

use super::limits::*;
use super::offer::{DomainHints, FabricHints, Hints, Refusal};
use crate::abi::fabric::*;
use crate::abi::version;

/// Checks that all hints can be met.
///
/// # Errors
///
/// Returns the first hint that cannot be met.
pub(super) fn check(hints: &Hints, version: u32) -> Result<(), Refusal> {
    bits("caps", hints.caps, ALL)?;
    one_of(
        "addr_format",
        hints.addr_format,
        &[FI_FORMAT_UNSPEC, FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6],
    )?;
    if let Some(tx) = &hints.tx {
        transmit(tx, hints.caps)?;
    }
    if let Some(rx) = &hints.rx {
        receive(rx, hints.caps)?;
    }
    if let Some(ep) = &hints.ep {
        endpoint(ep)?;
    }
    if let Some(domain) = &hints.domain {
        self::domain(domain, version)?;
    }
    hints.fabric.as_ref().map_or(Ok(()), fabric)
}

fn transmit(tx: &TxAttr, caps: u64) -> Result<(), Refusal> {
    half_caps("tx_attr caps", tx.caps, TX_CAPS, caps)?;
    bits("tx_attr op_flags", tx.op_flags, TX_OP_FLAGS)?;
    bits("tx_attr msg_order", tx.msg_order, MSG_ORDER)?;
    bits("tx_attr comp_order", tx.comp_order, 0)?;
    at_most("tx_attr inject_size", tx.inject_size, INJECT_BYTES)?;
    at_most("tx_attr size", tx.size, QUEUE_SIZE)?;
    at_most("tx_attr iov_limit", tx.iov_limit, IOV_LIMIT)?;
    at_most("tx_attr rma_iov_limit", tx.rma_iov_limit, RMA_IOV_LIMIT)
}

fn receive(rx: &RxAttr, caps: u64) -> Result<(), Refusal> {
    half_caps("rx_attr caps", rx.caps, RX_CAPS, caps)?;
    bits("rx_attr op_flags", rx.op_flags, RX_OP_FLAGS)?;
    bits("rx_attr msg_order", rx.msg_order, MSG_ORDER)?;
    bits("rx_attr comp_order", rx.comp_order, 0)?;
    at_most("rx_attr total_buffered_recv", rx.total_buffered_recv, 0)?;
    at_most("rx_attr size", rx.size, QUEUE_SIZE)?;
    at_most("rx_attr iov_limit", rx.iov_limit, IOV_LIMIT)
}

/// Checks the capabilities of one half, transmit or receive: against those of the provider, and against those
/// of the whole if it names any.
fn half_caps(what: &'static str, found: u64, ours: u64, whole: u64) -> Result<(), Refusal> {
    bits(what, found, ours)?;
    let services = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    if whole == 0 { Ok(()) } else { bits(what, found & services, whole) }
}

fn endpoint(ep: &EpAttr) -> Result<(), Refusal> {
    one_of("ep_attr type", ep.type_, &[FI_EP_UNSPEC, FI_EP_RDM])?;
    one_of("ep_attr protocol", ep.protocol, &[0, PROTOCOL])?;
    one_of("ep_attr protocol_version", ep.protocol_version, &[0, PROTOCOL_VERSION])?;
    at_most("ep_attr max_msg_size", ep.max_msg_size, MAX_MESSAGE_BYTES)?;
    at_most("ep_attr msg_prefix_size", ep.msg_prefix_size, 0)?;
    at_most("ep_attr max_order_raw_size", ep.max_order_raw_size, MAX_MESSAGE_BYTES)?;
    at_most("ep_attr max_order_war_size", ep.max_order_war_size, 0)?;
    at_most("ep_attr max_order_waw_size", ep.max_order_waw_size, 0)?;
    // Every bit of a tag is matched, so every tag format fits.
    at_most("ep_attr tx_ctx_cnt", ep.tx_ctx_cnt, 1)?;
    at_most("ep_attr rx_ctx_cnt", ep.rx_ctx_cnt, 1)?;
    at_most("ep_attr auth_key_size", ep.auth_key_size, 0)
}

/// Rejects an open object of another provider.
fn ours(what: &'static str, name: Option<&String>) -> Result<(), Refusal> {
    if name.is_some_and(|name| name == FOREIGN) { Err(lacking(what, FOREIGN, "one of this")) } else { Ok(()) }
}

fn domain(hints: &DomainHints, api: u32) -> Result<(), Refusal> {
    let attr = &hints.attr;
    ours("domain_attr domain", hints.name.as_ref())?;
    bits("domain_attr caps", attr.caps, DOMAIN_CAPS)?;
    // An open domain keeps its naming of memory.
    let needed = hints.open_mr_mode.map_or(0, needed_mr_mode);
    if needed & !attr.mr_mode != 0 {
        return Err(lacking(
            "domain_attr mr_mode",
            attr.mr_mode,
            format!("with the bits {needed:#x} of the open domain"),
        ));
    }
    at_most("domain_attr threading", attr.threading, FI_THREAD_ENDPOINT)?;
    let control = if api >= version(2, 0) { FI_PROGRESS_CONTROL_UNIFIED } else { FI_PROGRESS_MANUAL };
    at_most("domain_attr control_progress", attr.control_progress, control)?;
    at_most("domain_attr data_progress", attr.data_progress, FI_PROGRESS_MANUAL)?;
    at_most("domain_attr resource_mgmt", attr.resource_mgmt, FI_RM_ENABLED)?;
    at_most("domain_attr av_type", attr.av_type, FI_AV_TABLE)?;
    at_most("domain_attr mr_key_size", attr.mr_key_size, MR_KEY_BYTES)?;
    at_most("domain_attr cq_data_size", attr.cq_data_size, CQ_DATA_BYTES)?;
    at_most("domain_attr cq_cnt", attr.cq_cnt, OBJECTS)?;
    at_most("domain_attr ep_cnt", attr.ep_cnt, OBJECTS)?;
    at_most("domain_attr cntr_cnt", attr.cntr_cnt, OBJECTS)?;
    at_most("domain_attr tx_ctx_cnt", attr.tx_ctx_cnt, OBJECTS)?;
    at_most("domain_attr rx_ctx_cnt", attr.rx_ctx_cnt, OBJECTS)?;
    at_most("domain_attr max_ep_tx_ctx", attr.max_ep_tx_ctx, 1)?;
    at_most("domain_attr max_ep_rx_ctx", attr.max_ep_rx_ctx, 1)?;
    at_most("domain_attr max_ep_stx_ctx", attr.max_ep_stx_ctx, 0)?;
    at_most("domain_attr max_ep_srx_ctx", attr.max_ep_srx_ctx, 0)?;
    at_most("domain_attr mr_iov_limit", attr.mr_iov_limit, 1)?;
    at_most("domain_attr max_err_data", attr.max_err_data, 0)?;
    at_most("domain_attr mr_cnt", attr.mr_cnt, MR_COUNT)?;
    at_most("domain_attr auth_key_size", attr.auth_key_size, 0)
}

fn fabric(hints: &FabricHints) -> Result<(), Refusal> {
    ours("fabric_attr fabric", hints.name.as_ref())?;
    one_of("fabric_attr prov_version", hints.attr.prov_version, &[0, PROVIDER_VERSION])?;
    match hints.prov_name.as_deref() {
        None => Ok(()),
        Some(names) if crate::NAME == names || names.split(';').any(|name| name == crate::NAME) => Ok(()),
        Some(other) => Err(lacking("fabric_attr prov_name", other, crate::NAME)),
    }
}

fn lacking(what: &'static str, found: impl ToString, allowed: impl ToString) -> Refusal {
    Refusal::Lacking { what, found: found.to_string(), allowed: allowed.to_string() }
}

fn bits(what: &'static str, found: u64, ours: u64) -> Result<(), Refusal> {
    if found & !ours == 0 {
        Ok(())
    } else {
        Err(lacking(what, format!("{found:#x}"), format!("bits of {ours:#x}")))
    }
}

fn at_most<T: PartialOrd + ToString>(what: &'static str, found: T, most: T) -> Result<(), Refusal> {
    if found <= most { Ok(()) } else { Err(lacking(what, found, format!("at most {}", most.to_string()))) }
}

fn one_of(what: &'static str, found: u32, ours: &[u32]) -> Result<(), Refusal> {
    if ours.contains(&found) { Ok(()) } else { Err(lacking(what, found, format!("{ours:?}"))) }
}
