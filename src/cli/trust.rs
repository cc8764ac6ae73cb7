//! `trust`: accepts a project's own configuration, or takes the consent back. Shows what it is
//! about, so that nobody accepts unseen.

use std::io::{self, Write};

use super::args::TrustArgs;
use crate::config::environment::Environment;
use crate::config::paths::Paths;
use crate::config::project;
use crate::config::trust::TrustStore;
use crate::events::problem::Problem;
use crate::stdx::text::sanitize_line;

/// Runs the command.
///
/// # Errors
/// The folder has no configuration of its own, or the answer can't be kept.
pub fn run(args: &TrustArgs, environment: &Environment, paths: &Paths, out: &mut dyn Write) -> Result<(), Problem> {
    let here = &environment.current_dir;
    let dir = args.dir.as_deref().map_or_else(|| here.clone(), |dir| environment.absolute(dir, here));
    let root = project::find(&dir, environment).ok_or_else(|| {
        Problem::usage(format!("`{}` belongs to no project with a configuration of its own", dir.display()))
            .hint(format!("a project has one in `{}/` or `workers.yaml`", project::FOLDER))
    })?;
    let store = TrustStore::new(paths);
    let name = sanitize_line(&root.to_string_lossy());
    if args.revoke {
        let said = match store.untrust(&root)? {
            true => format!("the configuration of {name} no longer counts"),
            false => format!("the configuration of {name} did not count"),
        };
        return written(writeln!(out, "{said}"));
    }
    store.trust(&root)?;
    written((|| {
        writeln!(out, "the configuration of {name} counts from now on, until one of these files changes:")?;
        for file in project::files(&root)? {
            writeln!(out, "  {}", sanitize_line(&file.to_string_lossy()))?;
        }
        Ok(())
    })())
}

fn written(result: io::Result<()>) -> Result<(), Problem> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Problem::from),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn consent_is_given_and_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let variables = [("HOME".to_owned(), dir.path().to_string_lossy().into_owned())].into();
        let environment = Environment { variables, current_dir: dir.path().join("project") };
        let paths = Paths::resolve(&environment).unwrap();
        let run = |args: TrustArgs| {
            let mut out = Vec::new();
            run(&args, &environment, &paths, &mut out)
                .map(|()| String::from_utf8(out).unwrap().replace(&dir.path().display().to_string(), "HOME"))
        };
        fs::create_dir_all(&environment.current_dir).unwrap();
        let error = run(TrustArgs::default()).unwrap_err();
        assert!(error.what.ends_with("belongs to no project with a configuration of its own"), "{error}");

        fs::create_dir_all(environment.current_dir.join(".super-agent/prompts")).unwrap();
        fs::write(environment.current_dir.join(".super-agent/prompts/a.prompt"), "").unwrap();
        fs::write(environment.current_dir.join("workers.yaml"), "").unwrap();
        let expected = "the configuration of HOME/project counts from now on, until one of these files changes:\n  \
                        .super-agent/prompts/a.prompt\n  workers.yaml\n";
        assert_eq!(run(TrustArgs::default()).unwrap(), expected);
        assert_eq!(TrustStore::new(&paths).is_trusted(&environment.current_dir), Ok(true));

        let revoke = TrustArgs { dir: Some(".".into()), revoke: true };
        assert_eq!(run(revoke.clone()).unwrap(), "the configuration of HOME/project no longer counts\n");
        assert_eq!(run(revoke).unwrap(), "the configuration of HOME/project did not count\n");
    }
}
