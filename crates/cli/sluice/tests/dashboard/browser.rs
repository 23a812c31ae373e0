//! A headless Chromium, driven over the DevTools protocol on a pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long the page may take to get into a state.
const PATIENCE: Duration = Duration::from_mins(3);

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
    session: Option<String>,
}

impl Browser {
    /// Starts Chromium with this folder for its files; `None` where it is not installed.
    pub(crate) fn start(folder: &Path) -> Option<Self> {
        Self::start_below(Command::new("env"), folder)
    }

    /// Starts Debian's Chromium with these policies of its administrator.
    pub(crate) fn start_with_policies(folder: &Path, policies: &Value) -> Option<Self> {
        let managed = folder.join("etc/policies/managed");
        std::fs::create_dir_all(&managed).expect("made");
        std::fs::write(managed.join("test.json"), policies.to_string()).expect("written");
        Self::start_below(with_policies(folder), folder)
    }

    /// Starts it as the command that comes behind another one.
    fn start_below(mut other: Command, folder: &Path) -> Option<Self> {
        let program = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
            let found =
                Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            found.is_ok_and(|status| status.success())
        })?;
        // The protocol's pipes are the descriptors 3 and 4.
        let script = format!(
            "exec {program} --headless --remote-debugging-pipe --no-sandbox --disable-gpu \
             --disable-dev-shm-usage --no-first-run --disable-background-networking --force-color-profile=srgb \
             --user-data-dir=\"$1\" \
             3<&0 4>&1 </dev/null >/dev/null 2>&1"
        );
        let mut child = other
            .args(["sh", "-c", &script, "sh"])
            .arg(folder.join("browser"))
            .env("HOME", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let (to, from) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut browser = Self { child, to, from: BufReader::new(from), calls: 0, session: None };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = browser
            .call("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", &json!({}));
        browser.call("Accessibility.enable", &json!({}));
        Some(browser)
    }

    /// Makes a call of the protocol.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.clone().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser runs");
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).expect("the browser runs");
            assert_eq!(bytes.pop(), Some(0), "the browser ended in {method}");
            let mut answer: Value = serde_json::from_slice(&bytes).expect("JSON");
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    pub(crate) fn open(&mut self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
    }

    pub(crate) fn set_size(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Shows the page as on a system with dark colours, or with light ones.
    pub(crate) fn set_dark(&mut self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asks = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &asks);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let until = Instant::now() + PATIENCE;
        while self.value(&format!("Boolean({expression})")) != true {
            if Instant::now() > until {
                let page = self.value("document.body.innerText");
                panic!("never true: {expression}\n{}", page.as_str().unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses and releases a key, such as `Tab`, `Enter` or `ArrowDown`.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "ArrowDown" => (40, ""),
            other => panic!("which key is {other}?"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Presses Tab until the focus is on an element of this name.
    pub(crate) fn tab_to(&mut self, name: &str) {
        for _ in 0..200 {
            self.press("Tab");
            let focused =
                "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent";
            if self.value(focused) == name {
                return;
            }
        }
        panic!("Tab does not come to {name}");
    }

    /// The roles and names that a screen reader gets.
    pub(crate) fn spoken(&mut self) -> Vec<(String, String)> {
        let tree = self.call("Accessibility.getFullAXTree", &json!({}));
        let nodes = tree["nodes"].as_array().expect("nodes");
        let heard = nodes.iter().filter(|node| node["ignored"] != true);
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
        heard.map(|node| (text(&node["role"]), text(&node["name"]))).collect()
    }

    /// Checks that a screen reader gets all of these: roles, and parts of names.
    pub(crate) fn speaks_of(&mut self, wanted: &[(&str, &str)]) {
        let heard = self.spoken();
        for (role, name) in wanted {
            let is_heard = heard.iter().any(|(is, called)| is == role && called.contains(name));
            assert!(is_heard, "{role} {name}: {heard:#?}");
        }
    }

    /// Checks that the page is no wider than the window at these widths, and keeps pictures.
    pub(crate) fn fits(&mut self, name: &str, sizes: &[(u32, u32)]) {
        for (width, height) in sizes {
            self.set_size(*width, *height);
            let wide = self.value("document.documentElement.scrollWidth");
            assert!(wide.as_u64().expect("a number") <= u64::from(*width), "{name}: {wide} at {width}");
            self.keep_picture(&format!("{name}-{width}"));
        }
    }

    /// Keeps a picture of the page in the folder that `SLUICE_SCREENSHOTS` names, for people to look at.
    pub(crate) fn keep_picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("SLUICE_SCREENSHOTS") else { return };
        let asks = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.call("Page.captureScreenshot", &asks);
        let file = Path::new(&folder).join(format!("{name}.png.base64"));
        std::fs::write(file, picture["data"].as_str().expect("a picture")).expect("written");
    }
}

/// What starts a command for which `etc` in this folder is where Chromium looks for policies.
pub(crate) fn with_policies(folder: &Path) -> Command {
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let etc = folder.join("etc");
    std::fs::create_dir_all(&etc).expect("made");
    let script = "mount --bind \"$0\" /etc/chromium && exec \"$@\"";
    unshare.args(["--mount", "sh", "-c", script]).arg(etc);
    unshare
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser may have ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
