//! Fabrics and domains, the parents of endpoints, queues and registered memory.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::counter::Counter;
use super::lock;
use super::uses::{Use, Uses};
use crate::abi::errno::FI_ENOKEY;
use crate::abi::fabric::{FI_MR_BASIC, FI_MR_PROV_KEY, FI_MR_VIRT_ADDR};
use crate::ffi::memory::Span;
use crate::getinfo::{Interface, Target};
use crate::guard::{FiResult, refused};
use crate::settings::{Progress, Settings};

/// A fabric, which is a subnet.
pub(crate) struct Fabric {
    pub(crate) name: String,
    pub(crate) api_version: u32,
    pub(crate) uses: Uses,
}

/// Chooser of the keys of registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// The application chooses. Two regions cannot have the same key.
    Requested,
    /// The provider chooses.
    Provided,
    /// The application chooses, and has requested no remote memory access when it opened the domain. It may
    /// use the same key repeatedly, as NCCL's plugin does. An endpoint of the domain may have remote memory
    /// access nevertheless: Open MPI 5 opens one endpoint for messages and one for memory. Its peers reach
    /// the first region with a key.
    Repeatable,
}

/// Addressing of a region's bytes by peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addressing {
    /// Offset from the region's begin.
    Offset,
    /// Virtual address at the owner.
    Virtual,
}

/// Naming of registered memory, and the `mr_mode` that expresses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegionNaming {
    mr_mode: c_int,
    keys: Keys,
    addressing: Addressing,
}

impl RegionNaming {
    /// Returns the naming of a domain that is opened with this mode.
    pub(crate) fn of(mr_mode: c_int, target: Target) -> Self {
        let has = |bit| mr_mode == FI_MR_BASIC || mr_mode & bit != 0;
        let keys = match target {
            _ if has(FI_MR_PROV_KEY) => Keys::Provided,
            Target::Yes => Keys::Requested,
            Target::No => Keys::Repeatable,
        };
        let addressing = if has(FI_MR_VIRT_ADDR) { Addressing::Virtual } else { Addressing::Offset };
        RegionNaming { mr_mode, keys, addressing }
    }
}

/// Registered memory.
pub(crate) struct Mr {
    pub(crate) key: u64,
    pub(crate) span: Span,
    /// Address of the first byte, as peers use it.
    pub(crate) base: u64,
    /// Access rights: FI_REMOTE_READ and FI_REMOTE_WRITE.
    pub(crate) access: u64,
    pub(crate) counters: Mutex<Vec<MrCounter>>,
}

/// A counter of peers' operations on registered memory.
pub(crate) struct MrCounter {
    pub(crate) flags: u64,
    pub(crate) counter: Arc<Counter>,
    pub(crate) _use: Use,
}

/// An endpoint that opens registered memory to its peers.
pub(crate) trait OpensMemory: Send + Sync {
    /// Opens a region.
    ///
    /// # Errors
    ///
    /// Returns an error if the region cannot be opened.
    fn open(&self, mr: &Arc<Mr>) -> FiResult;
    /// Closes a region, and returns when no peer can access it any more.
    ///
    /// # Errors
    ///
    /// Returns FI_EBUSY if bytes of it may have to be retransmitted. The caller tries again later.
    fn close(&self, key: u64) -> FiResult;
}

#[derive(Default)]
struct Memory {
    regions: HashMap<u64, Arc<Mr>>,
    endpoints: Vec<Weak<dyn OpensMemory>>,
    next_key: u64,
}

/// A domain: one interface, or several that are used together.
pub(crate) struct Domain {
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) uses: Uses,
    /// Interface whose address peers are told.
    pub(crate) interface: Interface,
    /// Interfaces that are used together with it.
    pub(crate) others: Vec<Interface>,
    pub(crate) settings: Settings,
    naming: RegionNaming,
    memory: Mutex<Memory>,
    /// Lock held during an atomic change of a word of memory, by any endpoint.
    pub(crate) words: Arc<Mutex<()>>,
}

impl Domain {
    pub(crate) fn new(
        fabric: Arc<Fabric>,
        (interface, others): (Interface, Vec<Interface>),
        settings: Settings,
        naming: RegionNaming,
    ) -> Self {
        Domain {
            fabric,
            uses: Uses::default(),
            interface,
            others,
            settings,
            naming,
            memory: Mutex::default(),
            words: Arc::default(),
        }
    }

