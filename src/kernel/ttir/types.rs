//! TTIR types.
//!
//! In: the text of a type. Out: its shape and element. Encodings and address spaces are ignored.

/// An element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// An integer of so many bits (`index` counts as 64).
    Int(u8),
    /// A floating-point number of so many bits.
    Float(u8),
    /// A pointer to elements of so many bytes.
    Pointer(u32),
    /// Anything else.
    Other,
}

/// A scalar or tensor type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// The extents; empty for a scalar.
    pub shape: Vec<i64>,
    /// The element.
    pub element: Element,
    /// For a tensor descriptor or a pointer to a tensor: the block's extents.
    pub block: Vec<i64>,
}

impl Type {
    /// A scalar of an element type.
    #[must_use]
    pub fn scalar(element: Element) -> Self {
        Self { shape: Vec::new(), element, block: Vec::new() }
    }

    /// A type that isn't understood.
    #[must_use]
    pub fn other() -> Self {
        Self::scalar(Element::Other)
    }

    /// The width of an integer element.
    #[must_use]
    pub fn int_width(&self) -> Option<u8> {
        match self.element {
            Element::Int(width) => Some(width),
            _ => None,
        }
    }

    /// The bytes that a pointer's element points to.
    #[must_use]
    pub fn pointee_bytes(&self) -> Option<u32> {
        match self.element {
            Element::Pointer(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// As the compiler writes it, without the encoding.
    #[must_use]
    pub fn text(&self) -> String {
        let element = match self.element {
            Element::Int(width) => format!("i{width}"),
            Element::Float(width) => format!("f{width}"),
            Element::Pointer(bytes) => format!("ptr<{}>", bytes * 8),
            Element::Other => "?".into(),
        };
        if self.shape.is_empty() {
            return element;
        }
        let dims: Vec<String> = self.shape.iter().map(i64::to_string).collect();
        format!("tensor<{}x{element}>", dims.join("x"))
    }
}

/// Reads a type.
#[must_use]
pub fn parse_type(text: &str) -> Type {
    read(text.trim(), 0)
}

fn inside<'t>(text: &'t str, head: &str) -> Option<&'t str> {
    text.strip_prefix(head)?.strip_suffix('>')
}

fn read(text: &str, depth: usize) -> Type {
    if depth > 8 {
        return Type::other();
    }
    if let Some(body) = inside(text, "tensor<") {
        let (shape, rest) = extents(body);
        let element = first_part(rest);
        return Type { shape, ..read(element, depth + 1) };
    }
    if let Some(body) = inside(text, "!tt.ptr<") {
        let pointee = read(first_part(body), depth + 1);
        return Type {
            shape: Vec::new(),
            element: Element::Pointer(bytes_of(&pointee)),
            block: pointee.shape,
        };
    }
    for head in ["!tt.tensordesc<", "!tt.tensor_desc<"] {
        if let Some(body) = inside(text, head) {
            let inner = if body.starts_with("tensor<") {
                read(first_part(body), depth + 1)
            } else {
                bare(body, depth)
            };
            return Type {
                shape: Vec::new(),
                element: Element::Pointer(bytes_of(&inner)),
                block: inner.shape,
            };
        }
    }
    if let Some(body) = inside(text, "<") {
        return bare(body, depth);
    }
    Type::scalar(match text {
        "index" => Element::Int(64),
        "bf16" => Element::Float(16),
        "tf32" => Element::Float(32),
        "!tt.ptr" => Element::Pointer(1),
        _ => match (text.get(..1), text.get(1..).map(|digits| digits.split(['E', 'e']).next().unwrap_or("")))
        {
            (Some("i"), Some(bits)) => {
                bits.parse().ok().filter(|b| (1..=64).contains(b)).map_or(Element::Other, Element::Int)
            }
            (Some("f"), Some(bits)) => bits.parse().map_or(Element::Other, Element::Float),
            _ => Element::Other,
        },
    })
}

/// `128x64xf16`
fn bare(body: &str, depth: usize) -> Type {
    let (shape, rest) = extents(body);
    Type { shape, ..read(first_part(rest), depth + 1) }
}

fn bytes_of(ty: &Type) -> u32 {
    match ty.element {
        Element::Int(bits) | Element::Float(bits) => u32::from(bits).div_ceil(8).max(1),
        Element::Pointer(_) => 8,
        Element::Other => 1,
    }
}

/// The leading `128x64x` and what follows.
fn extents(mut text: &str) -> (Vec<i64>, &str) {
    let mut shape = Vec::new();
    while let Some((dim, rest)) = text.split_once('x') {
        match dim.trim().parse::<i64>() {
            Ok(extent) if extent >= 0 && shape.len() < 16 => shape.push(extent),
            _ => break,
        }
        text = rest;
    }
    (shape, text)
}

/// Up to a comma outside brackets: the encoding and the address space follow it.
fn first_part(text: &str) -> &str {
    let mut depth = 0i32;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            ',' if depth == 0 => return text.get(..at).unwrap_or(text).trim(),
            _ => {}
        }
    }
    text.trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_elements() {
        let ty = parse_type("tensor<128x1x!tt.ptr<bf16>>");
        assert_eq!((ty.shape.as_slice(), ty.element), ([128, 1].as_slice(), Element::Pointer(2)));
        assert_eq!(parse_type("tensor<4xi32, #ttg.blocked<{a = [1]}>>").element, Element::Int(32));
        assert_eq!(parse_type("!tt.ptr<f32, 1>").element, Element::Pointer(4));
        assert_eq!(parse_type("!tt.tensordesc<tensor<128x64xf16>>").block, [128, 64]);
        assert_eq!(parse_type("!tt.tensordesc<128x64xf16>").block, [128, 64]);
        assert_eq!(parse_type("!tt.ptr<tensor<64x32xf8E4M3FN>>").block, [64, 32]);
        assert_eq!(parse_type("f8E5M2").element, Element::Float(8));
        assert_eq!(parse_type("i0").element, Element::Other);
        assert_eq!(parse_type("wat<").element, Element::Other);
    }
}
