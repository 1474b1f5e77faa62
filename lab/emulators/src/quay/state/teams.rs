//! Teams: robots that have rights together.

use serde::Deserialize;
use serde_json::{Value, json};

use super::account::check_name;
use super::shown::avatar;
use super::team::TeamRole;
use super::{Moment, State};
use crate::quay::answer::Answer;
use crate::quay::refusal::Refusal;
use crate::quay::request::Request;

#[derive(Deserialize)]
struct TeamBody {
    role: TeamRole,
    description: Option<String>,
}

impl State {
    pub(super) fn put_team(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let TeamBody { role, description } = request.document()?;
        let is_new = !self.teams.contains_key(&request.name);
        if is_new {
            check_name(&request.name)
                .map_err(|wrong| Refusal::short(format!("Invalid team name {}: {wrong}", request.name)))?;
        }
        let team = self.teams.entry(request.name.clone()).or_default();
        team.role = role;
        team.description = description.unwrap_or_else(|| std::mem::take(&mut team.description));
        let answer = json!({
            "name": request.name, "description": team.description, "can_view": true, "role": team.role,
            "avatar": avatar(&request.name, "team"), "new_team": is_new,
        });
        if is_new {
            self.log(at, request, "org_create_team", json!({"team": request.name}));
        }
        Ok(Answer::of(answer))
    }

    pub(super) fn delete_team(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let (name, organization) = (&request.name, &request.organization);
        if self.teams.remove(name).is_none() {
            return Err(Refusal::short(format!("Team '{name}' is not a team in org '{organization}'")));
        }
        for repository in self.repositories.values_mut() {
            repository.teams.remove(name);
        }
        self.prototypes.retain(|prototype| !prototype.is_of_team(name));
        self.log(at, request, "org_delete_team", json!({"team": name}));
        Ok(Answer::empty())
    }

    pub(super) fn list_members(&self, request: &Request) -> Result<Answer, Refusal> {
        let team = self.teams.get(&request.name).ok_or_else(Refusal::not_found)?;
        let members: Vec<_> = team.members.iter().map(|name| member(name)).collect();
        Ok(Answer::of(json!({"name": request.name, "members": members, "can_edit": true})))
    }

    pub(super) fn add_member(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let team = self.teams.get_mut(&request.name).ok_or_else(Refusal::not_found)?;
        if !self.robots.contains_key(&request.member) {
            return Err(Refusal::invalid("Unknown user"));
        }
        if !team.members.insert(request.member.clone()) {
            let (member, team) = (&request.member, &request.name);
            return Err(Refusal::short(format!("User '{member}' is already a member of team '{team}'")));
        }
        self.log(at, request, "org_add_team_member", json!({"member": request.member, "team": request.name}));
        Ok(Answer::of(member(&request.member)))
    }

    pub(super) fn remove_member(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let team = self.teams.get_mut(&request.name).ok_or_else(Refusal::not_found)?;
        if !self.robots.contains_key(&request.member) {
            return Err(Refusal::not_found());
        }
        if !team.members.remove(&request.member) {
            let (member, team) = (&request.member, &request.name);
            return Err(Refusal::short(format!("User {member} does not belong to team {team}")));
        }
        self.log(at, request, "org_remove_team_member", json!({"member": request.member, "team": request.name}));
        Ok(Answer::empty())
    }

    /// True if the robot is in a team with such a role.
    pub(super) fn has_team_role(&self, robot: &str, wanted: impl Fn(TeamRole) -> bool) -> bool {
        self.teams.values().any(|team| wanted(team.role) && team.members.contains(robot))
    }
}

fn member(name: &str) -> Value {
    json!({"name": name, "kind": "user", "is_robot": true, "avatar": avatar(name, "robot"), "invited": false})
}
