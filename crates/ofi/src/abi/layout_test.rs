//! Layout tests: sizes against fixed numbers, always; and every size, offset and constant against the
//! installed C headers.
#![allow(clippy::cast_lossless, reason = "constants of several types become numbers of one")]
#![allow(clippy::print_stderr, reason = "says why a test is skipped")]

use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::atomic::*;
use super::cm::*;
use super::domain::*;
use super::endpoint::*;
use super::eq::*;
use super::errno::*;
use super::fabric::*;
use super::provider::*;
use super::rma::*;
use super::tagged::*;
use super::version;

/// Oldest supported headers.
const OLDEST: (u32, u32) = (1, 17);

/// A comparison: a C expression, the first version that has it, and the provider's value.
struct Line {
    c: String,
    since: (u32, u32),
    ours: u64,
}

/// Lists a structure's fields, with the versions that added the later ones.
macro_rules! layout {
    ($lines:ident, $ours:ident = $theirs:literal [$($field:ident $(@ $version:expr)?),* $(,)?]) => {{
        let mut newest = OLDEST;
        $(
            #[allow(unused_mut, unused_assignments, reason = "most fields are old")]
            let mut since = OLDEST;
            $(since = $version;)?
            newest = newest.max(since);
            let field = stringify!($field).trim_end_matches('_');
            let c = format!("offsetof({}, {field})", $theirs);
            $lines.push(Line { c, since, ours: offset_of!($ours, $field) as u64 });
        )*
        let c = format!("sizeof({})", $theirs);
        $lines.push(Line { c, since: newest, ours: size_of::<$ours>() as u64 });
    }};
}

macro_rules! constants {
    ($lines:ident, [$($name:ident),* $(,)?]) => {
        $($lines.push(Line { c: format!("(uint64_t) {}", stringify!($name)), since: OLDEST, ours: $name as u64 });)*
    };
}

