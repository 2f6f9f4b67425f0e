//! Every notation, every refusal with its position, and texts made at random.

use super::*;
use proptest::prelude::*;

fn dims(text: &str) -> Vec<u64> {
    parse_shape(text).unwrap_or_else(|error| panic!("{text}: {error}")).shape.dims().to_vec()
}

#[test]
fn every_way_of_writing_a_shape() {
    let two = [
        "234624x9216",
        "234624X9216",
        "234624×9216",
        "234624*9216",
        "234624 x 9216",
        "234,624x9,216",
        "234,624 × 9,216",
        "234_624x9_216",
        "[234624, 9216]",
        "(234624,9216)",
        "234624,9216",
        "234624 9216",
        "torch.Size([234624, 9216])",
        "Size([234624, 9216])",
        "shape=(234624, 9216)",
        "shape: [234624, 9216]",
        "[234624 9216]",
        "(234624, 9216,)",
        "tensor<234624x9216xbf16>",
        "bf16[234624,9216]{1,0}",
        "  234624x9216  ",
        "234624;9216",
        "M=234624,N=9216",
        "M=234,624 N=9,216",
        "M=234,624,N=9,216",
        "M = 234624, N = 9216",
        "M:234624 N:9216",
        "(M=234624, N=9216)",
        "M=234624xN=9216",
        "max_rows=234624,x=9216",
    ];
    for text in two {
        assert_eq!(dims(text), [234_624, 9_216], "{text}");
    }
    assert_eq!(dims("[1600,16,729,72]"), [1_600, 16, 729, 72]);
    assert_eq!(dims("1600,16,729,72"), [1_600, 16, 729, 72]);
    assert_eq!(dims("(4,)"), [4]);
    assert_eq!(dims("7"), [7]);
    assert_eq!(dims("0x9216"), [0, 9_216]);
    assert_eq!(dims("[16,729]"), [16, 729]);
}

#[test]
fn names_and_element_types_are_kept() {
    let named = parse_shape("M=234624,N=9216").unwrap().shape;
    assert_eq!(named.names(), [Some("M".to_owned()), Some("N".to_owned())]);
    assert_eq!(parse_shape("bf16[8,128]").unwrap().dtype, Some(DType::BFloat16));
    assert_eq!(parse_shape("4x128xf16").unwrap().dtype, Some(DType::Float16));
    assert_eq!(parse_shape("torch.float32[8]").unwrap().dtype, Some(DType::Float32));
}

#[test]
fn errors_name_what_was_expected_and_where() {
    let cases = [
        ("", "expected a size for dimension 1 at position 1, found the end"),
        ("234624x", "expected a size after the x at position 8, found the end"),
        ("234624xx9216", "expected a size for dimension 2 at position 8, found 'x'"),
        ("-1x9216", "expected a size of 0 or more for dimension 1 at position 1, found '-'"),
        ("[4, -128]", "expected a size of 0 or more for dimension 2 at position 5, found '-'"),
        ("[4, 128", "expected the closing ']' at position 8, found the end"),
        ("[4, 128)", "expected x or , between sizes at position 8, found ')'"),
        ("4, 128]", "expected x or , between sizes at position 7, found ']'"),
        ("4x128 foo", "expected a size for dimension 3 at position 7, found 'f'"),
        ("4.5x2", "expected x or , between sizes at position 2, found '.'"),
        ("rows[4]", "expected sizes, or a word"),
        ("M=,N=2", "expected a size for dimension 1 at position 3, found ','"),
        ("99999999999999999999x2", "dimension 1 is 99999999999999999999, more than 64 bits hold"),
        ("[]", "expected a size for dimension 1 at position 2, found ']'"),
        ("4,,5", "expected a size for dimension 2 at position 3, found ','"),
        ("1__0x2", "between sizes at position 2, found '_'"),
    ];
    for (text, want) in cases {
        let error = parse_shape(text).unwrap_err().to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
}

#[test]
fn escape_sequences_in_the_text_never_reach_the_message() {
    let error = parse_shape("4x\u{1b}[31m2").unwrap_err().to_string();
    assert!(!error.contains('\u{1b}'), "{error:?}");
}

#[test]
fn strides_may_be_negative_or_zero() {
    assert_eq!(parse_strides("8192,1").unwrap(), [8_192, 1]);
    assert_eq!(parse_strides("(-4, 0, 1)").unwrap(), [-4, 0, 1]);
    assert!(parse_strides("8192,").is_ok());
    assert!(parse_strides("").unwrap_err().to_string().contains("position 1"));
    assert!(parse_strides("a").is_err());
}

proptest! {
    /// No text makes the parser fail in any way but an error.
    #[test]
    fn any_text_is_answered(text in "[0-9xX×*,;=:_MN \\[\\]()<>{}.a-f\u{1b}-]{0,40}") {
        let _ = parse_shape(&text);
        let _ = parse_strides(&text);
    }

    /// What is written is read back, in every notation.
    #[test]
    fn written_shapes_are_read_back(sizes in proptest::collection::vec(any::<u64>(), 1..6)) {
        let list: Vec<String> = sizes.iter().map(u64::to_string).collect();
        prop_assert_eq!(dims(&list.join("x")), sizes.clone());
        prop_assert_eq!(dims(&format!("torch.Size([{}])", list.join(", "))), sizes.clone());
        let named: Vec<String> = list.iter().enumerate().map(|(at, size)| format!("d{at}={size}")).collect();
        prop_assert_eq!(dims(&named.join(",")), sizes);
    }
}
