//! How a process gives its values to the launcher that started it: whoever connects to its Unix socket gets
//! all of them as JSON, once. A socket in a folder is reached from other network namespaces, too.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{io, iter};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use crate::error::MetricsError;
use crate::families::MetricFamily;
use crate::measured::MetricSample;
use crate::source::{Collecting, MetricSource};

/// How long a process may take to give its values.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes that are read of one process.
const BYTES_MAX: u64 = 4 << 20;
/// The pause after a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// A Unix socket at which a launcher asks.
#[derive(Debug)]
pub struct ReportSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ReportSocket {
    /// Makes the socket, in the place of one that an earlier life left.
    ///
    /// # Errors
    /// [`MetricsError::Report`] for a path that cannot be had.
    pub fn bind(path: &Path) -> Result<Self, MetricsError> {
        let failed = |why| MetricsError::Report { path: path.to_owned(), why };
        if fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket()) {
            // What cannot be removed is named by the error of what follows.
            fs::remove_file(path).ok();
        }
        let listener = through_folder(path, UnixListener::bind).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Answers until it is dropped.
    pub(crate) async fn serve(self, source: Arc<dyn MetricSource>) {
        let listener = match tokio::net::UnixListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(why) => {
                let at = self.path.display();
                sluice_log::log!(MetricsFailed, %at, %why, "metrics are not reported at {at}: {why}");
                return;
            }
        };
        loop {
            // Only the launcher's user can connect, so that one after the other is enough.
            match listener.accept().await {
                Ok((stream, _)) => drop(timeout(PATIENCE, give(stream, &*source)).await),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }
}

async fn give(mut stream: UnixStream, source: &dyn MetricSource) -> io::Result<()> {
    let values = serde_json::to_vec(&source.collect().await)?;
    stream.write_all(&values).await?;
    stream.shutdown().await
}

/// Calls `does` with a path to the same place that is short: a socket's may have 108 bytes.
fn through_folder<T>(path: &Path, does: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    let is_own = |folder: &&Path| !folder.as_os_str().is_empty();
    let folder = File::open(path.parent().filter(is_own).unwrap_or(Path::new(".")))?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    does(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

/// The processes of a launcher, each with its socket. Their values get the label `process`.
#[derive(Debug)]
pub struct ReportedProcesses(Vec<(String, PathBuf)>);

impl ReportedProcesses {
    /// Processes by the names that they have as labels, and where each reports.
    pub fn new(processes: Vec<(String, PathBuf)>) -> Self {
        Self(processes)
    }
}

impl MetricSource for ReportedProcesses {
    fn collect(&self) -> Collecting<'_> {
        Box::pin(async {
            let asked: Vec<_> = self
                .0
                .iter()
                .map(|(name, path)| (name, tokio::spawn(timeout(PATIENCE, ask(path.clone())))))
                .collect();
            let mut values = Vec::new();
            for (name, asked) in asked {
                // A process that is dead, or does not answer in time, has no values.
                let given = asked.await.ok().and_then(Result::ok).and_then(Result::ok);
                let up = MetricSample::level(MetricFamily::ProcessUp, u8::from(given.is_some()));
                let all = iter::once(up).chain(given.into_iter().flatten());
                values.extend(all.map(|value| value.below("process", name.clone())));
            }
            values
        })
    }
}

async fn ask(path: PathBuf) -> io::Result<Vec<MetricSample>> {
    let stream = through_folder(&path, std::os::unix::net::UnixStream::connect)?;
    stream.set_nonblocking(true)?;
    let mut bytes = Vec::new();
    UnixStream::from_std(stream)?.take(BYTES_MAX).read_to_end(&mut bytes).await?;
    // A program that was built of another version may know other metrics.
    let values: Vec<Value> = serde_json::from_slice(&bytes)?;
    Ok(values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}
