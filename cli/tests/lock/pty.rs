//! A terminal with a session on it: owns the terminal and what it showed.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex};

use super::world::HUNG;

/// What one types.
pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_Z: &str = "\x1a";

/// A session leader on a terminal of its own, which echoes nothing.
pub(crate) struct Session {
    child: Child,
    keyboard: File,
    screen: Arc<Screen>,
    /// How much of the screen was read by `expect`.
    read: usize,
}

#[derive(Default)]
struct Screen {
    text: Mutex<Vec<u8>>,
    grew: Condvar,
}

impl Session {
    /// Starts `command` as the leader of a session on a new terminal.
    pub(crate) fn start(command: &mut Command) -> Self {
        let (mut ours, mut theirs) = (-1, -1);
        // SAFETY: writes two descriptors; a null pointer leaves name, settings and size alone.
        let failed = unsafe {
            libc::openpty(
                &raw mut ours,
                &raw mut theirs,
                ptr::null_mut(),
                ptr::null(),
                ptr::null(),
            )
        } != 0;
        assert!(!failed, "{}", std::io::Error::last_os_error());
        // SAFETY: both were just opened and are nobody else's. Nothing else is executed with a copy of
        // the first that would matter: other tests' commands end by themselves.
        let (ours, theirs) = unsafe { (File::from_raw_fd(ours), File::from_raw_fd(theirs)) };
        set_close_on_exec(&ours);
        set_close_on_exec(&theirs);
        quieten(&theirs);
        let copy = || theirs.try_clone().expect("descriptors are left");
        command.stdin(copy()).stdout(copy()).stderr(copy());
        // SAFETY: two system calls, async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().expect("the command starts");
        let screen = Arc::new(Screen::default());
        let (mut source, shown) = (
            ours.try_clone().expect("descriptors are left"),
            screen.clone(),
        );
        std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            // Ends with an error once nobody has the terminal open any more.
            while let Ok(read) = source.read(&mut buffer) {
                let mut text = shown.text.lock().expect("nobody panics with it");
                text.extend_from_slice(&buffer[..read]);
                shown.grew.notify_all();
                if read == 0 {
                    break;
                }
            }
        });
        Self {
            child,
            keyboard: ours,
            screen,
            read: 0,
        }
    }

    /// Types.
    pub(crate) fn write(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("the terminal is there");
    }

    /// Waits until the screen shows `text` past what was read before, and reads up to there; what
    /// stood before it.
    #[track_caller]
    pub(crate) fn expect(&mut self, text: &str) -> String {
        let mut shown = self.screen.text.lock().expect("nobody panics with it");
        loop {
            let fresh = String::from_utf8_lossy(&shown[self.read..]).into_owned();
            if let Some(at) = fresh.find(text) {
                self.read += at + text.len();
                return fresh[..at].to_owned();
            }
            let (next, wait) = self
                .screen
                .grew
                .wait_timeout(shown, HUNG)
                .expect("nobody panics with it");
            assert!(!wait.timed_out(), "no {text:?} came, but {fresh:?}");
            shown = next;
        }
    }

    /// Waits for the leader's end; its exit code.
    pub(crate) fn code(mut self) -> Option<i32> {
        self.child.wait().expect("it can be waited for").code()
    }
}

/// A test that fails leaves nothing running.
impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn set_close_on_exec(file: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: sets a flag of an open descriptor.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// Turns echo off, so that the screen shows only what programs write.
fn quieten(terminal: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: the kernel fills in the settings, which are given back but for one bit.
    unsafe {
        let mut settings = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &raw mut settings), 0);
        settings.c_lflag &= !(libc::ECHO | libc::ECHOCTL);
        assert_eq!(
            libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &raw const settings),
            0
        );
    }
}
