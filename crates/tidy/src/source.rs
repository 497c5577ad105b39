//! One Rust file, read: functions with their lengths, tokens with their lines, and which lines are tests.
//!
//! Purpose: rules ask about code, not about text, so a word in a comment or a string is not taken for code.
//! Invariants: a line is a test if an item under `cfg(test)` or a test attribute covers it. What it does not do:
//! macros are not expanded; their arguments are tokens.

use proc_macro2::{Delimiter, LineColumn, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Meta};

/// A function with a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its signature, from 1.
    pub line: usize,
    /// Lines from the signature to the closing brace, both included.
    pub length: usize,
    /// Whether it is part of a test.
    pub in_test: bool,
}

/// A word or a sign of the file; literals are left empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// The identifier, the sign or the bracket.
    pub text: String,
    /// The line, from 1.
    pub line: usize,
}

/// What was read out of one Rust file.
pub struct RustSource {
    /// The parsed file.
    pub syntax: syn::File,
    /// Functions with a body, nested ones too.
    pub functions: Vec<Function>,
    /// All tokens in order, brackets included.
    pub tokens: Vec<Token>,
    /// Whether the file lies among tests or is declared under `cfg(test)`.
    pub whole_file_is_test: bool,
    test_lines: Vec<(usize, usize)>,
    test_declarations: Vec<String>,
}

impl RustSource {
    /// Reads `text`, which lies at `path`.
    ///
    /// # Errors
    /// Text that is not Rust.
    pub fn parse(path: &str, text: &str) -> Result<Self, String> {
        let syntax =
            syn::parse_file(text).map_err(|error| format!("{error} (line {})", error.span().start().line))?;
        let stream: TokenStream = text.parse().map_err(|error| format!("{error}"))?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut found = Finder::default();
        found.visit_file(&syntax);
        let whole_file_is_test = lies_among_tests(path) || syntax.attrs.iter().any(is_test_attribute);
        Ok(Self {
            syntax,
            functions: found.functions,
            tokens,
            whole_file_is_test,
            test_lines: found.test_lines,
            test_declarations: found.test_declarations,
        })
    }

    /// Whether that line is part of a test.
    pub fn is_test_line(&self, line: usize) -> bool {
        self.whole_file_is_test
            || self.test_lines.iter().any(|(first, last)| (*first..=*last).contains(&line))
    }

    /// How many of `total` lines are not part of a test.
    pub fn lines_outside_tests(&self, total: usize) -> usize {
        (1..=total).filter(|line| !self.is_test_line(*line)).count()
    }

    /// Functions outside tests.
    pub fn production_functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| !function.in_test && !self.whole_file_is_test)
    }

    /// Paths, without ending, of the modules that this file at `path` declares under `cfg(test)`.
    pub fn test_modules(&self, path: &str) -> Vec<String> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let below = match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
            other => format!("{folder}/{}", other.trim_end_matches(".rs")),
        };
        self.test_declarations.iter().map(|module| format!("{below}/{module}")).collect()
    }
}

/// Folders and names whose Rust files are tests or drive tests.
fn lies_among_tests(path: &str) -> bool {
    let top = ["clients/", "fuzz/"].iter().any(|folder| path.starts_with(folder));
    top || path.ends_with("/tests.rs")
        || path.split('/').any(|part| ["tests", "benches", "examples"].contains(&part))
}

/// `#[test]`, `#[x::test]`, `#[cfg(test)]`, `#[cfg(all(test, ..))]`.
fn is_test_attribute(attribute: &Attribute) -> bool {
    if attribute.path().segments.last().is_some_and(|segment| segment.ident == "test") {
        return true;
    }
    let Meta::List(list) = &attribute.meta else {
        return false;
    };
    let condition: String = list.tokens.to_string().split_whitespace().collect();
    list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all(test,"))
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                push(tokens, open, group.span_open().start());
                flatten(group.stream(), tokens);
                push(tokens, close, group.span_close().start());
            }
            TokenTree::Ident(ident) => push(tokens, &ident.to_string(), ident.span().start()),
            TokenTree::Punct(sign) => push(tokens, &sign.as_char().to_string(), sign.span().start()),
            TokenTree::Literal(literal) => push(tokens, "", literal.span().start()),
        }
    }
}

