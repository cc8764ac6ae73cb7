//! Commands from other processes: one JSON line in, one JSON line out, over a socket in the
//! runtime folder that only this person may open.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::Supervisor;
use crate::events::command::{Ack, Command, Wire, WireAnswer};
use crate::events::port::Port;
use crate::events::problem::Problem;
use crate::ids::SessionId;
use crate::session::home::Owner;

/// Longest command taken, in bytes.
const MAX_LINE: u64 = 1024 * 1024;

/// How long the owner may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the owner of a session listens.
pub fn path(runtime: &Path, id: &SessionId) -> PathBuf {
    runtime.join(format!("{id}.sock"))
}

/// Listens for commands to a session until the task is aborted. None: it can't listen; the session
/// runs all the same, only nobody else can steer it.
pub fn listen(supervisor: &Arc<Supervisor>, runtime: &Path, id: &SessionId) -> Option<JoinHandle<()>> {
    let path = path(runtime, id);
    let listener = match bind(runtime, &path) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "no commands of other processes can be taken");
            return None;
        }
    };
    let supervisor = Arc::downgrade(supervisor);
    let remove = RemoveOnDrop(path);
    Some(tokio::spawn(async move {
        let _remove = remove;
        while let Ok((stream, _)) = listener.accept().await {
            let Some(supervisor) = supervisor.upgrade() else { return };
            tokio::spawn(async move {
                if let Err(error) = serve(&supervisor, stream).await {
                    tracing::debug!(%error, "a command of another process was not answered");
                }
            });
        }
    }))
}

struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn bind(runtime: &Path, path: &Path) -> std::io::Result<UnixListener> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(runtime)?;
    // A socket that a killed process left behind refuses connections; its session's lock is ours.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn serve(supervisor: &Supervisor, stream: UnixStream) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(read.take(MAX_LINE)).read_line(&mut line).await?;
    let answer: WireAnswer = match serde_json::from_str::<Wire>(&line) {
        Ok(wire) => supervisor.command(wire.command).await,
        Err(error) => Err(Problem::usage(format!("the command can't be understood: {error}"))),
    };
    let mut answer = serde_json::to_vec(&answer)?;
    answer.push(b'\n');
    write.write_all(&answer).await
}

/// Sends a command to the process that holds a session.
///
/// # Errors
/// It can't be reached, or it refused.
pub async fn send(owner: &Owner, command: Command) -> Result<Ack, Problem> {
    let unreachable = |why: String| {
        Problem::internal(format!("process {} holds the session and can't be reached: {why}", owner.pid))
            .hint(format!("end that process (`kill {}`), then try again", owner.pid))
    };
    let Some(path) = &owner.socket else { return Err(unreachable("it takes no commands".to_owned())) };
    let talk = async {
        let mut stream = UnixStream::connect(path).await?;
        let mut line = serde_json::to_vec(&Wire { command })?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await?;
        Ok::<_, std::io::Error>(serde_json::from_str::<WireAnswer>(&answer)?)
    };
    match tokio::time::timeout(PATIENCE, talk).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => Err(unreachable(error.to_string())),
        Err(_) => Err(unreachable("it does not answer".to_owned())),
    }
}
