//! Completions and the manual page, made from the same description as the arguments.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use super::args::Arguments;

/// Writes completions for a shell.
///
/// # Errors
/// They can't be written.
pub fn completions(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "super-agent", &mut text);
    out.write_all(&text)
}

/// Writes the manual page: the program, then each command.
///
/// # Errors
/// It can't be written.
pub fn man(out: &mut dyn Write) -> io::Result<()> {
    let mut program = Arguments::command();
    program.build();
    clap_mangen::Man::new(program.clone()).render(out)?;
    for command in program.get_subcommands() {
        let name = format!("super-agent {}", command.get_name());
        let page = clap_mangen::Man::new(command.clone().name(name.clone()).bin_name(name));
        writeln!(out)?;
        page.render_name_section(out)?;
        page.render_synopsis_section(out)?;
        page.render_description_section(out)?;
        page.render_options_section(out)?;
        page.render_extra_section(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_gets_completions_that_know_the_commands() {
        for shell in Shell::value_variants() {
            let mut out = Vec::new();
            completions(*shell, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains("rewind") && text.contains("checker-model"), "{shell}");
        }
    }

    #[test]
    fn the_manual_page_describes_every_command_and_the_exit_codes() {
        let mut out = Vec::new();
        man(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with(".ie"), "no manual page: {}", &text[..40]);
        for command in Arguments::command().get_subcommands() {
            assert!(text.contains(&format!("super\\-agent {}", command.get_name())), "{}", command.get_name());
        }
        assert!(text.contains("needs_human"));
    }
}