fn structures() -> Vec<Line> {
    let mut lines = Vec::new();
    layout!(lines, TxAttr = "struct fi_tx_attr" [caps, mode, op_flags, msg_order, comp_order, inject_size, size, iov_limit, rma_iov_limit, tclass]);
    layout!(lines, RxAttr = "struct fi_rx_attr" [caps, mode, op_flags, msg_order, comp_order, total_buffered_recv, size, iov_limit]);
    layout!(lines, EpAttr = "struct fi_ep_attr" [type_, protocol, protocol_version, max_msg_size, msg_prefix_size, max_order_raw_size, max_order_war_size, max_order_waw_size, mem_tag_format, tx_ctx_cnt, rx_ctx_cnt, auth_key_size, auth_key]);
    layout!(lines, DomainAttr = "struct fi_domain_attr" [domain, name, threading, control_progress, data_progress, resource_mgmt, av_type, mr_mode, mr_key_size, cq_data_size, cq_cnt, ep_cnt, tx_ctx_cnt, rx_ctx_cnt, max_ep_tx_ctx, max_ep_rx_ctx, max_ep_stx_ctx, max_ep_srx_ctx, cntr_cnt, mr_iov_limit, caps, mode, auth_key, auth_key_size, max_err_data, mr_cnt, tclass, max_ep_auth_key @ (1, 20), max_group_id @ (2, 0), max_cntr_value @ (2, 5), max_err_cntr_value @ (2, 5)]);
    layout!(lines, FabricAttr = "struct fi_fabric_attr" [fabric, name, prov_name, prov_version, api_version]);
    layout!(lines, Info = "struct fi_info" [next, caps, mode, addr_format, src_addrlen, dest_addrlen, src_addr, dest_addr, handle, tx_attr, rx_attr, ep_attr, domain_attr, fabric_attr, nic]);
    layout!(lines, DeviceAttr = "struct fi_device_attr" [name, device_id, device_version, vendor_id, driver, firmware]);
    layout!(lines, PciAttr = "struct fi_pci_attr" [domain_id, bus_id, device_id, function_id]);
    layout!(lines, BusAttr = "struct fi_bus_attr" [bus_type, attr]);
    layout!(lines, LinkAttr = "struct fi_link_attr" [address, mtu, speed, state, network_type]);
    layout!(lines, FidNic = "struct fid_nic" [fid, device_attr, bus_attr, link_attr, prov_attr]);
    layout!(lines, Ops = "struct fi_ops" [size, close, bind, control, ops_open, tostr, ops_set]);
    layout!(lines, Fid = "struct fid" [fclass, context, ops]);
    layout!(lines, OpsFabric = "struct fi_ops_fabric" [size, domain, passive_ep, eq_open, wait_open, trywait, domain2]);
    layout!(lines, FidFabric = "struct fid_fabric" [fid, ops, api_version]);
    layout!(lines, Provider = "struct fi_provider" [version, fi_version, context, name, getinfo, fabric, cleanup]);
    layout!(lines, OpsCm = "struct fi_ops_cm" [size, setname, getname, getpeer, connect, listen, accept, reject, shutdown, join]);
    layout!(lines, Msg = "struct fi_msg" [msg_iov, desc, iov_count, addr, context, data]);
    layout!(lines, OpsEp = "struct fi_ops_ep" [size, cancel, getopt, setopt, tx_ctx, rx_ctx, rx_size_left, tx_size_left]);
    layout!(lines, OpsMsg = "struct fi_ops_msg" [size, recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata]);
    layout!(lines, FidEp = "struct fid_ep" [fid, ops, cm, msg, rma, tagged, atomic, collective]);
    layout!(lines, MsgTagged = "struct fi_msg_tagged" [msg_iov, desc, iov_count, addr, tag, ignore, context, data]);
    layout!(lines, OpsTagged = "struct fi_ops_tagged" [size, recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata]);
    layout!(lines, RmaIov = "struct fi_rma_iov" [addr, len, key]);
    layout!(lines, MsgRma = "struct fi_msg_rma" [msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data]);
    layout!(lines, OpsRma = "struct fi_ops_rma" [size, read, readv, readmsg, write, writev, writemsg, inject, writedata, injectdata]);
    layout!(lines, Ioc = "struct fi_ioc" [addr, count]);
    layout!(lines, RmaIoc = "struct fi_rma_ioc" [addr, count, key]);
    layout!(lines, AtomicAttr = "struct fi_atomic_attr" [count, size]);
    layout!(lines, MsgAtomic = "struct fi_msg_atomic" [msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, datatype, op, context, data]);
    layout!(lines, OpsAtomic = "struct fi_ops_atomic" [size, write, writev, writemsg, inject, readwrite, readwritev, readwritemsg, compwrite, compwritev, compwritemsg, writevalid, readwritevalid, compwritevalid]);
    layout!(lines, EqAttr = "struct fi_eq_attr" [size, flags, wait_obj, signaling_vector, wait_set]);
    layout!(lines, EqEntry = "struct fi_eq_entry" [fid, context, data]);
    layout!(lines, EqErrEntry = "struct fi_eq_err_entry" [fid, context, data, err, prov_errno, err_data, err_data_size]);
    layout!(lines, OpsEq = "struct fi_ops_eq" [size, read, readerr, write, sread, strerror]);
    layout!(lines, FidEq = "struct fid_eq" [fid, ops]);
    layout!(lines, CqTaggedEntry = "struct fi_cq_tagged_entry" [op_context, flags, len, buf, data, tag]);
    layout!(lines, CqErrEntry = "struct fi_cq_err_entry" [op_context, flags, len, buf, data, tag, olen, err, prov_errno, err_data, err_data_size, src_addr @ (1, 20)]);
    layout!(lines, CqAttr = "struct fi_cq_attr" [size, flags, format, wait_obj, signaling_vector, wait_cond, wait_set]);
    layout!(lines, OpsCq = "struct fi_ops_cq" [size, read, readfrom, readerr, sread, sreadfrom, signal, strerror]);
    layout!(lines, FidCq = "struct fid_cq" [fid, ops]);
    layout!(lines, CntrAttr = "struct fi_cntr_attr" [events, wait_obj, wait_set, flags]);
    layout!(lines, OpsCntr = "struct fi_ops_cntr" [size, read, readerr, add, set, wait, adderr, seterr]);
    layout!(lines, FidCntr = "struct fid_cntr" [fid, ops]);
    layout!(lines, AvAttr = "struct fi_av_attr" [type_, rx_ctx_bits, count, ep_per_node, name, map_addr, flags]);
    layout!(lines, OpsAv = "struct fi_ops_av" [size, insert, insertsvc, insertsym, remove, lookup, straddr, av_set, insert_auth_key @ (1, 20), lookup_auth_key @ (1, 20), set_user_id @ (1, 20)]);
    layout!(lines, FidAv = "struct fid_av" [fid, ops]);
    layout!(lines, FidMr = "struct fid_mr" [fid, mem_desc, key]);
    layout!(lines, MrAttr = "struct fi_mr_attr" [mr_iov, iov_count, access, offset, requested_key, context, auth_key_size, auth_key, iface, device, hmem_data @ (1, 20), page_size @ (1, 22), base_mr @ (2, 0), sub_mr_cnt @ (2, 0)]);
    layout!(lines, OpsDomain = "struct fi_ops_domain" [size, av_open, cq_open, endpoint, scalable_ep, cntr_open, poll_open, stx_ctx, srx_ctx, query_atomic, query_collective, endpoint2]);
    layout!(lines, OpsMr = "struct fi_ops_mr" [size, reg, regv, regattr]);
    layout!(lines, FidDomain = "struct fid_domain" [fid, ops, mr]);
    lines
}

