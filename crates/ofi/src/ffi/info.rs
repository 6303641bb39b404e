//! `struct fi_info`: reads hints and makes answers. libfabric frees the answers with `free`.

use std::ffi::{c_char, c_int};
use std::mem::{MaybeUninit, offset_of};
use std::ptr;

use super::{address, domain, fabric, nic, text};
use crate::abi::errno::FI_ENOMEM;
use crate::abi::fabric::*;
use crate::getinfo::*;
use crate::guard::{Errno, FiResult};
use crate::object::domain::Domain;

/// Bytes of `struct fi_domain_attr` in every supported version.
const DOMAIN_ATTR_BYTES: usize = offset_of!(DomainAttr, max_ep_auth_key);

/// Reads the arguments of `fi_getinfo`.
///
/// # Safety
///
/// The arguments are those of `fi_getinfo`.
pub(super) unsafe fn question(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const Info,
) -> Question {
    // SAFETY: guaranteed by the caller: strings or NULL, and a complete fi_info or NULL.
    unsafe {
        let hints = hints.as_ref().map(|hints| self::hints(hints));
        Question { version, node: text::read(node), service: text::read(service), flags, hints }
    }
}

/// # Safety
///
/// `info` is a complete fi_info. Its pointers are NULL or valid.
unsafe fn hints(info: &Info) -> Hints {
    // SAFETY: guaranteed by the caller.
    unsafe {
        Hints {
            caps: info.caps,
            addr_format: info.addr_format,
            src: address::read(info.src_addr, info.src_addrlen),
            dest: address::read(info.dest_addr, info.dest_addrlen),
            tx: info.tx_attr.as_ref().copied(),
            rx: info.rx_attr.as_ref().copied(),
            ep: info.ep_attr.as_ref().copied(),
            domain: domain_hints(info.domain_attr),
            fabric: info.fabric_attr.as_ref().map(|attr| fabric_hints(attr)),
        }
    }
}

/// # Safety
///
/// The pointers of `attr` are NULL or valid.
unsafe fn fabric_hints(attr: &FabricAttr) -> FabricHints {
    // SAFETY: strings or NULL, and a fabric of any provider or NULL.
    unsafe {
        let open =
            attr.fabric.as_ref().map(|_| fabric::name_of(attr.fabric).unwrap_or_else(|| FOREIGN.into()));
        let (name, prov_name) = (open.or_else(|| text::read(attr.name)), text::read(attr.prov_name));
        FabricHints { attr: *attr, name, prov_name }
    }
}

/// Reads the domain attributes that every version has.
///
/// # Safety
///
/// `attr` is NULL, or points to the part of the structure that every version has.
pub(super) unsafe fn domain_hints(attr: *const DomainAttr) -> Option<DomainHints> {
    if attr.is_null() {
        return None;
    }
    let mut copy = MaybeUninit::<DomainAttr>::zeroed();
    // SAFETY: every version has the copied part. The rest is zero, which is valid for all fields.
    let attr = unsafe {
        ptr::copy_nonoverlapping(attr.cast::<u8>(), copy.as_mut_ptr().cast(), DOMAIN_ATTR_BYTES);
        copy.assume_init()
    };
    // SAFETY: a string or NULL.
    let name = unsafe { text::read(attr.name) };
    if attr.domain.is_null() {
        return Some(DomainHints { attr, name, open_mr_mode: None });
    }
    // SAFETY: a domain of any provider.
    let open = unsafe { domain::opened(attr.domain) };
    let name = open.map_or_else(|| FOREIGN.into(), |open| open.interface.name.clone());
    Some(DomainHints { attr, name: Some(name), open_mr_mode: open.map(Domain::mr_mode) })
}

/// Values that are the same in all answers to a question.
pub(super) struct Echo {
    version: u32,
    handle: *mut Fid,
    tx: Option<TxAttr>,
    rx: Option<RxAttr>,
    ep: Option<EpAttr>,
    domain: Option<DomainAttr>,
    open_mr_mode: Option<c_int>,
    fabric: *mut FidFabric,
    fabric_name: Option<String>,
}

impl Echo {
    /// Takes the values from the question and its hints.
    ///
    /// # Safety
    ///
    /// `hints` is a complete fi_info or NULL.
    pub(super) unsafe fn of(question: &Question, hints: *const Info) -> Self {
        let read = question.hints.as_ref();
        let fabric = read.and_then(|hints| hints.fabric.as_ref());
        let domain = read.and_then(|hints| hints.domain.as_ref());
        Echo {
            version: question.version,
            // SAFETY: guaranteed by the caller.
            handle: unsafe { hints.as_ref() }.map_or(ptr::null_mut(), |hints| hints.handle),
            tx: read.and_then(|hints| hints.tx),
            rx: read.and_then(|hints| hints.rx),
            ep: read.and_then(|hints| hints.ep),
            domain: domain.map(|domain| domain.attr),
            open_mr_mode: domain.and_then(|domain| domain.open_mr_mode),
            fabric: fabric.map_or(ptr::null_mut(), |fabric| fabric.attr.fabric),
            fabric_name: fabric.and_then(|fabric| fabric.name.clone()),
        }
    }
}

