//! Colours and glyphs by what they mean. Panes name slots, never colours; a theme file says what a
//! slot looks like, and a person's file changes only what it names.

mod slots;

use std::ops::Index;

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;
use toml::de::{DeTable, DeValue};

pub use self::slots::{Glyph, Slot};
use super::keymap::nearest;
use crate::config::Glyphs;
use crate::events::problem::Problem;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SPINNER_ASCII: [&str; 4] = ["|", "/", "-", "\\"];

const ASCII_BORDER: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

/// The embedded themes: name and file.
const EMBEDDED: &[(&str, &str)] = &[
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("high-contrast", include_str!("../../themes/high-contrast.toml")),
    ("monochrome", include_str!("../../themes/monochrome.toml")),
    ("dusk", include_str!("../../themes/dusk.toml")),
    ("paper", include_str!("../../themes/paper.toml")),
];

/// How everything looks.
#[derive(Clone, Debug)]
pub struct Theme {
    /// Its name.
    pub name: String,
    styles: Vec<Style>,
    ascii: bool,
}

impl Index<Slot> for Theme {
    type Output = Style;

    fn index(&self, slot: Slot) -> &Style {
        &self.styles[slot as usize]
    }
}

impl Theme {
    /// The character for a meaning.
    pub fn glyph(&self, glyph: Glyph) -> &'static str {
        let (unicode, ascii) = glyph.pair();
        if self.ascii { ascii } else { unicode }
    }

    /// The spinner's picture `ms` after the beginning.
    pub fn spinner(&self, ms: u64) -> &'static str {
        let frames: &[&str] = if self.ascii { &SPINNER_ASCII } else { &SPINNER };
        // One picture every 100 ms; the remainder is smaller than the number of pictures.
        frames[(ms / 100 % frames.len() as u64) as usize]
    }

    /// The characters of frames.
    pub fn borders(&self) -> border::Set<'static> {
        if self.ascii { ASCII_BORDER } else { border::PLAIN }
    }

    /// Whether only ASCII is drawn by the interface itself.
    pub fn is_ascii(&self) -> bool {
        self.ascii
    }
}

/// All themes: the embedded ones and the person's.
#[derive(Clone, Debug)]
pub struct Themes {
    all: Vec<Theme>,
}

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colors {
    /// None (`NO_COLOR`).
    None,
    /// 256 of them.
    Indexed,
    /// Any.
    True,
}

impl Themes {
    /// The embedded themes with the person's files (path and content) laid over them: a file with
    /// the name of a theme changes it, any other one changes `dark` or the one it names as `base`.
    ///
    /// # Errors
    /// Names file, line, key and value of what can't be used, and the way out.
    pub fn new(files: &[(String, String)], glyphs: Glyphs, colors: Colors) -> Result<Self, Problem> {
        let mut themes = Self { all: Vec::new() };
        for (name, text) in EMBEDDED {
            let base = themes.all.first().map_or_else(|| blank(glyphs), Clone::clone);
            let theme = read(base, name, text, &format!("themes/{name}.toml"), &themes)?;
            themes.all.push(theme);
        }
        for (path, text) in files {
            let name = stem(path);
            let base = themes.get(name).unwrap_or(&themes.all[0]).clone();
            let theme = read(base, name, text, path, &themes)?;
            match themes.all.iter_mut().find(|t| t.name == name) {
                Some(known) => *known = theme,
                None => themes.all.push(theme),
            }
        }
        for style in themes.all.iter_mut().flat_map(|t| &mut t.styles) {
            *style = within(*style, colors);
        }
        Ok(themes)
    }

    /// The names, the embedded ones first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|t| t.name.as_str())
    }

    /// The theme of this name.
    pub fn get(&self, name: &str) -> Option<&Theme> {
        self.all.iter().find(|t| t.name == name)
    }

    /// The theme that the person chose.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn chosen(&self, name: &str) -> Result<&Theme, Problem> {
        self.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            Problem::usage(format!(
                "`ui.theme = \"{name}\"`: there is no such theme; did you mean `{}`?",
                nearest(name, &names)
            ))
            .hint(format!("there are {}; own ones lie in the folder `themes` beside config.toml", names.join(", ")))
        })
    }
}

/// A theme without any colour.
fn blank(glyphs: Glyphs) -> Theme {
    let ascii = match glyphs {
        Glyphs::Unicode => false,
        Glyphs::Ascii => true,
    };
    Theme { name: String::new(), styles: vec![Style::new(); Slot::ALL.len()], ascii }
}

fn stem(path: &str) -> &str {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    file.strip_suffix(".toml").unwrap_or(file)
}

/// Lays the file over `base`.
fn read(mut base: Theme, name: &str, text: &str, path: &str, others: &Themes) -> Result<Theme, Problem> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(1, |span| line(text, span.start));
        Problem::usage(format!("theme `{name}`: {} ({path}:{at})", error.message()))
            .hint("write lines such as `text.dim = \"#8a8a8a\"`")
    })?;
    if let Some(wanted) = table.get_ref().get("base").and_then(|v| v.get_ref().as_str()) {
        let found = others.get(wanted).ok_or_else(|| {
            Problem::usage(format!("theme `{name}` sets `base = \"{wanted}\"`: there is no such theme ({path})"))
                .hint(format!("use one of {}", others.names().collect::<Vec<_>>().join(", ")))
        })?;
        base = found.clone();
    }
    base.name = name.to_owned();
    let mut reader = Reader { theme: &mut base, name, text, path };
    reader.table(table.get_ref(), "")?;
    Ok(base)
}

