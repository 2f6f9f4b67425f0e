//! One operation of a block: results, operands, regions, successors.
//!
//! In: tokens from the operation's first one. Out: an [`Operation`] in its function, and the values that it defines. It leaves
//! blocks and functions to the parent.

use super::{MAX_NESTING, MAX_OPERATIONS, Parser};
use crate::kernel::ttir::token::{Kind, Token};
use crate::kernel::ttir::types::Type;
use crate::kernel::ttir::{Def, Function, Operation, Value, ops};

impl Parser<'_> {
    /// `operation = [ results "=" ] name { word | region } [ ":" types ] [ location ]`
    pub(super) fn operation(&mut self, function: &mut Function, block: usize, depth: usize) {
        let line = self.line();
        let results = self.results();
        let name = match self.kind(0) {
            Some(Kind::Word(word) | Kind::Text(word)) => word.clone(),
            _ => {
                self.complain(line, "no operation here");
                return self.skip_statement();
            }
        };
        self.at += 1;
        let mut op = Operation { name, line, block, ..Operation::default() };
        let mut entry: Vec<(String, Type)> = Vec::new();
        let mut braces = 0usize;
        let mut region_entry = 0usize;
        while let Some(token) = self.tokens.get(self.at) {
            match &token.kind {
                Kind::Line if braces == 0 && !self.continues() => break,
                Kind::Line => self.skip_lines(),
                Kind::Sign('}') if braces == 0 => break,
                Kind::Sign('{') if braces > 0 || self.at_attributes() => {
                    op.words.push(token.clone());
                    braces += 1;
                    self.at += 1;
                }
                Kind::Sign('{') => {
                    self.at += 1;
                    if depth >= MAX_NESTING || function.operations.len() > MAX_OPERATIONS {
                        self.complain(line, "too deep or too long; the rest of this function is skipped");
                        self.at = self.tokens.len();
                        break;
                    }
                    let names = if region_entry == 0 { region_arguments(&op, &entry) } else { Vec::new() };
                    region_entry += 1;
                    let (blocks, closed) = self.region(function, depth + 1, &names);
                    op.regions.push(blocks);
                    if !closed {
                        break;
                    }
                }
                Kind::Sign('}') => {
                    op.words.push(token.clone());
                    braces -= 1;
                    self.at += 1;
                }
                Kind::Word(word) if word == "loc" && braces == 0 => match self.location() {
                    Some(place) => op.place = place,
                    None => self.at += 1,
                },
                Kind::Value(name, index) => {
                    let (name, index) = (name.clone(), *index);
                    // `%k = %lo` in a loop's header names an argument of its region.
                    if op.regions.is_empty() && matches!(self.kind(1), Some(Kind::Sign('='))) {
                        entry.push((name, Type::other()));
                        op.carried += 1;
                        self.at += 2;
                        op.words.push(Token { kind: Kind::Sign('='), line: token.line });
                        continue;
                    }
                    op.words.push(token.clone());
                    let value = self.lookup(function, &name, index);
                    match op.successors.last_mut() {
                        Some(successor) if braces == 0 => successor.1.push(value),
                        _ => op.operands.push(value),
                    }
                    self.at += 1;
                }
                Kind::Label(label) => {
                    op.successors.push((label.clone(), Vec::new()));
                    self.at += 1;
                }
                _ => {
                    op.words.push(token.clone());
                    self.at += 1;
                }
            }
        }
        self.finish(function, block, op, &results);
    }

    fn finish(
        &mut self,
        function: &mut Function,
        block: usize,
        mut op: Operation,
        results: &[(String, usize)],
    ) {
        let index = function.operations.len();
        let types = ops::result_types(&op, function);
        let mut nth = 0;
        for (name, count) in results {
            let mut values = Vec::new();
            for _ in 0..(*count).min(1024) {
                let ty = types.get(nth).cloned().unwrap_or_else(Type::other);
                values.push(function.values.len());
                op.results.push(function.values.len());
                function.values.push(Value { ty, def: Def::Result(index, nth), name: name.clone() });
                nth += 1;
            }
            self.bind(name.clone(), values);
        }
        ops::type_region_arguments(&op, function);
        function.operations.push(op);
        if let Some(block) = function.blocks.get_mut(block) {
            block.operations.push(index);
        }
    }

    /// results = "%" name [ ":" count ] { "," … } "="
    fn results(&mut self) -> Vec<(String, usize)> {
        let mut out: Vec<(String, usize)> = Vec::new();
        let start = self.at;
        loop {
            match self.kind(0) {
                Some(Kind::Value(name, _)) => out.push((name.clone(), 1)),
                Some(Kind::Sign(':')) => {
                    if let Some(Kind::Int(count)) = self.kind(1) {
                        let count = usize::try_from(*count).unwrap_or(1);
                        if let Some(last) = out.last_mut() {
                            last.1 = count;
                        }
                        self.at += 1;
                    }
                }
                Some(Kind::Sign(',')) => {}
                Some(Kind::Sign('=')) => {
                    self.at += 1;
                    return out;
                }
                _ => {
                    self.at = start;
                    return Vec::new();
                }
            }
            self.at += 1;
        }
    }

    /// Whether the statement goes on after the end of a line.
    fn continues(&self) -> bool {
        let mut next = self.tokens.get(self.at..).unwrap_or(&[]).iter().map(|t| &t.kind);
        matches!(
            next.find(|kind| !matches!(kind, Kind::Line)),
            Some(Kind::Sign(':' | '>' | ',' | ')' | ']' | '=' | '(' | '['))
        )
    }

    fn skip_statement(&mut self) {
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Line => break,
                Kind::Sign('{' | '(' | '[') => {
                    self.group();
                }
                _ => self.at += 1,
            }
        }
        self.at += usize::from(self.at < self.tokens.len());
    }
}

fn region_arguments(op: &Operation, entry: &[(String, Type)]) -> Vec<(String, Type)> {
    if op.name.starts_with("scf.") { entry.to_vec() } else { Vec::new() }
}