/// Makes the list of all offers, in their order.
///
/// # Errors
///
/// Returns FI_ENOMEM, after freeing all parts.
pub(super) fn list(offers: &[Offer], echo: &Echo) -> FiResult<*mut Info> {
    let mut first: *mut Info = ptr::null_mut();
    for offer in offers.iter().rev() {
        match one(offer, echo, first) {
            Some(info) => first = info,
            None => {
                // SAFETY: the list was made here, and has no other owner.
                unsafe { free_list(first) };
                return Err(Errno(FI_ENOMEM));
            }
        }
    }
    Ok(first)
}

fn one(offer: &Offer, echo: &Echo, next: *mut Info) -> Option<*mut Info> {
    let info = Info {
        next,
        caps: offer.caps.whole,
        mode: 0,
        addr_format: offer.addr_format(),
        src_addrlen: address::length_of(offer.src),
        dest_addrlen: offer.dest.map_or(0, address::length_of),
        src_addr: address::duplicate(offer.src),
        dest_addr: offer.dest.map_or(ptr::null_mut(), address::duplicate),
        handle: echo.handle,
        tx_attr: text::boxed(transmit(offer, echo)),
        rx_attr: text::boxed(receive(offer, echo)),
        ep_attr: text::boxed(endpoint(echo)),
        domain_attr: text::boxed(domain_attr(offer, echo)),
        fabric_attr: text::boxed(fabric_attr(offer, echo)),
        nic: hardware(offer),
    };
    let missing = info.src_addr.is_null()
        || (info.dest_addr.is_null() && offer.dest.is_some())
        || info.tx_attr.is_null()
        || info.rx_attr.is_null()
        || info.ep_attr.is_null()
        || info.domain_attr.is_null()
        || info.fabric_attr.is_null()
        || info.nic.is_null();
    let boxed = if missing { ptr::null_mut() } else { text::boxed(info) };
    // SAFETY: not NULL, as just checked.
    if boxed.is_null() || unsafe { (*info.domain_attr).name.is_null() || (*info.fabric_attr).name.is_null() }
    {
        // SAFETY: the parts were made here, and have no other owner. The rest of the list stays.
        unsafe {
            free_parts(&info);
            libc::free(boxed.cast());
        }
        return None;
    }
    Some(boxed)
}

/// Frees a list of answers.
///
/// # Safety
///
/// The list was made by [`list`], of this library or of another copy of this provider, and is not used any
/// more.
pub(super) unsafe fn free_list(mut at: *mut Info) {
    while !at.is_null() {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let info = *at;
            free_parts(&info);
            libc::free(at.cast());
            at = info.next;
        }
    }
}

/// # Safety
///
/// The parts were made by [`one`], and have no other owner.
unsafe fn free_parts(info: &Info) {
    // SAFETY: guaranteed by the caller; NULL is allowed.
    unsafe {
        if let Some(attr) = info.domain_attr.as_ref() {
            libc::free(attr.name.cast());
        }
        if let Some(attr) = info.fabric_attr.as_ref() {
            libc::free(attr.name.cast());
        }
        nic::free(info.nic);
        for part in [
            info.src_addr,
            info.dest_addr,
            info.tx_attr.cast(),
            info.rx_attr.cast(),
            info.ep_attr.cast(),
            info.domain_attr.cast(),
            info.fabric_attr.cast(),
        ] {
            libc::free(part);
        }
    }
}

/// Returns the hint unless it is zero, otherwise `ours`.
fn or<T: Default + PartialEq>(hint: Option<T>, ours: T) -> T {
    hint.filter(|hint| *hint != T::default()).unwrap_or(ours)
}

fn hardware(offer: &Offer) -> *mut FidNic {
    let Offer { interface, bits_per_second, .. } = offer;
    let link =
        nic::Link { name: &interface.name, mtu: interface.link_mtu(), bits_per_second: *bits_per_second };
    nic::made(&Nic::read(&interface.folder()), &link)
}

