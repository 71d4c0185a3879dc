//! Controls a browser for tests: Chromium's `DevTools` protocol over two pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A browser with one page. Dropping it closes the browser.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    calls: u64,
    /// The errors that the page reported.
    errors: Vec<String>,
    _profile: tempfile::TempDir,
}

/// The maximum time for one answer of the browser. A machine may be slow due to other tests.
const PATIENCE: Duration = Duration::from_mins(3);

impl Browser {
    /// Starts a browser whose window has this size.
    pub fn start(width: u32, height: u32) -> Self {
        let profile = tempfile::tempdir().expect("a temporary folder");
        // The browser reads from file descriptor 3 and writes to file descriptor 4.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 1>&2"])
            .arg(etw_test_support::program("WDK_ETW_BROWSER", "chromium"))
            .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars"])
            .args(["--remote-debugging-pipe", "--force-device-scale-factor=1"])
            .arg(format!("--window-size={width},{height}"))
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts; `cargo xtask doctor --install` installs one");
        let to = process.stdin.take().expect("a pipe");
        let mut answers = BufReader::new(process.stdout.take().expect("a pipe"));
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let answer = serde_json::from_slice(&message).expect("messages are JSON");
                message.clear();
                if sender.send(answer).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            process,
            to,
            from,
            session: None,
            calls: 0,
            errors: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        browser.call("Emulation.setDeviceMetricsOverride", size);
        browser
    }

    /// Calls a method of the protocol, and returns the result.
    #[expect(clippy::needless_pass_by_value, reason = "callers write the parameters in the call")]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let answer = self
                .from
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|error| panic!("{method}: no answer: {error}"));
            if answer["id"] == self.calls {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    /// Keeps messages that report an error in the page.
    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        let is_error = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => parameters["type"] != "log",
            Some("Log.entryAdded") => parameters["entry"]["level"] == "error",
            _ => false,
        };
        if is_error {
            self.errors.push(event.to_string());
        }
    }

    /// Opens a page, and waits until its script is ready. Returns the time this took.
    pub fn open(&mut self, page: &Path, hash: &str) -> Duration {
        // A browser does not reload a page if only the part after # differs.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        let start = Instant::now();
        let url = format!("file://{}{hash}", page.display());
        self.call("Page.navigate", json!({"url": url}));
        self.wait_for("document.body?.dataset.ready === 'yes'");
        start.elapsed()
    }

    /// Returns the value of an expression; waits for the value of a promise.
    pub fn eval(&mut self, script: &str) -> Value {
        let call = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", call);
        let thrown = answer.get("exceptionDetails");
        assert!(thrown.is_none(), "{script}: {}", thrown.expect("an exception"));
        answer["result"]["value"].clone()
    }

    /// Returns a string's text, or another value as JSON.
    pub fn text(&mut self, script: &str) -> String {
        let value = self.eval(script);
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    }

    /// Returns a whole number.
    pub fn number(&mut self, script: &str) -> i64 {
        let value = self.eval(&format!("Number({script})"));
        let number = value.as_f64().unwrap_or_else(|| panic!("{script}: {value}"));
        #[expect(clippy::cast_possible_truncation, reason = "tests count little")]
        let number = number as i64;
        number
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn wait_for(&mut self, condition: &str) {
        let start = Instant::now();
        while self.eval(condition) != json!(true) {
            let page = "document.body?.dataset.ready + ' ' + document.getElementById('status')?.textContent";
            assert!(
                start.elapsed() < PATIENCE,
                "not true: {condition}; the page: {}; errors: {:#?}",
                self.text(page),
                self.errors
            );
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Presses a key, such as `Enter` or `a`.
    pub fn press(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            _ if key.chars().count() == 1 => key,
            _ => "",
        };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        self.call("Input.dispatchKeyEvent", json!({"type": down, "key": key, "text": text}));
        self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key}));
    }

    /// Drags the mouse between two points of an element, in pixels from its corner.
    pub fn drag(&mut self, selector: &str, from: (f64, f64), to: (f64, f64)) {
        let corner = self.eval(&format!(
            "(() => {{ const box = document.querySelector('{selector}'); box.scrollIntoView({{block: 'center'}});
            const rect = box.getBoundingClientRect(); return [rect.left, rect.top]; }})()"
        ));
        let at = |(x, y): (f64, f64)| {
            let (left, top) = (corner[0].as_f64(), corner[1].as_f64());
            (x + left.expect("a number"), y + top.expect("a number"))
        };
        for (kind, place) in [
            ("mouseMoved", from),
            ("mousePressed", from),
            ("mouseMoved", to),
            ("mouseReleased", to),
        ] {
            let (x, y) = at(place);
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Returns a picture of the window as a PNG.
    pub fn screenshot(&mut self) -> Vec<u8> {
        use base64::Engine;
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let text = shot["data"].as_str().expect("a picture");
        base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
    }

    /// Panics if the page reported an error.
    #[track_caller]
    pub fn assert_no_errors(&mut self) {
        self.eval("0"); // all earlier messages have arrived
        assert!(self.errors.is_empty(), "{:#?}", self.errors);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}
