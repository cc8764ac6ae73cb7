//! What was measured, as a table.

use std::time::Duration;

/// One line of the table.
pub struct Row {
    /// What was measured.
    pub what: &'static str,
    /// What is to be reached.
    pub target: &'static str,
    /// What was found, or why nothing was.
    pub value: Result<String, String>,
}

impl Row {
    /// A line.
    pub fn new(what: &'static str, target: &'static str, value: Result<String, String>) -> Self {
        Self { what, target, value }
    }
}

/// The table in Markdown.
pub fn table(rows: &[Row]) -> String {
    let mut out = "| what | target | measured |\n| --- | --- | --- |\n".to_owned();
    for row in rows {
        let value = match &row.value {
            Ok(value) => value.clone(),
            Err(why) => format!("not measured: {}", why.replace('\n', " ").replace('|', "\\|")),
        };
        out.push_str(&format!("| {} | {} | {value} |\n", row.what, row.target));
    }
    out
}

/// The value in the middle; of an even number the lower of the two.
pub fn median<T: Copy + PartialOrd>(values: &[T]) -> Option<T> {
    percentile(values, 50)
}

/// The value below which `percent` of all lie.
pub fn percentile<T: Copy + PartialOrd>(values: &[T], percent: usize) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let last = sorted.len().checked_sub(1)?;
    sorted.get(last * percent / 100).copied()
}

/// A time in milliseconds, or in seconds when it is long.
pub fn time(duration: Duration) -> String {
    match duration.as_millis() {
        0..100 => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
        100..1000 => format!("{} ms", duration.as_millis()),
        _ => format!("{:.2} s", duration.as_secs_f64()),
    }
}

/// Bytes in MB or KB.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
