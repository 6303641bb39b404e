//! A library of the provider opened as libfabric opens it, and asked what it offers: for tools that tell users.

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

/// What every libfabric has that the provider works with; also the fields that are read of an answer.
const ASKED_AS: u32 = version(1, 17);

/// An opened library. It stays loaded for good, as a provider's does.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    provider: *const Provider,
}

/// Why a library cannot be asked, or offers nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LibraryError {
    /// The dynamic loader refuses it. libfabric before 1.21 says nothing in this case.
    #[error("{path} cannot be loaded: {why}")]
    NotLoaded {
        /// The library.
        path: PathBuf,
        /// What the loader says.
        why: String,
    },
    /// A library, but none of this provider.
    #[error("{path} is no library of this provider: {why}")]
    Foreign {
        /// The library.
        path: PathBuf,
        /// What it lacks.
        why: String,
    },
    /// It works and offers nothing. It has said why on standard error.
    #[error("{path} offers nothing here")]
    NoOffer {
        /// The library.
        path: PathBuf,
    },
    /// A failure that is no refusal.
    #[error("{path} fails with error {errno} of rdma/fi_errno.h")]
    Failed {
        /// The library.
        path: PathBuf,
        /// The positive number.
        errno: i32,
    },
}

/// One way to communicate: what programs see as an `fi_info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// The subnet, as `10.0.0.0/24`.
    pub fabric: String,
    /// The network interface.
    pub domain: String,
    /// This end's address; port 0 where it is chosen when an endpoint is opened.
    pub address: Option<SocketAddr>,
    /// Bits of the capabilities.
    pub caps: u64,
    /// Bytes of the longest message.
    pub max_message_bytes: usize,
    /// Bytes that may be sent without keeping the buffer.
    pub inject_bytes: usize,
    /// Operations that may be outstanding in either direction.
    pub queue_size: (usize, usize),
    /// Pieces of a buffer of an operation, and of remote memory.
    pub iov_limits: (usize, usize),
    /// Bytes of a memory key.
    pub mr_key_bytes: usize,
    /// Bytes of immediate data.
    pub cq_data_bytes: usize,
}

impl Library {
    /// Opens a library, with all its symbols bound, as libfabric does.
    ///
    /// # Errors
    /// It cannot be loaded, or is none of this provider.
    pub fn open(path: &Path) -> Result<Library, LibraryError> {
        let not_loaded = |why: String| LibraryError::NotLoaded { path: path.to_owned(), why };
        let foreign = |why: String| LibraryError::Foreign { path: path.to_owned(), why };
        let name = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|_| not_loaded("a zero byte is in its name".into()))?;
        // SAFETY: a string with its end. What runs when a library is loaded is for whoever named it to answer for, as with
        // the variable FI_PROVIDER_PATH.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(not_loaded(loader_says()));
        }
        // SAFETY: an open library and a string with its end.
        let symbol = unsafe { libc::dlsym(handle, c"fi_prov_ini".as_ptr()) };
        if symbol.is_null() {
            return Err(foreign("it exports no fi_prov_ini".into()));
        }
        // SAFETY: that symbol of a library of libfabric's kind is this function.
        let start: extern "C" fn() -> *mut Provider =
            unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> *mut Provider>(symbol) };
        let provider = start().cast_const();
        if provider.is_null() {
            return Err(foreign("it offers no provider".into()));
        }
        // SAFETY: not NULL, and a provider lives as long as its library; the field is the same in every version.
        let called = unsafe { text::read((*provider).name) }.unwrap_or_default();
        if called != crate::NAME {
            return Err(foreign(format!("its provider is called {called:?}")));
        }
        Ok(Library { path: path.to_owned(), provider })
    }

    /// Major and minor of the provider's own version.
    pub fn version(&self) -> (u32, u32) {
        // SAFETY: a provider lives as long as its library, which is never closed.
        halves(unsafe { (*self.provider).version })
    }

    /// Major and minor of the newest libfabric interface it was written to.
    pub fn interface_version(&self) -> (u32, u32) {
        // SAFETY: as above.
        halves(unsafe { (*self.provider).fi_version })
    }

    /// What it offers in this process's environment, best first.
    ///
    /// # Errors
    /// It offers nothing, and has said on standard error why.
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
        // SAFETY: zero is a good value of every field.
        let mut hints: Info = unsafe { std::mem::zeroed() };
        hints.fabric_attr = &raw mut fabric;
        let mut list = ptr::null_mut();
        // SAFETY: the arguments of fi_getinfo; hints and what they point to live until it returns.
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
            // SAFETY: an element of the list that getinfo made, not freed yet.
            unsafe {
                found.push(offered(at));
                at = (*at).next;
            }
        }
        // SAFETY: made by a library of ours from the C library's memory, and nobody has it any more.
        unsafe { info::free_list(list) };
        Ok(found)
    }
}

fn halves(version: u32) -> (u32, u32) {
    (version >> 16, version & 0xffff)
}

/// What the dynamic loader has to say of its last failure.
fn loader_says() -> String {
    // SAFETY: a string of the loader's, valid until its next call on this thread, or NULL.
    let said = unsafe { libc::dlerror() };
    if said.is_null() {
        return "the loader does not say why".into();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned()
}

/// # Safety
/// An answer of getinfo, with all its attributes. Fields that a version after [`ASKED_AS`] added are not touched.
unsafe fn offered(info: *const Info) -> Offered {
    // SAFETY: as the caller says.
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
