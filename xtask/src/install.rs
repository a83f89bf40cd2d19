//! `cargo xtask install`: lays down the C library with all that programs need to be built with it. What it writes names no
//! absolute path, so that the tree may be moved.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use clap::Args;

use crate::library::{Library, SYSTEM_LIBRARIES};
use crate::workspace::Workspace;

/// Where the headers are, with all that is to be found below.
const INCLUDE: &str = "include";

/// Options of `install`.
#[derive(Args)]
pub(crate) struct Options {
    /// Where the tree goes.
    #[arg(long, value_name = "DIRECTORY", default_value = "/usr/local")]
    prefix: PathBuf,
    /// Where libraries go, below the prefix.
    #[arg(long, value_name = "DIRECTORY", default_value = "lib", value_parser = below)]
    libdir: PathBuf,
    /// A directory that stands for the root of the file system, as makers of packages want it.
    #[arg(long, value_name = "DIRECTORY")]
    destdir: Option<PathBuf>,
}

impl Options {
    /// Where files are written.
    fn place(&self) -> PathBuf {
        match &self.destdir {
            Some(destdir) => destdir.join(self.prefix.strip_prefix("/").unwrap_or(&self.prefix)),
            None => self.prefix.clone(),
        }
    }
}

/// Builds the library and lays it down.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    let library = Library::build(workspace)?;
    let prefix = options.place();
    lay_down(workspace, &library, &prefix, &options.libdir)?;
    println!("Sprag {} is in {}", library.version(), prefix.display());
    Ok(true)
}

/// Writes the tree below `prefix`, its libraries in `libdir` below that.
pub(crate) fn lay_down(
    workspace: &Workspace,
    library: &Library,
    prefix: &Path,
    libdir: &Path,
) -> Result<(), String> {
    let libraries = prefix.join(libdir);
    let include = prefix.join(INCLUDE);
    for directory in [
        &libraries.join("pkgconfig"),
        &libraries.join("cmake/Sprag"),
        &include,
    ] {
        fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
    }
    for header in headers(workspace) {
        let to = include.join(&header);
        if let Some(directory) = to.parent() {
            fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
        }
        copy(&workspace.path(INCLUDE).join(&header), &to)?;
    }
    copy(library.archive(), &libraries.join("libsprag.a"))?;
    replace(&libraries.join(library.file_name()), |file| {
        library.link_shared(file)
    })?;
    link(&libraries.join(library.soname()), &library.file_name())?;
    link(&libraries.join("libsprag.so"), &library.soname())?;
    for (template, file) in TEMPLATES {
        let text = filled(&workspace.read(template)?, library, libdir);
        replace(&libraries.join(file), |file| {
            fs::write(file, &text).map_err(|error| cannot_write(file, &error))
        })?;
    }
    Ok(())
}

/// What describes the library to build systems, and where it goes.
const TEMPLATES: [(&str, &str); 3] = [
    ("ffi/package/sprag.pc.in", "pkgconfig/sprag.pc"),
    (
        "ffi/package/SpragConfig.cmake.in",
        "cmake/Sprag/SpragConfig.cmake",
    ),
    (
        "ffi/package/SpragConfigVersion.cmake.in",
        "cmake/Sprag/SpragConfigVersion.cmake",
    ),
];

fn filled(template: &str, library: &Library, libdir: &Path) -> String {
    let up = vec![".."; libdir.components().count() + 1].join("/");
    let flags = SYSTEM_LIBRARIES.map(|library| format!("-l{library}"));
    template
        .replace("@VERSION@", library.version())
        .replace(
            "@MAJOR@",
            library.version().split('.').next().unwrap_or_default(),
        )
        .replace("@FILE@", &library.file_name())
        .replace("@SONAME@", &library.soname())
        .replace("@LIBDIR@", &libdir.to_string_lossy())
        .replace("@UP@", &up)
        .replace("@SYSTEM_FLAGS@", &flags.join(" "))
        .replace("@SYSTEM_LIBRARIES@", &SYSTEM_LIBRARIES.join(";"))
}

/// The headers, as they are named below a directory of headers.
pub(crate) fn headers(workspace: &Workspace) -> Vec<String> {
    workspace
        .files()
        .iter()
        .filter_map(|file| file.strip_prefix(INCLUDE)?.strip_prefix('/'))
        .map(str::to_owned)
        .collect()
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    replace(to, |file| {
        fs::copy(from, file)
            .map(drop)
            .map_err(|error| cannot_write(file, &error))
    })
}

fn link(link: &Path, to: &str) -> Result<(), String> {
    replace(link, |link| {
        symlink(to, link).map_err(|error| cannot_write(link, &error))
    })
}

/// Makes a file under another name and renames it: programs that run with the old one keep it whole.
fn replace(file: &Path, make: impl Fn(&Path) -> Result<(), String>) -> Result<(), String> {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    // What an earlier run that was ended has left.
    let _ = fs::remove_file(&new);
    make(&new)?;
    fs::rename(&new, file).map_err(|error| cannot_write(file, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

/// A directory that is named from the prefix: its steps down are counted when the way back is written.
fn below(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_plain = path
        .components()
        .all(|component| matches!(component, Component::Normal(_)));
    if text.is_empty() || !is_plain {
        return Err("it is named from the prefix, as in `lib64`, without `..`".to_owned());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{Options, below};

    #[test]
    fn a_package_is_made_below_another_root() {
        let options = |destdir: Option<&str>| Options {
            prefix: PathBuf::from("/usr"),
            libdir: PathBuf::from("lib"),
            destdir: destdir.map(PathBuf::from),
        };
        assert_eq!(options(None).place(), Path::new("/usr"));
        assert_eq!(options(Some("/pkg")).place(), Path::new("/pkg/usr"));
    }

    #[test]
    fn the_directory_of_libraries_is_below_the_prefix() {
        for text in ["lib", "lib64", "lib/x86_64-linux-gnu"] {
            assert!(below(text).is_ok(), "{text}");
        }
        for text in ["", "/usr/lib", "../lib", "lib/.."] {
            assert!(below(text).is_err(), "{text}");
        }
    }
}
