//! A library of the provider, opened as libfabric opens it, for tools that show users its offers.

use std::ffi::{CStr, CString, c_void};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::ptr;

use thiserror::Error;

use super::{address, info, text};
use crate::abi::errno::FI_ENODATA;
use crate::abi::fabric::{FabricAttr, Info};
use crate::abi::provider::Provider;
use crate::abi::version;

/// Oldest interface version that the provider supports. Only fields of this version are read from an answer.
const ASKED_AS: u32 = version(1, 17);

/// An opened library. It is never unloaded, like a provider.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    provider: *const Provider,
}

/// Reason why a library cannot be opened, or has no offer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LibraryError {
    /// The dynamic loader rejects the library. libfabric before 1.21 prints nothing in this case.
    #[error("{path} cannot be loaded: {why}")]
    NotLoaded {
        /// Path of the library.
        path: PathBuf,
        /// Message of the loader.
        why: String,
    },
    /// The library does not contain this provider.
    #[error("{path} is no library of this provider: {why}")]
    Foreign {
        /// Path of the library.
        path: PathBuf,
        /// Part that it lacks.
        why: String,
    },
    /// The library works and has no offer. It has printed the reason to standard error.
    #[error("{path} offers nothing here")]
    NoOffer {
        /// Path of the library.
        path: PathBuf,
    },
    /// The library failed in another way.
    #[error("{path} fails with error {errno} of rdma/fi_errno.h")]
    Failed {
        /// Path of the library.
        path: PathBuf,
        /// Positive error number.
        errno: i32,
    },
}

/// One offer, which programs see as an `fi_info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Subnet, such as `10.0.0.0/24`.
    pub fabric: String,
    /// Name of the network interface.
    pub domain: String,
    /// Local address. The port is 0 if it is chosen when an endpoint is opened.
    pub address: Option<SocketAddr>,
    /// Capability bits.
    pub caps: u64,
    /// Largest size of a message, bytes.
    pub max_message_bytes: usize,
    /// Largest size of an injected message, bytes.
    pub inject_bytes: usize,
    /// Largest numbers of outstanding operations: transmit, receive.
    pub queue_size: (usize, usize),
    /// Largest numbers of pieces of a local buffer and of remote memory per operation.
    pub iov_limits: (usize, usize),
    /// Bytes of a memory key.
    pub mr_key_bytes: usize,
    /// Bytes of immediate data.
    pub cq_data_bytes: usize,
}

impl Library {
    /// Opens a library with all its symbols bound, as libfabric does.
    ///
    /// # Errors
    ///
    /// Returns an error if the library cannot be loaded or does not contain this provider.
    pub fn open(path: &Path) -> Result<Library, LibraryError> {
        let not_loaded = |why: String| LibraryError::NotLoaded { path: path.to_owned(), why };
        let foreign = |why: String| LibraryError::Foreign { path: path.to_owned(), why };
        let name = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|_| not_loaded("a zero byte is in its name".into()))?;
        // SAFETY: a terminated string. Code that runs when a library is loaded is the responsibility of the
        // user who named it, as with the variable FI_PROVIDER_PATH.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(not_loaded(loader_says()));
        }
        // SAFETY: an open library and a terminated string.
        let symbol = unsafe { libc::dlsym(handle, c"fi_prov_ini".as_ptr()) };
        if symbol.is_null() {
            return Err(foreign("it exports no fi_prov_ini".into()));
        }
        // SAFETY: in libraries for libfabric, this symbol is a function of this type.
        let start: extern "C" fn() -> *mut Provider =
            unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> *mut Provider>(symbol) };
        let provider = start().cast_const();
        if provider.is_null() {
            return Err(foreign("it offers no provider".into()));
        }
        // SAFETY: not NULL, and a provider lives as long as its library. The field is the same in every
        // version.
        let called = unsafe { text::read((*provider).name) }.unwrap_or_default();
        if called != crate::NAME {
            return Err(foreign(format!("its provider is called {called:?}")));
        }
        Ok(Library { path: path.to_owned(), provider })
    }

    /// Returns major and minor of the provider's own version.
    pub fn version(&self) -> (u32, u32) {
        // SAFETY: a provider lives as long as its library, which is never closed.
        halves(unsafe { (*self.provider).version })
    }

    /// Returns major and minor of the newest libfabric interface that the provider was written for.
    pub fn interface_version(&self) -> (u32, u32) {
        // SAFETY: as above.
        halves(unsafe { (*self.provider).fi_version })
    }

    /// Returns the offers in this process's environment, best first.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no offer. The library has printed the reason to standard error.
    pub fn offers(&self) -> Result<Vec<Offered>, LibraryError> {
        let mut name = crate::NAME.as_bytes().to_vec();
        name.push(0);
        let mut fabric = FabricAttr {
            fabric: ptr::null_mut(),
            name: ptr::null_mut(),
            prov_name: name.as_mut_ptr().cast(),
            prov_version: 0,
            api_version: 0,
        };
        // SAFETY: zero is valid for every field.
        let mut hints: Info = unsafe { std::mem::zeroed() };
        hints.fabric_attr = &raw mut fabric;
        let mut list = ptr::null_mut();
        // SAFETY: the arguments of fi_getinfo; the hints and the data they point to live until it returns.
        let answer = unsafe {
            ((*self.provider).getinfo)(ASKED_AS, ptr::null(), ptr::null(), 0, &raw const hints, &mut list)
        };
        match -answer {
            0 => {}
            FI_ENODATA => return Err(LibraryError::NoOffer { path: self.path.clone() }),
            errno => return Err(LibraryError::Failed { path: self.path.clone(), errno }),
        }
        let mut found = Vec::new();
        let mut at: *const Info = list;
        while !at.is_null() {
            // SAFETY: an element of the list that getinfo made, which is not freed yet.
            unsafe {
                found.push(offered(at));
                at = (*at).next;
            }
        }
        // SAFETY: the list was made by a library of this provider, in memory of the C library, and has no
        // other owner.
        unsafe { info::free_list(list) };
        Ok(found)
    }
}

fn halves(version: u32) -> (u32, u32) {
    (version >> 16, version & 0xffff)
}

/// Returns the dynamic loader's message on its last failure.
fn loader_says() -> String {
    // SAFETY: a string of the loader, valid until its next call on this thread, or NULL.
    let said = unsafe { libc::dlerror() };
    if said.is_null() {
        return "the loader gives no reason".into();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned()
}

/// # Safety
///
/// `info` is an answer of getinfo, with all its attributes. Fields that were added after version [`ASKED_AS`]
/// are not accessed.
unsafe fn offered(info: *const Info) -> Offered {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (tx, rx) = ((*info).tx_attr, (*info).rx_attr);
        let (ep, domain, fabric) = ((*info).ep_attr, (*info).domain_attr, (*info).fabric_attr);
        Offered {
            fabric: text::read((*fabric).name).unwrap_or_default(),
            domain: text::read((*domain).name).unwrap_or_default(),
            address: address::read((*info).src_addr, (*info).src_addrlen),
            caps: (*info).caps,
            max_message_bytes: (*ep).max_msg_size,
            inject_bytes: (*tx).inject_size,
            queue_size: ((*tx).size, (*rx).size),
            iov_limits: ((*tx).iov_limit, (*tx).rma_iov_limit),
            mr_key_bytes: (*domain).mr_key_size,
            cq_data_bytes: (*domain).cq_data_size,
        }
    }
}
