//! Choice of the memory for frames.

use std::path::Path;

use crate::dpdk::error::DpdkError;

/// Use of huge pages for frames. Adapters without an IOMMU need them, and all others are slightly faster with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HugePages {
    /// Use huge pages if there are enough.
    #[default]
    Auto,
    /// Require huge pages.
    Always,
    /// Use ordinary pages.
    Never,
}

/// Chosen memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    Huge,
    Ordinary,
}

/// Memory that DPDK needs for itself, in bytes.
const OWN_BYTES: u64 = 32 << 20;

/// Folder in which Linux reports the number of huge pages.
const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages";

/// Chooses the memory for frames of this total size.
///
/// # Errors
/// If huge pages are required and there are too few.
pub(crate) fn choose(wanted: HugePages, frame_bytes: u64) -> Result<Pages, DpdkError> {
    let needed = frame_bytes + OWN_BYTES;
    let kinds = kinds_in(Path::new(HUGE_PAGES));
    let free: u64 = kinds.iter().map(|kind| kind.free_bytes).sum();
    match wanted {
        HugePages::Never => Ok(Pages::Ordinary),
        _ if free >= needed => Ok(Pages::Huge),
        HugePages::Auto => Ok(Pages::Ordinary),
        HugePages::Always => {
            let page_bytes = kinds.iter().map(|kind| kind.page_bytes).min().unwrap_or(2 << 20);
            Err(DpdkError::HugePages {
                needed_bytes: needed,
                free_bytes: free,
                pages: needed.div_ceil(page_bytes),
            })
        }
    }
}

/// Huge pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    page_bytes: u64,
    free_bytes: u64,
}

fn kinds_in(folder: &Path) -> Vec<Kind> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let kind = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let page_bytes = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok()? << 10;
        let free: u64 =
            std::fs::read_to_string(entry.path().join("free_hugepages")).ok()?.trim().parse().ok()?;
        Some(Kind { page_bytes, free_bytes: free * page_bytes })
    };
    entries.filter_map(Result::ok).filter_map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_pages_of_all_sizes_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        for (name, free) in [("hugepages-2048kB", "7\n"), ("hugepages-1048576kB", "1\n"), ("other", "9")] {
            let of_size = folder.path().join(name);
            std::fs::create_dir(&of_size).unwrap();
            std::fs::write(of_size.join("free_hugepages"), free).unwrap();
        }
        let mut kinds = kinds_in(folder.path());
        kinds.sort_by_key(|kind| kind.page_bytes);
        let kind = |page_bytes, free_bytes| Kind { page_bytes, free_bytes };
        assert_eq!(kinds, [kind(2 << 20, 14 << 20), kind(1 << 30, 1 << 30)]);
        assert!(kinds_in(Path::new("/nowhere")).is_empty());
    }

    #[test]
    fn without_enough_of_them_ordinary_pages_do_unless_huge_ones_are_asked_for() {
        let more_than_any_machine_has = 1 << 50;
        assert_eq!(choose(HugePages::Auto, more_than_any_machine_has), Ok(Pages::Ordinary));
        assert_eq!(choose(HugePages::Never, 0), Ok(Pages::Ordinary));
        let why = choose(HugePages::Always, more_than_any_machine_has).unwrap_err().to_string();
        assert!(why.contains("sysctl -w vm.nr_hugepages=") && why.contains("--huge-pages never"), "{why}");
    }
}
