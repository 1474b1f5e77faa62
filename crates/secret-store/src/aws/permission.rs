//! Permissions as actions of AWS's IAM.

use crate::Permission;

/// Returns the action that a permission consists of.
pub(super) fn name(permission: Permission) -> &'static str {
    match permission {
        Permission::Create => "secretsmanager:CreateSecret",
        Permission::Find => "secretsmanager:DescribeSecret",
        Permission::List => "secretsmanager:ListSecrets",
        Permission::Update => "secretsmanager:TagResource",
        Permission::Delete => "secretsmanager:DeleteSecret",
        Permission::AddVersion => "secretsmanager:PutSecretValue",
        Permission::ReadVersion => "secretsmanager:GetSecretValue",
        Permission::FindVersion | Permission::ListVersions => "secretsmanager:ListSecretVersionIds",
        Permission::DestroyVersion => "secretsmanager:UpdateSecretVersionStage",
    }
}
