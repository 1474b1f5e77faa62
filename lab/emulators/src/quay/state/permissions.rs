//! Roles on repositories, and the rules that give them on new ones.

use serde::Deserialize;
use serde_json::{Value, json};

use super::repository::{Delegate, Kind, Prototype, Repository, Role};
use super::shown::avatar;
use super::team::TeamRole;
use super::{Moment, State};
use crate::quay::answer::Answer;
use crate::quay::refusal::Refusal;
use crate::quay::request::Request;

#[derive(Deserialize)]
struct RoleBody {
    role: Role,
}

#[derive(Deserialize)]
struct PrototypeBody {
    role: Role,
    delegate: Delegate,
}

// === impl State ===

impl State {
    pub(super) fn put_user_permission(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let RoleBody { role } = request.document()?;
        let known = self.robots.contains_key(&request.member);
        let repository = self.repository_mut(&request.name)?;
        if !known {
            return Err(Refusal::invalid(format!("User does not exist: {}", request.member)));
        }
        repository.users.insert(request.member.clone(), role);
        let logged = json!({
            "username": request.member, "repo": request.name, "namespace": request.organization, "role": role,
        });
        self.log(at, request, "change_repo_permission", logged);
        Ok(Answer::of(user_permission(&request.member, role)))
    }

    pub(super) fn get_user_permission(&mut self, request: &Request) -> Result<Answer, Refusal> {
        let repository = self.repository_mut(&request.name)?;
        let role = repository.users.get(&request.member);
        let role = role.ok_or_else(|| Refusal::short("User does not have permission for repo."))?;
        Ok(Answer::of(user_permission(&request.member, *role)))
    }

    pub(super) fn delete_user_permission(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        if self.repository_mut(&request.name)?.users.remove(&request.member).is_none() {
            return Err(Refusal::invalid("User does not have permission for repo."));
        }
        let logged = json!({"username": request.member, "repo": request.name, "namespace": request.organization});
        self.log(at, request, "delete_repo_permission", logged);
        Ok(Answer::empty())
    }

    pub(super) fn put_team_permission(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let RoleBody { role } = request.document()?;
        let known = self.teams.contains_key(&request.member);
        let repository = self.repository_mut(&request.name)?;
        if !known {
            return Err(Refusal::invalid(format!("Team does not exist: {}", request.member)));
        }
        repository.teams.insert(request.member.clone(), role);
        let logged = json!({"team": request.member, "repo": request.name, "role": role});
        self.log(at, request, "change_repo_permission", logged);
        Ok(Answer::of(json!({"name": request.member, "role": role, "avatar": avatar(&request.member, "team")})))
    }

    pub(super) fn delete_team_permission(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        if self.repository_mut(&request.name)?.teams.remove(&request.member).is_none() {
            return Err(Refusal::invalid("Team does not have permission for repo."));
        }
        self.log(at, request, "delete_repo_permission", json!({"team": request.member, "repo": request.name}));
        Ok(Answer::empty())
    }

    pub(super) fn list_robot_permissions(&self, request: &Request) -> Result<Answer, Refusal> {
        let robot = self.account(&request.robot())?;
        let permissions = self.repositories.iter().filter_map(|(name, repository)| {
            let role = repository.users.get(&robot.name)?;
            Some(json!({"repository": {"name": name, "is_public": false}, "role": role}))
        });
        Ok(Answer::of(json!({"permissions": permissions.collect::<Vec<_>>()})))
    }

    pub(super) fn create_prototype(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let PrototypeBody { role, delegate } = request.document()?;
        let known = match delegate.kind {
            Kind::User => self.robots.contains_key(&delegate.name),
            Kind::Team => self.teams.contains_key(&delegate.name),
        };
        if !known {
            return Err(Refusal::invalid("Missing delegate user or team"));
        }
        let prototype = Prototype { id: uuid(), delegate, role };
        let answer = prototype.document();
        let logged = json!({"prototypeid": prototype.id, "username": at.user, "role": role});
        self.prototypes.push(prototype);
        self.log(at, request, "create_prototype_permission", logged);
        Ok(Answer::of(answer))
    }

    pub(super) fn list_prototypes(&self) -> Answer {
        Answer::of(json!({"prototypes": self.prototypes.iter().map(Prototype::document).collect::<Vec<_>>()}))
    }

    pub(super) fn delete_prototype(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let index = self.prototypes.iter().position(|prototype| prototype.id == request.name);
        self.prototypes.remove(index.ok_or_else(Refusal::not_found)?);
        self.log(at, request, "delete_prototype_permission", json!({"prototypeid": request.name}));
        Ok(Answer::empty())
    }

    /// Adds a repository with the roles that the rules for new ones give.
    pub(crate) fn add_repository(&mut self, name: &str) {
        let mut repository = Repository::default();
        for Prototype { delegate, role, .. } in &self.prototypes {
            let roles = match delegate.kind {
                Kind::User => &mut repository.users,
                Kind::Team => &mut repository.teams,
            };
            roles.insert(delegate.name.clone(), *role);
        }
        self.repositories.entry(name.to_owned()).or_insert(repository);
    }

    /// The role of a robot on a repository by itself or by its teams; none if there is no such repository.
    pub(super) fn role(&self, robot: &str, repository: &str) -> Option<Role> {
        let found = self.repositories.get(repository)?;
        if self.has_team_role(robot, |role| role == TeamRole::Admin) {
            return Some(Role::Admin);
        }
        let by_team = found
            .teams
            .iter()
            .filter(|(team, _)| self.teams.get(*team).is_some_and(|team| team.members.contains(robot)));
        let by_team = by_team.map(|(_, role)| *role).max();
        by_team.max(found.users.get(robot).copied())
    }

    fn repository_mut(&mut self, name: &str) -> Result<&mut Repository, Refusal> {
        self.repositories.get_mut(name).ok_or_else(Refusal::not_found)
    }
}

fn user_permission(name: &str, role: Role) -> Value {
    json!({"name": name, "role": role, "is_robot": true, "is_org_member": true, "avatar": avatar(name, "robot")})
}

fn uuid() -> String {
    let digits = format!("{:032x}", rand::random::<u128>());
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}
