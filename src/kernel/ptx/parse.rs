//! PTX statements → [`Module`].
//!
//! In: text. Out: entries and what could be read of them. Bodies of `.func`s are skipped; a call to one is noted where it
//! stands.

use std::collections::HashMap;

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::{char, digit1, hex_digit1, multispace0};
use nom::combinator::{map, map_opt, opt, recognize};
use nom::multi::separated_list0;
use nom::sequence::{delimited, pair, preceded};
use nom::{IResult, Parser};

use super::scan::{Scanner, Statement};
use super::{Entry, EntryParam, Instruction, Module, Operand, Place};
use crate::kernel::location::Complaint;

/// Most instructions of one entry.
const MAX_INSTRUCTIONS: usize = 1_000_000;
/// Most complaints that are kept.
const MAX_COMPLAINTS: usize = 50;
/// Most entries of one module.
const MAX_ENTRIES: usize = 10_000;

/// Reads a module.
#[must_use]
pub fn parse(text: &str) -> Module {
    let mut module = Module::default();
    let mut scanner = Scanner::new(text);
    while let Some((statement, line)) = scanner.next() {
        match statement {
            Statement::Text(text) => directive(&mut module, text, line),
            Statement::Open(header) if header.contains(".entry") && module.entries.len() < MAX_ENTRIES => {
                entry(&mut module, header, &mut scanner);
            }
            Statement::Open(_) => skip_body(&mut scanner),
            Statement::Label(_) | Statement::Close => {}
        }
    }
    module
}

fn complain(module: &mut Module, line: u32, message: impl Into<String>) {
    if module.complaints.len() < MAX_COMPLAINTS {
        module.complaints.push(Complaint::new(line, message));
    }
}

fn skip_body(scanner: &mut Scanner<'_>) {
    let mut depth = 1usize;
    for (statement, _) in scanner.by_ref() {
        match statement {
            Statement::Open(_) => depth += 1,
            Statement::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
}

fn directive(module: &mut Module, text: &str, line: u32) {
    let mut words = text.split_whitespace();
    match words.next() {
        Some(".version") => module.version = words.next().map(str::to_owned),
        Some(".target") => {
            module.target = words.next().map(|target| target.trim_end_matches(',').to_owned());
        }
        Some(".file") => {
            let number = words.next().and_then(|n| n.parse().ok());
            let path = text.split('"').nth(1);
            if let (Some(number), Some(path)) = (number, path) {
                module.files.insert(number, path.to_owned());
            }
        }
        // A prototype, a variable, an alias.
        Some(word) if word.starts_with('.') => {
            variable(module, text);
        }
        Some(_) => complain(module, line, "text outside a function"),
        None => {}
    }
}

/// `.shared .align 4 .b8 tile[4096]` by the memory that it stands in.
fn variable(module: &mut Module, text: &str) {
    let declared = text.split('=').next().unwrap_or("");
    let has = |space: &str| declared.split_whitespace().any(|word| word == space);
    let name = declared.split_whitespace().last().unwrap_or("");
    let name = name.split('[').next().unwrap_or(name).to_owned();
    if has(".global") {
        module.globals.insert(name);
    } else if [".shared", ".local", ".const", ".param"].into_iter().any(has) {
        module.elsewhere.insert(name);
    }
}

fn numbers(text: &str) -> Vec<u32> {
    let end = text.find("//").unwrap_or(text.len());
    text.get(..end)
        .unwrap_or("")
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|n| n.parse().ok())
        .collect()
}

/// entry = [ ".visible" ] ".entry" name "(" parameters ")" directives "{" body "}"
fn entry(module: &mut Module, header: &str, scanner: &mut Scanner<'_>) {
    let mut entry = Entry { places: vec![Place::default()], ..Entry::default() };
    let after = header.split_once(".entry").map_or("", |(_, after)| after).trim_start();
    let name_end = after.find(|c: char| c == '(' || c.is_whitespace()).unwrap_or(after.len());
    entry.name = after.get(..name_end).unwrap_or("").to_owned();
    let list = after.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(list, _)| list);
    entry.params = list.split(',').map(str::trim).filter(|p| !p.is_empty()).map(parameter).collect();
    for (word, is_maximum) in [(".maxntid", true), (".reqntid", false)] {
        if let Some((_, rest)) = header.split_once(word) {
            let line = rest.split(['.', '{']).next().unwrap_or("");
            for (slot, size) in entry.block.iter_mut().zip(numbers(line).into_iter().chain([1, 1])) {
                *slot = size.min(1024);
            }
            entry.block_is_maximum = is_maximum;
        }
    }
    body(module, &mut entry, scanner);
    module.entries.push(entry);
}

