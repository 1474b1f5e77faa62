package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/openshift-hyperfleet/pull-secret/lab/interop/go/internal/check"
)

func (s *story) update(ctx context.Context, secret *secretmanagerpb.Secret, paths ...string) (*secretmanagerpb.Secret, error) {
	mask := &fieldmaskpb.FieldMask{Paths: paths}
	return s.UpdateSecret(ctx, &secretmanagerpb.UpdateSecretRequest{Secret: secret, UpdateMask: mask})
}

// updates changes annotations and aliases under the etag, and delays destruction.
func (s *story) updates(ctx context.Context) {
	name := s.secret.Name
	change := &secretmanagerpb.Secret{
		Name:           name,
		Etag:           s.secret.Etag,
		Annotations:    map[string]string{"hyperfleet-generation": "7"},
		VersionAliases: map[string]int64{"blue": 2},
	}
	updated := check.Must(s.update(ctx, change, "annotations", "version_aliases"))
	check.Equal(updated.Annotations, change.Annotations)
	check.Equal(updated.VersionAliases, change.VersionAliases)
	check.Equal(updated.Labels, map[string]string{"managed-by": "hyperfleet"})
	check.Equal(string(s.read(ctx, name+"/versions/blue").Payload.Data), "\xff\x00world")
	_, err := s.update(ctx, change, "annotations")
	s.refused(err, codes.FailedPrecondition, "etag")
	_, err = s.update(ctx, &secretmanagerpb.Secret{Name: name, Labels: map[string]string{"Team": "x"}}, "labels")
	s.refused(err, codes.InvalidArgument, "Label key [Team]")

	day := durationpb.New(24 * time.Hour)
	delayed := check.Must(s.update(ctx, &secretmanagerpb.Secret{Name: name, VersionDestroyTtl: day}, "version_destroy_ttl"))
	check.Equal(delayed.VersionDestroyTtl.AsDuration(), 24*time.Hour)
	destroy := &secretmanagerpb.DestroySecretVersionRequest{Name: name + "/versions/2"}
	scheduled := check.Must(s.DestroySecretVersion(ctx, destroy))
	check.That(scheduled.State == secretmanagerpb.SecretVersion_DISABLED && scheduled.ScheduledDestroyTime != nil, "%v", scheduled)
	check.Equal(check.Must(s.GetSecret(ctx, &secretmanagerpb.GetSecretRequest{Name: name})).Etag, delayed.Etag)
}

// lists reads pages and filters.
func (s *story) lists(ctx context.Context) {
	for number := range 5 {
		labels := map[string]string{"managed-by": "other"}
		check.Must(s.newSecret(ctx, fmt.Sprintf("page-%d", number), &secretmanagerpb.Secret{Labels: labels}))
	}
	secrets := s.ListSecrets(ctx, &secretmanagerpb.ListSecretsRequest{Parent: parent})
	pager, sizes := iterator.NewPager(secrets, 2, ""), []int{}
	for token := "first"; token != ""; {
		var page []*secretmanagerpb.Secret
		token = check.Must(pager.NextPage(&page))
		sizes = append(sizes, len(page))
	}
	check.Equal(sizes, []int{2, 2, 2})
	check.Equal(secrets.Response.(*secretmanagerpb.ListSecretsResponse).TotalSize, 6)

	ours := s.ListSecrets(ctx, &secretmanagerpb.ListSecretsRequest{Parent: parent, Filter: "labels.managed-by=hyperfleet"})
	check.Equal(check.Must(ours.Next()).Name, s.secret.Name)
	_, err := ours.Next()
	check.Equal(err, iterator.Done)
	_, err = s.ListSecrets(ctx, &secretmanagerpb.ListSecretsRequest{Parent: parent, Filter: "colour=red"}).Next()
	s.refused(err, codes.InvalidArgument, "there is no field")
}

