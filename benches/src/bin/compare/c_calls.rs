//! Calls through the C ABI beside the same calls from Rust, each by a handle that is kept.
//!
//! The shared library is loaded as a C program would load it, and called through pointers, with the arguments that a C
//! program gives. What is compared with has a share of its space too, as a handle that is stored must.

use crate::Plan;
use crate::contest::{self, Outcome};
use sprag_benches::ours::{Home, Reach};
use sprag_benches::{Result, Side, draw};
use std::ffi::{CStr, CString, c_char, c_void};
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};

/// What is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    /// A check, without its decision.
    Check,
    /// A check, with its decision.
    CheckTold,
    /// A try for a lock, and its release.
    Lock,
    /// An addition to a counter.
    Add,
}

/// A limit that is never used up, for both sides.
const LIMIT: &CStr = c"1000000000/second";
const NAME: &[u8] = b"requests";
const OPERATIONS: usize = 1 << 21;

type Handle = *mut c_void;
type Error = *mut Handle;
/// Room for the library's largest value in the caller's memory.
type Value = [u64; 64];

/// The functions that are called, as the header declares them.
struct Library {
    space_open: unsafe extern "C" fn(*const c_char, *const c_void, *mut Handle, Error) -> i32,
    limiter_open: unsafe extern "C" fn(
        Handle,
        *const u8,
        usize,
        *const c_char,
        u32,
        *mut Handle,
        Error,
    ) -> i32,
    limiter_check: unsafe extern "C" fn(Handle, *const u8, usize, u64, *mut Value, Error) -> i32,
    lock_open: unsafe extern "C" fn(Handle, *const u8, usize, u64, *mut Handle, Error) -> i32,
    lock_acquire: unsafe extern "C" fn(Handle, u64, *mut Value, Error) -> i32,
    hold_release: unsafe extern "C" fn(*mut Value, Error) -> i32,
    counter_open: unsafe extern "C" fn(Handle, *const u8, usize, *mut Handle, Error) -> i32,
    counter_add: unsafe extern "C" fn(Handle, i64, *mut i64, Error) -> i32,
}

impl Library {
    fn load() -> Result<Self> {
        let path = std::env::current_exe()?.with_file_name("libsprag_ffi.so");
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: it is this workspace's own library, whose initialisers do nothing but what Rust's do.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(format!(
                "{} cannot be loaded; build it with `cargo build --release -p sprag-ffi`",
                path.display()
            )
            .into());
        }
        // SAFETY: each function has the type that the header declares.
        unsafe {
            Ok(Self {
                space_open: symbol(library, c"sprag_space_open")?,
                limiter_open: symbol(library, c"sprag_limiter_open")?,
                limiter_check: symbol(library, c"sprag_limiter_check")?,
                lock_open: symbol(library, c"sprag_lock_open")?,
                lock_acquire: symbol(library, c"sprag_lock_acquire")?,
                hold_release: symbol(library, c"sprag_hold_release")?,
                counter_open: symbol(library, c"sprag_counter_open")?,
                counter_add: symbol(library, c"sprag_counter_add")?,
            })
        }
    }
}

/// A function of a library.
///
/// # Safety
///
/// `F` is the type of a pointer to the function of this name.
unsafe fn symbol<F: Copy>(library: Handle, name: &CStr) -> Result<F> {
    const { assert!(size_of::<F>() == size_of::<Handle>()) };
    // SAFETY: the library is loaded, and the name ends with a zero byte.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() {
        return Err(format!("the library has no {}", name.to_string_lossy()).into());
    }
    // SAFETY: by this function's contract.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

/// A handle that any thread may use.
#[derive(Clone, Copy)]
struct Shared(Handle);

// SAFETY: every handle of the library may be used by any thread, as its header says.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

fn done(status: i32) -> Result<()> {
    match status {
        0 => Ok(()),
        status => Err(format!("a call through C returned {status}").into()),
    }
}