/// parameter = ".param" { "." word } name [ "[" bytes "]" ]
fn parameter(text: &str) -> EntryParam {
    let mut param = EntryParam::default();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        match word {
            ".param" | ".const" | ".global" | ".shared" | ".local" => {}
            ".ptr" => param.is_pointer = true,
            ".align" => {
                words.next();
            }
            _ => match word.strip_prefix('.') {
                Some(ty) => param.ty = ty.to_owned(),
                None => match word.split_once('[') {
                    Some((name, size)) => {
                        param.name = name.to_owned();
                        param.array_bytes = size.trim_end_matches(']').parse().unwrap_or(1).max(1);
                    }
                    None => param.name = word.to_owned(),
                },
            },
        }
    }
    param
}

fn body(module: &mut Module, entry: &mut Entry, scanner: &mut Scanner<'_>) {
    let mut registers = HashMap::new();
    let mut place = 0u32;
    let mut depth = 1usize;
    for (statement, line) in scanner.by_ref() {
        match statement {
            Statement::Open(_) => depth += 1,
            Statement::Close => {
                depth -= 1;
                if depth == 0 {
                    entry.complete = true;
                    return;
                }
            }
            Statement::Label(label) => {
                entry.labels.insert(label.to_owned(), entry.instructions.len());
            }
            Statement::Text(text) if text.starts_with('.') => {
                if text.starts_with(".loc") {
                    place = self::place(entry, text);
                } else if text.starts_with(".reg") {
                    // Registers of an assembler block have plain names; those with a percent sign need no declaration.
                    let names =
                        text.split([',', ' ', '\t']).filter(|w| w.starts_with(|c: char| c.is_alphabetic()));
                    for name in names {
                        let index = u32::try_from(entry.registers.len()).unwrap_or(u32::MAX);
                        registers.entry(name.to_owned()).or_insert_with(|| {
                            entry.registers.push(name.to_owned());
                            index
                        });
                    }
                } else {
                    variable(module, text);
                }
            }
            Statement::Text(text) => match instruction(text, entry, &mut registers) {
                Some(mut read) if entry.instructions.len() < MAX_INSTRUCTIONS => {
                    read.place = place;
                    read.line = line;
                    entry.instructions.push(read);
                }
                Some(_) => {
                    complain(module, line, "too many instructions; the rest is skipped");
                    skip_body(scanner);
                    return;
                }
                // Kept by name, so that the analysis knows that something stood there.
                None => {
                    complain(module, line, "an instruction that can't be read");
                    let opcode = format!("?{}", text.split_whitespace().next().unwrap_or(""));
                    entry.instructions.push(Instruction { opcode, place, line, ..Instruction::default() });
                }
            },
        }
    }
    complain(module, 0, format!("the text of {} ends before its closing brace", entry.name));
}

/// place = ".loc" file line column [ "," "function_name" label "," "inlined_at" file line column ]
fn place(entry: &mut Entry, text: &str) -> u32 {
    let (own, inlined) = text.split_once("inlined_at").map_or((text, None), |(own, at)| (own, Some(at)));
    let own = own.split(',').next().unwrap_or("");
    let triple = |text: &str| match numbers(text).as_slice() {
        [file, line, column, ..] => Some((*file, *line, *column)),
        [file, line] => Some((*file, *line, 0)),
        _ => None,
    };
    let Some(at) = triple(own) else { return 0 };
    let place = Place { at, caller: inlined.and_then(triple) };
    if entry.places.last() != Some(&place) {
        entry.places.push(place);
    }
    u32::try_from(entry.places.len() - 1).unwrap_or(0)
}

