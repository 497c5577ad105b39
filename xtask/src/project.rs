//! Where things are: the repository, its target folder, the cache of tools and of what clients install.
//!
//! Purpose: every step runs in the root and finds the same folders. What it does not do: it creates nothing.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository this command was built from, and this run's surroundings.
pub struct Project {
    /// The root of the repository.
    pub root: PathBuf,
    /// Where cargo puts what it builds.
    pub target: PathBuf,
    /// Outside the tree and kept between runs; `SEMEL_CACHE`, or `semel-cache` in the target folder.
    pub cache: PathBuf,
    /// Whether `CI=true`: what cannot run there has failed.
    pub is_ci: bool,
}

impl Project {
    /// Finds the folders.
    ///
    /// # Errors
    /// `cargo metadata` does not answer.
    pub fn find() -> Result<Self, String> {
        let manifest_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest_folder.parent().unwrap_or(manifest_folder).to_path_buf();
        let target = target_folder(&root)?;
        let cache =
            env::var_os("SEMEL_CACHE").map_or_else(|| target.join("semel-cache"), |path| root.join(path));
        let is_ci = env::var("CI").is_ok_and(|value| value == "true");
        Ok(Self { root, target, cache, is_ci })
    }

    /// A command that runs in the root.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.root);
        command
    }

    /// A cargo command that runs in the root, with the cargo that runs this one.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        self.command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), arguments)
    }
}

/// Cargo's own word on it: a variable, a setting or the default.
fn target_folder(root: &Path) -> Result<PathBuf, String> {
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    json_string(&text, "target_directory")
        .map(PathBuf::from)
        .ok_or_else(|| "cargo names no target folder".into())
}

/// The value of a key that occurs once in a JSON text; enough for a path, so that no parser is needed.
fn json_string(text: &str, key: &str) -> Option<String> {
    let after = text.split_once(&format!("\"{key}\":\""))?.1;
    let mut value = String::new();
    let mut letters = after.chars();
    loop {
        match letters.next()? {
            '"' => return Some(value),
            '\\' => value.push(letters.next()?),
            letter => value.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_from_cargos_answer() {
        let text = r#"{"packages":[],"target_directory":"/a \"b\"\\c","version":1}"#;
        assert_eq!(json_string(text, "target_directory").as_deref(), Some(r#"/a "b"\c"#));
        assert_eq!(json_string(text, "missing"), None);
    }
}