fn numbers() -> Vec<Line> {
    let mut lines = Vec::new();
    constants!(
        lines,
        [FI_SUCCESS, FI_ENOENT, FI_EIO, FI_EAGAIN, FI_ENOMEM, FI_EACCES, FI_EBUSY, FI_EINVAL, FI_ENOSYS]
    );
    constants!(lines, [FI_ENOMSG, FI_ENODATA, FI_EMSGSIZE, FI_ENOPROTOOPT, FI_EOPNOTSUPP, FI_EADDRINUSE]);
    constants!(lines, [FI_EADDRNOTAVAIL, FI_EHOSTUNREACH, FI_ECONNRESET, FI_ETIMEDOUT, FI_ECONNREFUSED]);
    constants!(
        lines,
        [FI_ECANCELED, FI_EOTHER, FI_ETOOSMALL, FI_EOPBADSTATE, FI_EAVAIL, FI_EBADFLAGS, FI_ENOCQ]
    );
    constants!(lines, [FI_ETRUNC, FI_ENOKEY, FI_ENOAV]);
    constants!(
        lines,
        [FI_MSG, FI_RMA, FI_TAGGED, FI_ATOMIC, FI_READ, FI_WRITE, FI_RECV, FI_SEND, FI_TRANSMIT]
    );
    constants!(lines, [FI_REMOTE_READ, FI_REMOTE_WRITE, FI_MULTI_RECV, FI_REMOTE_CQ_DATA, FI_MORE, FI_PEEK]);
    constants!(lines, [FI_FENCE, FI_COMPLETION, FI_INJECT, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE]);
    constants!(lines, [FI_DELIVERY_COMPLETE, FI_AFFINITY, FI_COMMIT_COMPLETE, FI_MATCH_COMPLETE, FI_HMEM]);
    constants!(
        lines,
        [FI_LOCAL_COMM, FI_REMOTE_COMM, FI_PROV_ATTR_ONLY, FI_NUMERICHOST, FI_RMA_EVENT, FI_SOURCE]
    );
    constants!(lines, [FI_DIRECTED_RECV, FI_CLAIM, FI_DISCARD, FI_SELECTIVE_COMPLETION, FI_PROV_SPECIFIC]);
    constants!(lines, [FI_FORMAT_UNSPEC, FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6]);
    constants!(
        lines,
        [FI_ADDR_UNSPEC, FI_ADDR_NOTAVAIL, FI_KEY_NOTAVAIL, FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE]
    );
    constants!(
        lines,
        [FI_MR_BASIC, FI_MR_SCALABLE, FI_MR_LOCAL, FI_MR_RAW, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED]
    );
    constants!(lines, [FI_MR_PROV_KEY, FI_MR_ENDPOINT, FI_MR_HMEM]);
    constants!(
        lines,
        [FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL, FI_THREAD_UNSPEC, FI_THREAD_SAFE]
    );
    constants!(lines, [FI_THREAD_FID, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT]);
    constants!(
        lines,
        [FI_RM_UNSPEC, FI_RM_DISABLED, FI_RM_ENABLED, FI_ORDER_RAW, FI_ORDER_RAS, FI_ORDER_WAW]
    );
    constants!(lines, [FI_ORDER_SAW, FI_ORDER_SAS, FI_ORDER_RMA_RAW, FI_ORDER_RMA_WAW, FI_ORDER_ATOMIC_RAR]);
    constants!(lines, [FI_ORDER_ATOMIC_RAW, FI_ORDER_ATOMIC_WAR, FI_ORDER_ATOMIC_WAW]);
    constants!(
        lines,
        [FI_EP_UNSPEC, FI_EP_MSG, FI_EP_DGRAM, FI_EP_RDM, FI_TC_UNSPEC, FI_CONTEXT, FI_CONTEXT2]
    );
    constants!(lines, [FI_CLASS_FABRIC, FI_CLASS_DOMAIN, FI_CLASS_EP, FI_CLASS_AV, FI_CLASS_MR, FI_CLASS_EQ]);
    constants!(
        lines,
        [FI_CLASS_CQ, FI_CLASS_CNTR, FI_GETOPSFLAG, FI_SETOPSFLAG, FI_ALIAS, FI_GETWAIT, FI_ENABLE]
    );
    constants!(
        lines,
        [FI_CLASS_NIC, FI_DUP, FI_BUS_UNSPEC, FI_BUS_PCI, FI_LINK_UNKNOWN, FI_LINK_DOWN, FI_LINK_UP]
    );
    constants!(lines, [FI_GETWAITOBJ, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, FI_OPT_CM_DATA_SIZE]);
    constants!(
        lines,
        [FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_SET, FI_WAIT_FD, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD]
    );
    constants!(lines, [FI_WAIT_POLLFD, FI_CQ_FORMAT_UNSPEC, FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG]);
    constants!(lines, [FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_TAGGED, FI_CQ_COND_NONE, FI_CQ_COND_THRESHOLD]);
    constants!(lines, [FI_CNTR_EVENTS_COMP, FI_NOTIFY, FI_AV_COMPLETE, FI_SYMMETRIC, FI_SYNC_ERR]);
    constants!(lines, [FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC, FI_INT8, FI_UINT8, FI_INT16, FI_UINT16, FI_INT32]);
    constants!(lines, [FI_UINT32, FI_INT64, FI_UINT64, FI_FLOAT, FI_DOUBLE, FI_MIN, FI_MAX, FI_SUM, FI_PROD]);
    constants!(lines, [FI_LOR, FI_LAND, FI_BOR, FI_BAND, FI_LXOR, FI_BXOR, FI_ATOMIC_READ, FI_ATOMIC_WRITE]);
    constants!(lines, [FI_CSWAP, FI_CSWAP_NE, FI_CSWAP_LE, FI_CSWAP_LT, FI_CSWAP_GE, FI_CSWAP_GT, FI_MSWAP]);
    let c = "(uint64_t) FI_PROGRESS_CONTROL_UNIFIED".into();
    lines.push(Line { c, since: (2, 0), ours: u64::from(FI_PROGRESS_CONTROL_UNIFIED) });
    lines
}

