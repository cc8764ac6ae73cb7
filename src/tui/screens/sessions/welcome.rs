//! What someone sees who has no session yet: what this is, which model will work and why, and
//! where to go from here.

use ratatui::text::{Line, Span};

use crate::events::query::LaunchDefaults;
use crate::stdx::text::sanitize_line;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::Cx;
use crate::tui::screens::look::{self, Load};
use crate::tui::theme::Slot;

pub(super) fn lines(defaults: &Load<Box<LaunchDefaults>>, cx: &Cx<'_>) -> Vec<Line<'static>> {
    let theme = cx.theme;
    let text = |words: &str| Line::styled(words.to_owned(), theme[Slot::Text]);
    let key = |key: String, words: &str| {
        Line::from(vec![
            Span::styled(format!("  {key}  "), theme[Slot::Key]),
            Span::styled(words.to_owned(), theme[Slot::KeyText]),
        ])
    };
    let mut lines = vec![
        Line::default(),
        Line::styled("No sessions yet", theme[Slot::TextHeading]),
        Line::default(),
        text(
            "Say what is to be done. A Worker does it, a Checker tests what was handed in, and the cycle repeats until it passes.",
        ),
        Line::default(),
    ];
    match defaults {
        Load::Waiting => lines.push(Line::styled("looking for a model …", theme[Slot::TextDim])),
        Load::Failed(problem) => lines.extend(look::problem_lines(problem, theme)),
        Load::Ready(defaults) => match &defaults.model {
            Ok(choice) => {
                lines.push(Line::from(vec![
                    Span::styled("Model  ", theme[Slot::TextDim]),
                    Span::styled(sanitize_line(&choice.model), theme[Slot::TextStrong]),
                ]));
                lines.push(Line::styled(format!("       {}", sanitize_line(&choice.reason)), theme[Slot::TextDim]));
                lines.push(Line::styled(
                    "       another one: `model = \"PROVIDER/MODEL\"` in config.toml",
                    theme[Slot::TextDim],
                ));
            }
            Err(problem) => lines.extend(look::problem_lines(problem, theme)),
        },
    }
    lines.push(Line::default());
    lines.push(key(cx.key(Layer::Sessions, Action::Launch), "launch the first session"));
    lines.push(key(cx.key(Layer::Sessions, Action::Help), "all keys"));
    lines.push(Line::default());
    lines.push(text("`super-agent demo` shows a whole session without key or network."));
    lines
}
