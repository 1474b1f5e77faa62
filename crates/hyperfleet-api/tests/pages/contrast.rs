//! The contrast of every text colour on every background, in both colour schemes, meets WCAG 2 level AA.

use std::collections::BTreeMap;

const SHEET: &str = include_str!("../../src/page/style.css");

fn schemes() -> Vec<BTreeMap<&'static str, f64>> {
    let roots = SHEET.split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap());
    let colours = roots.map(|root| {
        let lines = root.split(';').filter_map(|line| line.trim().strip_prefix("--")?.split_once(": #"));
        lines.map(|(name, colour)| (name, luminance(colour))).collect()
    });
    colours.collect()
}

fn luminance(colour: &str) -> f64 {
    let digits: Vec<f64> = colour.chars().map(|digit| f64::from(digit.to_digit(16).unwrap())).collect();
    let channel = |index: usize| match digits.len() {
        3 => digits[index] * 17.0,
        6 => digits[2 * index] * 16.0 + digits[2 * index + 1],
        _ => panic!("not a colour: {colour}"),
    };
    let linear = |index: usize| {
        let share = channel(index) / 255.0;
        if share <= 0.03928 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(0) + 0.7152 * linear(1) + 0.0722 * linear(2)
}

#[test]
fn every_colour_has_enough_contrast_on_every_background() {
    let schemes = schemes();
    assert_eq!(schemes.len(), 2, "light and dark");
    for scheme in schemes {
        for ink in ["ink", "soft", "link", "good", "bad", "unknown"] {
            for back in ["back", "card", "bad-back", "good-back"] {
                let (a, b) = (scheme[ink], scheme[back]);
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= 4.5, "{ink} on {back}: {contrast:.2}");
            }
        }
    }
}