/// The sizes were measured with gcc on x86-64 against 2.6. Structures that are longer than in 1.17 have only
/// grown at their end.
#[test]
fn sizes_are_those_of_libfabric() {
    let found = [
        size_of::<Info>(),
        size_of::<TxAttr>(),
        size_of::<RxAttr>(),
        size_of::<EpAttr>(),
        size_of::<DomainAttr>(),
        size_of::<FabricAttr>(),
        size_of::<Fid>(),
        size_of::<FidFabric>(),
        size_of::<FidDomain>(),
        size_of::<FidMr>(),
        size_of::<FidEp>(),
        size_of::<FidAv>(),
        size_of::<FidCq>(),
        size_of::<FidCntr>(),
        size_of::<FidEq>(),
        size_of::<CqAttr>(),
        size_of::<CntrAttr>(),
        size_of::<EqAttr>(),
        size_of::<AvAttr>(),
        size_of::<MrAttr>(),
        size_of::<CqTaggedEntry>(),
        size_of::<CqErrEntry>(),
        size_of::<EqErrEntry>(),
        size_of::<Msg>(),
        size_of::<MsgTagged>(),
        size_of::<MsgRma>(),
        size_of::<MsgAtomic>(),
        size_of::<Provider>(),
        size_of::<DeviceAttr>(),
        size_of::<BusAttr>(),
        size_of::<LinkAttr>(),
        size_of::<FidNic>(),
    ];
    let expected = [
        120, 80, 64, 96, 224, 32, 24, 40, 40, 40, 80, 32, 32, 32, 32, 40, 24, 32, 48, 112, 48, 88, 48, 48,
        64, 64, 72, 72, 48, 12, 40, 56,
    ];
    assert_eq!(found, expected);
    assert_eq!(offset_of!(Provider, name), 40);
    assert_eq!(offset_of!(DomainAttr, max_ep_auth_key), 192, "what 1.17 has ends here");
    assert_eq!(offset_of!(CqErrEntry, src_addr), 80, "what 1.17 has ends here");
    assert_eq!(offset_of!(MrAttr, hmem_data), 80, "what 1.17 has ends here");
    let tables = [
        size_of::<Ops>(),
        size_of::<OpsFabric>(),
        size_of::<OpsDomain>(),
        size_of::<OpsMr>(),
        size_of::<OpsAv>(),
        size_of::<OpsEp>(),
        size_of::<OpsCm>(),
        size_of::<OpsMsg>(),
        size_of::<OpsTagged>(),
        size_of::<OpsRma>(),
        size_of::<OpsAtomic>(),
        size_of::<OpsCq>(),
        size_of::<OpsCntr>(),
        size_of::<OpsEq>(),
    ];
    assert_eq!(tables, [56, 56, 96, 32, 88, 64, 80, 80, 80, 80, 112, 64, 64, 48]);
    assert_eq!(version(1, 17), 65_553);
}

