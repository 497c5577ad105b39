//! Producer epochs are compared in one place.
//!
//! Purpose: "where is a zombie fenced?" has one answer, `crates/eos/src/fence.rs`. Invariants: an operand counts as a
//! producer epoch by its name: a field, variable, function or constant with `epoch` in it. Epochs of another kind say
//! so in their name (`leader_epoch`, `member_epoch`, `group.epoch`) and are compared where they belong. What it does
//! not do: it has no types, so an epoch by another name, or inside a pair, passes; reviewers look for that.

use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprBinary, ExprMethodCall, Macro, Member, Token};

use super::at;
use crate::{File, Rule, RustSource, Tree, Violation};

/// Words that name an epoch of another kind, and the fence's typed answer (`EpochStanding`), which anybody may read.
const OTHER_KINDS: [&str; 8] =
    ["leader", "member", "group", "assignment", "shard", "topology", "endpoint", "standing"];

pub(super) fn comparisons(tree: &Tree) -> Vec<Violation> {
    tree.rust()
        .filter(|(file, _)| is_watched(&file.path))
        .flat_map(|(file, source)| compared(file, source))
        .collect()
}

fn is_watched(path: &str) -> bool {
    let crates = ["crates/eos/src/", "crates/groups/src/", "crates/broker/src/"];
    let is_fence = path == "crates/eos/src/fence.rs" || path.starts_with("crates/eos/src/fence/");
    // A whole-state check decides nothing: it looks whether the decisions were right.
    let is_check = path.starts_with("crates/eos/src/") && path.ends_with("/check.rs");
    !is_fence && !is_check && crates.iter().any(|folder| path.starts_with(folder))
}

fn compared(file: &File, source: &RustSource) -> Vec<Violation> {
    let mut finder = Finder { lines: Vec::new() };
    finder.visit_file(&source.syntax);
    let lines = finder.lines.into_iter().filter(|line| !source.is_test_line(*line));
    lines.map(|line| at(file, line, Rule::EpochComparison, "ask `crates/eos/src/fence.rs` instead")).collect()
}

struct Finder {
    lines: Vec<usize>,
}

impl Finder {
    fn judge<'a>(&mut self, operands: impl IntoIterator<Item = &'a Expr>, line: usize) {
        let kinds: Vec<_> = operands.into_iter().map(kind_of).collect();
        if kinds.contains(&Kind::Producer) && !kinds.contains(&Kind::Other) {
            self.lines.push(line);
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        if is_comparison(&binary.op) {
            self.judge([&*binary.left, &*binary.right], binary.op.span().start().line);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if COMPARING.contains(&call.method.to_string().as_str()) || is_range_test(call) {
            self.judge(call.args.iter().chain([&*call.receiver]), call.method.span().start().line);
        }
        visit::visit_expr_method_call(self, call);
    }

    /// `assert!`, `matches!` and their like hide expressions in tokens.
    fn visit_macro(&mut self, mac: &'ast Macro) {
        let list = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(arguments) = list.parse2(mac.tokens.clone()) {
            arguments.iter().for_each(|argument| self.visit_expr(argument));
        } else if let Ok(Matches(expressions)) = syn::parse2(mac.tokens.clone()) {
            expressions.iter().for_each(|expression| self.visit_expr(expression));
        }
    }
}

const COMPARING: [&str; 10] = ["cmp", "partial_cmp", "eq", "ne", "lt", "le", "gt", "ge", "max", "min"];

/// `(a..b).contains(&epoch)`.
fn is_range_test(call: &ExprMethodCall) -> bool {
    let Expr::Paren(receiver) = &*call.receiver else {
        return false;
    };
    call.method == "contains" && matches!(&*receiver.expr, Expr::Range(_))
}

fn is_comparison(op: &BinOp) -> bool {
    matches!(op, BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_))
}

fn is_arithmetic(op: &BinOp) -> bool {
    matches!(op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_))
}

/// The arguments of `matches!`: its expression and its guard.
struct Matches(Vec<Expr>);

impl Parse for Matches {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut expressions = vec![input.parse()?];
        input.parse::<Token![,]>()?;
        syn::Pat::parse_multi_with_leading_vert(input)?;
        if input.parse::<Option<Token![if]>>()?.is_some() {
            expressions.push(input.parse()?);
        }
        input.parse::<Option<Token![,]>>()?;
        Ok(Self(expressions))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Producer,
    Other,
    None,
}