/// Measures the call through C beside the call from Rust.
pub(crate) fn compare(call: Call, plan: Plan) -> Result<Outcome> {
    let operations = OPERATIONS / plan.effort.divisor;
    contest::between(
        &through_c(call, operations)?,
        &from_rust(call, operations)?,
        plan,
    )
}

fn through_c(call: Call, operations: usize) -> Result<Side> {
    let library = Library::load()?;
    let key = draw::key(0);
    let mut space = null_mut();
    // SAFETY: the arguments are what the header asks for; so are those below, and the handles stay open for good.
    done(unsafe { (library.space_open)(c"mem:".as_ptr(), null(), &raw mut space, null_mut()) })?;
    let mut handle = null_mut();
    // SAFETY: as above.
    done(unsafe {
        match call {
            Call::Check | Call::CheckTold => (library.limiter_open)(
                space,
                NAME.as_ptr(),
                NAME.len(),
                LIMIT.as_ptr(),
                0,
                &raw mut handle,
                null_mut(),
            ),
            Call::Lock => (library.lock_open)(
                space,
                key.as_ptr(),
                key.len(),
                0,
                &raw mut handle,
                null_mut(),
            ),
            Call::Add => {
                (library.counter_open)(space, key.as_ptr(), key.len(), &raw mut handle, null_mut())
            }
        }
    })?;
    let handle = Shared(handle);
    Ok(Side::new(1, operations, move |_| {
        // The whole, which may be shared, and not the pointer in it.
        let Shared(handle) = { handle };
        let key = black_box(key);
        let mut value: Value = [0; 64];
        let mut admitted = 0;
        for _ in 0..operations {
            // SAFETY: as above; what is written lives here.
            let status = unsafe {
                match call {
                    Call::Check => (library.limiter_check)(
                        handle,
                        key.as_ptr(),
                        key.len(),
                        1,
                        null_mut(),
                        null_mut(),
                    ),
                    Call::CheckTold => (library.limiter_check)(
                        handle,
                        key.as_ptr(),
                        key.len(),
                        1,
                        &raw mut value,
                        null_mut(),
                    ),
                    Call::Lock => {
                        let status = (library.lock_acquire)(handle, 0, &raw mut value, null_mut());
                        done((library.hold_release)(&raw mut value, null_mut()))?;
                        status
                    }
                    Call::Add => (library.counter_add)(handle, 1, null_mut(), null_mut()),
                }
            };
            admitted += u64::from(status == 0);
        }
        Ok(admitted)
    }))
}

fn from_rust(call: Call, operations: usize) -> Result<Side> {
    let home = Home::open(Reach::Memory, 1)?;
    let key = draw::key(0);
    Ok(match call {
        Call::Check | Call::CheckTold => {
            let limiter = home.space.limiter(NAME, LIMIT.to_str()?)?;
            let is_told = matches!(call, Call::CheckTold);
            Side::new(1, operations, move |_| {
                let _whole = &home;
                // A slice, whose length is known to neither side when it is compiled.
                let key: &[u8] = black_box(&key);
                let mut admitted = 0;
                for _ in 0..operations {
                    let decision = limiter.check(key, 1)?;
                    admitted += u64::from(decision.is_allowed());
                    if is_told {
                        let _ = black_box(decision);
                    }
                }
                Ok(admitted)
            })
        }
        Call::Lock => {
            let lock = home.space.lock(&key)?.into_owned();
            Side::new(1, operations, move |_| {
                let _whole = &home;
                let mut admitted = 0;
                for _ in 0..operations {
                    if let Some(hold) = lock.try_acquire()? {
                        hold.release()?;
                        admitted += 1;
                    }
                }
                Ok(admitted)
            })
        }
        Call::Add => {
            let counter = home.space.counter(&key)?.into_owned();
            Side::new(1, operations, move |_| {
                let _whole = &home;
                for _ in 0..operations {
                    counter.add(1)?;
                }
                Ok(operations as u64)
            })
        }
    })
}
