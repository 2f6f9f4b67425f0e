//! TTIR text → [`Module`].
//!
//! In: text. Out: every function that could be read, with complaints about the rest. An operation ends at the end of its
//! line outside brackets, or where the next one plainly starts.

mod operation;

use std::collections::HashMap;

use super::token::{Kind, Token, tokens};
use super::types::{Type, parse_type};
use super::{Block, Def, Function, Module, Parameter, Value};
use crate::kernel::location::Complaint;

/// Deepest region inside regions.
const MAX_NESTING: usize = 64;
/// Most operations of one function.
const MAX_OPERATIONS: usize = 200_000;
/// Most complaints that are kept.
const MAX_COMPLAINTS: usize = 50;

/// Reads a module.
#[must_use]
pub fn parse(text: &str) -> Module {
    let (tokens, skipped) = tokens(text);
    let mut parser = Parser { tokens: &tokens, at: 0, module: Module::default(), scopes: Vec::new() };
    if skipped > 0 {
        parser.complain(0, format!("{skipped} characters are no TTIR"));
    }
    parser.run();
    parser.module
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    module: Module,
    scopes: Vec<HashMap<String, Vec<usize>>>,
}

impl Parser<'_> {
    fn complain(&mut self, line: u32, message: impl Into<String>) {
        if self.module.complaints.len() < MAX_COMPLAINTS {
            self.module.complaints.push(Complaint::new(line, message));
        }
    }

    fn kind(&self, ahead: usize) -> Option<&Kind> {
        self.tokens.get(self.at + ahead).map(|token| &token.kind)
    }

    fn is_sign(&self, sign: char) -> bool {
        matches!(self.kind(0), Some(Kind::Sign(c)) if *c == sign)
    }

    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |token| token.line)
    }

    fn skip_lines(&mut self) {
        while matches!(self.kind(0), Some(Kind::Line)) {
            self.at += 1;
        }
    }

    fn run(&mut self) {
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Alias(name) if matches!(self.kind(1), Some(Kind::Sign('='))) => {
                    let name = name.clone();
                    self.at += 2;
                    if let Some(place) = self.location() {
                        self.module.places.alias(&name, place);
                    }
                }
                Kind::Word(word) if word == "tt.func" || word == "func.func" => self.function(),
                _ => self.at += 1,
            }
        }
    }

    /// "loc" "(" … ")"
    fn location(&mut self) -> Option<u32> {
        if !matches!(self.kind(0), Some(Kind::Word(word)) if word == "loc")
            || !matches!(self.kind(1), Some(Kind::Sign('(')))
        {
            return None;
        }
        let start = self.at + 2;
        self.at += 1;
        let end = self.group();
        let inside = self.tokens.get(start..end.saturating_sub(1)).unwrap_or(&[]);
        Some(self.module.places.read(inside))
    }

    /// Skips a bracketed group, from its opening sign; returns the position after it.
    fn group(&mut self) -> usize {
        let mut depth = 0usize;
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Sign('(' | '[' | '{') => depth += 1,
                Kind::Sign(')' | ']' | '}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        self.at
    }

    /// function = "tt.func" [ "public" | "private" ] "@" name "(" parameters ")" … "{" body "}"
    fn function(&mut self) {
        self.at += 1;
        let mut function = Function { public: true, ..Function::default() };
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Word(word) if word == "private" => function.public = false,
                Kind::Symbol(name) => {
                    function.name.clone_from(name);
                    self.at += 1;
                    break;
                }
                Kind::Word(_) => {}
                _ => return,
            }
            self.at += 1;
        }
        self.scopes = vec![HashMap::new()];
        if self.is_sign('(') {
            self.parameters(&mut function);
        }
        // Result types and attributes stand before the body's brace.
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Sign('{') if !self.at_attributes() => break,
                Kind::Sign('{' | '(' | '[') => {
                    self.group();
                }
                Kind::Word(word) if word == "tt.func" => return self.module.functions.push(function),
                Kind::Line => return self.module.functions.push(function),
                _ => self.at += 1,
            }
        }
        if self.is_sign('{') {
            self.at += 1;
            let (blocks, closed) = self.region(&mut function, 0, &[]);
            function.body = blocks;
            function.complete = closed;
            if !closed {
                let line = self.line();
                self.complain(line, format!("the text of {} ends before its closing brace", function.name));
            }
        }
        self.module.functions.push(function);
    }

    /// Whether the brace at hand opens attributes, not a region.
    fn at_attributes(&self) -> bool {
        let next = self.tokens.get(self.at + 1..).unwrap_or(&[]).iter().map(|t| &t.kind);
        let mut next = next.skip_while(|kind| matches!(kind, Kind::Line));
        match (next.next(), next.next()) {
            (Some(Kind::Word(_)), Some(Kind::Sign('=' | ',' | '}'))) => true,
            (Some(Kind::Sign('}')), _) => !matches!(self.kind(1), Some(Kind::Line)),
            (Some(Kind::Text(_)), Some(Kind::Sign('='))) => true,
            _ => false,
        }
    }

    /// `parameters = "(" { "%" name ":" type [ attributes ] [ location ] "," } ")"`
    fn parameters(&mut self, function: &mut Function) {
        self.at += 1;
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Sign(')') => {
                    self.at += 1;
                    return;
                }
                Kind::Value(name, _) => {
                    let name = name.clone();
                    self.at += 1;
                    self.parameter(function, name);
                }
                _ => self.at += 1,
            }
        }
    }

    fn parameter(&mut self, function: &mut Function, name: String) {
        let mut parameter = Parameter {
            name: name.clone(),
            ty: Type::other(),
            divisibility: 1,
            value: function.values.len(),
        };
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Sign(',' | ')') => break,
                Kind::Sign('{') => {
                    let start = self.at;
                    let end = self.group();
                    let inside = self.tokens.get(start..end).unwrap_or(&[]);
                    parameter.divisibility = divisibility(inside).unwrap_or(1);
                }
                Kind::Word(word) if word == "loc" => match self.location() {
                    Some(place) => {
                        if let Some(author) = self.module.places.author_name(place) {
                            parameter.name = author;
                        }
                    }
                    None => self.at += 1,
                },
                Kind::Word(word) | Kind::Angled(word) => {
                    parameter.ty = parse_type(word);
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        let index = function.params.len();
        function.values.push(Value { ty: parameter.ty.clone(), def: Def::Param(index), name: name.clone() });
        self.bind(name, vec![parameter.value]);
        function.params.push(parameter);
    }

    fn bind(&mut self, name: String, values: Vec<usize>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, values);
        }
    }

    fn lookup(&mut self, function: &mut Function, name: &str, index: usize) -> usize {
        let found =
            self.scopes.iter().rev().find_map(|scope| scope.get(name)).and_then(|list| list.get(index));
        match found {
            Some(&value) => value,
            None => {
                function.values.push(Value { ty: Type::other(), def: Def::Missing, name: name.to_owned() });
                function.values.len() - 1
            }
        }
    }

    /// Blocks up to the closing brace; `entry` are names for the first block's arguments with their types.
    fn region(
        &mut self,
        function: &mut Function,
        depth: usize,
        entry: &[(String, Type)],
    ) -> (Vec<usize>, bool) {
        self.scopes.push(HashMap::new());
        let mut blocks = vec![self.block(function, String::new(), entry)];
        let mut closed = false;
        while self.at < self.tokens.len() {
            self.skip_lines();
            match self.kind(0) {
                Some(Kind::Sign('}')) => {
                    self.at += 1;
                    closed = true;
                    break;
                }
                Some(Kind::Label(label)) => {
                    let label = label.clone();
                    self.at += 1;
                    let args = self.block_arguments();
                    let block = self.block(function, label, &args);
                    blocks.push(block);
                }
                Some(Kind::Word(word)) if word == "tt.func" => break,
                Some(_) => {
                    let block = blocks.last().copied().unwrap_or(0);
                    self.operation(function, block, depth);
                }
                None => break,
            }
        }
        self.scopes.pop();
        // A first block without label, arguments and operations is only this parser's.
        if blocks.len() > 1
            && entry.is_empty()
            && blocks.first().and_then(|&b| function.blocks.get(b)).is_some_and(|b| b.operations.is_empty())
        {
            blocks.remove(0);
        }
        (blocks, closed)
    }

    fn block(&mut self, function: &mut Function, label: String, args: &[(String, Type)]) -> usize {
        let index = function.blocks.len();
        let mut values = Vec::new();
        for (at, (name, ty)) in args.iter().enumerate() {
            let value = function.values.len();
            function.values.push(Value { ty: ty.clone(), def: Def::BlockArg(index, at), name: name.clone() });
            self.bind(name.clone(), vec![value]);
            values.push(value);
        }
        function.blocks.push(Block { label, args: values, operations: Vec::new() });
        index
    }

    /// `[ "(" { "%" name ":" type [ location ] "," } ")" ] ":"`
    fn block_arguments(&mut self) -> Vec<(String, Type)> {
        let mut args: Vec<(String, Type)> = Vec::new();
        let mut depth = 0usize;
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Sign('(') => depth += 1,
                Kind::Sign(')') => depth = depth.saturating_sub(1),
                Kind::Sign(':') if depth == 0 => {
                    self.at += 1;
                    break;
                }
                Kind::Line if depth == 0 => break,
                Kind::Value(name, _) => args.push((name.clone(), Type::other())),
                Kind::Word(word) | Kind::Angled(word) if depth == 1 && word != "loc" => {
                    let ty = parse_type(word);
                    if let Some(last) = args.last_mut() {
                        last.1 = ty;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        args
    }
}

/// `tt.divisibility = 16`
fn divisibility(tokens: &[Token]) -> Option<u64> {
    tokens.windows(3).find_map(|window| match window {
        [
            Token { kind: Kind::Word(key), .. },
            Token { kind: Kind::Sign('='), .. },
            Token { kind: Kind::Int(value), .. },
        ] if key == "tt.divisibility" => u64::try_from(*value).ok().filter(|&v| v > 0),
        _ => None,
    })
}
