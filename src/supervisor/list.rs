//! Listing and finding sessions over all roots.

use std::collections::HashSet;

use super::Supervisor;
use crate::events::data::{Outcome, SessionStatus, Totals};
use crate::events::problem::Problem;
use crate::events::query::{SessionDetail, SessionSummary};
use crate::ids::SessionId;
use crate::session::home::{Home, homes};
use crate::session::models::SessionRecord;

impl Supervisor {
    /// All sessions, running first, then newest. One that can't be read is listed as broken.
    pub(super) fn sessions(&self) -> Vec<SessionSummary> {
        let homes = self.places.roots.iter().flat_map(|root| homes(root));
        // Of a session that lies in two roots, the one counts that commands would find.
        let mut seen = HashSet::new();
        let mut all: Vec<SessionSummary> =
            homes.filter(|home| seen.insert(home.id())).filter_map(|home| self.summary(&home)).collect();
        all.sort_by_key(|s| (s.status != SessionStatus::Running, std::cmp::Reverse(s.active_at)));
        all
    }

    fn summary(&self, home: &Home) -> Option<SessionSummary> {
        let id = home.id()?;
        if let Some(session) = self.here(&id) {
            return Some(session.record().summary(home.path().to_owned()));
        }
        Some(match home.load() {
            Ok(record) => seen_from_outside(&record, home),
            Err(problem) => broken(id, home, &problem),
        })
    }

    /// A session's record, from memory when it runs here.
    pub(super) fn record(&self, id: &SessionId) -> Result<(Home, SessionRecord), Problem> {
        let home = self.home(id)?;
        let record = match self.here(id) {
            Some(session) => session.record().as_ref().clone(),
            None => home.load()?,
        };
        Ok((home, record))
    }

    pub(super) fn detail(&self, id: &SessionId) -> Result<SessionDetail, Problem> {
        let (home, record) = self.record(id)?;
        let deliverable = std::fs::read(home.output()).ok().and_then(|c| serde_json::from_slice(&c).ok());
        let mut detail = record.detail(home.path().to_owned(), deliverable);
        if self.here(id).is_none() {
            detail.summary = seen_from_outside(&record, &home);
        }
        Ok(detail)
    }

    /// The session that an id, a unique prefix of one, a name or `last` means.
    pub(super) fn find(&self, wanted: &str) -> Result<SessionId, Problem> {
        let exact = SessionId::new(wanted);
        if exact.is_well_formed() && self.home(&exact).is_ok() {
            return Ok(exact);
        }
        let all = self.sessions();
        let unknown = |what: String| Problem::usage(what).hint("`super-agent sessions` lists them");
        if wanted == "last" {
            let newest = all.iter().max_by_key(|s| s.active_at);
            return newest.map(|s| s.id.clone()).ok_or_else(|| {
                Problem::usage("there is no session yet")
                    .hint("start one with `super-agent run \"…\"`, or try `super-agent demo`")
            });
        }
        let named: Vec<_> = all.iter().filter(|s| s.name == wanted).collect();
        let found = if named.is_empty() {
            all.iter().filter(|s| !wanted.is_empty() && s.id.as_str().starts_with(wanted)).collect()
        } else {
            named
        };
        match found.as_slice() {
            [one] => Ok(one.id.clone()),
            [] => Err(unknown(format!("there is no session `{wanted}`"))),
            many => {
                let ids: Vec<_> = many.iter().take(8).map(|s| s.id.as_str()).collect();
                Err(unknown(format!("`{wanted}` may be any of {}", ids.join(", "))))
            }
        }
    }
}

/// A session that does not run here: running elsewhere, or interrupted when nobody holds it.
fn seen_from_outside(record: &SessionRecord, home: &Home) -> SessionSummary {
    let mut summary = record.summary(home.path().to_owned());
    if summary.status == SessionStatus::Running {
        if home.holder().is_some() {
            summary.elsewhere = true;
        } else {
            summary.status = SessionStatus::Stopped;
            summary.outcome = Some(Outcome::Interrupted);
            summary.waiting = false;
        }
    }
    summary
}

fn broken(id: SessionId, home: &Home, problem: &Problem) -> SessionSummary {
    let changed = std::fs::metadata(home.journal()).and_then(|m| m.modified()).ok();
    let at = changed.and_then(|t| jiff::Timestamp::try_from(t).ok()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    SessionSummary {
        name: id.to_string(),
        id,
        objective: String::new(),
        status: SessionStatus::Error,
        outcome: Some(Outcome::InternalError),
        waiting: false,
        elsewhere: false,
        cycle: 0,
        max_cycles: 0,
        verdicts: Vec::new(),
        totals: Totals::default(),
        home: home.path().to_owned(),
        dir: home.path().to_owned(),
        scripted: false,
        created_at: at,
        active_at: at,
        broken: Some(problem.to_string()),
    }
}
