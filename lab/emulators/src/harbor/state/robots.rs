//! Robots of the project.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Answer, PROJECT_ID, State, date, days};
use crate::harbor::refusal::Refusal;
use crate::harbor::request::{Conditions, Request};
use crate::harbor::settings::Robot;

/// The longest description: that of the column in Harbor's database.
const DESCRIPTION_MAXIMUM: usize = 1024;

/// The signs of a password.
const SECRET_SIGNS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The checked part of a robot's document.
struct Wanted {
    name: String,
    description: String,
    duration: i64,
    disabled: bool,
    pulls: bool,
}

// === impl State ===

impl State {
    /// A password in the body is ignored.
    pub(super) fn create_robot(&mut self, now: Timestamp, request: &Request) -> Result<Answer, Refusal> {
        let wanted = self.wanted(&request.document()?)?;
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if !wanted.name.split(['.', '_', '-']).all(is_part) {
            return Err(Refusal::invalid("robot name is not in lower case or contains illegal characters"));
        }
        let stored = format!("{}+{}", self.settings.project, wanted.name);
        let name = format!("{}{stored}", self.settings.robot_prefix);
        if self.robots.values().any(|robot| robot.name == name) {
            return Err(Refusal::new(409, format!("robot account {PROJECT_ID}:{stored} already exists")));
        }
        self.last_id += 1;
        let robot = Robot {
            id: self.last_id,
            name,
            secret: secret(),
            description: wanted.description,
            created: now,
            duration: wanted.duration,
            disabled: false,
            pulls: wanted.pulls,
        };
        let body = json!({
            "id": robot.id, "name": robot.name, "secret": robot.secret, "creation_time": date(now),
            "expires_at": expires_at(&robot),
        });
        self.robots.insert(robot.id, robot);
        Ok(Answer { status: 201, ..Answer::of(body) })
    }

    /// Without a level in the query, the robots of no project are listed.
    pub(super) fn list_robots(&self, request: &Request) -> Result<Answer, Refusal> {
        let (page, conditions) = (request.page()?, Conditions::read(request)?);
        let is_of_project = match conditions.get("Level") {
            None | Some("system") => false,
            Some("project") => match conditions.get("ProjectID").map(str::parse::<u64>) {
                Some(Ok(PROJECT_ID)) => true,
                Some(Ok(_another)) => return Err(Refusal::forbidden()),
                Some(Err(_error)) => return Err(Refusal::invalid("Project ID must be int type.")),
                None => return Err(Refusal::invalid("must with project ID when to query project robots")),
            },
            Some(_) => return Err(Refusal::invalid("bad request error level input")),
        };
        // The stored name has no prefix.
        let stored =
            |robot: &Robot| robot.name.strip_prefix(&self.settings.robot_prefix).unwrap_or_default().to_owned();
        let is_asked_for = |robot: &&Robot| is_of_project && conditions.holds("name", &stored(robot));
        let mut found: Vec<&Robot> = self.robots.values().filter(is_asked_for).collect();
        if request.parameter("sort") != Some("id") {
            found.sort_by(|one, other| one.name.cmp(&other.name));
        }
        let total = Some(found.len());
        let robots: Vec<Value> =
            found.into_iter().skip(page.skip).take(page.size).map(|robot| self.document(robot)).collect();
        Ok(Answer { total, ..Answer::of(json!(robots)) })
    }

    pub(super) fn get_robot(&self, request: &Request) -> Result<Answer, Refusal> {
        let id = number(request)?;
        let robot = self.robots.get(&id).ok_or_else(|| Refusal::no_robot(id))?;
        Ok(Answer::of(self.document(robot)))
    }

    /// Replaces everything but the name, the level and the password.
    pub(super) fn update_robot(&mut self, request: &Request) -> Result<Answer, Refusal> {
        let (id, wanted) = (number(request)?, self.wanted(&request.document()?)?);
        let robot = self.robots.get_mut(&id).ok_or_else(|| Refusal::no_robot(id))?;
        if wanted.name != robot.name {
            return Err(Refusal::invalid("cannot update the level or name of robot"));
        }
        (robot.description, robot.duration) = (wanted.description, wanted.duration);
        (robot.disabled, robot.pulls) = (wanted.disabled, wanted.pulls);
        Ok(Answer::empty())
    }

