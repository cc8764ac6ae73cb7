//! For tests: text as it comes from models, tools and keyboards.

use proptest::prelude::*;

/// Text as it comes: ASCII, CJK, emoji with joiners, combining marks, control characters.
pub fn odd_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,6}",
        Just("漢字かな".to_owned()),
        Just("👩‍👩‍👧".to_owned()),
        Just("🇩🇪".to_owned()),
        Just("e\u{301}\u{302}".to_owned()),
        Just("ｶﾞ".to_owned()),
        Just("\t".to_owned()),
        Just("\u{1b}[2J".to_owned()),
        Just("\u{200d}".to_owned()),
        any::<char>().prop_map(|c| c.to_string()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}
