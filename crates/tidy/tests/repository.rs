//! The repository keeps its own habits.

use std::path::Path;

use semel_tidy::{Tree, check};

#[test]
fn this_repository_breaks_no_rule() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = Tree::read(&root).expect("the repository can be listed by git and read");
    assert!(tree.rust().count() > 10, "the tree that was read is not this repository");
    let violations: Vec<_> = check(&tree).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{} to mend:\n{}", violations.len(), violations.join("\n"));
}
