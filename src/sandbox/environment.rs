//! What of the person's environment a command gets: names on a list, and never a key.

/// Variables a command may have, besides those that start with `LC_`.
const ALLOWED: &[&str] = &[
    // the person and the system
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_SSL_CERT_FILE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    // reaching the network
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    // where tool chains lie
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOPROXY",
    "GOFLAGS",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "SDKMAN_DIR",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "NVM_DIR",
    "NODE_PATH",
    "PNPM_HOME",
    "DENO_DIR",
    "BUN_INSTALL",
    "VOLTA_HOME",
    "FNM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "UV_CACHE_DIR",
    "PIP_CACHE_DIR",
    "PIP_INDEX_URL",
    "RBENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "COMPOSER_HOME",
    "DOTNET_ROOT",
    "MIX_HOME",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "PKG_CONFIG_PATH",
    "CC",
    "CXX",
    "AR",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "CMAKE_PREFIX_PATH",
    // where git keeps who the person is
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    // a fixed time for builds that can be repeated
    "SOURCE_DATE_EPOCH",
];

/// Parts of names that stand for keys.
const SECRET: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH_SOCK"];

/// Values that every command gets: no questions, no pager, no colours.
const FIXED: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PYTHONUNBUFFERED", "1"),
];

/// What a command gets of `snapshot`, plus the fixed values.
pub fn for_commands(snapshot: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let allowed = snapshot.into_iter().filter(|(name, value)| is_allowed(name, value));
    let mut environment: Vec<(String, String)> =
        allowed.filter(|(name, _)| FIXED.iter().all(|(fixed, _)| fixed != name)).collect();
    environment.extend(FIXED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    environment
}

fn is_allowed(name: &str, value: &str) -> bool {
    (ALLOWED.contains(&name) || name.starts_with("LC_")) && !looks_secret(name) && !holds_login(value)
}

/// Whether a variable's name says that it holds a key.
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET.iter().any(|part| name.contains(part))
}

/// Whether a value is an address with a name and password in it, as of a proxy.
fn holds_login(value: &str) -> bool {
    value.split_once("://").is_some_and(|(_, rest)| rest.split('/').next().is_some_and(|host| host.contains('@')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_unknown_names_stay_out() {
        let snapshot = [
            ("PATH", "/bin"),
            ("HOME", "/home/a"),
            ("LC_ALL", "C.UTF-8"),
            ("LC_API_KEY", "k"),
            ("OPENAI_API_KEY", "k"),
            ("GITHUB_TOKEN", "k"),
            ("AWS_SECRET_ACCESS_KEY", "k"),
            ("SSH_AUTH_SOCK", "/s"),
            ("SOMETHING", "else"),
            ("TERM", "xterm"),
            ("HTTPS_PROXY", "http://name:word@proxy:8080/"),
            ("HTTP_PROXY", "http://proxy:8080/"),
        ];
        let got = for_commands(snapshot.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let names: Vec<&str> = got.iter().map(|(name, _)| name.as_str()).collect();
        let fixed = FIXED.iter().map(|(name, _)| *name);
        let expected: Vec<&str> = ["PATH", "HOME", "LC_ALL", "HTTP_PROXY"].into_iter().chain(fixed).collect();
        assert_eq!(names, expected);
    }
}
