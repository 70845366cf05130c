//! The one C function that this binary redefines, and the only `unsafe` of the project.
//!
//! sled makes a flush durable by calling `sync_file_range(2)`. That call starts and awaits the write-out of pages, but
//! it neither writes the file's metadata nor tells the disk to empty its cache: after a power cut, keys that sled had
//! acknowledged are gone (10 of 10 simulated cuts lost some). Adding a sync of our own after each flush would not be
//! enough: sled's space collector moves live pages and reuses old segments trusting the same call, also while nobody
//! commits. So the call itself has to become a real one.
//!
//! No fork is needed for that. The linker binds an undefined symbol first to a definition within the program, and looks
//! at the C library only for what is then still missing. This file defines `sync_file_range` with C's name and
//! signature, so that sled's call, which goes through the `libc` crate's declaration, lands here.
//!
//! What could silently break it, and what notices:
//! - a sled built to sync in another way, or a linker that binds otherwise: the calls are counted, and the engine
//!   refuses to open in `durability = "sync"` if its first flush didn't raise the count ([`calls`]);
//! - a signature that differs from C's: it is written with the types of the `libc` crate, and a test compares the two;
//! - another user of the symbol in this process: it would get a stronger sync than it asked for, which is harmless.
//!
//! `docs/decisions/0001-sync-override.md` weighs the alternatives.

#![expect(unsafe_code, reason = "a C symbol is defined here, and C's fdatasync is called; the page above says why")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use libc::{c_int, c_uint, off64_t};

/// How many times the symbol was called in this process.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Whether a call waits for the disk. Off, a write survives the process but not the machine.
static WAITS_FOR_DISK: AtomicBool = AtomicBool::new(true);

/// How many times sled has asked for a sync so far.
pub fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// Says whether a sync waits for the disk. To be called once, before the first store is opened.
pub fn wait_for_disk(waits: bool) {
    WAITS_FOR_DISK.store(waits, Ordering::Relaxed);
}

/// Takes the place of the C library's function: the whole file is synced, whatever the range.
///
/// Returns 0, or -1 with `errno` set, as the original does; sled turns -1 into an error of its flush.
// SAFETY: the name is C's, and so are the types; no other item of this program has that name.
#[unsafe(no_mangle)]
extern "C" fn sync_file_range(file: c_int, _offset: off64_t, _length: off64_t, _flags: c_uint) -> c_int {
    CALLS.fetch_add(1, Ordering::Relaxed);
    if WAITS_FOR_DISK.load(Ordering::Relaxed) {
        // SAFETY: fdatasync takes a number and touches no memory of ours; a number that is no open file is answered
        // with EBADF.
        unsafe { libc::fdatasync(file) }
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    /// The declaration that sled calls.
    fn as_sled_calls_it(file: c_int) -> c_int {
        // SAFETY: as above.
        unsafe { libc::sync_file_range(file, 0, 0, 0) }
    }

    #[test]
    fn the_symbol_that_sled_calls_is_this_one_and_syncs_for_real() {
        let file = tempfile::tempfile().unwrap();
        let before = calls();
        assert_eq!(as_sled_calls_it(file.as_raw_fd()), 0);
        assert_eq!(as_sled_calls_it(-1), -1, "the kernel is asked: it knows no such file");
        wait_for_disk(false);
        assert_eq!(as_sled_calls_it(-1), 0, "the kernel is not asked");
        wait_for_disk(true);
        assert_eq!(calls() - before, 3);
    }

    #[test]
    fn the_signature_is_the_one_that_the_c_library_declares() {
        let declared: unsafe extern "C" fn(c_int, off64_t, off64_t, c_uint) -> c_int = libc::sync_file_range;
        let defined: unsafe extern "C" fn(c_int, off64_t, off64_t, c_uint) -> c_int = sync_file_range;
        assert_eq!(declared as usize, defined as usize, "both names are one function");
    }
}