    /// Sets the given password, or makes one and shows it. The old one is refused at once.
    pub(super) fn refresh_robot(&mut self, request: &Request) -> Result<Answer, Refusal> {
        let (id, body) = (number(request)?, request.document()?);
        let robot = self.robots.get_mut(&id).ok_or_else(|| Refusal::no_robot(id))?;
        let given = text(&body, "secret");
        if given.is_empty() {
            robot.secret = secret();
            return Ok(Answer::of(json!({"secret": robot.secret})));
        }
        if !is_valid(&given) {
            return Err(Refusal::invalid("the secret must be 8-128, inclusively, characters long"));
        }
        robot.secret = given;
        Ok(Answer::of(json!({"secret": ""})))
    }

    pub(super) fn delete_robot(&mut self, request: &Request) -> Result<Answer, Refusal> {
        let id = number(request)?;
        self.robots.remove(&id).map(|_robot| Answer::empty()).ok_or_else(|| Refusal::no_robot(id))
    }

    fn document(&self, robot: &Robot) -> Value {
        let action = if robot.pulls { "pull" } else { "read" };
        let access = json!([{"resource": "repository", "action": action, "effect": "allow"}]);
        json!({
            "id": robot.id, "name": robot.name, "description": robot.description, "level": "project",
            "duration": robot.duration, "expires_at": expires_at(robot), "disable": robot.disabled, "editable": true,
            "creation_time": date(robot.created), "update_time": date(robot.created),
            "permissions": [{"kind": "project", "namespace": self.settings.project, "access": access}],
        })
    }

    fn wanted(&self, body: &Value) -> Result<Wanted, Refusal> {
        let duration = body.get("duration").and_then(Value::as_i64).unwrap_or_default();
        if duration != -1 && duration <= 0 {
            return Err(Refusal::invalid(format!("bad request error duration input: {duration}")));
        }
        if text(body, "level") != "project" {
            return Err(Refusal::invalid("bad request error level input"));
        }
        let [permission] = body.get("permissions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
        else {
            return Err(Refusal::invalid("bad request permission"));
        };
        let access = permission.get("access").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if access.is_empty() {
            return Err(Refusal::invalid("bad request empty access"));
        }
        self.check_project(&text(permission, "namespace"))?;
        let description = text(body, "description");
        if description.chars().count() > DESCRIPTION_MAXIMUM {
            return Err(Refusal::new(500, "internal server error"));
        }
        let pulls = access.iter().any(|one| text(one, "resource") == "repository" && text(one, "action") == "pull");
        let disabled = body.get("disable").and_then(Value::as_bool).unwrap_or_default();
        Ok(Wanted { name: text(body, "name"), description, duration, disabled, pulls })
    }
}

fn expires_at(robot: &Robot) -> i64 {
    if robot.duration == -1 {
        -1
    } else {
        robot.created.saturating_add(days(robot.duration)).map_or(i64::MAX, Timestamp::as_second)
    }
}

fn number(request: &Request) -> Result<u64, Refusal> {
    request.target.parse().map_err(|_error| Refusal::new(422, "robot_id in path must be of type int64"))
}

fn text(body: &Value, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A random password with a sign of each kind.
fn secret() -> String {
    let sign = |_| SECRET_SIGNS.get(rand::random::<u32>() as usize % SECRET_SIGNS.len()).copied();
    let random: String = (0..29).filter_map(sign).map(char::from).collect();
    format!("{random}aA0")
}

fn is_valid(secret: &str) -> bool {
    let has = |is_kind: fn(&char) -> bool| secret.chars().any(|sign| is_kind(&sign));
    (8..=128).contains(&secret.len())
        && has(char::is_ascii_lowercase)
        && has(char::is_ascii_uppercase)
        && has(char::is_ascii_digit)
}