    /// Returns the mode with which the domain was opened.
    pub(crate) fn mr_mode(&self) -> c_int {
        self.naming.mr_mode
    }

    /// Returns the longest time that a call may sleep without polling: a second if a thread makes progress,
    /// otherwise a millisecond.
    pub(crate) fn nap(&self) -> Duration {
        match self.settings.progress {
            Progress::Auto | Progress::Thread => Duration::from_secs(1),
            Progress::Caller => Duration::from_millis(1),
        }
    }

    /// Registers memory, and opens it at all endpoints.
    ///
    /// # Errors
    ///
    /// Returns FI_ENOKEY if the key is in use, or the error of an endpoint that cannot open the region.
    pub(crate) fn register(
        &self,
        span: Span,
        offset: u64,
        access: u64,
        requested_key: u64,
    ) -> FiResult<Arc<Mr>> {
        let base = match self.naming.addressing {
            Addressing::Offset => offset,
            Addressing::Virtual => span.address() as u64,
        };
        let mut memory = lock(&self.memory);
        let key = match self.naming.keys {
            Keys::Requested | Keys::Repeatable => requested_key,
            Keys::Provided => {
                memory.next_key += 1;
                memory.next_key
            }
        };
        let mr = Arc::new(Mr { key, span, base, access, counters: Mutex::default() });
        if memory.regions.contains_key(&key) {
            return if self.naming.keys == Keys::Repeatable {
                Ok(mr)
            } else {
                Err(refused(FI_ENOKEY, format_args!("another region has the key {key:#x}")))
            };
        }
        memory.regions.insert(key, mr.clone());
        let endpoints = endpoints(&mut memory);
        drop(memory);
        for (index, endpoint) in endpoints.iter().enumerate() {
            if let Err(error) = endpoint.open(&mr) {
                let _ = endpoints[..index].iter().try_for_each(|endpoint| endpoint.close(key));
                lock(&self.memory).regions.remove(&key);
                return Err(error);
            }
        }
        Ok(mr)
    }

    /// Closes memory to peers. When this returns, no peer can access it.
    ///
    /// # Errors
    ///
    /// Returns FI_EBUSY if the region stays registered, though closed to peers.
    pub(crate) fn deregister(&self, mr: &Mr) -> FiResult {
        let mut memory = lock(&self.memory);
        if !memory.regions.get(&mr.key).is_some_and(|open| std::ptr::eq(Arc::as_ptr(open), mr)) {
            // Another region has the key.
            return Ok(());
        }
        let endpoints = endpoints(&mut memory);
        drop(memory);
        endpoints.iter().try_for_each(|endpoint| endpoint.close(mr.key))?;
        lock(&self.memory).regions.remove(&mr.key);
        Ok(())
    }

    /// Adds a counter of peers' operations on a region.
    pub(crate) fn count_in(&self, mr: &Mr, counter: MrCounter) {
        lock(&mr.counters).push(counter);
    }

    /// Adds an endpoint, which opens all regions, present and future.
    ///
    /// # Errors
    ///
    /// Returns an error if the endpoint cannot open a region.
    pub(crate) fn join(&self, endpoint: &Arc<impl OpensMemory + 'static>) -> FiResult {
        let joined: Arc<dyn OpensMemory> = endpoint.clone();
        let mut memory = lock(&self.memory);
        memory.endpoints.push(Arc::downgrade(&joined));
        let regions: Vec<Arc<Mr>> = memory.regions.values().cloned().collect();
        // The lock is not held here: an endpoint has a lock of its own, under which it asks for regions.
        drop(memory);
        regions.iter().try_for_each(|mr| endpoint.open(mr))
    }

    /// Returns the region with a key.
    pub(crate) fn region(&self, key: u64) -> Option<Arc<Mr>> {
        lock(&self.memory).regions.get(&key).cloned()
    }
}

fn endpoints(memory: &mut Memory) -> Vec<Arc<dyn OpensMemory>> {
    memory.endpoints.retain(|endpoint| endpoint.strong_count() > 0);
    memory.endpoints.iter().filter_map(Weak::upgrade).collect()
}