struct Reader<'a> {
    theme: &'a mut Theme,
    name: &'a str,
    text: &'a str,
    path: &'a str,
}

impl Reader<'_> {
    fn table(&mut self, table: &DeTable<'_>, prefix: &str) -> Result<(), Problem> {
        for (key, value) in table {
            let slot =
                if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
            if slot == "base" || slot == "name" {
                continue;
            }
            let at = line(self.text, value.span().start);
            match value.get_ref() {
                DeValue::Table(inner) => self.table(inner, &slot)?,
                DeValue::String(look) => self.set(&slot, look, at)?,
                other => {
                    let shown = self.text.get(value.span()).unwrap_or(other.type_str());
                    return Err(self.wrong(&slot, shown, "not a text", at));
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, slot: &str, look: &str, at: usize) -> Result<(), Problem> {
        let Some(known) = Slot::named(slot) else {
            let names: Vec<_> = Slot::ALL.iter().map(|s| s.name()).collect();
            let path = self.path;
            return Err(Problem::usage(format!(
                "theme `{}` sets `{slot}`: there is no such slot ({path}:{at})",
                self.name
            ))
            .hint(format!("did you mean `{}`?", nearest(slot, &names))));
        };
        let style = parse_style(look).map_err(|why| self.wrong(slot, &format!("\"{look}\""), &why, at))?;
        self.theme.styles[known as usize] = style;
        Ok(())
    }

    fn wrong(&self, slot: &str, value: &str, why: &str, at: usize) -> Problem {
        Problem::usage(format!("theme `{}` sets `{slot} = {value}`: {why} ({}:{at})", self.name, self.path))
            .hint("use a name, `#rrggbb` or 0–255, then `on COLOUR`, `bold`, `dim`, `italic`, `underlined`, `reversed`")
    }
}

fn line(text: &str, at: usize) -> usize {
    text.get(..at).map_or(1, |before| before.matches('\n').count() + 1)
}

/// Reads `#8a8a8a on black bold`; `default` is the terminal's own colour.
fn parse_style(look: &str) -> Result<Style, String> {
    let mut style = Style::new();
    let mut words = look.split_whitespace();
    while let Some(word) = words.next() {
        style = match word {
            "on" => style.bg(parse_color(words.next().unwrap_or(""))?),
            "bold" => style.add_modifier(Modifier::BOLD),
            "dim" => style.add_modifier(Modifier::DIM),
            "italic" => style.add_modifier(Modifier::ITALIC),
            "underlined" => style.add_modifier(Modifier::UNDERLINED),
            "reversed" => style.add_modifier(Modifier::REVERSED),
            "crossed" => style.add_modifier(Modifier::CROSSED_OUT),
            colour => style.fg(parse_color(colour)?),
        };
    }
    Ok(style)
}

fn parse_color(word: &str) -> Result<Color, String> {
    if word == "default" {
        return Ok(Color::Reset);
    }
    let is_hex = word.len() == 7 && word.starts_with('#');
    let is_other = !word.starts_with('#') && !word.is_empty();
    word.parse().ok().filter(|_| is_hex || is_other).ok_or_else(|| match word {
        "" => "a colour is missing".to_owned(),
        _ => format!("`{word}` is not a colour"),
    })
}

/// The style as the terminal can show it.
fn within(style: Style, colors: Colors) -> Style {
    match colors {
        Colors::True => style,
        Colors::Indexed => Style { fg: style.fg.map(indexed), bg: style.bg.map(indexed), ..style },
        Colors::None => {
            // A ground of its own would be lost, so it becomes reversed video.
            let reversed = style.bg.is_some_and(|bg| bg != Color::Reset);
            let style = Style { fg: None, bg: None, underline_color: None, ..style };
            if reversed { style.add_modifier(Modifier::REVERSED) } else { style }
        }
    }
}

/// The nearest of the 240 fixed colours of a 256-colour terminal (the first 16 differ everywhere).
fn indexed(color: Color) -> Color {
    let Color::Rgb(r, g, b) = color else { return color };
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let step = |v: u8| (0..6).min_by_key(|&i| STEPS[i].abs_diff(v)).unwrap_or(0);
    let distance = |(x, y, z): (u8, u8, u8)| {
        let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        square(x, r) + square(y, g) + square(z, b)
    };
    let (i, j, k) = (step(r), step(g), step(b));
    let cube = (distance((STEPS[i], STEPS[j], STEPS[k])), 16 + 36 * i + 6 * j + k);
    let gray = (0..24_u8)
        .map(|n| (distance((8 + 10 * n, 8 + 10 * n, 8 + 10 * n)), 232 + usize::from(n)))
        .min_by_key(|(d, _)| *d)
        .unwrap_or(cube);
    let (_, index) = cube.min(gray);
    u8::try_from(index).map_or(color, Color::Indexed)
}

#[cfg(test)]
mod tests;