fn ws<'a, O>(
    inner: impl Parser<&'a str, Output = O, Error = nom::error::Error<&'a str>>,
) -> impl Parser<&'a str, Output = O, Error = nom::error::Error<&'a str>> {
    delimited(multispace0, inner, multispace0)
}

fn word(input: &str) -> IResult<&str, &str> {
    take_while1(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '%')).parse(input)
}

/// integer = [ "-" ] ( "0x" hex | digits ) [ "U" ]
fn integer(input: &str) -> IResult<&str, i128> {
    let hex =
        map_opt(preceded(alt((tag("0x"), tag("0X"))), hex_digit1), |d| i128::from_str_radix(d, 16).ok());
    let decimal = map_opt(digit1, |d: &str| d.parse::<i128>().ok());
    let (rest, (sign, value, _)) = (opt(char('-')), alt((hex, decimal)), opt(char('U'))).parse(input)?;
    Ok((rest, if sign.is_some() { -value } else { value }))
}

/// float = "0f" hex | "0d" hex | digits "." digits
fn float(input: &str) -> IResult<&str, Operand> {
    let bits = recognize((opt(char('-')), alt((tag("0f"), tag("0F"), tag("0d"), tag("0D"))), hex_digit1));
    let plain = recognize((opt(char('-')), digit1, char('.'), take_while(|c: char| c.is_ascii_digit())));
    map(alt((bits, plain)), |_| Operand::Float).parse(input)
}

struct Registers<'r> {
    known: &'r mut HashMap<String, u32>,
    names: &'r mut Vec<String>,
}

impl Registers<'_> {
    fn operand(&mut self, name: &str) -> Operand {
        const SPECIAL: [&str; 12] = [
            "%tid",
            "%ntid",
            "%ctaid",
            "%nctaid",
            "%laneid",
            "%warpid",
            "%nwarpid",
            "%smid",
            "%clock",
            "%lanemask",
            "%cluster",
            "%envreg",
        ];
        if let Some(&index) = self.known.get(name) {
            return Operand::Register(index);
        }
        if SPECIAL.iter().any(|special| name.starts_with(special)) {
            return Operand::Special(name.to_owned());
        }
        if !name.starts_with('%') {
            return Operand::Symbol(name.to_owned());
        }
        let index = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        self.known.insert(name.to_owned(), index);
        Operand::Register(index)
    }
}