fn transmit(offer: &Offer, echo: &Echo) -> TxAttr {
    let hint = echo.tx;
    TxAttr {
        caps: offer.caps.tx,
        mode: 0,
        op_flags: hint.map_or(0, |hint| hint.op_flags),
        msg_order: or(hint.map(|hint| hint.msg_order), MSG_ORDER),
        comp_order: 0,
        inject_size: or(hint.map(|hint| hint.inject_size), INJECT_BYTES),
        size: or(hint.map(|hint| hint.size), QUEUE_SIZE),
        iov_limit: or(hint.map(|hint| hint.iov_limit), IOV_LIMIT),
        rma_iov_limit: or(hint.map(|hint| hint.rma_iov_limit), RMA_IOV_LIMIT),
        tclass: hint.map_or(FI_TC_UNSPEC, |hint| hint.tclass),
    }
}

fn receive(offer: &Offer, echo: &Echo) -> RxAttr {
    let hint = echo.rx;
    RxAttr {
        caps: offer.caps.rx,
        mode: 0,
        op_flags: hint.map_or(0, |hint| hint.op_flags),
        msg_order: or(hint.map(|hint| hint.msg_order), MSG_ORDER),
        comp_order: 0,
        total_buffered_recv: 0,
        size: or(hint.map(|hint| hint.size), QUEUE_SIZE),
        iov_limit: or(hint.map(|hint| hint.iov_limit), IOV_LIMIT),
    }
}

fn endpoint(echo: &Echo) -> EpAttr {
    let hint = echo.ep;
    EpAttr {
        type_: FI_EP_RDM,
        protocol: PROTOCOL,
        protocol_version: PROTOCOL_VERSION,
        max_msg_size: MAX_MESSAGE_BYTES,
        msg_prefix_size: 0,
        max_order_raw_size: MAX_MESSAGE_BYTES,
        max_order_war_size: 0,
        max_order_waw_size: 0,
        mem_tag_format: or(hint.map(|hint| hint.mem_tag_format), TAG_FORMAT),
        tx_ctx_cnt: 1,
        rx_ctx_cnt: 1,
        auth_key_size: 0,
        auth_key: ptr::null_mut(),
    }
}

fn domain_attr(offer: &Offer, echo: &Echo) -> DomainAttr {
    let hint = echo.domain;
    let hinted = hint.map_or(0, |hint| hint.mr_mode);
    // An open domain has its mode already.
    let mr_mode =
        echo.open_mr_mode.unwrap_or_else(|| mr_mode(hinted, echo.version, Target::of(offer.caps.whole)));
    DomainAttr {
        domain: hint.map_or(ptr::null_mut(), |hint| hint.domain),
        name: text::duplicate(&offer.interface.name),
        threading: or(hint.map(|hint| hint.threading), FI_THREAD_SAFE),
        control_progress: or(hint.map(|hint| hint.control_progress), FI_PROGRESS_AUTO),
        data_progress: or(hint.map(|hint| hint.data_progress), FI_PROGRESS_AUTO),
        resource_mgmt: or(hint.map(|hint| hint.resource_mgmt), FI_RM_ENABLED),
        // Both types are supported. fi_av_open states which one it opens.
        av_type: hint.map_or(FI_AV_UNSPEC, |hint| hint.av_type),
        mr_mode,
        mr_key_size: MR_KEY_BYTES,
        cq_data_size: CQ_DATA_BYTES,
        cq_cnt: or(hint.map(|hint| hint.cq_cnt), OBJECTS),
        ep_cnt: or(hint.map(|hint| hint.ep_cnt), OBJECTS),
        tx_ctx_cnt: or(hint.map(|hint| hint.tx_ctx_cnt), OBJECTS),
        rx_ctx_cnt: or(hint.map(|hint| hint.rx_ctx_cnt), OBJECTS),
        max_ep_tx_ctx: 1,
        max_ep_rx_ctx: 1,
        max_ep_stx_ctx: 0,
        max_ep_srx_ctx: 0,
        cntr_cnt: or(hint.map(|hint| hint.cntr_cnt), OBJECTS),
        mr_iov_limit: 1,
        caps: DOMAIN_CAPS,
        mode: 0,
        auth_key: ptr::null_mut(),
        auth_key_size: 0,
        max_err_data: 0,
        mr_cnt: or(hint.map(|hint| hint.mr_cnt), MR_COUNT),
        tclass: hint.map_or(FI_TC_UNSPEC, |hint| hint.tclass),
        max_ep_auth_key: 0,
        max_group_id: 0,
        max_cntr_value: u64::MAX,
        max_err_cntr_value: u64::MAX,
    }
}

fn fabric_attr(offer: &Offer, echo: &Echo) -> FabricAttr {
    let name = offer.interface.subnet().to_string();
    let same = echo.fabric_name.as_deref().is_none_or(|asked| asked == name);
    FabricAttr {
        fabric: if same { echo.fabric } else { ptr::null_mut() },
        name: text::duplicate(&name),
        // libfabric writes the name. A name here would become "name;pathweave".
        prov_name: ptr::null_mut(),
        prov_version: PROVIDER_VERSION,
        api_version: echo.version,
    }
}
