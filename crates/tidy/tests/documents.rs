//! The pages for people stay true: what they show, name and link to is there.
//!
//! A path in backticks that opens with a folder of the repository must exist; symbols in backticks in parentheses
//! right behind it must stand in that file. A block under `<!-- file: PATH -->` must be that file.

use std::path::Path;

use semel_tidy::{File, Tree};

fn tree() -> Tree {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Tree::read(&root).expect("the repository can be listed by git and read")
}

fn pages(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files().iter().filter(|file| file.path.ends_with(".md"))
}

fn none(found: &[String]) {
    assert!(found.is_empty(), "{} to mend:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_readme_shows_the_files_of_the_first_session() {
    let tree = tree();
    let readme = tree.text("README.md").expect("there is a README");
    let mut shown = 0;
    for part in readme.split("<!-- file: ").skip(1) {
        let (path, rest) = part.split_once(" -->\n```").expect("a block follows");
        let (_, rest) = rest.split_once('\n').expect("the block has lines");
        let (block, _) = rest.split_once("```").expect("the block ends");
        assert_eq!(Some(block), tree.text(path), "README.md shows {path} as it is not");
        shown += 1;
    }
    assert_eq!(shown, 3, "Python, Java and Rust");
}

/// The rows of the README's table of APIs, as `key name low high`.
fn rows(readme: &str) -> Vec<String> {
    let cells = readme.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let rows = cells.filter(|cells| cells.len() > 4 && cells[1].parse::<i16>().is_ok());
    rows.map(|cells| format!("{} {} {}", cells[1], cells[2], cells[3].replace(" to ", " "))).collect()
}

/// The same from the table in the code.
fn served(code: &str) -> Vec<String> {
    let (_, table) = code.split_once("\napis! {").expect("the table of APIs");
    let mut served = Vec::new();
    for entry in table.split(';') {
        let words: Vec<_> = entry.split_whitespace().collect();
        if let Some(at) = words.iter().position(|word| *word == "advertise") {
            let versions = words[at + 1].trim_end_matches(',').replace("..=", " ");
            served.push(format!("{} {} {versions}", words[0], words[1]));
        }
    }
    served
}

#[test]
fn the_readme_names_every_api_with_its_versions() {
    let tree = tree();
    let code = tree.text("crates/wire/src/api/mod.rs").expect("the APIs");
    let served = served(code);
    assert!(served.len() > 10, "the table was read");
    assert_eq!(rows(tree.text("README.md").expect("a README")), served);
}

#[test]
fn every_link_leads_to_a_file() {
    let tree = tree();
    let mut found = Vec::new();
    for page in pages(&tree) {
        let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for target in page.text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(to, _)| to)
        {
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains("://") && !tree.has(&joined(folder, path)) {
                found.push(format!("{} links to {path}", page.path));
            }
        }
    }
    none(&found);
}

fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<_> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}

const FOLDERS: [&str; 6] = ["crates/", "docs/", "clients/", "xtask/", "bench/", "fuzz/"];

#[test]
fn every_path_that_a_page_names_exists_and_holds_the_symbols_named_with_it() {
    let tree = tree();
    let mut found = Vec::new();
    for page in pages(&tree) {
        let pieces: Vec<_> = page.text.split('`').collect();
        for (at, path) in pieces.iter().enumerate() {
            let is_path =
                FOLDERS.iter().any(|folder| path.starts_with(folder)) && !path.contains([' ', '\n', '*']);
            // A placeholder names no file.
            if !is_path || path.contains("NAME") || path.contains("NNN") {
                continue;
            }
            if !tree.has(path) {
                found.push(format!("{} names {path}", page.path));
            }
            let text = tree.text(path).unwrap_or_default();
            let missing = symbols(&pieces[at + 1..]).filter(|symbol| !text.contains(symbol));
            found.extend(missing.map(|symbol| format!("{}: {symbol} is not in {path}", page.path)));
        }
    }
    none(&found);
}

/// What stands in backticks in the parentheses that open right here: `(`a`, `b`)`.
fn symbols<'a>(pieces: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let opens = pieces.first() == Some(&" (");
    let end = pieces.iter().position(|piece| piece.starts_with(')')).unwrap_or(pieces.len());
    let inside = if opens { &pieces[..end] } else { &[] };
    inside.iter().skip(1).step_by(2).copied()
}

#[test]
fn the_format_of_events_names_every_event_and_field() {
    let tree = tree();
    let page = tree.text("docs/formats/events.md").expect("the page");
    let files = tree.files().iter().filter(|file| file.path.starts_with("crates/events/src/e0"));
    let mut found = Vec::new();
    let mut fields = 0;
    for file in files {
        for line in file.text.lines().map(str::trim) {
            let Some((name, kind)) = line.split_once(": ").filter(|_| line.ends_with(',')) else { continue };
            if !line.starts_with("//") && !kind.contains(' ') {
                fields += 1;
                if !page.contains(&format!("| `{name}` |")) {
                    found.push(format!("{}: {name}", file.path));
                }
            }
        }
        let number =
            file.path.trim_start_matches("crates/events/src/e").split('_').next().unwrap_or_default();
        let number: u8 = number.parse().expect("files of events are numbered");
        if !page.contains(&format!("### {number} ")) {
            found.push(format!("{} has no section", file.path));
        }
    }
    assert!(fields > 60, "the fields were read: {fields}");
    none(&found);
}