fn push(tokens: &mut Vec<Token>, text: &str, at: LineColumn) {
    tokens.push(Token { text: text.to_owned(), line: at.line });
}

fn brackets(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

/// Walks the file once.
#[derive(Default)]
struct Finder {
    functions: Vec<Function>,
    test_lines: Vec<(usize, usize)>,
    test_declarations: Vec<String>,
    test_depth: usize,
}

impl Finder {
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let line = signature.span().start().line;
        let length = block.span().end().line - line + 1;
        let in_test = self.test_depth > 0;
        self.functions.push(Function { name: signature.ident.to_string(), line, length, in_test });
    }

    /// Walks an item with `walk`, inside a test if its attributes say so.
    fn item(&mut self, attributes: &[Attribute], whole: &dyn Spanned, walk: impl FnOnce(&mut Self)) {
        let is_test = attributes.iter().any(is_test_attribute);
        if is_test {
            let span = whole.span();
            self.test_lines.push((span.start().line, span.end().line));
        }
        self.test_depth += usize::from(is_test);
        walk(self);
        self.test_depth -= usize::from(is_test);
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.item(item_attributes(item), item, |finder| visit::visit_item(finder, item));
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        self.item(impl_item_attributes(item), item, |finder| visit::visit_impl_item(finder, item));
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.content.is_none() && self.test_depth > 0 {
            self.test_declarations.push(module.ident.to_string());
        }
        visit::visit_item_mod(self, module);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an enum of another crate, open at its end")]
fn item_attributes(item: &syn::Item) -> &[Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::ExternCrate(item) => &item.attrs,
        // The rest (unions, foreign modules, trait aliases, what syn could not read) does not occur under `cfg(test)`.
        _ => &[],
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an enum of another crate, open at its end")]
fn impl_item_attributes(item: &syn::ImplItem) -> &[Attribute] {
    match item {
        syn::ImplItem::Const(item) => &item.attrs,
        syn::ImplItem::Fn(item) => &item.attrs,
        syn::ImplItem::Type(item) => &item.attrs,
        syn::ImplItem::Macro(item) => &item.attrs,
        // What syn could not read.
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> RustSource {
        RustSource::parse("crates/eos/src/a.rs", text).unwrap()
    }

    #[test]
    fn a_function_is_as_long_as_from_signature_to_brace() {
        let source = parse("/// Doc.\n#[inline]\npub fn a(\n    b: u8,\n) {\n}\nimpl X { fn c() {} }\n");
        let lengths: Vec<_> = source.functions.iter().map(|f| (f.name.as_str(), f.line, f.length)).collect();
        assert_eq!(lengths, [("a", 3, 4), ("c", 7, 1)]);
    }

    #[test]
    fn lines_under_test_attributes_are_tests() {
        let source =
            parse("fn a() {}\n#[cfg(test)]\nmod t {\n fn b() {}\n}\n#[test]\nfn c() {}\nfn d() {}\n");
        let tests: Vec<_> = (1..=8).filter(|line| source.is_test_line(*line)).collect();
        assert_eq!(tests, [2, 3, 4, 5, 6, 7]);
        assert_eq!(source.lines_outside_tests(8), 2);
        let production: Vec<_> = source.production_functions().map(|f| f.name.as_str()).collect();
        assert_eq!(production, ["a", "d"]);
    }

    #[test]
    fn what_is_built_without_tests_too_is_no_test() {
        assert!(!parse("#[cfg(any(test, feature = \"sim\"))]\nfn a() {}").is_test_line(2));
        assert!(!parse("#[cfg(not(test))]\nfn a() {}").is_test_line(2));
    }

    #[test]
    fn words_in_strings_and_comments_are_no_tokens() {
        let source = parse("// unwrap\nconst A: &str = \"unwrap\";");
        assert!(source.tokens.iter().all(|token| token.text != "unwrap"));
    }

    #[test]
    fn text_that_is_no_rust_is_refused_with_its_line() {
        let error = RustSource::parse("a.rs", "fn a() {}\nfn {").err();
        assert!(error.as_ref().is_some_and(|message| message.contains("line 2")), "{error:?}");
    }
}