/// By the names along the operand, arguments of calls left aside.
fn kind_of(operand: &Expr) -> Kind {
    let mut names = Vec::new();
    collect_names(operand, &mut names);
    let is_other = |name: &str| OTHER_KINDS.iter().any(|kind| name.contains(kind));
    let kind_at = |index: usize| {
        let of_other = names[index] == "epoch" && index > 0 && is_other(&names[index - 1]);
        if is_other(&names[index]) || of_other { Kind::Other } else { Kind::Producer }
    };
    let epochs = (0..names.len()).filter(|index| names[*index].contains("epoch"));
    epochs.map(kind_at).next_back().unwrap_or(Kind::None)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an enum of another crate, open at its end")]
fn collect_names(expression: &Expr, names: &mut Vec<String>) {
    match expression {
        Expr::Path(path) => {
            names.extend(path.path.segments.iter().map(|s| s.ident.to_string().to_lowercase()))
        }
        Expr::Field(field) => {
            collect_names(&field.base, names);
            if let Member::Named(name) = &field.member {
                names.push(name.to_string().to_lowercase());
            }
        }
        Expr::MethodCall(call) => {
            collect_names(&call.receiver, names);
            names.push(call.method.to_string().to_lowercase());
        }
        Expr::Call(call) => {
            collect_names(&call.func, names);
            // `Some(epoch)` is an epoch; what a function makes of one is not.
            let wrapped = names.last().is_some_and(|name| matches!(name.as_str(), "some" | "ok" | "reverse"));
            call.args.iter().filter(|_| wrapped).for_each(|argument| collect_names(argument, names));
        }
        Expr::Binary(sum) if is_arithmetic(&sum.op) => {
            collect_names(&sum.left, names);
            collect_names(&sum.right, names);
        }
        Expr::Paren(inner) => collect_names(&inner.expr, names),
        Expr::Reference(inner) => collect_names(&inner.expr, names),
        Expr::Unary(inner) => collect_names(&inner.expr, names),
        Expr::Cast(inner) => collect_names(&inner.expr, names),
        Expr::Try(inner) => collect_names(&inner.expr, names),
        Expr::Tuple(inner) => inner.elems.iter().for_each(|element| collect_names(element, names)),
        // Literals, blocks, closures and the rest have no name of their own.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::lines_of;
    use super::*;

    fn is_found(expression: &str) -> bool {
        let text = format!("fn a() {{\nlet x = {expression};\n}}");
        lines_of(comparisons, "crates/broker/src/api/k000_produce.rs", &text) == [2]
    }

    #[test]
    fn a_comparison_of_producer_epochs_is_found_in_every_form() {
        for expression in [
            "stamp.epoch < stored.epoch",
            "entry.epoch() == e",
            "x != ProducerEpoch::ZERO",
            "Some(epoch) == stored",
            "a && request.producer_epoch.0 >= 3",
            "a.epoch + 1 == b",
            "a.epoch.cmp(&b)",
            "last.max(stamp.epoch)",
            "(a..b).contains(&epoch)",
            "assert!(a.epoch <= b, \"text {}\", c)",
            "matches!(x, Some(y) if y == self.epoch)",
            "(id, epoch) == (other, value)",
        ] {
            assert!(is_found(expression), "{expression}");
        }
    }

    #[test]
    fn what_compares_no_producer_epoch_passes() {
        for expression in [
            "Stamp { epoch }",
            "epoch.next()",
            "fence::standing(a.epoch, b.epoch) == EpochStanding::Current",
            "f(a.epoch) == 3",
            "leader_epoch < request.leader_epoch",
            "member.epoch == request.epoch",
            "group.epoch != x",
            "f(epoch) && sequence < 3",
            "map.get(&epoch).is_some()",
            "LeaderEpoch::INITIAL == x",
        ] {
            assert!(!is_found(expression), "{expression}");
        }
    }

    #[test]
    fn the_fence_checks_and_tests_may_compare() {
        let text = "fn a() { a.epoch < b.epoch; }";
        assert!(lines_of(comparisons, "crates/eos/src/fence.rs", text).is_empty());
        assert!(lines_of(comparisons, "crates/eos/src/txn/tests.rs", text).is_empty());
        assert!(lines_of(comparisons, "crates/eos/src/txn/check.rs", text).is_empty());
        assert_eq!(lines_of(comparisons, "crates/eos/src/txn/init.rs", text), [1]);
    }
}