/// What an operand looks like before registers have numbers.
enum Raw<'t> {
    Word(&'t str),
    Integer(i128),
    Float,
    Address(&'t str, i128),
    Vector(Vec<Raw<'t>>),
    Pair(&'t str),
}

/// raw = float | integer | "[" word [ "+" integer ] … "]" | "{" raws "}" | "(" raws ")" | [ "!" ] word [ "|" word ]
fn raw(input: &str, depth: usize) -> IResult<&str, Raw<'_>> {
    if depth > 3 {
        return Err(nom::Err::Error(nom::error::Error::new(input, nom::error::ErrorKind::TooLarge)));
    }
    let offset = opt(preceded(ws(char('+')), ws(integer)));
    let inner = (ws(word), offset, opt(preceded(ws(char(',')), take_while(|c: char| c != ']'))));
    let list = move |i| separated_list0(ws(char(',')), move |i| raw(i, depth + 1)).parse(i);
    ws(alt((
        map(float, |_| Raw::Float),
        map(integer, Raw::Integer),
        map(delimited(char('['), inner, char(']')), |(base, offset, _)| {
            Raw::Address(base, offset.unwrap_or(0))
        }),
        map(delimited(char('['), ws(integer), char(']')), |at| Raw::Address("", at)),
        map(delimited(char('{'), ws(list), char('}')), Raw::Vector),
        map(delimited(char('('), ws(list), char(')')), Raw::Vector),
        map(preceded(char('!'), word), Raw::Pair),
        map(pair(word, opt(preceded(ws(char('|')), word))), |(first, _)| Raw::Word(first)),
    )))
    .parse(input)
}

fn number_registers(raw: &Raw<'_>, registers: &mut Registers<'_>) -> Operand {
    match raw {
        Raw::Word(name) | Raw::Pair(name) => registers.operand(name),
        Raw::Integer(value) => Operand::Integer(*value),
        Raw::Float => Operand::Float,
        Raw::Address(base, offset) => {
            let base = if base.is_empty() { Operand::Integer(0) } else { registers.operand(base) };
            Operand::Address(Box::new(base), *offset)
        }
        Raw::Vector(list) => {
            Operand::Vector(list.iter().map(|item| number_registers(item, registers)).collect())
        }
    }
}

/// instruction = [ "@" [ "!" ] register ] opcode operands
fn instruction(text: &str, entry: &mut Entry, known: &mut HashMap<String, u32>) -> Option<Instruction> {
    let mut registers = Registers { known, names: &mut entry.registers };
    let mut rest = text.trim();
    let mut guard = None;
    if let Some(after) = rest.strip_prefix('@') {
        let (negated, after) = after.trim_start().strip_prefix('!').map_or((false, after), |a| (true, a));
        let (tail, name) = ws(word).parse(after).ok()?;
        // A predicate declared inside an assembler block has no percent sign.
        let register = match registers.operand(name) {
            Operand::Register(register) => register,
            _ => return None,
        };
        guard = Some((register, negated));
        rest = tail;
    }
    let end = rest.find(|c: char| c.is_whitespace()).unwrap_or(rest.len());
    let (opcode, tail) = rest.split_at(end);
    if opcode.is_empty() {
        return None;
    }
    // A call's operands say nothing about values here.
    if opcode.starts_with("call") {
        let name =
            tail.split(|c: char| matches!(c, ',' | '(' | ')') || c.is_whitespace()).filter(|w| !w.is_empty());
        let operands = name.map(|w| Operand::Symbol(w.to_owned())).collect();
        return Some(Instruction { opcode: opcode.to_owned(), guard, operands, ..Instruction::default() });
    }
    let (left, list) = separated_list0(ws(char(',')), |i| raw(i, 0)).parse(tail).ok()?;
    if !left.trim().is_empty() {
        return None;
    }
    let operands = list.iter().map(|item| number_registers(item, &mut registers)).collect();
    Some(Instruction { opcode: opcode.to_owned(), guard, operands, ..Instruction::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = ".version 8.7\n.target sm_90a\n.visible .entry k(\n\t.param .u64 .ptr .global .align 1 k_param_0,\n\t.param .align 8 .b8 k_param_1[24]\n)\n.reqntid 128, 2\n{\n\t.reg .b32 %r<3>;\n\t.loc\t1 7 39 // x.py:7\n\tmov.u32 \t%r1, %tid.x;\n\t@!%p1 st.global.v2.b32 [ %rd1 + 4 ], { %r1, %r2 };\n\tret;\n}\n\t.file\t1 \"/home/user/x.py\"\n";

    #[test]
    fn a_small_entry() {
        let module = parse(SMALL);
        let entry = &module.entries[0];
        assert_eq!(
            (module.target.as_deref(), entry.name.as_str(), entry.block),
            (Some("sm_90a"), "k", [128, 2, 1])
        );
        assert_eq!((entry.params[0].is_pointer, entry.params[1].array_bytes), (true, 24));
        assert_eq!(entry.instructions.len(), 3);
        let store = &entry.instructions[1];
        assert_eq!(store.guard.map(|(_, negated)| negated), Some(true));
        assert!(
            matches!(&store.operands[0], Operand::Address(base, 4) if matches!(**base, Operand::Register(_)))
        );
        assert_eq!(module.location(entry, store).unwrap().to_string(), "x.py:7");
        assert!(entry.complete && module.complaints.is_empty());
    }

    #[test]
    fn every_cut_of_it_is_survived() {
        for end in 0..SMALL.len() {
            let module = parse(&SMALL[..end]);
            assert!(module.entries.iter().all(|e| !e.complete || end > SMALL.find("}\n\t.file").unwrap()));
        }
    }
}
