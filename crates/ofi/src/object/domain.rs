//! Fabrics and domains: what endpoints, queues and registered memory hang on.

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
use crate::guard::{Answer, refused};
use crate::settings::{Progress, Settings};

/// A fabric: a subnet.
pub(crate) struct Fabric {
    pub(crate) name: String,
    pub(crate) api_version: u32,
    pub(crate) uses: Uses,
}

/// Who chooses the keys of registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// The application; two regions of one key cannot be.
    Requested,
    /// We do.
    Provided,
    /// The application, which asked for no access to memory when it opened the domain: the same key may be asked for again and
    /// again (NCCL's plugin does). An endpoint of the domain may have such access all the same (Open MPI 5 opens one for messages
    /// and one for memory); its peers reach the first region of a key.
    Repeatable,
}

/// How peers name the bytes of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addressing {
    /// From its beginning.
    Offset,
    /// By the address they have here.
    Virtual,
}

/// The way in which registered memory is named, and the `mr_mode` that says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naming {
    mr_mode: c_int,
    keys: Keys,
    addressing: Addressing,
}

impl Naming {
    /// As an application opens a domain.
    pub(crate) fn of(mr_mode: c_int, target: Target) -> Self {
        let has = |bit| mr_mode == FI_MR_BASIC || mr_mode & bit != 0;
        let keys = match target {
            _ if has(FI_MR_PROV_KEY) => Keys::Provided,
            Target::Yes => Keys::Requested,
            Target::No => Keys::Repeatable,
        };
        let addressing = if has(FI_MR_VIRT_ADDR) { Addressing::Virtual } else { Addressing::Offset };
        Naming { mr_mode, keys, addressing }
    }
}

/// Registered memory.
pub(crate) struct Mr {
    pub(crate) key: u64,
    pub(crate) span: Span,
    /// Address of its first byte, as peers name it.
    pub(crate) base: u64,
    /// FI_REMOTE_READ and FI_REMOTE_WRITE.
    pub(crate) access: u64,
    pub(crate) counters: Mutex<Vec<MrCounter>>,
}

/// A counter of what peers do to registered memory.
pub(crate) struct MrCounter {
    pub(crate) flags: u64,
    pub(crate) counter: Arc<Counter>,
    pub(crate) _use: Use,
}

/// What opens registered memory to its peers: an endpoint.
pub(crate) trait OpensMemory: Send + Sync {
    /// Opens it.
    ///
    /// # Errors
    /// Why it cannot.
    fn open(&self, mr: &Arc<Mr>) -> Answer;
    /// Closes it, and returns when no peer can reach it any more.
    ///
    /// # Errors
    /// FI_EBUSY: bytes of it may have to be sent again. Call this again later.
    fn close(&self, key: u64) -> Answer;
}

#[derive(Default)]
struct Memory {
    regions: HashMap<u64, Arc<Mr>>,
    endpoints: Vec<Weak<dyn OpensMemory>>,
    next_key: u64,
}

/// A domain: an interface, or several that are used together.
pub(crate) struct Domain {
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) uses: Uses,
    /// The one whose address peers are told.
    pub(crate) interface: Interface,
    /// Those that are used with it.
    pub(crate) others: Vec<Interface>,
    pub(crate) settings: Settings,
    naming: Naming,
    memory: Mutex<Memory>,
    /// Held while a word of memory is changed atomically, whichever endpoint does it.
    pub(crate) words: Arc<Mutex<()>>,
}

impl Domain {
    pub(crate) fn new(
        fabric: Arc<Fabric>,
        (interface, others): (Interface, Vec<Interface>),
        settings: Settings,
        naming: Naming,
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

    /// As the domain was opened.
    pub(crate) fn mr_mode(&self) -> c_int {
        self.naming.mr_mode
    }

    /// How long a call may sleep without looking: for ever where a thread makes progress.
    pub(crate) fn nap(&self) -> Duration {
        match self.settings.progress {
            Progress::Auto | Progress::Thread => Duration::from_secs(1),
            Progress::Caller => Duration::from_millis(1),
        }
    }

    /// Registers memory, with all endpoints that are open.
    ///
    /// # Errors
    /// FI_ENOKEY if the key is taken; why an endpoint cannot open it.
    pub(crate) fn register(
        &self,
        span: Span,
        offset: u64,
        access: u64,
        requested_key: u64,
    ) -> Answer<Arc<Mr>> {
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

    /// Takes memory back from peers; when this returns none reaches it.
    ///
    /// # Errors
    /// FI_EBUSY: it stays registered, though closed to peers.
    pub(crate) fn deregister(&self, mr: &Mr) -> Answer {
        let mut memory = lock(&self.memory);
        if !memory.regions.get(&mr.key).is_some_and(|open| std::ptr::eq(Arc::as_ptr(open), mr)) {
            // Of a key that another region has.
            return Ok(());
        }
        let endpoints = endpoints(&mut memory);
        drop(memory);
        endpoints.iter().try_for_each(|endpoint| endpoint.close(mr.key))?;
        lock(&self.memory).regions.remove(&mr.key);
        Ok(())
    }

    /// Counts what peers do to a region.
    pub(crate) fn count_in(&self, mr: &Mr, counter: MrCounter) {
        lock(&mr.counters).push(counter);
    }

    /// An endpoint opens what is registered, now and from now on.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn join(&self, endpoint: &Arc<impl OpensMemory + 'static>) -> Answer {
        let joined: Arc<dyn OpensMemory> = endpoint.clone();
        let mut memory = lock(&self.memory);
        memory.endpoints.push(Arc::downgrade(&joined));
        let regions: Vec<Arc<Mr>> = memory.regions.values().cloned().collect();
        // Not under the lock: an endpoint has one of its own, under which it asks for regions.
        drop(memory);
        regions.iter().try_for_each(|mr| endpoint.open(mr))
    }

    /// The region of a key.
    pub(crate) fn region(&self, key: u64) -> Option<Arc<Mr>> {
        lock(&self.memory).regions.get(&key).cloned()
    }
}

fn endpoints(memory: &mut Memory) -> Vec<Arc<dyn OpensMemory>> {
    memory.endpoints.retain(|endpoint| endpoint.strong_count() > 0);
    memory.endpoints.iter().filter_map(Weak::upgrade).collect()
}
