//! The files of the repository, as the rules see them.
//!
//! Purpose: read once, check often; a test makes a tree of two lines out of strings. Invariants: paths are from the
//! root, with `/`, in order; files that git ignores are not in it. What it does not do: it writes nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use crate::RustSource;

/// One file of the repository.
pub struct File {
    /// From the root, with `/`.
    pub path: String,
    /// Its text; empty where it is not UTF-8.
    pub text: String,
    /// What was read out of it, or why that failed, where it is Rust.
    pub rust: Option<Result<RustSource, String>>,
}

/// All files of the repository.
#[derive(Default)]
pub struct Tree {
    files: Vec<File>,
}

impl Tree {
    /// Reads what git tracks or would track under `root`.
    ///
    /// # Errors
    /// A file that cannot be read, or git that cannot be run: without its word on what is ignored, a check of the
    /// tree would be a check of build outputs too.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut texts = Vec::new();
        for path in listed(root)? {
            let full = root.join(&path);
            if full.is_file() {
                texts.push((path, String::from_utf8(fs::read(full)?).unwrap_or_default()));
            }
        }
        Ok(Self::from_texts(texts))
    }

    /// A tree of these (path, text) pairs.
    pub fn from_texts<P: Into<String>, T: Into<String>>(texts: impl IntoIterator<Item = (P, T)>) -> Self {
        let mut files: Vec<_> =
            texts.into_iter().map(|(path, text)| File::new(path.into(), text.into())).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut tree = Self { files };
        tree.mark_test_modules();
        tree
    }

    /// All files, in order of path.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The Rust files that could be read.
    pub fn rust(&self) -> impl Iterator<Item = (&File, &RustSource)> {
        self.files.iter().filter_map(|file| Some((file, file.rust.as_ref()?.as_ref().ok()?)))
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// Whether a file or a folder of that path exists; a folder may end in `/`.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    }

    /// A module that its parent declares under `cfg(test)` is a test wherever it lies.
    fn mark_test_modules(&mut self) {
        let declared: Vec<_> =
            self.rust().flat_map(|(file, source)| source.test_modules(&file.path)).collect();
        for file in &mut self.files {
            let within = |module: &String| {
                file.path
                    .strip_prefix(module.as_str())
                    .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            };
            if declared.iter().any(within)
                && let Some(Ok(source)) = &mut file.rust
            {
                source.whole_file_is_test = true;
            }
        }
    }
}

impl File {
    fn new(path: String, text: String) -> Self {
        let rust = path.ends_with(".rs").then(|| RustSource::parse(&path, &text));
        Self { path, text, rust }
    }

    /// The crate under `crates/` that it belongs to.
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Its lines, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

fn listed(root: &Path) -> io::Result<BTreeSet<String>> {
    let output = Command::new("git")
        // Reading is safe whoever owns the clone; git refuses one of another user by default.
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_declared_for_tests_is_a_test_with_all_below_it() {
        let tree = Tree::from_texts([
            ("crates/eos/src/lib.rs", "#[cfg(test)]\nmod model;\nmod fence;"),
            ("crates/eos/src/model.rs", "fn a() {}"),
            ("crates/eos/src/model/deep.rs", "fn a() {}"),
            ("crates/eos/src/fence.rs", "fn a() {}"),
        ]);
        let tests: Vec<_> =
            tree.rust().filter(|(_, s)| s.whole_file_is_test).map(|(f, _)| f.path.as_str()).collect();
        assert_eq!(tests, ["crates/eos/src/model.rs", "crates/eos/src/model/deep.rs"]);
    }

    #[test]
    fn files_and_folders_are_found_by_path() {
        let tree = Tree::from_texts([("crates/eos/src/txn/init.rs", "")]);
        assert!(tree.has("crates/eos/src/txn/init.rs") && tree.has("crates/eos/src/txn/"));
        assert!(!tree.has("crates/eos/src/tx"));
    }
}