/// Returns the folders with headers: the system's, and those of the variable (several versions, separated by
/// colons).
fn header_folders() -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("/usr/include")];
    if let Ok(more) = std::env::var("PATHWEAVE_LIBFABRIC_INCLUDES") {
        folders.extend(more.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from));
    }
    folders.retain(|folder| folder.join("rdma/providers/fi_prov.h").is_file());
    folders
}

/// Returns C's value for each line; `None` if the headers are older than the line.
fn ask_c(headers: &Path, lines: &[Line]) -> Vec<Option<u64>> {
    let folder = std::env::temp_dir().join(format!("pathweave-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut text = String::from("#include <stdio.h>\n#include <inttypes.h>\n");
    for header in ["fabric", "fi_domain", "fi_eq", "fi_endpoint", "fi_tagged", "fi_rma", "fi_atomic", "fi_cm"]
    {
        text += &format!("#include <rdma/{header}.h>\n");
    }
    text += "#include <rdma/providers/fi_prov.h>\nint main(void) {\n";
    for line in lines {
        let (major, minor) = line.since;
        text += &format!(
            "#if FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) >= FI_VERSION({major}, {minor})\n\
             printf(\"%\" PRIu64 \"\\n\", (uint64_t) ({}));\n#else\nputs(\"-\");\n#endif\n",
            line.c
        );
    }
    text += "return 0;\n}\n";
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, text).unwrap();
    let built =
        Command::new("cc").arg("-w").arg("-I").arg(headers).arg("-o").arg(&program).arg(&source).output();
    let built = built.expect("cc runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let said = Command::new(&program).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    String::from_utf8(said.stdout).unwrap().lines().map(|line| line.parse().ok()).collect()
}

#[test]
fn layouts_and_constants_are_those_of_the_installed_headers() {
    if Command::new("cc").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no C compiler");
    }
    let folders = header_folders();
    if folders.is_empty() {
        return eprintln!("skipped: there are no headers of libfabric");
    }
    let mut lines = structures();
    lines.extend(numbers());
    for folder in folders {
        let theirs = ask_c(&folder, &lines);
        assert_eq!(theirs.len(), lines.len());
        let compared = theirs.iter().flatten().count();
        assert!(compared > 500, "only {compared} numbers compared with {}", folder.display());
        for (line, theirs) in lines.iter().zip(theirs) {
            assert_eq!(theirs.unwrap_or(line.ours), line.ours, "{} in {}", line.c, folder.display());
        }
    }
}