// permissions asks which are granted, and uses one that is not.
func (s *story) permissions(ctx context.Context) {
	asked := []string{"secretmanager.versions.access", "secretmanager.secrets.setIamPolicy"}
	granted := func(resource string) []string {
		request := &iampb.TestIamPermissionsRequest{Resource: resource, Permissions: asked}
		return check.Must(s.TestIamPermissions(ctx, request)).Permissions
	}
	check.Equal(granted(s.secret.Name), asked[:1])
	check.Equal(len(granted(parent+"/secrets/none")), 0)
	_, err := s.SetIamPolicy(ctx, &iampb.SetIamPolicyRequest{Resource: s.secret.Name, Policy: &iampb.Policy{}})
	denied := s.refused(err, codes.PermissionDenied, "denied for resource")
	check.Equal(denied.Reason(), "IAM_PERMISSION_DENIED")
	check.Equal(denied.Domain(), "iam.googleapis.com")
	check.Equal(denied.Metadata()["permission"], asked[1])
	_, err = s.GetIamPolicy(ctx, &iampb.GetIamPolicyRequest{Resource: s.secret.Name})
	s.refused(err, codes.Unimplemented, "not implemented")
}

// cut reads a version over a connection that ends without an answer. Over HTTP/1.1 the transport repeats the GET itself.
func (s *story) cut(ctx context.Context) {
	request := &secretmanagerpb.GetSecretVersionRequest{Name: s.secret.Name + "/versions/2"}
	if !s.rest {
		_, err := s.GetSecretVersion(ctx, request)
		s.refused(err, codes.Unavailable, "")
	}
	again := gax.WithRetry(func() gax.Retryer {
		return gax.OnCodes([]codes.Code{codes.Unavailable}, gax.Backoff{Initial: 50 * time.Millisecond})
	})
	check.Equal(check.Must(s.GetSecretVersion(ctx, request, again)).Name, request.Name)
}

// end deletes the secret after a failure that says when to come back.
func (s *story) end(ctx context.Context) {
	request := &secretmanagerpb.DeleteSecretRequest{Name: s.secret.Name}
	unavailable := s.refused(s.DeleteSecret(ctx, request), codes.Unavailable, "")
	check.Equal(unavailable.Details().RetryInfo.GetRetryDelay().AsDuration(), 3*time.Second)
	request.Etag = s.secret.Etag
	s.refused(s.DeleteSecret(ctx, request), codes.FailedPrecondition, "etag")
	get := &secretmanagerpb.GetSecretRequest{Name: s.secret.Name}
	request.Etag = check.Must(s.GetSecret(ctx, get)).Etag
	check.OK(s.DeleteSecret(ctx, request))
	_, err := s.GetSecret(ctx, get)
	s.refused(err, codes.NotFound, "Secret ["+s.secret.Name+"] not found.")
}

// regional stores a secret in one location, which takes no replication policy.
func (s *story) regional(ctx context.Context) {
	request := &secretmanagerpb.CreateSecretRequest{Parent: parent + "/locations/europe-west1", SecretId: "there"}
	request.Secret = &secretmanagerpb.Secret{Replication: automatic()}
	_, err := s.CreateSecret(ctx, request)
	s.refused(err, codes.InvalidArgument, "regional")
	request.Secret = &secretmanagerpb.Secret{}
	created := check.Must(s.CreateSecret(ctx, request))
	check.That(strings.Contains(created.Name, "/locations/europe-west1/secrets/there"), "%v", created)
	add := &secretmanagerpb.AddSecretVersionRequest{
		Parent: created.Name, Payload: &secretmanagerpb.SecretPayload{Data: []byte("there")},
	}
	added := check.Must(s.AddSecretVersion(ctx, add))
	check.Equal(added.Name, created.Name+"/versions/1")
	check.Equal(string(s.read(ctx, request.Parent+"/secrets/there/versions/latest").Payload.Data), "there")
}
